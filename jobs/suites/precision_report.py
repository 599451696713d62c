"""The precision suite as JSON values, Markdown and a terminal table. Ids, never a text."""

from typing import Any

from rich.table import Table

from jobs.suites.precision import HEADLINE, WAYS, PrecisionRun
from jobs.suites.rows import Row
from rayapp.local.cli.output import markdown_table, number_table

_HEAD = ("asked", "active passed", "active", "all passed", "all")


def report(run: PrecisionRun) -> dict[str, Any]:
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


def tables(run: PrecisionRun) -> list[Table]:
    """Cases passed by way, then those that were not, by the way that counts."""
    passed = number_table("precision: cases passed", _HEAD, _rows(run))
    if not (rows := _failed(run)):
        return [passed]
    title = f"precision: not passed ({HEADLINE})"
    return [passed, number_table(title, ("case", "reason"), rows, words=2)]


def markdown(run: PrecisionRun) -> str:
    lines = ["## precision", "", line(run), "", *markdown_table(_HEAD, _rows(run))]
    if _failed(run):
        lines += ["", f"Not passed ({HEADLINE}):", ""]
        lines += [f"- {name}: {reason}" for name, reason in _failed(run)]
    return "\n".join(lines) + "\n"


def rows(run: PrecisionRun) -> list[Row]:
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


def line(run: PrecisionRun) -> str:
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
