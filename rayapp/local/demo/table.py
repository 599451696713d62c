"""The tables of the demo and of `rayapp search` and `recent`, and the line that sums a demo up."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from rayapp.client import HitView, RecentView, SearchReply
from rayapp.local.demo.material import DemoQuestion
from rayapp.search.rules.evaluation import percentile
from rayapp.wire.bases import EstimateView

SHOWN = 3  # evidence among the first three counts as found: what an assistant would read
PREVIEW_CHARS = 60
MEMORY_CHARS = 240  # of a memory that was asked for: three lines of a terminal
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


def answer_table(
    answers: Sequence[DemoAnswer], translations: Mapping[str, str] | None = None
) -> Table:
    """Two lines per question: it and its top hit, where the evidence came, and how long it took.

    `translations`: by memory id; below a text that has one, what it says in English.
    """
    table = _table(
        "Questions and their top hits", "question, and its top hit", "score", "evidence", "ms"
    )
    for answer in answers:
        top = answer.reply.results[0] if answer.reply.results else None
        said = "" if top is None else (translations or {}).get(top.memory_id, "")
        table.add_row(
            Group(
                Text(answer.question.text, overflow="fold"),
                *_translate(answer.question.translation),
                _dim("nothing" if top is None else preview(top.content)),
                *_translate(said),
            ),
            "" if top is None else top.tier,
            _score(None if top is None else top.score),
            _place(answer),
            f"{answer.reply.elapsed_ms:.1f}",
        )
    return table


def hit_table(hits: Iterable[HitView]) -> Table:
    """Best first: position, text and id, tier, score, and the day it was stored."""
    table = _table("Best first", "memory", "score", "stored")
    for hit in hits:
        text = f"{hit.position}. {preview(hit.content, MEMORY_CHARS)}"
        shown = Group(
            Text(text, overflow="fold"), _dim(hit.memory_id + _helps(hit.success_estimate))
        )
        table.add_row(shown, hit.tier, _score(hit.score), _day(hit.created_at))
    return table


def recent_table(memories: Iterable[RecentView]) -> Table:
    """Newest first: text and id, tier, and the day it was stored."""
    table = _table("Newest first", "memory", "stored")
    for memory in memories:
        text = Text(preview(memory.content, MEMORY_CHARS), overflow="fold")
        shown = Group(text, _dim(memory.memory_id + _helps(memory.success_estimate)))
        table.add_row(shown, memory.tier, _day(memory.created_at))
    return table


def closing_line(answers: Sequence[DemoAnswer]) -> str:
    """Counts and latency over all questions."""
    times = [answer.reply.elapsed_ms for answer in answers]
    first = sum(answer.evidence_at == 1 for answer in answers)
    found = sum(answer.found for answer in answers)
    return (
        f"{found} of {len(answers)} questions have their evidence in the top {SHOWN}, {first} in "
        f"first place; p50 {percentile(times, 0.5):.1f} ms, p95 {percentile(times, 0.95):.1f} ms."
    )


def preview(text: str, limit: int = PREVIEW_CHARS) -> str:
    """The first characters on one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _table(title: str, texts: str, *numbers: str) -> Table:
    """A column of texts, the tier, and columns of numbers."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(texts)
    # Numbers keep their one line: what a narrow terminal lacks is taken from the text.
    table.add_column("tier", no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


# Cells are Text, not markup: brackets in a memory are data.
def _dim(line: str) -> Text:
    return Text(line, style="dim", no_wrap=True, overflow="ellipsis")


def _translate(text: str) -> list[Text]:
    return [Text(f"= {text}", style="italic", no_wrap=True, overflow="ellipsis")] if text else []


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"


def _helps(found: EstimateView) -> str:
    """How often a memory helps, once an outcome says something of it."""
    if (found.low, found.high) == (0.0, 1.0):
        return ""
    return f"  helps {found.value:.0%} ({found.low:.0%} to {found.high:.0%})"


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"


def _place(answer: DemoAnswer) -> Text:
    if answer.evidence_at is None:
        return Text("✗", style="red")
    style = "green" if answer.found else "yellow"
    return Text(f"{'✓' if answer.found else '✗'} {answer.evidence_at}", style=style)
