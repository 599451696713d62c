"""When statements hold: what a slot's statements say of one another. Pure.

Of two objects of one slot the one confirmed later counts, from its own beginning on; a late arrival
that is older is cut by what was known already. What is stored is the same in every order of
arrival.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from rayapp.understanding.statements.records import Span, Statement


def settled(slot: Sequence[Statement]) -> list[Statement]:
    """The statements of one slot with the ends that they have beside one another."""
    ordered = sorted(slot, key=lambda one: (one.confirmed_at, one.recorded_at, one.statement_id))
    return [_ended(one, ordered[at + 1 :], ordered) for at, one in enumerate(ordered)]


def _ended(one: Statement, later: Sequence[Statement], every: Sequence[Statement]) -> Statement:
    if one.span is Span.ENDS:
        others = (other.valid_from for other in every if _holds_another(one, other))
        return _until(one, [one.confirmed_at, *others])
    begun = one.valid_from or one.confirmed_at
    ends = [other.valid_from or other.confirmed_at for other in later if _holds_another(one, other)]
    ends += [
        other.confirmed_at
        for other in every
        if other.span is Span.ENDS and other.fact_id == one.fact_id and begun < other.confirmed_at
    ]
    return _until(one, [max(begun, end) for end in ends])


def _holds_another(one: Statement, other: Statement) -> bool:
    return other.span is Span.HOLDS and other.fact_id != one.fact_id


def _until(one: Statement, ends: Iterable[datetime | None]) -> Statement:
    valid_to = min((end for end in ends if end is not None), default=None)
    return one if one.valid_to == valid_to else replace(one, valid_to=valid_to)
