"""The load report as one table of rows: measured, and the target where there is one."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.table import Table

from rayapp.local.cli.output import markdown_table, number_table

# What is aimed at on two cores, by (memories, users, memories of the heavy user): another load says
# nothing about them, so none is shown beside it.
TARGETS: dict[tuple[int, int, int], dict[str, str]] = {
    (100_000, 1_000, 0): {
        "search_1 p50 / p95 ms": "10 / 30",
        "search_1 overhead, HTTP ÷ stores": "4",
        "search_8 p95 ms": "90",
        "search_8 requests/s": "180",
        "store_1 p95 ms": "25",
        "index_delay p95 ms": "1000",
        "batch_store items/s acknowledged": "1000",
        "memory_idle PSS MiB": "2560",
    },
    (100_000, 1_000, 20_000): {"search_heavy p95 ms": "60"},
}
MEMORY = ("memory_before", "memory_idle", "memory_after")
OVERHEAD = (
    "Overhead is the p50 of a search over HTTP, divided by the p50 of the time that its answer says"
    " it waited for the engine and MongoDB, one after the other. That time has parts of the service"
    " in it, so the true overhead is larger: `tests.bench.search_profile` asks the stores alone."
)


HEAD = ("what", "measured", "target")


class Row(NamedTuple):
    name: str
    value: str
    target: str = ""


def rows(report: dict[str, Any]) -> list[Row]:
    """Every measured number once, in the order of the phases, with the target of this load."""
    load = report["load"]
    targets = TARGETS.get((load["memories"], load["users"], load["heavy"]), {})
    return [Row(name, value, targets.get(name, "")) for name, value in _measured(report)]


def _measured(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "fill" in report:
        fill = report["fill"]
        yield "fill items/s acknowledged", f"{fill['items_per_s']:.0f}"
        yield "fill until all indexed, s", f"{fill['indexed_s']:.1f}"
    for name, section in report.items():
        if isinstance(section, dict) and "latency_ms" in section:
            yield from _latency(name, section)
    if "knee" in report:
        clients, most = report["knee"]["clients"], report["knee"]["most"]
        yield "search knee, clients", f"above {most}" if clients is None else str(clients)
    if "index_delay" in report:
        spread = report["index_delay"]["delay_ms"]
        yield "index_delay p50 ms", f"{spread['p50']:.0f}"
        yield "index_delay p95 ms", f"{spread['p95']:.0f}"
    if "batch_store" in report:
        batch = report["batch_store"]
        yield "batch_store items/s acknowledged", f"{batch['items_per_s']:.0f}"
        yield "batch_store until all indexed, s", f"{batch['indexed_s']:.1f}"
        yield "batch_store refused", str(batch["refused"])
    for name in MEMORY:
        if name in report:
            yield f"{name} PSS MiB", f"{report[name]['pss_mib']:.0f}"
            yield f"{name} RSS MiB", f"{report[name]['rss_mib']:.0f}"


def _latency(name: str, section: dict[str, Any]) -> Iterator[tuple[str, str]]:
    spread = section["latency_ms"]
    yield f"{name} p50 / p95 ms", f"{spread['p50']:.2f} / {spread['p95']:.2f}"
    yield f"{name} p95 ms", f"{spread['p95']:.2f}"
    yield f"{name} p99 ms", f"{spread['p99']:.2f}"
    yield f"{name} requests/s", f"{section['per_s']:.0f}"
    yield f"{name} refused", str(section["refused"])
    yield f"{name} client CPU, cores", f"{section['client_cpu_share']:.2f}"
    if section["stages_ms"]:
        yield f"{name} answered by the index", f"{section['from_index']:.1%}"
    if "overhead" in section:
        yield f"{name} overhead, HTTP ÷ stores", f"{section['overhead']:.2f}"


def table(report: dict[str, Any]) -> Table:
    return number_table(f"Load, run {report['run_id']}", HEAD, rows(report))


def markdown(report: dict[str, Any]) -> str:
    """The table, stage timings, processes, and how the delay was measured."""
    load = report["load"]
    lines = [
        f"# Load, run {report['run_id']}",
        "",
        f"{load['memories']} memories of {load['users']} users, {load['heavy']} of one heavy user,"
        f" {report['cores']} cores, {report['at']}.",
        "",
        *markdown_table(HEAD, rows(report)),
    ]
    if any(isinstance(section, dict) and "overhead" in section for section in report.values()):
        lines += ["", OVERHEAD]
    for name, section in report.items():
        if isinstance(section, dict) and section.get("stages_ms"):
            taken = section["stages_ms"].items()
            cells = [(stage, f"{one['p50']:.2f}", f"{one['p95']:.2f}") for stage, one in taken]
            lines += ["", f"## Stages of {name}, ms", ""]
            lines += markdown_table(("stage", "p50", "p95"), cells)
    if "memory_after" in report:
        parts = ("name", "pss_mib", "rss_mib")
        found = report["memory_after"]["processes"]
        sizes = [[str(one[part]) for part in parts] for one in found]
        lines += ["", "## Processes after", ""]
        lines += markdown_table(("process", "PSS MiB", "RSS MiB"), sizes)
    if "index_delay" in report:
        lines += ["", "## Indexing delay", "", report["index_delay"]["method"]]
    return "\n".join(lines) + "\n"
