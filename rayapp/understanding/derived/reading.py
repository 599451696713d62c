"""Episodes and thoughts as programs and people see them, and what they decide on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.core.runtime import Clock
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.item import MemoryItem, Source, SourceType, derived_id
from rayapp.memory.requests import NewMemory
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier
from rayapp.understanding.deciding import Deciding
from rayapp.understanding.derived.ports import MOST_ROWS, DerivedRows, DerivedStore, DerivedWanted
from rayapp.understanding.derived.records import (
    MOST_QUOTE,
    Derived,
    DerivedKind,
    Evidence,
    State,
    SubjectType,
)
from rayapp.understanding.derived.requests import (
    Decided,
    Decision,
    NewEpisode,
    Reviewed,
    ReviewItem,
    Weighed,
)
from rayapp.understanding.derived.rules.support import confidence_of, revised, settled, trend_of
from rayapp.understanding.derived.rules.wording import cut
from rayapp.understanding.derived.standing import fallen
from rayapp.understanding.statements.ports import KnowledgeStore
from rayapp.understanding.statements.records import Level
from rayapp.understanding.statements.rules.tables import Tables
from rayapp.understanding.statements.settlement import with_parts

SHOWN = tuple(one for one in State if one is not State.FORMING)
UNKNOWN = "Nothing has this id here; list episodes or thoughts to find it."


@dataclass(eq=False)
class DerivedService:
    """Raises NotFound, InvalidInput, StoreDown."""

    store: DerivedStore
    knowledge: KnowledgeStore
    memories: MemoriesService
    deciding: Deciding
    tables: Tables
    clock: Clock

    async def thoughts(
        self,
        scope: ReadScope,
        *,
        states: Sequence[State] = SHOWN,
        types: Sequence[SubjectType] | None = None,
        subject_id: str | None = None,
        perspective_owner_id: str | None = None,
        node_id: str | None = None,
        limit: int = MOST_ROWS,
    ) -> list[Weighed]:
        """In the order of time, what was said first before the rest: a change of mind is read as
        one."""
        wanted = DerivedWanted(
            kind=DerivedKind.THOUGHT,
            states=tuple(states),
            types=None if types is None else tuple(types),
            subject_ids=_only(subject_id),
            perspective_ids=_only(perspective_owner_id),
            node_ids=await self._nodes(scope, node_id),
        )
        rows = await self.store.reads(scope).wanted(wanted, limit)
        rows.sort(key=lambda one: (one.first_at, one.last_at, one.derived_id))
        return await self._weighed(scope, rows)

    async def episodes(
        self,
        scope: ReadScope,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        subject_id: str | None = None,
        perspective_owner_id: str | None = None,
        node_id: str | None = None,
        limit: int = MOST_ROWS,
    ) -> list[Derived]:
        """The newest first."""
        wanted = DerivedWanted(
            kind=DerivedKind.EPISODE,
            states=(State.ACCEPTED,),
            since=since,
            until=until,
            subject_ids=_only(subject_id),
            perspective_ids=_only(perspective_owner_id),
            node_ids=await self._nodes(scope, node_id),
        )
        return await self.store.reads(scope).wanted(wanted, limit)

    async def _nodes(self, scope: ReadScope, node_id: str | None) -> tuple[str, ...] | None:
        """The node with all that is one with it."""
        if node_id is None:
            return None
        reads = self.knowledge.reads(scope)
        found = await with_parts(reads, await reads.entities([node_id]))
        return tuple(one.entity_id for root, parts in found.values() for one in (root, *parts))

    async def get(self, scope: ReadScope, kind: DerivedKind, key: str) -> Weighed:
        """Raises NotFound: also of what is only forming."""
        found = await self.store.reads(scope).by_ids([key])
        rows = [one for one in found if one.kind is kind and one.is_shown]
        if not rows:
            raise NotFound(UNKNOWN)
        (weighed,) = await self._weighed(scope, rows)
        return weighed

    async def create_episode(self, scope: WriteScope, new: NewEpisode) -> Derived:
        """Of a memory that is there, or of one that is stored for it.

        Raises NotFound: that memory; Conflict: understanding is off.
        """
        self.deciding.check_on(scope.user_id)
        item = await self._told(scope, new)
        narrative = new.narrative or item.text
        now = self.clock.now()
        evidence = Evidence(
            source_id=item.memory_id,
            said_at=item.created_at,
            happened_at=new.occurred_at or item.created_at,
            conversation_id=item.source.conversation_id,
            doc_id=item.source.doc_id,
            quote=narrative[:MOST_QUOTE],
            emotions=tuple(dict.fromkeys(self._emotion(one) for one in new.emotions)),
            topics=new.topics or item.topics,
        )
        row = Derived(
            derived_id=derived_id(scope.user_id, "told", item.memory_id, narrative),
            kind=DerivedKind.EPISODE,
            state=State.ACCEPTED,
            level=Level.EXPLICIT,
            title=cut(new.title or narrative),
            text=narrative,
            sources=(evidence,),
            subject_id=item.subject_id,
            perspective_owner_id=item.perspective_owner_id,
            made_by=_who(scope),
            worded_by=_who(scope),
            first_at=evidence.happened_at,
            last_at=evidence.happened_at,
            created_at=now,
            updated_at=now,
        )

        async def work(rows: DerivedRows) -> Derived:
            there = await rows.by_ids([row.derived_id])
            if there:
                return there[0]
            await rows.put([row])
            await rows.tell([row])
            return row

        return await self.store.change(scope, work)

    async def _told(self, scope: WriteScope, new: NewEpisode) -> MemoryItem:
        if new.raw_data_id is not None:
            return await self.memories.get(scope.own, new.raw_data_id)
        if not new.narrative:
            raise InvalidInput(
                "Send the narrative, or the raw_data_id of the memory that tells it."
            )
        stored = await self.memories.store(
            scope,
            NewMemory(
                # The same narrative again is the same memory.
                memory_id=derived_id(scope.user_id, "narrative", new.narrative),
                text=new.narrative,
                tier=Tier.HISTORY,
                created_at=new.occurred_at,
                source=Source(type=SourceType.USER),
                subject_id=new.subject_id,
                perspective_owner_id=new.perspective_owner_id,
                topics=new.topics,
                lasting=True,
            ),
        )
        if stored.memory_id is None:
            raise InvalidInput(stored.error or "The narrative was not stored; send another.")
        return await self.memories.get(scope.own, stored.memory_id)

    def _emotion(self, name: str) -> str:
        """What the tables call it."""
        found = self.tables.every_emotion.at(tuple(name.casefold().split()))
        return name if found is None else found[1]

    async def _weighed(self, scope: ReadScope, rows: Sequence[Derived]) -> list[Weighed]:
        now = self.clock.now()
        down = await fallen(self.knowledge, scope, rows, now)
        return [
            Weighed(
                row=one,
                state=State.IN_DOUBT if _doubted(one, down) else one.state,
                confidence=confidence_of(one),
                trend=trend_of(one, now),
                opposes=tuple(other.derived_id for other in rows if self._opposes(one, other)),
            )
            for one in rows
        ]

    def _opposes(self, one: Derived, other: Derived) -> bool:
        """Whether two feel the opposite about the same."""
        mine, its = one.pattern, other.pattern
        if mine is None or its is None or (mine.type, mine.holder) != (its.type, its.holder):
            return False
        row = self.tables.emotion_rows.get(mine.what)
        opposite = self.tables.emotion_rows.get(its.what)
        against = (row is not None and row.opposite == its.what) or (
            opposite is not None and opposite.opposite == mine.what
        )
        return against and mine.theme.casefold() == its.theme.casefold()


def _only(name: str | None) -> tuple[str | None, ...] | None:
    return None if name is None else (name,)


def _doubted(row: Derived, down: frozenset[str]) -> bool:
    ended = row.derived_id in down or row.ended
    return ended and row.state in (State.ACCEPTED, State.PENDING)


@dataclass(eq=False)
class DerivedReview:
    """Implements `Reviewed` for thoughts or episodes."""

    kind: DerivedKind
    store: DerivedStore
    clock: Clock

    async def waiting(self, scope: ReadScope) -> int:
        return (await self.store.pending(scope)).get(self.kind, 0)

    async def listed(
        self, scope: ReadScope, state: State | None, limit: int
    ) -> Sequence[ReviewItem]:
        states = (state or State.PENDING,)
        wanted = DerivedWanted(kind=self.kind, states=states)
        rows = await self.store.reads(scope).wanted(wanted, limit)
        return [self._item(one) for one in rows]

    async def decide(self, scope: WriteScope, item_id: str, decided: Decided) -> ReviewItem:
        now, who = self.clock.now(), _who(scope)

        async def work(rows: DerivedRows) -> Derived:
            found = await rows.by_ids([item_id])
            if not found or found[0].kind is not self.kind or not found[0].is_shown:
                raise NotFound(UNKNOWN)
            row = found[0]
            changed = _undone(row, now) if decided.decision is Decision.UNDO else None
            if changed is None:
                changed = revised(row, _as_decided(row, decided, who, now), now, who)
            changed = settled(changed) or changed
            await rows.put([changed])
            return changed

        return self._item(await self.store.change(scope, work))

    def _item(self, row: Derived) -> ReviewItem:
        thought = row.kind is DerivedKind.THOUGHT
        return ReviewItem(
            kind=row.kind.value,
            id=row.derived_id,
            state=row.state.value,
            level=row.level.value,
            title=row.title,
            text=row.text,
            confidence=confidence_of(row),
            support=row.support,
            days=row.days,
            trend=trend_of(row, self.clock.now()).value if thought else None,
            first_at=row.first_at,
            last_at=row.last_at,
            source_ids=tuple(one.source_id for one in row.sources),
            decided_by=row.decided_by,
            decided_at=row.decided_at,
            can_undo=_last_decision(row) is not None,
        )


def _as_decided(row: Derived, decided: Decided, who: str, now: datetime) -> Derived:
    if decided.decision is Decision.DECLINE:
        return replace(row, state=State.DECLINED, decided_by=who, decided_at=now)
    if row.state is State.DECLINED and not row.sources:
        raise Conflict("What this rested on is gone, so it cannot come back.", code="sources_gone")
    changed = replace(row, state=State.ACCEPTED, decided_by=who, decided_at=now)
    if decided.decision is Decision.ACCEPT:
        return changed
    title = row.title if decided.title is None else cut(decided.title)
    text = row.text if decided.text is None else decided.text
    return replace(changed, title=title, text=text, worded_by=who)


def _last_decision(row: Derived) -> int | None:
    """Its place among the revisions."""
    return next(
        (at for at in reversed(range(len(row.revisions))) if row.revisions[at].by is not None), None
    )


def _undone(row: Derived, now: datetime) -> Derived:
    """As it was before the last decision of a person; what was learned since stays."""
    at = _last_decision(row)
    if at is None:
        raise Conflict("There is no decision to undo.", code="nothing_to_undo")
    before = row.revisions[at]
    return replace(
        row,
        state=before.state,
        title=before.title,
        text=before.text,
        worded_by=before.worded_by,
        decided_by=before.decided_by,
        decided_at=before.decided_at,
        revisions=row.revisions[:at],
        version=row.version + 1,
        updated_at=now,
    )


@dataclass(eq=False)
class ReviewService:
    """What waits for a person, of all kinds. Raises NotFound, Conflict."""

    kinds: Mapping[str, Reviewed]

    async def waiting(self, scope: ReadScope) -> dict[str, int]:
        """How much, by kind."""
        return {name: await one.waiting(scope) for name, one in self.kinds.items()}

    async def listed(
        self, scope: ReadScope, kind: str | None, state: State | None, limit: int
    ) -> list[ReviewItem]:
        """Of one kind or of all, those said last first."""
        wanted = [self._kind(kind)] if kind is not None else [*self.kinds.values()]
        found = [item for one in wanted for item in await one.listed(scope, state, limit)]
        found.sort(key=lambda one: one.last_at, reverse=True)
        return found[:limit]

    async def decide(
        self, scope: WriteScope, kind: str, item_id: str, decided: Decided
    ) -> ReviewItem:
        return await self._kind(kind).decide(scope, item_id, decided)

    def _kind(self, name: str) -> Reviewed:
        if name not in self.kinds:
            raise NotFound(f"Nothing is reviewed as {name}; use one of: {', '.join(self.kinds)}.")
        return self.kinds[name]


def _who(scope: WriteScope) -> str:
    return scope.principal or scope.user_id
