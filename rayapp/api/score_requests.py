"""A body of /score as outcome requests: one per outcome, and each memory in one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rayapp.core.errors import InvalidInput
from rayapp.learning.requests import OutcomeRequest, Recorder
from rayapp.learning.rules.outcome_plan import fingerprint
from rayapp.memory.item import Outcome
from rayapp.search.ports import Receipt
from rayapp.wire.learning import ScoreBody


def score_requests(body: ScoreBody, key: str | None, recorder: Recorder) -> list[OutcomeRequest]:
    """Positions before ids, and the largest position first: if it exists, all of them do."""
    positions: dict[Outcome, list[int]] = {}
    ids: dict[Outcome, list[str]] = {}
    for target, outcome in body.scores.items():
        if body.shows_positions and target.isdigit():
            positions.setdefault(outcome, []).append(int(target))
        else:
            ids.setdefault(outcome, []).append(target)
    first = OutcomeRequest(
        outcome=Outcome.UNKNOWN,
        receipt_id=body.receipt_id,
        conversation_id=body.conversation_id,
        recorder=recorder,
        action=body.action,
        request_hash=fingerprint(
            scores=dict(body.scores),
            receipt_id=body.receipt_id,
            conversation_id=body.conversation_id,
            action=body.action,
        ),
    )
    groups = [
        replace(first, outcome=outcome, positions=tuple(sorted(set(found))))
        for outcome, found in sorted(positions.items(), key=lambda one: -max(one[1]))
    ]
    groups += [
        replace(first, outcome=outcome, memory_ids=tuple(found)) for outcome, found in ids.items()
    ]
    if key is None:
        return groups
    return [replace(one, idempotency_key=_derived(key, one)) for one in groups]


def once_each(requests: Sequence[OutcomeRequest], receipt: Receipt) -> list[OutcomeRequest]:
    """Requests in which no id names what a position names too.

    Raises:
        InvalidInput: a memory is given two outcomes.
    """
    shown = {one.position: one.memory_id for one in receipt.shown}
    judged: dict[str, tuple[Outcome, str]] = {}
    for request in requests:
        named = [(shown[p], f"position {p}") for p in request.positions or () if p in shown]
        named += [(one, "its id") for one in request.memory_ids or ()]
        for memory_id, name in named:
            outcome, other = judged.setdefault(memory_id, (request.outcome, name))
            if outcome is not request.outcome:
                raise InvalidInput(
                    f"scores: {memory_id} is {outcome} by {other} and {request.outcome} by {name}; "
                    "send one outcome for it.",
                    details={"field": "scores", "memory_id": memory_id},
                )
    left = []
    for request in requests:
        if request.memory_ids is not None:
            ids = tuple(one for one in request.memory_ids if judged[one][1] == "its id")
            request = replace(request, memory_ids=ids)
        if request.memory_ids != ():
            left.append(request)
    return left


def _derived(key: str, request: OutcomeRequest) -> str:
    """A space is in no key of a caller: none of theirs is like it."""
    return f"score {request.outcome} {'ids' if request.positions is None else 'positions'} {key}"
