"""What every store of episodes and thoughts does."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.ports import Event
from rayapp.understanding.derived.ports import DerivedRows, DerivedStore, DerivedWanted
from rayapp.understanding.derived.records import (
    Derived,
    DerivedKind,
    Evidence,
    Pattern,
    Revision,
    State,
    SubjectType,
)
from rayapp.understanding.statements.records import Level

AT = datetime(2026, 5, 20, 9, tzinfo=UTC)
DANA, NOA = "dana", "noa"


def a_row(number: int, **others: object) -> Derived:
    at = AT + timedelta(days=number)
    made = Derived(
        derived_id=f"row-{number}",
        kind=DerivedKind.THOUGHT,
        state=State.PENDING,
        level=Level.INDUCTIVE,
        title="Joy about running",
        text="Feels joy about running again and again.",
        sources=(
            Evidence(
                source_id=f"memory-{number}",
                said_at=at,
                happened_at=at,
                conversation_id="c-1",
                quote="שמחתי לרוץ",
                emotions=("joy",),
                node_ids=("n-1", "n-2"),
            ),
        ),
        pattern=Pattern(
            type=SubjectType.EMOTION,
            holder="me",
            key="joy",
            what="joy",
            theme="running",
            level=Level.INDUCTIVE,
        ),
        revisions=(
            Revision(
                version=1,
                title="Joy",
                text="Joy.",
                state=State.FORMING,
                worded_by=None,
                decided_by=None,
                decided_at=None,
                at=AT,
                by=None,
            ),
        ),
        first_at=at,
        last_at=at,
        created_at=AT,
        updated_at=AT,
    )
    return replace(made, **others)  # type: ignore[arg-type]


async def put(store: DerivedStore, *rows: Derived, user: str = DANA) -> None:
    async def work(change: DerivedRows) -> None:
        await change.put(rows)

    await store.change(WriteScope(user), work)


class DerivedStoreContract:
    @pytest.fixture
    def store(self) -> DerivedStore:
        raise NotImplementedError

    async def told(self, store: DerivedStore) -> list[Event]:
        raise NotImplementedError

    async def test_a_row_comes_back_as_it_was_put_and_to_its_user_alone(
        self, store: DerivedStore
    ) -> None:
        await put(store, a_row(1))
        reads, others = store.reads(ReadScope(DANA)), store.reads(ReadScope(NOA))
        assert await reads.by_ids(["row-1", "row-1", "row-9"]) == [a_row(1)]
        assert await reads.of_sources(["memory-1"]) == [a_row(1)]
        assert await reads.of_sources(["memory-2"]) == []
        assert await others.by_ids(["row-1"]) == []
        assert await others.of_sources(["memory-1"]) == []
        assert await others.wanted(DerivedWanted()) == []
        await put(store, a_row(1, title="Other"), user=NOA)
        assert (await reads.by_ids(["row-1"]))[0].title == "Joy about running"

    async def test_rows_are_wanted_by_each_condition(self, store: DerivedStore) -> None:
        episode = a_row(2, kind=DerivedKind.EPISODE, state=State.ACCEPTED, pattern=None)
        child = a_row(3, subject_id="child", perspective_owner_id="parent")
        await put(store, a_row(1), episode, child)
        reads = store.reads(ReadScope(DANA))

        async def ids(limit: int = 9, **wanted: object) -> list[str]:
            found = await reads.wanted(DerivedWanted(**wanted), limit)  # type: ignore[arg-type]
            return [one.derived_id for one in found]

        assert await ids() == ["row-3", "row-2", "row-1"]
        assert await ids(limit=2) == ["row-3", "row-2"]
        assert await ids(limit=0) == []
        assert await ids(kind=DerivedKind.EPISODE) == ["row-2"]
        assert await ids(states=(State.PENDING,)) == ["row-3", "row-1"]
        assert await ids(states=()) == []
        assert await ids(types=(SubjectType.EMOTION,)) == ["row-3", "row-1"]
        assert await ids(types=(SubjectType.GOAL,)) == []
        assert await ids(subject_ids=(None,)) == ["row-2", "row-1"]
        assert await ids(subject_ids=(None, "child")) == ["row-3", "row-2", "row-1"]
        assert await ids(perspective_ids=("parent",)) == ["row-3"]
        assert await ids(node_ids=("n-2", "n-9"), limit=1) == ["row-3"]
        assert await ids(node_ids=("n-9",)) == await ids(node_ids=()) == []
        assert await ids(since=AT + timedelta(days=2)) == ["row-3", "row-2"]
        assert await ids(until=AT + timedelta(days=2)) == ["row-2", "row-1"]

    async def test_a_change_is_whole_or_nothing(self, store: DerivedStore) -> None:
        await put(store, a_row(1))

        async def broken(rows: DerivedRows) -> None:
            await rows.put([a_row(2)])
            await rows.delete(["row-1"])
            await rows.tell([a_row(2)])
            raise ValueError("stop")

        with pytest.raises(ValueError, match="stop"):
            await store.change(WriteScope(DANA), broken)
        found = await store.reads(ReadScope(DANA)).wanted(DerivedWanted())
        assert [one.derived_id for one in found] == ["row-1"]
        assert await self.told(store) == []

    async def test_changes_of_one_row_lose_nothing(self, store: DerivedStore) -> None:
        await put(store, a_row(1))

        async def counted(rows: DerivedRows) -> None:
            (row,) = await rows.by_ids(["row-1"])
            await rows.put([replace(row, version=row.version + 1)])

        await asyncio.gather(*(store.change(WriteScope(DANA), counted) for _ in range(5)))
        (row,) = await store.reads(ReadScope(DANA)).by_ids(["row-1"])
        assert row.version == 6

    async def test_sources_of_all_users_come_in_pages(self, store: DerivedStore) -> None:
        await put(store, a_row(1), a_row(2))
        first = await store.sources_after(None, 1)
        assert first.after == (DANA, "row-1")
        rest = await store.sources_after(first.after, 2)
        assert rest.after is None
        said = {(DANA, one.source_id) for number in (1, 2) for one in a_row(number).sources}
        assert first.sources | rest.sources == said

    async def test_what_waits_is_counted_by_kind(self, store: DerivedStore) -> None:
        assert await store.pending(ReadScope(DANA)) == {}
        accepted = a_row(3, state=State.ACCEPTED)
        await put(store, a_row(1), a_row(2), accepted)
        assert await store.pending(ReadScope(DANA)) == {DerivedKind.THOUGHT: 2}
        assert await store.pending(ReadScope(NOA)) == {}
        assert await store.pending_of_all() == {DerivedKind.THOUGHT: 2}

    async def test_the_stream_is_told_of_ids_alone(self, store: DerivedStore) -> None:
        async def work(rows: DerivedRows) -> None:
            await rows.put([a_row(1)])
            await rows.tell([a_row(1)])

        await store.change(WriteScope(DANA), work)
        (event,) = await self.told(store)
        assert (event.user_id, event.kind, event.data) == (DANA, "thought", {"id": "row-1"})

    async def test_deleted_rows_are_gone(self, store: DerivedStore) -> None:
        await put(store, a_row(1), a_row(2))

        async def work(rows: DerivedRows) -> None:
            await rows.delete(["row-1", "row-9"])

        await store.change(WriteScope(DANA), work)
        found = await store.reads(ReadScope(DANA)).wanted(DerivedWanted())
        assert [one.derived_id for one in found] == ["row-2"]
