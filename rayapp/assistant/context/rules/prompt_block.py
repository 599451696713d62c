"""The text block for the assistant: its exact frame, what fits into it, and how it is read back.

    ═══ CONTEXTUAL MEMORY ═══

    **User Identity:**
    • [1] [memory_bank:<id>] <text>
    ...
    **Relevant Context:**
    [2] [working:<id>] <text>

    **Recent Topic:** <topic>

    ═══════════════════════

The stable part is everything up to the first section that depends on the question. It is a
function of its memories and of the budget alone, so prompt caches stay warm. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rayapp.assistant.context.records import ContextBlock, ContextLine, Section
from rayapp.assistant.context.rules.escape import cut_line, escape_id, escape_text
from rayapp.inference.rules.token_estimate import total_tokens
from rayapp.memory.item import MemoryItem
from rayapp.memory.tiers import Tier, parse_tier, tier_name

HEADER = "═══ CONTEXTUAL MEMORY ═══"
FOOTER = "═══════════════════════"
TITLES: dict[Section, str] = {
    "identity": "**User Identity:**",
    "preference": "**Core Preferences:**",
    "pattern": "**Proven Patterns:**",
    "always": "**Always Relevant:**",
    "past": "**Past Experience:**",
    "relevant": "**Relevant Context:**",
}
STABLE_SECTIONS: tuple[Section, ...] = ("identity", "preference", "pattern", "always")
BULLET = "• "
TOPIC = "**Recent Topic:** "
TOPIC_CHARS = 100  # client contract, "Context text"
OPENING = (HEADER, "")
BLANK_TOKENS = total_tokens(("",))
ETAG_CHARS = 32  # 128 bits

_LINE = re.compile(
    r"(?:• )?\[(?P<position>\d{1,9})\] \[(?P<tier>[a-z_]+):(?P<id>[A-Za-z0-9._:@-]+)\] (?P<text>.*)"
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A memory and the section it belongs to."""

    section: Section
    item: MemoryItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What there is to be told.

    Attributes:
        standing: for the stable part, in the order of their sections.
        recall: short sentences about the past, told before the memories of this question.
        found: memories for this question, best first; those that stand already are left away.
        topic: what the conversation was about, raw.
    """

    standing: Sequence[Placed] = ()
    recall: Sequence[str] = ()
    found: Sequence[Placed] = ()
    topic: str = ""


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """One memory line, read back. `text` is as escaped."""

    position: int
    tier: Tier
    memory_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large a block may be, and how it names things.

    Attributes:
        budget: tokens of the whole block.
        stable_share: of the budget, at most for the stable part.
        documents: the books tier is called `documents`, as the first client does.
    """

    budget: int
    stable_share: float = 0.5
    documents: bool = True


@dataclass(slots=True)
class _Page:
    """Rows as they are added; each costs its tokens, and `left` never goes below 0."""

    left: int
    documents: bool
    rows: list[str] = field(default_factory=list)
    lines: list[ContextLine] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, *rows: str, reserve: int = 0) -> bool:
        """All of the rows, or none when they and the reserve do not fit."""
        cost = total_tokens(rows) + reserve
        if cost > self.left:
            return False
        self.left -= cost
        self.rows += rows
        return True

    @property
    def text(self) -> str:
        return "".join(f"{row}\n" for row in self.rows)


def build_block(material: Material, limits: Limits) -> ContextBlock:
    """The block within the budget. Whole memories only; what does not fit is `left_out`."""
    left = limits.budget - total_tokens((FOOTER,))
    stable = _Page(min(left, int(limits.budget * limits.stable_share)), limits.documents)
    for section in STABLE_SECTIONS:
        placed = [one for one in material.standing if one.section == section]
        _section(stable, section, placed, opening=() if stable.rows else OPENING)
    spent = total_tokens(stable.rows)
    rest = _Page(left - spent, limits.documents, lines=list(stable.lines))
    _volatile(rest, material, () if stable.rows else OPENING)
    if stable.rows or rest.rows:
        rest.rows.append(FOOTER)
    shown = {line.memory_id for line in rest.lines}
    return ContextBlock(
        stable=stable.text,
        volatile=rest.text,
        etag=etag_of(stable.text),
        lines=tuple(rest.lines),
        tokens=spent + total_tokens(rest.rows),
        left_out=tuple(
            one for one in dict.fromkeys((*stable.left_out, *rest.left_out)) if one not in shown
        ),
    )


def etag_of(stable: str) -> str:
    """Equal exactly for equal stable parts."""
    return hashlib.sha256(stable.encode()).hexdigest()[:ETAG_CHARS]


def parse_lines(text: str) -> tuple[ParsedLine, ...]:
    """The memory lines of a block, in order. Other lines are passed over."""
    return tuple(_parsed(text))


def _parsed(text: str) -> Iterator[ParsedLine]:
    for row in text.split("\n"):
        found = _LINE.fullmatch(row)
        tier = parse_tier(found["tier"]) if found else None
        if found is not None and tier is not None:
            yield ParsedLine(int(found["position"]), tier, found["id"], found["text"])


def _volatile(page: _Page, material: Material, opening: tuple[str, ...]) -> None:
    shown = {line.memory_id for line in page.lines}
    found = [one for one in material.found if one.item.memory_id not in shown]
    past = [one for one in found if one.section == "past"]
    _section(page, "past", past, material.recall, opening=opening)
    rest = [one for one in found if one.section != "past"]
    _section(page, "relevant", rest, opening=() if page.rows else opening)
    if material.topic.strip() and (page.rows or not opening):
        page.add(f"{TOPIC}{cut_line(material.topic, TOPIC_CHARS)}", "")


def _section(
    page: _Page,
    section: Section,
    placed: Sequence[Placed],
    sentences: Sequence[str] = (),
    *,
    opening: tuple[str, ...] = (),
) -> None:
    """The title, and the blank line at the end, come with the first line: no section is empty."""
    title, reserve = (*opening, TITLES[section]), BLANK_TOKENS
    for sentence in sentences:
        if page.add(*title, f"{BULLET}{escape_text(sentence)}", reserve=reserve):
            title, reserve = (), 0
    for one in placed:
        row, line = _line(one, len(page.lines) + 1, page.documents)
        if page.add(*title, row, reserve=reserve):
            title, reserve = (), 0
            page.lines.append(line)
        else:
            page.left_out.append(one.item.memory_id)
    if not title:
        page.rows.append("")


def _line(placed: Placed, position: int, documents: bool) -> tuple[str, ContextLine]:
    item, text = placed.item, escape_text(placed.item.text)
    tier = tier_name(item.tier, documents)
    bullet = BULLET if placed.section in STABLE_SECTIONS else ""
    row = f"{bullet}[{position}] [{tier}:{escape_id(item.memory_id)}] {text}"
    return row, ContextLine(
        position=position,
        section=placed.section,
        tier=item.tier,
        memory_id=item.memory_id,
        text=text,
        item=item,
        tokens=total_tokens((row,)),
    )
