"""Whether a text that a model proposes says exactly what two near-duplicates say. Pure."""

from __future__ import annotations

from rayapp.assistant.extraction.records import Checked
from rayapp.assistant.extraction.rules.facts import MAX_CHARS, line_of
from rayapp.learning.rules.dedup import content_words
from rayapp.text.hostile import hostile
from rayapp.text.signature import signature


def joined_text(reply: str, one: str, other: str) -> Checked:
    """The text for both, or the rule that refuses it: then the two stay as they are.

    It must hold every telling word, number and name of both, and no new one; what the two negate
    it negates. So a merge can lose nothing and invent nothing, whatever the model says.
    """
    line, reason = line_of(reply)
    if line is None:
        return Checked(None, reason)
    if len(line) > max(MAX_CHARS, len(one) + len(other)):
        return Checked(None, "too_long")
    refused = hostile(line) or _differs(line, one, other)
    return Checked(None, refused) if refused else Checked(line, "joined")


def _differs(line: str, one: str, other: str) -> str | None:
    mine, first, second = signature(line), signature(one), signature(other)
    if set(mine.numbers) != {*first.numbers, *second.numbers}:
        return "numbers"
    if mine.negations != max(first.negations, second.negations) or (
        first.negations != second.negations
    ):
        return "polarity"
    words, wanted = set(content_words(line)), {*content_words(one), *content_words(other)}
    if wanted - words:
        return "loses"
    return "adds" if words - wanted else None
