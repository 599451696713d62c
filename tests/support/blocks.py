"""Reads the text block for the assistant back."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rayapp.memory.tiers import Tier, parse_tier

_LINE = re.compile(
    r"(?:• |\[(?P<position>\d{1,9})\] )\[(?P<tier>[a-z_]+):(?P<id>[A-Za-z0-9._:@-]+)\] "
    r"\((?P<note>[^()]*)\)  (?P<text>.*)"
)


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """One memory line, read back. `note` and `text` are as escaped; the position of one that
    stands is 0."""

    position: int
    tier: Tier
    memory_id: str
    note: str
    text: str


def parse_lines(text: str) -> tuple[ParsedLine, ...]:
    """The memory lines of a block, in order. Other lines are passed over."""
    return tuple(_parsed(text))


def _parsed(text: str) -> Iterator[ParsedLine]:
    for row in text.split("\n"):
        found = _LINE.fullmatch(row)
        tier = parse_tier(found["tier"]) if found else None
        if found is not None and tier is not None:
            yield ParsedLine(
                int(found["position"] or 0), tier, found["id"], found["note"], found["text"]
            )
