"""What a model may say of the answer of a tool. Pure."""

from __future__ import annotations

from rayapp.inference.chat.rules.refusals import refuses
from rayapp.text.hostile import hostile
from rayapp.text.language import detect_language
from rayapp.text.signature import signature

# A longer one is no summary: three short sentences. Our choice.
MAX_SUMMARY_CHARS = 1_000


def accepted_summary(reply: str, text: str) -> str | None:
    """The answer of a model as one line; None when it is none that may be kept.

    What tools bring comes from anywhere, so a summary that refuses, gives orders, forges a frame,
    speaks another language than the text or names a number that the text does not say is dropped.
    """
    line = " ".join(reply.split())
    if not line or len(line) > MAX_SUMMARY_CHARS or len(line) >= len(text):
        return None
    if hostile(reply) is not None or refuses(line):
        return None
    said, spoken = detect_language(line), detect_language(text)
    if said != spoken and "mixed" not in (said, spoken):
        return None
    invented = set(signature(line).numbers) - set(signature(text).numbers)
    return None if invented else line
