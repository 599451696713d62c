"""Names that the registry lacks among what waits for a person."""

from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.derived.records import State
from rayapp.understanding.derived.requests import Decided, Decision, ReviewItem
from rayapp.understanding.statements.growth import GrowthService, NewName
from rayapp.understanding.statements.records import Level
from rayapp.understanding.statements.rules.additions import Proposal, Ruling, RulingState

KIND = "ontology"
STATES = {State.ACCEPTED: RulingState.ACCEPTED, State.DECLINED: RulingState.DECLINED}
SHOWN = {kept: state for state, kept in STATES.items()} | dict.fromkeys(
    (RulingState.UNDONE, RulingState.PROPOSED), State.PENDING
)


@dataclass(eq=False)
class OntologyReview:
    """Implements `Reviewed`: a type or a relation that several texts needed."""

    growth: GrowthService

    async def waiting(self, scope: ReadScope) -> int:
        return len(await self.growth.proposals(scope))

    async def listed(
        self, scope: ReadScope, state: State | None, limit: int
    ) -> Sequence[ReviewItem]:
        if state in (None, State.PENDING):
            found = await self.growth.proposals(scope)
            return [proposed(one, scope.user_id) for one in found[:limit]]
        wanted = STATES.get(state) if state is not None else None
        rulings = [] if wanted is None else await self.growth.ruled(scope, wanted)
        return [_ruled(one) for one in rulings[:limit]]

    async def decide(self, scope: WriteScope, item_id: str, decided: Decided) -> ReviewItem:
        """An edit says what it is called, and in its text, joined by commas, further words that
        mean the same, in any language."""
        operator = decided.operator
        if decided.decision is Decision.UNDO:
            return _ruled(await self.growth.undo(scope, item_id, operator=operator))
        if decided.decision is Decision.DECLINE:
            return _ruled(await self.growth.decline(scope, item_id, operator=operator))
        new = NewName()
        if decided.decision is Decision.EDIT:
            words = (one.strip() for one in (decided.text or "").split(","))
            new = NewName(name=decided.title, words=tuple(filter(None, words)))
        return _ruled(await self.growth.accept(scope, item_id, new, operator=operator))


def proposed(one: Proposal, user_id: str) -> ReviewItem:
    """The label alone: what was said under it stays with who said it. Of what a person proposes,
    its words."""
    asked = one.asked
    said = [each.said_at for each in one.witnesses] + ([asked.at] if asked else [])
    own = (each.source_id for each in one.witnesses if each.user_id == user_id)
    return ReviewItem(
        kind=KIND,
        id=one.proposal_id,
        state=State.PENDING.value,
        level=Level.INDUCTIVE.value,
        title=one.name,
        text=one.label if asked is None else _told(asked),
        confidence=round(1 - 1 / (1 + len(one.witnesses)), 3),
        support=len(one.witnesses),
        days=len({at.date() for at in said}),
        trend=None,
        first_at=said[0],
        last_at=said[-1],
        source_ids=tuple(dict.fromkeys(filter(None, own))),
        decided_by=None,
        decided_at=None,
        can_undo=False,
    )


def _ruled(one: Ruling) -> ReviewItem:
    return ReviewItem(
        kind=KIND,
        id=one.proposal_id,
        state=SHOWN[one.state].value,
        level=Level.INDUCTIVE.value,
        title=one.name,
        text=_told(one),
        confidence=1.0,
        support=0,
        days=0,
        trend=None,
        first_at=one.at,
        last_at=one.at,
        source_ids=(),
        decided_by=one.by,
        decided_at=one.at,
        can_undo=one.is_decision,
    )


def _told(one: Ruling) -> str:
    """Its words; those of a narrower type are names of things of its parent."""
    words = ", ".join(one.words) or one.label
    return words if one.parent is None else f"{one.parent}: {words}"
