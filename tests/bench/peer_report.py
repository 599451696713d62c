"""Every system beside ours: quality with intervals, speed, and ratios to ours. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from jobs.suites.locomo import HEADLINE
from rayapp.local.cli.output import number_table
from rayapp.search.rules.evaluation import METRICS, Estimate, Judged, estimate, percentile
from tests.bench.peer_ours import OURS
from tests.bench.peer_protocol import Part, PartRun, SystemRun, same_texts

LOCOMO, SPEED, BARE = "locomo", "speed", "bare-http"
SHOWN = ("R@1", "hit@10", "MRR")
ABSENT = "–"
ARROWS = {"higher": "↑", "lower": "↓"}  # which way is better


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a system. `better` = which way is better, for whoever reads the ratio."""

    title: str
    part: str
    key: str
    better: str


COLUMNS = (
    Column("LoCoMo R@1", LOCOMO, "R@1", "higher"),
    Column("LoCoMo hit@10", LOCOMO, "hit@10", "higher"),
    Column("LoCoMo MRR", LOCOMO, "MRR", "higher"),
    Column("HeQ R@1", "heq", "R@1", "higher"),
    Column("ParaShoot R@1", "parashoot", "R@1", "higher"),
    *(
        Column(f"{title} {key}", part, key, "higher")
        for title, part in (
            ("BEAM", "beam"),
            ("BEAM, exchanges", "beam-exchanges"),
            ("mixed store", "mixed"),
        )
        for key in ("hit@10", "MRR")
    ),
    Column("ingest items/s", SPEED, "items_per_s", "higher"),
    Column("search p50 ms", SPEED, "p50_ms", "lower"),
    Column("search p95 ms", SPEED, "p95_ms", "lower"),
    Column("the same, bare HTTP, p50 ms", BARE, "p50_ms", "lower"),
    Column("the same, bare HTTP, p95 ms", BARE, "p95_ms", "lower"),
)


def judged(part: Part, run: PartRun) -> list[Judged]:
    """Counted questions with what came back; a system that answered fewer is not judged.

    Raises:
        ValueError: answers and questions do not pair up.
    """
    same = run.same or same_texts(part)
    found = []
    for (user, question), answer in zip(part.questions, run.answers, strict=True):
        if question.question_id != answer.name:
            raise ValueError(f"answer {answer.name} is not of question {question.question_id}")
        names = [same.get((user, name), name) for name in answer.ranked]
        gold = [same.get((user, name), name) for name in question.gold]
        found.append(
            Judged(
                question_id=question.question_id,
                gold=tuple(dict.fromkeys(gold)),
                ranked=tuple(dict.fromkeys(names)),
                category=question.category,
                lang=question.lang,
            )
        )
    return [one for one in found[part.warm :] if counted(part, one)]


def counted(part: Part, one: Judged) -> bool:
    """LoCoMo is averaged over its categories 1 to 4, every other part over all questions."""
    return part.name != LOCOMO or one.category in HEADLINE


def part_report(part: Part, run: PartRun) -> dict[str, Any]:
    """Quality, latency and ingest of one part."""
    ones = judged(part, run)
    times = [answer.ms for answer in run.answers[part.warm :]]
    report: dict[str, Any] = {
        "questions": len(ones),
        **{name: asdict(estimate([METRICS[name](one) for one in ones])) for name in SHOWN},
        "p50_ms": round(percentile(times, 0.5), 3),
        "p95_ms": round(percentile(times, 0.95), 3),
        "p99_ms": round(percentile(times, 0.99), 3),
    }
    stored = run.stored
    if stored is not None:
        report |= {"items": stored.items, "items_timed": stored.timed}
        report["items_per_s"] = round(stored.per_s, 1)
        if stored.acknowledged_s:
            report["acknowledged_per_s"] = round(stored.timed / stored.acknowledged_s, 1)
    return report


def paired(part: Part, ours: PartRun, theirs: PartRun) -> dict[str, Any]:
    """Ours minus theirs, question by question: an interval without 0 is a difference."""
    pairs = list(zip(judged(part, ours), judged(part, theirs), strict=True))
    return {
        name: asdict(estimate([METRICS[name](a) - METRICS[name](b) for a, b in pairs]))
        for name in SHOWN
    }


