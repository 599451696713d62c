"""When an answer is judged by what the user said next, and under which key. Pure."""

from __future__ import annotations

import uuid
from typing import Literal

from rayapp.memory.item import POINT_NAMESPACE

# Who noticed the outcome; a receipt and a row of outcomes say it.
DETECTED = "detected"
# A shorter reaction is none: "?", "..". Two letters may be one ("no", "לא").
MIN_REACTION_CHARS = 2
About = Literal["shown", "exchange"]


def has_reaction(text: str) -> bool:
    """The next message says anything at all."""
    return sum(one.isalnum() for one in text) >= MIN_REACTION_CHARS


def outcome_key(user_id: str, conversation_id: str, message_id: str, about: About) -> str:
    """The idempotency key of a detected outcome: one per judged turn and kind, for ever.

    The space in it keeps it apart from every key that a caller may send.
    """
    basis = "\x00".join(("detected", about, user_id, conversation_id, message_id))
    return f"detected {uuid.uuid5(POINT_NAMESPACE, basis)}"
