"""What outcome requests must keep to before anything is read or written. No I/O."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from rayapp.domain.learning import OutcomeEvent
from rayapp.domain.learning_requests import OutcomeRequest, ResponseRequest
from rayapp.domain.lifecycle.outcome_plan import key_reused
from rayapp.domain.memory import MEMORY_ID_PATTERN, POINT_NAMESPACE, Outcome
from rayapp.errors import InvalidInput

MAX_IDS = 200  # ids of one outcome: four times what one search shows at most
MAX_TAKEAWAY_CHARS = 1_000  # learning chapter, record_response


def takeaway_id(user_id: str, key: str) -> str:
    """The memory id of the takeaway stored with this idempotency key: a retry meets it again."""
    return str(uuid.uuid5(POINT_NAMESPACE, f"takeaway\x00{user_id}\x00{key}"))


def outcome_of(request: ResponseRequest) -> OutcomeRequest:
    """The outcome part of a response; its key is another one than that of the takeaway."""
    key = request.idempotency_key
    return OutcomeRequest(
        outcome=request.outcome,
        receipt_id=request.receipt_id,
        conversation_id=request.conversation_id,
        idempotency_key=None if key is None else f"{key}:response",
        recorder=request.recorder,
    )


def named_ids(request: ResponseRequest) -> tuple[str, ...] | None:
    """The related ids when positions do not name more."""
    related = request.related
    if related is None or any(not isinstance(one, str) for one in related):
        return None
    return tuple(one for one in related if isinstance(one, str))


def checked_takeaway(text: str) -> str:
    takeaway = text.strip()
    if not 1 <= len(takeaway) <= MAX_TAKEAWAY_CHARS:
        raise InvalidInput(
            f"key_takeaway must have 1 to {MAX_TAKEAWAY_CHARS} characters.",
            code="bad_takeaway",
            details={"field": "key_takeaway"},
        )
    return takeaway


def check_request(request: OutcomeRequest) -> None:
    if request.memory_ids is not None and request.positions is not None:
        raise InvalidInput(
            "Send memory_ids or positions, not both.", details={"field": "positions"}
        )
    if request.memory_ids is not None:
        if not request.memory_ids:
            raise InvalidInput(
                "memory_ids is empty: name at least one, or leave it out to score a receipt.",
                details={"field": "memory_ids"},
            )
        check_ids(request.memory_ids, "memory_ids")
    if request.positions is not None and not request.positions:
        raise InvalidInput(
            "positions is empty: name at least one, or leave it out to score all that was shown.",
            details={"field": "positions"},
        )


def check_ids(ids: Sequence[str], field: str) -> None:
    check_count(ids, field)
    for memory_id in ids:
        if not MEMORY_ID_PATTERN.fullmatch(memory_id):
            raise InvalidInput(
                f"{field} holds an id that is not 1 to 128 characters of A-Z a-z 0-9 . _ : @ -.",
                code="bad_memory_id",
                details={"field": field},
            )


def check_count(ids: Sequence[str], field: str) -> None:
    if len(set(ids)) > MAX_IDS:
        raise InvalidInput(
            f"{field} names {len(set(ids))} memories: send at most {MAX_IDS} at once.",
            details={"field": field},
        )


def check_repeat(
    first: OutcomeEvent,
    outcome: Outcome,
    memory_ids: Sequence[str] | None,
    receipt_id: str | None,
) -> None:
    """Raise IdempotencyConflict when the key stands for something else than is asked now."""
    same = (
        first.outcome is outcome
        and (memory_ids is None or set(memory_ids) == set(first.memory_ids))
        and receipt_id in (None, first.receipt_id)
    )
    if not same:
        raise key_reused()
