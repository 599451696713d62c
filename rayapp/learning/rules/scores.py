"""Memories with an outcome each, as outcome requests: one per outcome. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rayapp.core.errors import InvalidInput
from rayapp.learning.records import OutcomeAnswer, OutcomeRequest
from rayapp.memory.item import Outcome


def score_requests(
    scores: Mapping[str, Outcome], whole: OutcomeRequest, *, by_position: bool
) -> list[OutcomeRequest]:
    """Parts of `whole`. Positions before ids, and the largest position first: if it exists, all of
    them do. `by_position`: names of digits alone are positions."""
    positions: dict[Outcome, set[int]] = {}
    ids: dict[Outcome, tuple[str, ...]] = {}
    for target, outcome in scores.items():
        if by_position and target.isdigit():
            positions.setdefault(outcome, set()).add(int(target))
        else:
            ids[outcome] = (*ids.get(outcome, ()), target)

    def part(outcome: Outcome, kind: str) -> OutcomeRequest:
        # A space is in no key of a caller: none of theirs is like it.
        key = whole.idempotency_key and f"score {outcome} {kind} {whole.idempotency_key}"
        return replace(whole, outcome=outcome, idempotency_key=key)

    ordered = sorted(positions.items(), key=lambda one: -max(one[1]))
    return [
        *(replace(part(one, "positions"), positions=tuple(sorted(n))) for one, n in ordered),
        *(replace(part(one, "ids"), memory_ids=named) for one, named in ids.items()),
    ]


def once_each(requests: Sequence[OutcomeRequest], shown: Mapping[int, str]) -> list[OutcomeRequest]:
    """Requests in which no id names what a position names too; `shown`: ids by position.

    Raises InvalidInput: a memory is given two outcomes.
    """
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


def together(answers: Sequence[OutcomeAnswer]) -> OutcomeAnswer:
    """Several records as one answer; `duplicate` only when nothing of it was new."""
    return OutcomeAnswer(
        updated=tuple(one for answer in answers for one in answer.updated),
        skipped=tuple(one for answer in answers for one in answer.skipped),
        duplicate=all(answer.duplicate for answer in answers),
        receipt_id=next((a.receipt_id for a in answers if a.receipt_id is not None), None),
    )
