"""Grafana's dashboards, made of the table of metrics.

    python -m jobs.build.monitoring

`configs/monitoring/dashboards.yaml` says which metric stands where. A counter is shown as its rate,
a gauge as its sum, a time by its median and its 95th percentile. Written to
`configs/monitoring/grafana`; Grafana imports the files, or reads the folder as a provisioned one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from jobs.ending import command_parser
from rayapp.core.errors import ConfigError
from rayapp.core.metrics import METRICS, Metric
from rayapp.core.settings.load import CONFIG_DIR

FOLDER = CONFIG_DIR / "monitoring"
TABLE, BUILT = FOLDER / "dashboards.yaml", FOLDER / "grafana"
# What Ray's agent puts before a name, and what a counter ends with.
PREFIX, COUNTED = "ray_rayapp_", "_total"
WINDOW = "$__rate_interval"
QUANTILES = (0.5, 0.95)
WIDTH, HEIGHT, COLUMNS = 8, 8, 3
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Beside(BaseModel):
    """A panel of what others measure."""

    model_config = ConfigDict(extra="forbid")
    title: str
    expr: str
    unit: str = "short"


class Dashboard(BaseModel):
    """`metrics`: names of the table."""

    model_config = ConfigDict(extra="forbid")
    title: str
    metrics: tuple[str, ...]
    beside: tuple[Beside, ...] = ()


def load_dashboards(path: Path = TABLE) -> dict[str, Dashboard]:
    """ConfigError: a metric stands nowhere, twice, or is none."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = TypeAdapter(dict[str, Dashboard]).validate_python(tree)
    shown = [name for each in found.values() for name in each.metrics]
    wrong = sorted({*(METRICS.keys() ^ set(shown)), *(n for n in shown if shown.count(n) > 1)})
    if wrong:
        raise ConfigError(
            f"{path.name}: {', '.join(wrong)}: every metric stands on one dashboard: add or remove "
            "its line and run `python -m jobs.build.monitoring`."
        )
    return found


def queries_of(name: str, metric: Metric) -> dict[str, str]:
    """Legend and expression of each line of a metric's panel."""
    full, labels = f"{PREFIX}{name}", ", ".join(metric.labels)
    by = f" by ({labels})" if labels else ""
    legend = " ".join(f"{{{{{label}}}}}" for label in metric.labels) or name
    if metric.kind == "counter":
        return {legend: f"sum{by} (rate({full}{COUNTED}[{WINDOW}]))"}
    if metric.kind == "gauge":
        return {legend: f"sum{by} ({full})"}
    inside = ", ".join(("le", *metric.labels))
    return {
        f"p{quantile * 100:.0f} {legend}": f"histogram_quantile({quantile}, "
        f"sum by ({inside}) (rate({full}_bucket[{WINDOW}])))"
        for quantile in QUANTILES
    }


def unit_of(name: str, metric: Metric) -> str:
    """Grafana's name of the unit."""
    if metric.kind == "counter":
        return "ops"
    return "bytes" if name.endswith("_bytes") else "s" if name.endswith("_s") else "short"


def render(name: str, dashboard: Dashboard) -> dict[str, Any]:
    """A dashboard as Grafana imports it."""
    return {
        "uid": f"rayapp-{name}",
        "title": f"rayapp · {dashboard.title}",
        "tags": ["rayapp"],
        "schemaVersion": 39,
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
        },
        "panels": [
            {
                "id": number + 1,
                "gridPos": {
                    "x": number % COLUMNS * WIDTH,
                    "y": number // COLUMNS * HEIGHT,
                    "w": WIDTH,
                    "h": HEIGHT,
                },
                **panel,
            }
            for number, panel in enumerate(_panels(dashboard))
        ],
    }


def _panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    for name in dashboard.metrics:
        metric = METRICS[name]
        yield _panel(metric.help.rstrip("."), queries_of(name, metric), unit_of(name, metric))
    for each in dashboard.beside:
        yield _panel(each.title, {"__auto": each.expr}, each.unit)


def _panel(title: str, queries: Mapping[str, str], unit: str) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": title,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "expr": expr, "legendFormat": legend}
            for place, (legend, expr) in enumerate(queries.items())
        ],
    }


def written(dashboards: Mapping[str, Dashboard]) -> dict[str, str]:
    """The text of each file."""
    return {
        f"{name}.json": json.dumps(render(name, each), indent=1, ensure_ascii=False) + "\n"
        for name, each in dashboards.items()
    }


def main() -> None:
    command_parser("jobs.build.monitoring", __doc__, out=False).parse_args()
    BUILT.mkdir(exist_ok=True)
    for name, text in written(load_dashboards()).items():
        (BUILT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
