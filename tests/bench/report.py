"""The load report as one table of rows: measured, and the bar where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.table import Table

# What the service promises at 100,000 memories of 1,000 users on two cores.
BARS: dict[str, str] = {
    "search_1 p50 / p95 ms": "10 / 30",
    "search_8 p95 ms": "90",
    "search_8 requests/s": "180",
    "search_heavy p95 ms": "60",
    "store_1 p95 ms": "25",
    "fill items/s acknowledged": "1000",
    "index_delay p95 ms": "1000",
    "memory_before PSS MiB": "2560",
}


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    value: str

    @property
    def bar(self) -> str:
        return BARS.get(self.name, "")


def rows(report: dict[str, Any]) -> Iterator[Row]:
    """Every measured number once, in the order of the phases."""
    if "fill" in report:
        fill = report["fill"]
        yield Row("fill items/s acknowledged", f"{fill['items_per_s']:.0f}")
        yield Row("fill until all indexed, s", f"{fill['indexed_s']:.1f}")
    for name, section in report.items():
        if isinstance(section, dict) and "latency_ms" in section:
            yield from _latency(name, section)
    if "index_delay" in report:
        spread = report["index_delay"]["delay_ms"]
        yield Row("index_delay p50 ms", f"{spread['p50']:.0f}")
        yield Row("index_delay p95 ms", f"{spread['p95']:.0f}")
    for name in ("memory_before", "memory_after"):
        if name in report:
            yield Row(f"{name} PSS MiB", f"{report[name]['pss_mib']:.0f}")
            yield Row(f"{name} RSS MiB", f"{report[name]['rss_mib']:.0f}")


def _latency(name: str, section: dict[str, Any]) -> Iterator[Row]:
    spread = section["latency_ms"]
    yield Row(f"{name} p50 / p95 ms", f"{spread['p50']:.2f} / {spread['p95']:.2f}")
    yield Row(f"{name} p95 ms", f"{spread['p95']:.2f}")
    yield Row(f"{name} p99 ms", f"{spread['p99']:.2f}")
    yield Row(f"{name} requests/s", f"{section['per_s']:.0f}")
    yield Row(f"{name} client CPU, cores", f"{section['client_cpu_share']:.2f}")


def table(report: dict[str, Any]) -> Table:
    made = Table(title=f"Load, run {report['run_id']}", title_justify="left")
    made.add_column("what")
    made.add_column("measured", justify="right")
    made.add_column("bar", justify="right")
    for row in rows(report):
        made.add_row(row.name, row.value, row.bar)
    return made


def markdown(report: dict[str, Any]) -> str:
    """The table, stage timings, processes, and how the delay was measured."""
    load = report["load"]
    lines = [
        f"# Load, run {report['run_id']}",
        "",
        f"{load['memories']} memories of {load['users']} users, {load['heavy']} of one heavy user,"
        f" {report['cores']} cores, {report['at']}.",
        "",
        "| what | measured | bar |",
        "|---|---:|---:|",
        *(f"| {row.name} | {row.value} | {row.bar} |" for row in rows(report)),
    ]
    for name, section in report.items():
        if isinstance(section, dict) and section.get("stages_ms"):
            lines += [
                "",
                f"## Stages of {name}, ms",
                "",
                "| stage | p50 | p95 |",
                "|---|---:|---:|",
            ]
            for stage, spread in section["stages_ms"].items():
                lines.append(f"| {stage} | {spread['p50']:.2f} | {spread['p95']:.2f} |")
    if "memory_after" in report:
        lines += [
            "",
            "## Processes after",
            "",
            "| process | PSS MiB | RSS MiB |",
            "|---|---:|---:|",
        ]
        for one in report["memory_after"]["processes"]:
            lines.append(f"| {one['name']} | {one['pss_mib']} | {one['rss_mib']} |")
    if "index_delay" in report:
        lines += ["", "## Indexing delay", "", report["index_delay"]["method"]]
    return "\n".join(lines) + "\n"
