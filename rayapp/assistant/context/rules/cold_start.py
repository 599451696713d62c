"""What is known before the first question: its frame, and the question that finds it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rayapp.assistant.context.rules.escape import escape_text
from rayapp.assistant.context.rules.prompt_block import BULLET
from rayapp.memory.item import MemoryItem

HEADER = "═══ KNOWN CONTEXT ═══"
FOOTER = "═══ END CONTEXT ═══"
# One question in both languages for who the user is, so that a store in either one answers.
QUERY = (
    "user name identity preferences goals projects communication style what works how to help"
    " שם המשתמש זהות העדפות מטרות פרויקטים סגנון תקשורת מה עובד איך לעזור"
)

_BULLET = re.compile(r"^• (?P<text>.+)$")


def cold_start_text(items: Sequence[MemoryItem]) -> str:
    """One bullet per memory, whole, in the order given; empty when there is none."""
    if not items:
        return ""
    bullets = [f"{BULLET}{escape_text(item.text)}" for item in items]
    return "\n".join([HEADER, *bullets, FOOTER]) + "\n"


def parse_bullets(text: str) -> tuple[str, ...]:
    """The texts of the bullets, as escaped."""
    return tuple(found["text"] for row in text.split("\n") if (found := _BULLET.match(row)))
