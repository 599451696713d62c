"""Speed of every system beside ours: slices pooled, ratios round by round, table, picture. Pure."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

# The one house style of pictures, down to its boxes and letters.
from jobs.suites.picture import (
    BAR,
    BAR_GAP,
    FLOOR,
    LEFT,
    LEGEND_HEIGHT,
    MARGIN,
    NUMBER_WIDTH,
    ROW_GAP,
    SERVICE,
    TITLE_HEIGHT,
    WIDTH,
    draw_box,
    draw_text,
    svg_document,
)
from rayapp.local.cli.output import number_table
from rayapp.search.rules.evaluation import percentile
from tests.bench.peer_ours import OURS
from tests.bench.peer_report import ABSENT, ARROWS

LABELS = {OURS: "ours", "mem0": "mem0 hybrid", "mem0-dense": "mem0 dense", "chroma": "Chroma"}
VALUES_WIDTH = NUMBER_WIDTH + 84  # value and ratio, right of the bars
OK = "200"


@dataclass(frozen=True, slots=True)
class Slice:
    """What one system answered in one turn.

    Attributes:
        cpu_s: of all processes of the system inside the window; None = they are not in reach.
        client_cpu_s: of the client processes.
    """

    system: str
    clients: int
    turn: int
    measure_s: float
    latencies_ms: Sequence[float]
    statuses: Mapping[str, int]
    failed: int
    cpu_s: float | None
    client_cpu_s: float


@dataclass(frozen=True, slots=True)
class Idle:
    """A system that nobody asks: percent of one core, and memory of all its processes."""

    processes: int
    cpu_percent: float
    uss_mib: float
    pss_mib: float


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of slices; `better` = which way is better."""

    key: str
    title: str
    better: str
    of: Callable[[Sequence[Slice]], float | None]


def _latency(share: float) -> Callable[[Sequence[Slice]], float | None]:
    def of(slices: Sequence[Slice]) -> float | None:
        times = [value for one in slices for value in one.latencies_ms]
        return percentile(times, share) if times else None

    return of


def _per_s(slices: Sequence[Slice]) -> float | None:
    wall_s = sum(one.measure_s for one in slices)
    return sum(len(one.latencies_ms) for one in slices) / wall_s if wall_s else None


def _cpu_ms(slices: Sequence[Slice]) -> float | None:
    spent = [one.cpu_s for one in slices if one.cpu_s is not None]
    count = sum(len(one.latencies_ms) for one in slices)
    return 1_000.0 * sum(spent) / count if count and len(spent) == len(slices) else None


METRICS = (
    Metric("p50_ms", "p50 ms", "lower", _latency(0.5)),
    Metric("p95_ms", "p95 ms", "lower", _latency(0.95)),
    Metric("per_s", "requests/s", "higher", _per_s),
    Metric("cpu_ms", "CPU ms per search", "lower", _cpu_ms),
)
IDLE = {
    "cpu_percent": "idle CPU, % of a core",
    "uss_mib": "idle memory USS, MiB",
    "pss_mib": "idle memory PSS, MiB",
}


def ratio(
    metric: Metric, theirs: Sequence[Slice], base: Sequence[Slice]
) -> dict[str, float] | None:
    """`theirs` over `base`: the median of the turns' ratios, and the least and the most of them.

    A turn asks every system within seconds, so what slows the machine down for longer than that
    slows both sides of a ratio.
    """
    found = []
    for turn in sorted({one.turn for one in theirs} & {one.turn for one in base}):
        a, b = (metric.of([one for one in side if one.turn == turn]) for side in (theirs, base))
        if a is not None and b:
            found.append(a / b)
    if not found:
        return None
    return {
        "median": round(statistics.median(found), 3),
        "low": round(min(found), 3),
        "high": round(max(found), 3),
    }


