"""The answers as one table, and the line that sums them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from rayapp.client import SearchReply
from rayapp.demo.material import DemoQuestion
from rayapp.domain.evaluation import percentile

SHOWN = 3  # evidence among the first three counts as found: what an assistant would read
PREVIEW_CHARS = 60
LEGEND = f"✓ n: the first evidence came in place n, ✓ means top {SHOWN}; ✗ alone: it did not come."


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    question: DemoQuestion
    reply: SearchReply

    @property
    def evidence_at(self) -> int | None:
        """1-based place of the first expected hit, None when it did not come."""
        ids = enumerate(self.reply.ids, 1)
        return next((place for place, name in ids if name in self.question.evidence), None)

    @property
    def found(self) -> bool:
        return self.evidence_at is not None and self.evidence_at <= SHOWN


def answer_table(answers: Sequence[DemoAnswer]) -> Table:
    """Two lines per question: it and its top hit, where the evidence came, and how long it took."""
    table = Table(
        title="Questions and their top hits", title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("question, and its top hit")
    # Numbers keep their one line: what a narrow terminal lacks is taken from the text.
    table.add_column("tier", no_wrap=True)
    for name in ("score", "evidence", "ms"):
        table.add_column(name, justify="right", no_wrap=True)
    for answer in answers:
        top = answer.reply.results[0] if answer.reply.results else None
        score = "" if top is None or top.score is None else f"{top.score:.3f}"
        hit = "nothing" if top is None else preview(top.content)
        table.add_row(
            # Text, not markup: brackets in a memory are data.
            Group(
                Text(answer.question.text, overflow="fold"),
                Text(hit, style="dim", no_wrap=True, overflow="ellipsis"),
            ),
            "" if top is None else top.tier,
            score,
            _place(answer),
            f"{answer.reply.elapsed_ms:.1f}",
        )
    return table


def closing_line(answers: Sequence[DemoAnswer]) -> str:
    """Counts and latency over all questions."""
    times = [answer.reply.elapsed_ms for answer in answers]
    first = sum(answer.evidence_at == 1 for answer in answers)
    found = sum(answer.found for answer in answers)
    degraded = sorted({name for answer in answers for name in answer.reply.degraded})
    note = f" Degraded: {', '.join(degraded)}." if degraded else ""
    return (
        f"{found} of {len(answers)} questions have their evidence in the top {SHOWN}, {first} in "
        f"first place; p50 {percentile(times, 0.5):.1f} ms, p95 {percentile(times, 0.95):.1f} ms."
        f"{note}"
    )


def preview(text: str) -> str:
    """The first characters on one line."""
    line = " ".join(text.split())
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"


def _place(answer: DemoAnswer) -> Text:
    if answer.evidence_at is None:
        return Text("✗", style="red")
    style = "green" if answer.found else "yellow"
    return Text(f"{'✓' if answer.found else '✗'} {answer.evidence_at}", style=style)
