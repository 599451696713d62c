"""The facts suite as JSON values, Markdown and a terminal table. Ids, never a text."""

from collections import defaultdict
from statistics import fmean
from typing import Any

from rich.table import Table

from jobs.suites.facts import Answered, FactsRun
from jobs.suites.facts_set import KINDS, LANGUAGES
from jobs.suites.rows import Row
from rayapp.local.cli.output import markdown_table, number_table

_HEAD = (
    "kind",
    "n",
    *(f"graph {one}" for one in LANGUAGES),
    *(f"search {one}" for one in LANGUAGES),
    *(f"BM25 {one}" for one in LANGUAGES),
)
_WORDS = 1


def report(run: FactsRun) -> dict[str, Any]:
    """The JSON section: every question with whether it was answered rightly."""
    return {
        "suite": "facts",
        "stored": run.stored,
        "rejected": run.rejected,
        "answered": [
            {
                "id": one.asked.question.question_id,
                "kind": one.asked.question.kind,
                "lang": one.asked.history.lang,
                "knowing": one.knowing,
                "right": one.right,
                "searched": one.searched,
                "bm25": one.floor,
                "merged": one.merged,
                "error": one.error,
            }
            for one in run.answered
        ],
    }


def tables(run: FactsRun) -> list[Table]:
    return [number_table("facts: share answered rightly", _HEAD, _rows(run), words=_WORDS)]


def markdown(run: FactsRun) -> str:
    return "\n".join(["## facts", "", line(run), "", *markdown_table(_HEAD, _rows(run))]) + "\n"


def rows(run: FactsRun) -> list[Row]:
    """A question by whether exactly what is right was said; plain BM25 is its floor."""
    return [
        Row(
            part=one.asked.question.kind,
            question_id=one.asked.question.question_id,
            category=one.asked.question.kind,
            lang=one.asked.history.lang,
            values={"right": float(one.right), "apart": float(one.merged == 0)},
            floor={"right": float(one.floor), "apart": 1.0},
        )
        for one in run.answered
        if one.error is None
    ]


def line(run: FactsRun) -> str:
    """One sentence with what was stored and how it was answered."""
    answered = [one for one in run.answered if one.error is None]
    right = fmean(one.right for one in answered) if answered else 0.0
    searched = fmean(one.searched for one in answered) if answered else 0.0
    floor = fmean(one.floor for one in answered) if answered else 0.0
    return (
        f"{run.stored} memories stored; answered rightly by the typed graph {right:.3f}, "
        f"by search {searched:.3f}, by plain BM25 {floor:.3f}; "
        f"wrong merges {sum(one.merged for one in answered)}."
    )


def _rows(run: FactsRun) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, str], list[Answered]] = defaultdict(list)
    for one in run.answered:
        if one.error is None:
            groups[one.asked.question.kind, one.asked.history.lang].append(one)
    return [
        (
            kind,
            str(sum(len(groups[kind, lang]) for lang in LANGUAGES)),
            *(_share([one.right for one in groups[kind, lang]]) for lang in LANGUAGES),
            *(_share([one.searched for one in groups[kind, lang]]) for lang in LANGUAGES),
            *(_share([one.floor for one in groups[kind, lang]]) for lang in LANGUAGES),
        )
        for kind in KINDS
        if any(groups[kind, lang] for lang in LANGUAGES)
    ]


def _share(right: list[bool]) -> str:
    return f"{fmean(right):.3f}" if right else ""