def driven(slices: Sequence[Slice], ours: Sequence[Slice]) -> dict[str, Any]:
    """One system under one number of clients; `ratio_to_ours` is empty for ours."""
    statuses: Counter[str] = Counter()
    for one in slices:
        statuses.update(one.statuses)
    requests = sum(len(one.latencies_ms) for one in slices)
    client_s = sum(one.client_cpu_s for one in slices)
    report: dict[str, Any] = {
        "requests": requests,
        "statuses": dict(statuses),
        "failed": sum(one.failed for one in slices),
        "client_cpu_ms": round(1_000.0 * client_s / requests, 3) if requests else None,
        "ratio_to_ours": {},
    }
    for metric in METRICS:
        value = metric.of(slices)
        report[metric.key] = None if value is None else round(value, 3)
        if ours and slices[0].system != OURS:
            report["ratio_to_ours"][metric.key] = ratio(metric, slices, ours)
    return report


def systems_report(slices: Sequence[Slice], idle: Mapping[str, Idle]) -> dict[str, dict[str, Any]]:
    """By system, in the order first asked: `clients` by their number, and `idle`."""
    report: dict[str, dict[str, Any]] = {}
    for system in dict.fromkeys(one.system for one in slices):
        entry: dict[str, Any] = {"clients": {}}
        own = [one for one in slices if one.system == system]
        for clients in sorted({one.clients for one in own}):
            ours = [one for one in slices if (one.system, one.clients) == (OURS, clients)]
            asked = [one for one in own if one.clients == clients]
            entry["clients"][str(clients)] = driven(asked, ours)
        if system in idle:
            entry["idle"] = idle_report(idle[system], idle.get(OURS))
        report[system] = entry
    return report


def idle_report(one: Idle, ours: Idle | None) -> dict[str, Any]:
    report: dict[str, Any] = {"processes": one.processes, "ratio_to_ours": {}}
    for key in IDLE:
        value = getattr(one, key)
        report[key] = round(value, 2)
        if ours is not None and one is not ours and getattr(ours, key):
            report["ratio_to_ours"][key] = round(value / getattr(ours, key), 4)
    return report


def against(slices: Sequence[Slice]) -> dict[str, Any]:
    """Ours over every peer by number of clients and metric, and which peer is the best in it."""
    found: dict[str, Any] = {}
    for clients in sorted({one.clients for one in slices}):
        sides: dict[str, list[Slice]] = {}
        for one in slices:
            if one.clients == clients:
                sides.setdefault(one.system, []).append(one)
        ours = sides.pop(OURS, None)
        if ours is None or not sides:
            continue
        found[str(clients)] = {metric.key: _against(metric, ours, sides) for metric in METRICS}
    return found


def _against(
    metric: Metric, ours: Sequence[Slice], peers: Mapping[str, Sequence[Slice]]
) -> dict[str, Any]:
    values = {name: metric.of(own) for name, own in peers.items()}
    known = {name: value for name, value in values.items() if value is not None}
    if not known:
        return {}
    best = (min if metric.better == "lower" else max)(known, key=lambda name: known[name])
    return {"over": {name: ratio(metric, ours, own) for name, own in peers.items()}, "best": best}


def failed(slices: Sequence[Slice]) -> bool:
    """True when a system answered nothing, or anything but 200."""
    return any(one.failed or not one.latencies_ms or set(one.statuses) - {OK} for one in slices)


@dataclass(frozen=True, slots=True)
class Line:
    """One number of every system: (value, ratio to ours), both None where there is none.

    `drawn`: it is in the picture too, which shows one of each kind.
    """

    title: str
    better: str
    cells: Mapping[str, tuple[float | None, float | None]]
    drawn: bool


def who(clients: int) -> str:
    return "1 client" if clients == 1 else f"{clients} clients"


