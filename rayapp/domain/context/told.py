"""Stored turns that the assistant still has before it, in the messages of its conversation. Pure.

A program sends the last messages with a question, so a memory of one of them tells nothing new and
takes the room of one that does.
"""

from __future__ import annotations

from collections.abc import Sequence

from rayapp.domain.context.exchange import EXCHANGE_TAG, NOTHING_NEW, cleaned
from rayapp.domain.context.fingerprint import already_known, fingerprints_of
from rayapp.domain.context.records import Message
from rayapp.domain.memory import MemoryItem

# How a stored turn is written (`exchange.stored_text`).
_ASKED, _ANSWERED = "User: ", "\nAssistant: "
_CUT = "…"


def still_before_it(
    item: MemoryItem, conversation_id: str | None, recent: Sequence[Message]
) -> bool:
    """Whether `item` is a turn of this conversation whose question and answer both stand in
    `recent`. The question alone is not enough: "yes" is said many times, and answered otherwise."""
    if conversation_id is None or item.source.conversation_id != conversation_id:
        return False
    if EXCHANGE_TAG not in item.tags or not item.text.startswith(_ASKED):
        return False
    question, found, answer = item.text.removeprefix(_ASKED).partition(_ANSWERED)
    if not found:
        return False
    return any(
        _same_question(question, cleaned(one.content, "user"))
        and _same_answer(answer, _answers_to(recent, at))
        for at, one in enumerate(recent)
        if one.role == "user"
    )


def _answers_to(recent: Sequence[Message], question: int) -> list[str]:
    """What the assistant said until the user spoke again, line by line."""
    lines: list[str] = []
    for one in recent[question + 1 :]:
        if one.role == "user":
            break
        if one.role == "assistant":
            lines += cleaned(one.content, "assistant").splitlines()
    return lines


def _same_question(stored: str, said: str) -> bool:
    kept, heard = " ".join(stored.split()), " ".join(said.split())
    return kept == heard or (kept.endswith(_CUT) and heard.startswith(kept.removesuffix(_CUT)))


def _same_answer(stored: str, lines: Sequence[str]) -> bool:
    """A turn is stored without the sentences that repeat a memory, so it is looked for sentence by
    sentence; of one that only repeated, any answer will do."""
    if stored.strip() == NOTHING_NEW:
        return bool(lines)
    return already_known(stored, fingerprints_of(lines))
