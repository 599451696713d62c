"""Dashboards and alerts name metrics that there are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.build.monitoring import (
    BUILT,
    FOLDER,
    PREFIX,
    TABLE,
    WINDOW,
    Dashboard,
    load_dashboards,
    queries_of,
    written,
)
from rayapp.core.errors import ConfigError
from rayapp.core.metrics import METRICS, Metric

ENDINGS = {"counter": {"_total"}, "gauge": {""}, "histogram": {"_bucket", "_sum", "_count"}}
# What Ray itself measures.
OF_RAY = re.compile(r"\bray_(?:node|serve)_\w+")
NAME = re.compile(rf"\b{PREFIX}(\w+)")
PROMTOOL = shutil.which("promtool")


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions(dashboards: dict[str, Dashboard]) -> list[str]:
    shown = [
        expr.replace(WINDOW, "5m")
        for each in dashboards.values()
        for name in each.metrics
        for expr in queries_of(name, METRICS[name]).values()
    ]
    return shown + [one.expr for each in dashboards.values() for one in each.beside]


def metric_of(name: str) -> Metric:
    """That a query names, with the ending of its kind."""
    found = [
        spec
        for one, spec in METRICS.items()
        if name in {f"{one}{ending}" for ending in ENDINGS[spec.kind]}
    ]
    assert len(found) == 1, name
    return found[0]


def test_the_dashboards_are_those_of_the_tables() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in BUILT.glob("*.json")}
    assert texts == written(load_dashboards())


def test_every_metric_stands_on_one_dashboard(tmp_path: Path) -> None:
    tree = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    tree["cost"]["metrics"] = ["model_asks", "model_asks", "not_one"]
    copy = tmp_path / "dashboards.yaml"
    copy.write_text(yaml.safe_dump(tree), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"model_asks, model_latency_s, .*not_one"):
        load_dashboards(copy)


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_an_alert_names_metrics_and_labels_that_there_are(rule: dict[str, Any]) -> None:
    named = NAME.findall(rule["expr"])
    assert named or OF_RAY.search(rule["expr"])
    labels = {label for name in named for label in metric_of(name).labels} | {"le", "instance"}
    grouped = re.findall(r"by \(([^)]*)\)", rule["expr"])
    chosen = re.findall(r"(\w+)[!=]=?~?\"", rule["expr"])
    told = re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
    used = {one.strip() for group in grouped for one in group.split(",")} | {*chosen, *told}
    assert used <= labels
    assert rule["annotations"]["action"].endswith(".")


if PROMTOOL:

    def test_prometheus_takes_every_rule_and_every_query(tmp_path: Path) -> None:
        rules = [
            {"record": f"rayapp:panel:{place}", "expr": expr}
            for place, expr in enumerate(expressions(load_dashboards()))
        ]
        panels = tmp_path / "panels.yaml"
        panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
        command = [PROMTOOL, "check", "rules", str(FOLDER / "alerts.yaml"), str(panels)]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stdout + said.stderr
