"""What is written before a text when it is embedded, so that it is found later. Pure.

The prefix is part of what the vector is made of and of nothing else: it is never shown, and the
words of the lexical arm stay those of the text. It follows from fields that no edit changes, so
equal vector hashes go on meaning equal vectors.
"""

from __future__ import annotations

from rayapp.domain.memory import MemoryItem
from rayapp.domain.tiers import Tier

# A longer title would be what the vector speaks of. Our choice.
MAX_PART_CHARS = 200


def book_prefix(item: MemoryItem) -> str:
    """`Book: {title}. Section: {section}.` of a book's passage; empty for all other memories."""
    book = (item.source.book if item.tier is Tier.BOOKS else None) or {}
    parts = (("Book", book.get("title")), ("Section", book.get("section")))
    return " ".join(f"{name}: {said}." for name, value in parts if (said := _said(value)))


def embedded_text(item: MemoryItem) -> str:
    """The text that the vector of `item` is made of."""
    prefix = book_prefix(item)
    return f"{prefix}\n{item.text}" if prefix else item.text


def _said(value: object) -> str:
    return " ".join(value.split()).rstrip(".")[:MAX_PART_CHARS] if isinstance(value, str) else ""
