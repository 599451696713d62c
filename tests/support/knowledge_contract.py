"""What every store of the typed graph does."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rayapp.container.understanding import load_derived_rules, load_reader, load_registry
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.derived.ports import UnderstoodStore
from rayapp.understanding.derived.service import DerivingService
from rayapp.understanding.derived.understanding import TextUnderstander
from rayapp.understanding.ports import SourcePage, SourceText
from rayapp.understanding.statements.merging import MergeService
from rayapp.understanding.statements.ports import KnowledgeRows, KnowledgeStore, StatementsWanted
from rayapp.understanding.statements.records import (
    Counted,
    Entity,
    Given,
    Mention,
    Merge,
    MergeState,
    Premise,
    Span,
    Statement,
)
from rayapp.understanding.statements.registries import Registries
from rayapp.understanding.statements.requests import MergeDecision, NewMerge
from rayapp.understanding.statements.resolving import Resolver
from rayapp.understanding.statements.service import StatementsService
from tests.support.clock import FakeClock
from tests.support.models import HashEmbedder
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.knowledge import InMemoryKnowledgeStore
from tests.support.stores.ontology import InMemoryRegistryStore

AT = datetime(2026, 5, 20, 9, tzinfo=UTC)
DANA, NOA = "dana", "noa"


def an_understander(
    store: UnderstoodStore, clock: FakeClock, resolver: Resolver | None = None
) -> TextUnderstander:
    """As it is shipped, for tenants that have added nothing, without memories."""
    registry = InMemoryRegistryStore(InMemoryKnowledgeStore())
    registries = Registries(load_registry(), registry, clock)
    statements = StatementsService(load_reader(), registries, None, resolver, None, clock=clock)
    items = InMemoryMemoryStore(clock)
    deriving = DerivingService(items, HashEmbedder(), load_derived_rules(), clock)
    return TextUnderstander(store, statements, deriving)


def an_entity(name: str, *, type_: str = "Person", mentions: int = 1) -> Entity:
    return Entity(
        entity_id=f"id-{name}",
        type=type_,
        name=name,
        keys=(Counted(name=name, count=1), Counted(name="role:friend:me", count=1)),
        names=(Counted(name=name, count=1),),
        attributes={"shirt": "blue"},
        mentions=mentions,
        first_seen_at=AT,
        last_seen_at=AT,
        ontology=1,
    )


def a_statement(number: int, **others: object) -> Statement:
    made = Statement(
        statement_id=f"statement-{number}",
        fact_id=f"fact-{number}",
        slot=f"slot-{number}",
        subject_id="id-avi",
        relation="LIVES_IN",
        object_id="id-haifa",
        valid_from=AT,
        confirmed_at=AT + timedelta(minutes=number),
        recorded_at=AT,
        premises=(Premise(relation="WORKS_AT", fact_id="fact-9"),),
        source_id="memory-1",
        evidence=("memory-1",),
        quote="Avi lives in Haifa",
        ontology=1,
    )
    return replace(made, **others)  # type: ignore[arg-type]


def a_gift(source_id: str = "memory-1") -> Given:
    mention = Mention(entity_id="id-avi", type="Person", names=("Avi",), keys=("avi",))
    return Given(
        source_id=source_id,
        conversation_id="talk",
        about_id=None,
        text_hash="0" * 64,
        said_at=AT,
        recorded_at=AT,
        mentions=(mention,),
        entity_ids=("id-avi",),
        ontology=1,
    )


async def put(store: KnowledgeStore, user_id: str, *rows: Entity | Statement | Given) -> None:
    async def work(inside: KnowledgeRows) -> None:
        await inside.put_entities([one for one in rows if isinstance(one, Entity)])
        await inside.put_statements([one for one in rows if isinstance(one, Statement)])
        for one in rows:
            if isinstance(one, Given):
                await inside.put_given([one])

    await store.change(WriteScope(user_id), work)


def a_merge(number: int, state: MergeState = MergeState.PENDING) -> Merge:
    return Merge(
        merge_id=f"merge-{number}", state=state, kept_id="id-avi", gone_id="id-noa", created_at=AT
    )


class KnowledgeStoreContract:
    """`store` and `understood`, over the same rows, are fixtures of whoever runs this."""

    async def test_what_is_put_is_read_as_it_was(self, store: KnowledgeStore) -> None:
        avi, said, gift = an_entity("avi"), a_statement(1, span=Span.ENDS, valid_to=AT), a_gift()
        await put(store, DANA, avi, said, gift)
        reads = store.reads(ReadScope(DANA))
        assert await reads.entities(["id-avi", "id-nobody"]) == [avi]
        assert await reads.statements(StatementsWanted()) == [said]
        assert await reads.given(["memory-1", "memory-2"]) == [gift]

    async def test_putting_again_replaces(self, store: KnowledgeStore) -> None:
        await put(store, DANA, an_entity("avi"))
        await put(store, DANA, replace(an_entity("avi"), name="Avi", mentions=2))
        found = await store.reads(ReadScope(DANA)).of_type("Person", 10)
        assert [(one.name, one.mentions) for one in found] == [("Avi", 2)]

    async def test_nobody_reads_the_rows_of_another_user(self, store: KnowledgeStore) -> None:
        await put(store, DANA, an_entity("avi"), a_statement(1), a_gift())
        reads = store.reads(ReadScope(NOA))
        assert await reads.entities(["id-avi"]) == []
        assert await reads.named(None, ["avi"]) == []
        assert await reads.of_type(None, 10) == []
        assert await reads.statements(StatementsWanted()) == []
        assert await reads.given(["memory-1"]) == []
        await put(store, NOA, replace(an_entity("avi"), name="theirs"))
        (mine,) = await store.reads(ReadScope(DANA)).entities(["id-avi"])
        assert mine.name == "avi"

    async def test_nodes_are_found_by_any_of_their_keys(self, store: KnowledgeStore) -> None:
        await put(store, DANA, an_entity("avi"), an_entity("haifa", type_="Place"))
        reads = store.reads(ReadScope(DANA))
        assert [one.name for one in await reads.named(None, ["role:friend:me"])] == ["avi", "haifa"]
        assert [one.name for one in await reads.named("Place", ["avi", "haifa"])] == ["haifa"]
        assert await reads.named("Place", ["avi"]) == []
        assert await reads.named(None, []) == []

    async def test_nodes_come_by_how_often_they_are_named(self, store: KnowledgeStore) -> None:
        rows = [an_entity(name, mentions=n) for name, n in (("b", 2), ("a", 2), ("c", 5))]
        await put(store, DANA, *rows)
        reads = store.reads(ReadScope(DANA))
        assert [one.name for one in await reads.of_type("Person", 2)] == ["c", "a"]
        assert await reads.of_type("Event", 2) == []
        assert await reads.of_type(None, 0) == []

    @pytest.mark.parametrize(
        ("wanted", "found"),
        [
            (StatementsWanted(), [4, 3, 2, 1]),
            (StatementsWanted(source_ids=("memory-2",)), [3]),
            (StatementsWanted(slots=("slot-1", "slot-2")), [2, 1]),
            (StatementsWanted(fact_ids=("fact-2",)), [2]),
            (StatementsWanted(subject_ids=("id-avi",), relations=("WORKS_AT",)), [2]),
            (StatementsWanted(object_ids=("id-haifa",)), [4, 1]),
            (StatementsWanted(touching=("id-haifa", "id-intel")), [4, 2, 1]),
            (StatementsWanted(touching=("id-haifa",), relations=("WORKS_AT",)), []),
            (StatementsWanted(slots=()), []),
            (StatementsWanted(spans=(Span.ENDS,)), [4]),
        ],
    )
    async def test_conditions_are_joined(
        self, store: KnowledgeStore, wanted: StatementsWanted, found: list[int]
    ) -> None:
        await put(
            store,
            DANA,
            a_statement(1),
            a_statement(2, relation="WORKS_AT", object_id="id-intel"),
            a_statement(3, object_id=None, value="42", source_id="memory-2"),
            a_statement(4, subject_id="id-eli", source_id="memory-3", span=Span.ENDS),
        )
        got = await store.reads(ReadScope(DANA)).statements(wanted)
        assert [one.statement_id for one in got] == [f"statement-{n}" for n in found]

    async def test_the_latest_are_read_where_there_are_many(self, store: KnowledgeStore) -> None:
        await put(store, DANA, *(a_statement(n) for n in range(5)))
        got = await store.reads(ReadScope(DANA)).statements(StatementsWanted(), limit=2)
        assert [one.fact_id for one in got] == ["fact-4", "fact-3"]

    async def test_a_change_that_fails_leaves_nothing(self, store: KnowledgeStore) -> None:
        async def work(rows: KnowledgeRows) -> None:
            await rows.put_entities([an_entity("avi")])
            raise LookupError

        with pytest.raises(LookupError):
            await store.change(WriteScope(DANA), work)
        assert await store.reads(ReadScope(DANA)).of_type(None, 10) == []

    async def test_a_change_reads_what_it_wrote(self, store: KnowledgeStore) -> None:
        async def work(rows: KnowledgeRows) -> list[str]:
            await rows.put_statements([a_statement(1), a_statement(2)])
            await rows.delete_statements(["statement-1"])
            return [one.statement_id for one in await rows.statements(StatementsWanted())]

        assert await store.change(WriteScope(DANA), work) == ["statement-2"]

    async def test_what_is_deleted_is_gone(self, store: KnowledgeStore) -> None:
        await put(store, DANA, an_entity("avi"), a_statement(1), a_gift())

        async def work(rows: KnowledgeRows) -> None:
            await rows.delete_entities(["id-avi"])
            await rows.delete_statements(["statement-1"])
            await rows.delete_given(["memory-1"])

        await store.change(WriteScope(DANA), work)
        reads = store.reads(ReadScope(DANA))
        assert await reads.of_type(None, 10) == []
        assert await reads.statements(StatementsWanted()) == []
        assert await reads.given(["memory-1"]) == []

    async def test_changes_at_once_lose_nothing(self, store: KnowledgeStore) -> None:
        await put(store, DANA, an_entity("avi", mentions=0))

        async def count(rows: KnowledgeRows) -> None:
            (avi,) = await rows.entities(["id-avi"])
            await asyncio.sleep(0)
            await rows.put_entities([replace(avi, mentions=avi.mentions + 1)])

        await asyncio.gather(*(store.change(WriteScope(DANA), count) for _ in range(6)))
        (avi,) = await store.reads(ReadScope(DANA)).entities(["id-avi"])
        assert avi.mentions == 6

    async def test_texts_that_are_understood_at_once_count_alike(
        self, store: KnowledgeStore, understood: UnderstoodStore
    ) -> None:
        registry, clock = load_registry(), FakeClock()
        resolver = Resolver(store, MergeService(store, registry, clock), registry, clock)
        understander = an_understander(understood, clock, resolver)
        places = ("Haifa", "Acre", "Oslo", "Rome", "Kyoto", "Lima")
        texts = [f"Dana lives in {place}." for place in places]

        async def understand(number: int) -> None:
            said_at = AT + timedelta(days=number)
            said = (f"memory-{number}", texts[number], said_at, None, None, None, ())
            await understander.understand([SourceText(DANA, *said)])

        await asyncio.gather(*map(understand, range(len(texts))))
        reads = store.reads(ReadScope(DANA))
        (dana,) = await reads.of_type("Person", 10)
        assert dana.mentions == len(texts)
        said = await reads.statements(StatementsWanted(relations=("LIVES_IN",)))
        assert [one.valid_to for one in said] == [
            None,
            *(AT + timedelta(days=number) for number in range(5, 0, -1)),
        ]
        await asyncio.gather(
            *(understander.take_back(DANA, [f"memory-{number}"]) for number in range(len(texts)))
        )
        assert await reads.of_type(None, 10) == []
        assert await reads.statements(StatementsWanted()) == []

    async def test_sources_of_all_users_come_in_pages(self, store: KnowledgeStore) -> None:
        async def work(rows: KnowledgeRows) -> None:
            for name in ("m1", "m2"):
                await rows.put_given([a_gift(name)])

        for user in (DANA, NOA):
            await store.change(WriteScope(user), work)
        first = await store.sources_after(None, 3)
        assert first.sources == {(DANA, "m1"), (DANA, "m2"), (NOA, "m1")}
        rest = await store.sources_after(first.after, 3)
        assert rest == SourcePage(frozenset({(NOA, "m2")}), None)

    async def test_merges_that_wait_are_counted_over_all_users(self, store: KnowledgeStore) -> None:
        async def work(rows: KnowledgeRows) -> None:
            await rows.put_merges([a_merge(1), a_merge(2, MergeState.DECLINED)])

        assert await store.pending_of_all() == 0
        for user in (DANA, NOA):
            await store.change(WriteScope(user), work)
        assert await store.pending_of_all() == 2

    async def test_a_merge_is_told_dry_done_and_taken_back(
        self, store: KnowledgeStore, understood: UnderstoodStore
    ) -> None:
        registry, clock = load_registry(), FakeClock()
        merges = MergeService(store, registry, clock)
        understander = an_understander(understood, clock)
        for number, text in enumerate(("Bob lives in Haifa.", "Robert lives in Acre.")):
            said = (f"m{number}", text, AT + timedelta(days=number), None, None, None, ())
            await understander.understand([SourceText(DANA, *said)])
        reads = store.reads(ReadScope(DANA))
        people = {one.name: one for one in await reads.of_type("Person", 5)}
        new = NewMerge(
            kept_id=people["Robert"].entity_id, gone_id=people["Bob"].entity_id, dry_run=True
        )
        before = sorted(await reads.statements(StatementsWanted()), key=str)
        dry = await merges.merge(WriteScope(DANA), new)
        assert sorted(await reads.statements(StatementsWanted()), key=str) == before
        assert await reads.merges(None, 5) == []
        done = await merges.merge(WriteScope(DANA), replace(new, dry_run=False))
        assert (dry.moved, dry.ended) == (done.moved, done.ended)
        assert [one.name for one in await reads.of_type("Person", 5)] == ["Robert"]
        assert [one.name for one in await reads.parts([new.kept_id])] == ["Bob"]
        named = await reads.statements(StatementsWanted(naming=(new.gone_id,)))
        assert {one.subject_id for one in named} == {new.kept_id}
        assert await reads.merge(done.merge.merge_id) == done.merge
        assert await store.reads(ReadScope(NOA)).merges(None, 5) == []
        await merges.decide(WriteScope(DANA), done.merge.merge_id, MergeDecision.UNDO)
        assert sorted(await reads.statements(StatementsWanted()), key=str) == before
        (row,) = await reads.merges(MergeState.UNDONE, 5)
        assert await reads.merges(MergeState.DONE, 5) == []
        assert not row.joins

    async def test_what_no_source_names_is_found(self, store: KnowledgeStore) -> None:
        ghost = an_entity("ghost", mentions=0)
        by_hand = replace(an_entity("hand", mentions=0), verified_by="dana")
        await put(store, DANA, an_entity("avi"), ghost, by_hand, a_gift())
        reads = store.reads(ReadScope(DANA))
        assert await reads.unnamed(5) == [ghost]
        assert await reads.gave(["memory-1", "memory-2"]) == {"memory-1"}
        assert await store.reads(ReadScope(NOA)).gave(["memory-1"]) == set()
