"""The DataGov suite as JSON values, Markdown and terminal tables. Ids and ranks, never a text."""

from collections import Counter
from dataclasses import replace
from typing import Any

from rich.table import Table

from jobs.suites import report as plain
from jobs.suites.datagov import DatagovRun
from jobs.suites.datagov_set import CONTROL
from jobs.suites.rows import Row
from rayapp.local.cli.output import markdown_table, number_table

HEAD = ("set", "turned", "asked", "share")


def report(run: DatagovRun) -> dict[str, Any]:
    """The JSON section: both parts with every rank, what was in the index, and the intent."""
    return {
        "suite": "datagov",
        "datasets": run.datasets,
        "descriptions_indexed": len(run.leaked),
        "leaked": sorted(run.leaked),
        "parts": [plain.report(part) for part in run.parts],
        "intent": {
            name: {"asked": asked, "turned": turned, "share": round(turned / asked, 4)}
            for name, (turned, asked) in _intent(run).items()
        },
        "intent_errors": run.intent_errors,
        "per_intent": [
            {"id": one.question.question_id, "lang": one.question.lang, "turned": one.to_catalogue}
            for one in sorted(run.turned, key=lambda one: one.question.question_id)
        ],
    }


def tables(run: DatagovRun) -> list[Table]:
    """The tables of both parts, and what turned to the catalogue without being told to."""
    intent = number_table("datagov: searches that turned to it unasked", HEAD, _cells(run))
    parts = [part for part in run.parts if part.answerable]
    return [*(table for part in parts for table in plain.tables(part)), intent]


def markdown(run: DatagovRun) -> str:
    lines = ["## datagov", "", line(run)]
    for part in run.parts:
        lines += ["", f"### {part.suite.name}", "", *plain.markdown_rows(part)]
    lines += ["", "### turned to the catalogue unasked", "", *markdown_table(HEAD, _cells(run))]
    return "\n".join(lines) + "\n"


def rows(run: DatagovRun) -> list[Row]:
    """Both parts by ranks, and whether a search turned to the catalogue as it should."""
    rows = [
        replace(row, part=f"{part.suite.name} {row.lang}".removeprefix("datagov "))
        for part in run.parts
        for row in plain.rows(part)
    ]
    for one in sorted(run.turned, key=lambda one: one.question.question_id):
        question = one.question
        control = question.category == CONTROL
        rows.append(
            Row(
                part="controls" if control else "intent",
                question_id=question.question_id,
                category=question.category,
                lang=question.lang,
                values={"right": float(one.to_catalogue != control)},
            )
        )
    return rows


def line(run: DatagovRun) -> str:
    """One sentence with what was asked and whether the descriptions were in the index."""
    leaked = (
        f"{len(run.leaked)} descriptions were in the index: ingest the catalogue without them"
        if run.leaked
        else "no description was in the index"
    )
    return (
        f"{run.datasets} datasets, {len(run.descriptions.answered)} descriptions "
        f"({run.descriptions.suite.excluded} empty or not Hebrew), "
        f"{len(run.questions.answered)} questions; {leaked}."
    )


def _cells(run: DatagovRun) -> list[tuple[str, ...]]:
    return [
        (name, str(turned), str(asked), f"{turned / asked:.3f}")
        for name, (turned, asked) in _intent(run).items()
    ]


def _intent(run: DatagovRun) -> dict[str, tuple[int, int]]:
    """(turned, asked) by kind and language, kinds in order."""
    asked: Counter[str] = Counter()
    turned: Counter[str] = Counter()
    for one in run.turned:
        kind = "control" if one.question.category == CONTROL else "question"
        name = f"{kind} {one.question.lang}"
        asked[name] += 1
        turned[name] += one.to_catalogue
    return {name: (turned[name], asked[name]) for name in sorted(asked, reverse=True)}
