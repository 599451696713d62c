"""The silence suite as JSON values, Markdown and a terminal table. Ids, never a text."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from rich.table import Table

from jobs.suites.rows import Row
from jobs.suites.silence import OWN, SilenceRun, Told
from rayapp.local.cli.output import markdown_table, number_table

_HEAD = ("store", "asked", "n", "with lines", "lines", "characters", "evidence")
_WORDS = 2


def report(run: SilenceRun) -> dict[str, Any]:
    """The JSON section: every question with what it was told."""
    return {
        "suite": "silence",
        "stored": run.stored,
        "rejected": run.rejected,
        "told": [
            {
                "store": one.asked.store.corpus.name,
                "size": one.asked.store.size,
                "kind": one.asked.kind,
                "id": one.asked.question.question_id,
                "lang": one.asked.question.lang,
                "lines": one.lines,
                "chars": one.chars,
                "shown": one.shown,
                "error": one.error,
            }
            for one in run.told
        ],
    }


def tables(run: SilenceRun) -> list[Table]:
    return [number_table("silence: what was injected", _HEAD, _rows(run), words=_WORDS)]


def markdown(run: SilenceRun) -> str:
    return "\n".join(["## silence", "", line(run), "", *markdown_table(_HEAD, _rows(run))]) + "\n"


def rows(run: SilenceRun) -> list[Row]:
    """Own questions by their evidence, the others by silence."""
    return [
        Row(
            part=f"{_store(one)} {one.asked.kind}",
            question_id=f"{one.asked.store.corpus.name}/{one.asked.question.question_id}",
            category=one.asked.kind,
            lang=one.asked.question.lang,
            values={"evidence": one.shown}
            if one.asked.kind == OWN
            else {"silent": float(one.lines == 0)},
        )
        for one in run.told
        if one.error is None
    ]


def line(run: SilenceRun) -> str:
    """One sentence with what was stored and told."""
    said = [
        f"{kind} {fmean(one.lines > 0 for one in told):.2f}"
        for kind, told in _grouped(run, lambda one: one.asked.kind).items()
    ]
    return f"{run.stored} memories stored; questions with lines: {', '.join(said)}."


def _store(one: Told) -> str:
    return f"{one.asked.store.source} {one.asked.store.size}"


def _grouped(run: SilenceRun, key: Any) -> dict[Any, list[Told]]:
    found: dict[Any, list[Told]] = {}
    for one in run.told:
        if one.error is None:
            found.setdefault(key(one), []).append(one)
    return found


def _rows(run: SilenceRun) -> list[tuple[str, ...]]:
    groups = _grouped(run, lambda one: (_store(one), one.asked.kind))
    return [
        (store, kind, str(len(told)), *_shares(told, shows=kind == OWN))
        for (store, kind), told in groups.items()
    ]


def _shares(told: Sequence[Told], *, shows: bool) -> tuple[str, ...]:
    return (
        f"{fmean(one.lines > 0 for one in told):.3f}",
        f"{fmean(one.lines for one in told):.1f}",
        f"{fmean(one.chars for one in told):.0f}",
        f"{fmean(one.shown for one in told):.3f}" if shows else "",
    )
