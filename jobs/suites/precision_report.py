"""The precision suite as JSON values, Markdown and a terminal table. Ids, never a text."""

from typing import Any

from rich.table import Table

from jobs.suites.precision import HEADLINE, WAYS, PrecisionRun
from jobs.suites.rows import Row

_HEAD = ("asked", "active passed", "active", "all passed", "all")


def precision_report(run: PrecisionRun) -> dict[str, Any]:
    """The JSON section: every case with what was wrong."""
    return {
        "suite": "precision",
        "stored": run.stored,
        "rejected": run.rejected,
        "ways": {
            way: {"active": list(run.share(way, active=True)), "all": list(run.share(way))}
            for way in WAYS
        },
        "cases": [
            {
                "id": one.case_id,
                "category": one.category,
                "way": one.way,
                "active": one.active,
                "passed": one.passed,
                "reason": one.reason,
                "relevant": list(one.relevant),
            }
            for one in run.results
        ],
    }


def precision_tables(run: PrecisionRun) -> list[Table]:
    """Cases passed by way, then those that were not, by the way that counts."""
    passed = Table(title="precision: cases passed", title_justify="left")
    for name in _HEAD:
        passed.add_column(name, justify="left" if name == _HEAD[0] else "right")
    for cells in _rows(run):
        passed.add_row(*cells)
    failed = Table(title=f"precision: not passed ({HEADLINE})", title_justify="left")
    failed.add_column("case")
    failed.add_column("reason")
    for name, reason in _failed(run):
        failed.add_row(name, reason)
    return [passed, failed] if _failed(run) else [passed]


def precision_markdown(run: PrecisionRun) -> str:
    """The same as Markdown."""
    lines = ["## precision", "", precision_line(run), ""]
    lines += ["| " + " | ".join(_HEAD) + " |", "|---|" + "---:|" * (len(_HEAD) - 1)]
    lines += ["| " + " | ".join(cells) + " |" for cells in _rows(run)]
    if _failed(run):
        lines += ["", f"Not passed ({HEADLINE}):", ""]
        lines += [f"- {name}: {reason}" for name, reason in _failed(run)]
    return "\n".join(lines) + "\n"


def precision_rows(run: PrecisionRun) -> list[Row]:
    """One row per case and way: 1.0 = passed."""
    return [
        Row(
            part=f"{one.way} active" if one.active else f"{one.way} empty",
            question_id=one.case_id,
            category=one.category,
            lang="en",
            values={"passed": float(one.passed)},
        )
        for one in run.results
    ]


def precision_line(run: PrecisionRun) -> str:
    """One sentence with what was stored and passed."""
    active, of = run.share(HEADLINE, active=True)
    passed, asked = run.share(HEADLINE)
    return (
        f"{run.stored} memories stored; {active} of {of} cases that must return something passed, "
        f"{passed} of all {asked}."
    )


def _rows(run: PrecisionRun) -> list[tuple[str, ...]]:
    return [
        (way, *map(str, run.share(way, active=True)), *map(str, run.share(way))) for way in WAYS
    ]


def _failed(run: PrecisionRun) -> list[tuple[str, str]]:
    return [
        (one.case_id, one.reason)
        for one in run.results
        if one.way == HEADLINE and one.reason is not None
    ]