def lines(systems: Mapping[str, Mapping[str, Any]]) -> Iterator[Line]:
    """What the table and the picture show, in this order."""
    counts = sorted({int(count) for entry in systems.values() for count in entry["clients"]})
    for clients in counts:
        for metric in METRICS:
            cells = {}
            for name, entry in systems.items():
                seen = entry["clients"].get(str(clients), {})
                over = seen.get("ratio_to_ours", {}).get(metric.key) or {}
                cells[name] = seen.get(metric.key), over.get("median")
            # Throughput is of the most clients, everything else of one that waits for nobody.
            drawn = clients == (counts[-1] if metric.key == "per_s" else counts[0])
            yield Line(f"{metric.title}, {who(clients)}", metric.better, cells, drawn)
    for key, title in IDLE.items():
        quiet = {name: entry.get("idle", {}) for name, entry in systems.items()}
        cells = {
            name: (seen.get(key), seen.get("ratio_to_ours", {}).get(key))
            for name, seen in quiet.items()
        }
        yield Line(title, "lower", cells, drawn=key != "pss_mib")


def shown(value: float | None, over: float | None, between: str) -> str:
    """`9.61 ×0.82`, or a dash."""
    if value is None:
        return ABSENT
    text = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    return text if over is None else f"{text}{between}×{over:.2f}"


def table(systems: Mapping[str, Mapping[str, Any]], title: str) -> Table:
    """One column per system; ×: ratio to ours, the median over turns."""
    heads = ("what (×: ratio to ours)", *(LABELS[name] for name in systems))
    made = number_table(title, heads)
    for line in lines(systems):
        if any(value is not None for value, _ in line.cells.values()):
            cells = [shown(*line.cells[name], between="  ") for name in systems]
            made.add_row(f"{line.title} {ARROWS[line.better]}", *cells)
    return made


def summary(over: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """`p50 ms, 1 client: ours over mem0 hybrid ×0.91 (0.88 to 0.95), …; best peer: Chroma`."""
    for clients, metrics in over.items():
        for metric in METRICS:
            seen = metrics[metric.key]
            if not seen:
                continue
            sides = ", ".join(
                f"{LABELS[name]} ×{one['median']:.2f} ({one['low']:.2f} to {one['high']:.2f})"
                for name, one in seen["over"].items()
                if one is not None
            )
            best = LABELS[seen["best"]]
            yield f"{metric.title}, {who(int(clients))}: ours over {sides}; best peer: {best}"


def picture(systems: Mapping[str, Mapping[str, Any]], caption: str) -> str:
    """The SVG: per number a bar for each system, as long as its part of the largest."""
    parts = [draw_text(MARGIN, MARGIN + 12, caption, weight="bold", size=14)]
    parts.append(draw_text(MARGIN, MARGIN + 34, "×: ratio to ours; ↑ ↓: which way is better"))
    top = MARGIN + LEGEND_HEIGHT
    for line in lines(systems):
        most = max((value or 0.0 for value, _ in line.cells.values()), default=0.0)
        if not (line.drawn and most):
            continue
        title = f"{line.title} {ARROWS[line.better]}"
        parts.append(draw_text(MARGIN, top + 14, title, weight="bold"))
        top += TITLE_HEIGHT - ROW_GAP
        for name, (value, over) in line.cells.items():
            parts += _bar(name, top, (value or 0.0) / most, shown(value, over, "  "))
            top += BAR + BAR_GAP
        top += ROW_GAP
    return svg_document("\n".join(parts), top + MARGIN, caption)


def _bar(name: str, top: float, share: float, text: str) -> list[str]:
    left = LEFT - 200  # shorter labels than those of the evaluation
    width = (WIDTH - MARGIN - VALUES_WIDTH - left) * share
    colour = SERVICE if name == OURS else FLOOR
    return [
        draw_text(left - 8, top + BAR - 1, LABELS[name], anchor="end", size=11),
        draw_box(left, top, width, BAR, colour, f"{LABELS[name]}: {text}"),
        draw_text(WIDTH - MARGIN, top + BAR - 1, text, anchor="end", size=11),
    ]
