"""One turn of a conversation, as what is learned from it needs it, and whose comes next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedExchange:
    """A question and its answer, cleaned of marks and of what was put before the assistant.

    Attributes:
        memory_id: the memory that holds the turn; None = too small to be one.
        principal, owner: who stored it; what is judged is judged in their name.
        injected: fingerprints of all that was put before the assistant.
        receipt_id: what the answer was given with; `shown` are its memory ids.

    One that was erased has no texts: its memory is gone, and it only holds its place.
    """

    user_id: str
    conversation_id: str
    message_id: str
    user_text: str
    answer: str
    memory_id: str | None
    at: datetime
    principal: str = ""
    owner: bool = True
    injected: tuple[str, ...] = ()
    receipt_id: str | None = None
    shown: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.user_id, self.conversation_id, self.message_id

    @property
    def erased(self) -> bool:
        return not (self.user_text or self.answer)


def in_rounds(queues: Sequence[Sequence[T]]) -> list[T]:
    """The first of each queue, then the second of each, and so on."""
    rounds = zip_longest(*([(one,) for one in queue] for queue in queues), fillvalue=())
    return [one for taken in rounds for found in taken for one in found]
