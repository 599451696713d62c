"""What outcome requests must keep to before anything is read or written. No I/O."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace

from rayapp.core.errors import InvalidInput
from rayapp.core.ids import MEMORY_ID_PATTERN
from rayapp.learning.records import OutcomeEvent
from rayapp.learning.requests import OutcomeRequest, ResponseRequest
from rayapp.learning.rules.outcome_plan import fingerprint, key_reused
from rayapp.memory.item import POINT_NAMESPACE, Outcome
from rayapp.search.ports import STANDING, Receipt

MAX_IDS = 200  # ids of one outcome: four times what one search shows at most
MAX_TAKEAWAY_CHARS = 1_000  # a sentence or two; more is a text


def takeaway_id(user_id: str, key: str) -> str:
    """The memory id of the takeaway stored with this idempotency key: a retry meets it again."""
    return str(uuid.uuid5(POINT_NAMESPACE, f"takeaway\x00{user_id}\x00{key}"))


def outcome_of(request: ResponseRequest) -> OutcomeRequest:
    """The outcome part of a response. Its key holds a space, so no key of an outcome is like it."""
    key = request.idempotency_key
    return OutcomeRequest(
        outcome=request.outcome,
        receipt_id=request.receipt_id,
        conversation_id=request.conversation_id,
        idempotency_key=None if key is None else f"response {key}",
        recorder=request.recorder,
        request_hash=fingerprint(
            key_takeaway=request.key_takeaway.strip(),
            outcome=request.outcome.value,
            related=_as_set(request.related),
            receipt_id=request.receipt_id,
            conversation_id=request.conversation_id,
        ),
    )


def with_hash(request: OutcomeRequest) -> OutcomeRequest:
    """The request with its own fingerprint, unless it is a part of a larger one."""
    if request.request_hash:
        return request
    return replace(
        request,
        request_hash=fingerprint(
            outcome=request.outcome.value,
            memory_ids=_as_set(request.memory_ids),
            positions=_as_set(request.positions),
            receipt_id=request.receipt_id,
            conversation_id=request.conversation_id,
            action=request.action,
            signal=[request.signal.source, float(request.signal.confidence)],
        ),
    )


def _as_set(named: Sequence[int | str] | None) -> list[str] | None:
    """In any order and however often: as often as not, a caller sends a set."""
    return None if named is None else sorted({json.dumps(one) for one in named})


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


def check_repeat(first: OutcomeEvent, request: OutcomeRequest, outcome: Outcome) -> None:
    """Raise IdempotencyConflict when the key stands for another request.

    An event without a fingerprint is compared by what it was about.
    """
    if first.request_hash:
        same = first.request_hash == request.request_hash
    else:
        named = request.memory_ids
        same = (
            first.outcome is outcome
            and (named is None or set(named) == set(first.memory_ids))
            and request.receipt_id in (None, first.receipt_id)
        )
    if not same:
        raise key_reused()


def all_shown(receipt: Receipt) -> tuple[str, ...]:
    return tuple(dict.fromkeys(shown.memory_id for shown in receipt.shown))


def judged_unnamed(receipt: Receipt) -> tuple[str, ...]:
    """What an outcome is about that names nothing: all that was shown because of the question.

    Lines that stand before every question would be judged by every answer.
    """
    asked = (shown for shown in receipt.shown if STANDING not in shown.ranks)
    return tuple(dict.fromkeys(shown.memory_id for shown in asked))


def at_positions(receipt: Receipt, positions: Sequence[int]) -> tuple[str, ...]:
    shown = {one.position: one.memory_id for one in receipt.shown}
    for position in positions:
        if position not in shown:
            raise InvalidInput(
                f"There is no position {position}: the receipt shows {_numbers(shown)}.",
                code="bad_position",
                details={"field": "positions", "position": position, "shown": len(shown)},
            )
    return tuple(dict.fromkeys(shown[position] for position in positions))


def _numbers(positions: Collection[int]) -> str:
    """Positions in words; a later page starts where the one before it ended."""
    if not positions:
        return "nothing"
    first, last = min(positions), max(positions)
    if last - first + 1 != len(positions):
        return ", ".join(str(one) for one in sorted(positions))
    return f"only {first}" if first == last else f"{first} to {last}"
