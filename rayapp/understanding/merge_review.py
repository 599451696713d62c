"""Proposals of merges among what waits for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.core.errors import InvalidInput
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.derived.records import State
from rayapp.understanding.derived.requests import Decided, Decision, ReviewItem
from rayapp.understanding.statements.merging import MergeService
from rayapp.understanding.statements.records import Level, Merge, MergeState
from rayapp.understanding.statements.requests import MergeDecision, MergePreview

KIND = "merge"
STATES = {
    State.PENDING: MergeState.PENDING,
    State.ACCEPTED: MergeState.DONE,
    State.DECLINED: MergeState.DECLINED,
}
SHOWN = {kept: state for state, kept in STATES.items()} | {MergeState.UNDONE: State.PENDING}


@dataclass(eq=False)
class MergeReview:
    """Implements `Reviewed`: two nodes that may be one."""

    merges: MergeService

    async def waiting(self, scope: ReadScope) -> int:
        return await self.merges.waiting(scope)

    async def listed(
        self, scope: ReadScope, state: State | None, limit: int
    ) -> Sequence[ReviewItem]:
        wanted = STATES.get(state or State.PENDING)
        rows = [] if wanted is None else await self.merges.listed(scope, wanted, limit)
        return [_item(row, pair) for row, pair in rows]

    async def decide(self, scope: WriteScope, item_id: str, decided: Decided) -> ReviewItem:
        if decided.decision is Decision.EDIT:
            raise InvalidInput("A merge has no words of its own: accept or decline it.")
        decision = MergeDecision(decided.decision.value)
        done = await self.merges.decide(scope, item_id, decision)
        return _item(done.merge, done.pair)


def _item(row: Merge, pair: MergePreview) -> ReviewItem:
    """Names alone, so that it reads the same in every language."""
    at = row.decided_at or row.created_at
    return ReviewItem(
        kind=KIND,
        id=row.merge_id,
        state=SHOWN[row.state].value,
        level=Level.INDUCTIVE.value,
        title=f"{pair.gone.name} = {pair.kept.name}",
        text=", ".join(row.reasons),
        confidence=row.score or 0.0,
        support=pair.gone.mentions + pair.kept.mentions,
        days=1,
        trend=None,
        first_at=row.created_at,
        last_at=at,
        source_ids=(),
        decided_by=row.decided_by,
        decided_at=row.decided_at,
        can_undo=row.can_undo,
    )