def systems_report(parts: Sequence[Part], runs: Sequence[SystemRun]) -> list[dict[str, Any]]:
    """One entry per system in the order they ran, with ratios to ours where ours ran."""
    ours = next((run for run in runs if run.system == OURS and run.failed is None), None)
    base = None if ours is None else _parts(parts, ours)
    entries = []
    for run in runs:
        entry: dict[str, Any] = {
            "system": run.system,
            "versions": run.versions,
            "note": run.note,
            "failed": run.failed,
            "elapsed_s": round(run.elapsed_s, 1),
        }
        if run.failed is None:
            entry["parts"] = _parts(parts, run)
            if base is not None and ours is not None and run is not ours:
                entry["ratio_to_ours"] = ratios(entry["parts"], base)
                entry["ours_minus_this"] = {
                    part.name: paired(part, ours.parts[part.name], run.parts[part.name])
                    for part in parts
                    if _complete(part, run) and _same_questions(part, ours, run)
                }
        entries.append(entry)
    return entries


def _parts(parts: Sequence[Part], run: SystemRun) -> dict[str, dict[str, Any]]:
    return {
        part.name: part_report(part, run.parts[part.name]) for part in parts if _complete(part, run)
    }


def _complete(part: Part, run: SystemRun) -> bool:
    return bool(part.name in run.parts and run.parts[part.name].answers)


def _same_questions(part: Part, ours: SystemRun, run: SystemRun) -> bool:
    asked = ([a.name for a in one.parts[part.name].answers] for one in (ours, run))
    return next(asked) == next(asked)


def value_of(parts: Mapping[str, Mapping[str, Any]], column: Column) -> float | None:
    """The number of a column, None where the system has none."""
    value = parts.get(column.part, {}).get(column.key)
    if isinstance(value, dict):
        return float(value["mean"])
    return None if value is None else float(value)


def ratios(
    parts: Mapping[str, Mapping[str, Any]], base: Mapping[str, Mapping[str, Any]]
) -> dict[str, float]:
    """Theirs over ours per column; a column where either is absent or ours is 0 has none."""
    found = {}
    for column in COLUMNS:
        theirs, ours = value_of(parts, column), value_of(base, column)
        if theirs is not None and ours:
            found[column.title] = round(theirs / ours, 3)
    return found


def table(entries: Sequence[Mapping[str, Any]], title: str) -> Table:
    """One column per system: value, interval and ratio to ours."""
    heads = ("what (×: ratio to ours)", *(str(entry["system"]) for entry in entries))
    made = number_table(title, heads)
    made.show_lines = True
    for column in COLUMNS:
        cells = [cell(entry, column) for entry in entries]
        if any(text != ABSENT for text in cells):
            made.add_row(f"{column.title} {ARROWS[column.better]}", *cells)
    return made


def cell(entry: Mapping[str, Any], column: Column) -> str:
    """`0.539 [0.50, 0.57]` and below it `×0.93`, or a dash."""
    if entry.get("failed"):
        return "not runnable"
    value = entry["parts"].get(column.part, {}).get(column.key)
    if value is None:
        return ABSENT
    ratio = entry.get("ratio_to_ours", {}).get(column.title)
    tail = "" if ratio is None else f"\n×{ratio:.2f}"
    if isinstance(value, dict):
        shown = Estimate(**value)
        return f"{shown.mean:.3f}\n[{shown.low:.3f}, {shown.high:.3f}]{tail}"
    return f"{value:,.0f}{tail}" if value >= 100 else f"{value:.2f}{tail}"


def notes(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What each system is, and why one has no numbers."""
    for entry in entries:
        if entry["failed"]:
            yield f"{entry['system']}: not runnable here: {entry['failed']}"
            continue
        versions = ", ".join(f"{name} {number}" for name, number in entry["versions"].items())
        yield f"{entry['system']}: {entry['note']}{f' ({versions})' if versions else ''}"
        for name, part in entry["parts"].items():
            if part.get("items_timed", 0) < part.get("items", 0):
                yield (
                    f"  {name}: ingest timed over the first {part['items_timed']:,} of "
                    f"{part['items']:,} items; the rest went in by its own batch insert"
                )
