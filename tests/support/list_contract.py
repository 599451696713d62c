"""Pages, filters, the pending retriever and text search of every `MemoryStore`."""

import base64
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayapp.core.errors import InvalidInput
from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import IndexState, MemoryItem, Source, SourceType, Stats, Status, SyncState
from rayapp.memory.ports import IndexResult, MemoryStore
from rayapp.memory.requests import SORT_KEYS, ItemQuery, SortKey, sort_values
from rayapp.memory.rules.filtering import is_coming, matches
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import Tier
from rayapp.text.normalize import normalize
from tests.support.builders import STORED_AT, an_item
from tests.support.examples import examples
from tests.support.queue_contract import SCHEMA
from tests.support.store_contract import DANA, Stores, ids
from tests.support.stores import may_read

HOUR = timedelta(hours=1)
USERS = ("dana", "noa", SYSTEM_USER, "acme/dana")
TIERS = (Tier.WORKING, Tier.BOOKS, Tier.DATAGOV_SCHEMA)
WORDS = ("x", "y", "שלום")
NAMES = ("a", "b")
STATES = (*[SyncState.PENDING] * 3, SyncState.SYNCED, SyncState.FAILED)


def corpus() -> list[MemoryItem]:
    """Items of three users that differ in everything a filter can ask about."""
    items = []
    for n in range(90):
        user, tier = USERS[n % 4], TIERS[n // 4 % 3]
        at = STORED_AT + (n % 7) * HOUR
        items.append(
            an_item(
                user_id=user,
                tier=tier,
                memory_id=f"c-{n // 3}",
                status=tuple(Status)[n % 5 % 3],
                created_at=at,
                stored_at=at + (n % 11) * HOUR,
                index=IndexState(
                    sync_state=STATES[n % len(STATES)], vector_hash="h" if n % 8 == 5 else None
                ),
                tags=WORDS[: n % 4],
                entities=NAMES[: n % 3],
                lang=("he", "en")[n % 2],
                always_inject=n % 4 == 0,
                attached_to=NAMES[n % 2] if tier is Tier.BOOKS and n % 4 else None,
                instruction="always" if n % 3 == 0 else None,
                subject_id=NAMES[n % 2],
                perspective_owner_id=NAMES[n // 2 % 2],
                topics=NAMES[: n % 3],
                superseded_by="z" if n % 6 == 5 else None,
                expires_at=at + HOUR if n % 3 == 1 else None,
                valid_from=at if n % 4 == 1 else None,
                valid_to=at + 2 * HOUR if n % 4 in (1, 2) else None,
                stats=Stats(score=(0.0, 0.3, 0.6, 0.9)[n % 4]),
                source=Source(
                    type=tuple(SourceType)[n % 3],
                    conversation_id=NAMES[n % 2],
                    tool_name=NAMES[n % 2] if n % 3 else None,
                    doc_id=NAMES[n // 2 % 2],
                    chunk_id=f"{n}" if n // 2 % 3 else None,
                    datagov=_datagov(n) if n % 2 else None,
                    book=_book(n) if n % 3 else None,
                ),
            )
        )
    return items


def _book(n: int) -> dict[str, Any]:
    return {
        "author": NAMES[n // 2 % 2],
        "headings": [*NAMES][: n % 3],
        "pages": [n % 4, n % 4 + 1] if n % 5 else None,
        "has_code": n % 2 == 0,
    }


def _datagov(n: int) -> dict[str, Any]:
    return {
        "category": NAMES[n // 2 % 2],
        "format": "csv",
        "organization": NAMES[n // 4 % 2],
        "flags": {"geo.api": n % 4 == 1, "$odd": True},
    }


def some(*values: Any) -> st.SearchStrategy[Any]:
    return st.none() | st.lists(st.sampled_from(values), max_size=2).map(tuple)


TIMES = st.none() | st.integers(-1, 9).map(lambda hours: STORED_AT + hours * HOUR)
PAGES = st.none() | st.integers(0, 5)
FILTERS = st.builds(
    ItemFilter,
    tiers=some(*TIERS),
    statuses=st.none() | st.just((Status.ACTIVE,)) | some(*Status),
    tags_any=some(*WORDS),
    tags_all=some(*WORDS),
    entities_any=some(*NAMES),
    source_types=some("user", "tool"),
    conversation_ids=some(*NAMES),
    tool_names=some(*NAMES),
    doc_ids=some(*NAMES),
    subject_ids=some(*NAMES),
    perspective_owner_ids=some(*NAMES),
    topics=some(*NAMES),
    categories=some(*NAMES),
    formats=some("csv", "pdf"),
    organizations=some(*NAMES),
    flags=some("geo.api", "$odd"),
    langs=some("he", "en"),
    authors=some(*NAMES),
    sections=some(*NAMES),
    page_from=PAGES,
    page_to=PAGES,
    has_code=st.none() | st.booleans(),
    created_from=TIMES,
    created_to=TIMES,
    valid_at=TIMES,
    now=TIMES,
    always_inject=st.none() | st.booleans(),
    instruction=st.none() | st.booleans(),
    include_superseded=st.booleans(),
    attached_to=st.none() | st.sampled_from(NAMES),
    include_attached=st.booleans(),
)
# Most filters of FILTERS match little; these keep one or two conditions.
NARROW = st.builds(
    lambda full, names: ItemFilter(**{name: getattr(full, name) for name in names}),
    FILTERS,
    st.sets(st.sampled_from(ItemFilter.__slots__), max_size=3),
)
SCOPES = st.builds(ReadScope, st.sampled_from((*USERS, "nobody")), st.booleans())


async def _all(store: MemoryStore, scope: ReadScope, where: ItemFilter) -> list[MemoryItem]:
    return (await store.page(scope, where, ItemQuery(limit=1_000))).items


class FilterContract:
    @pytest.fixture(scope="class")
    @staticmethod
    async def filled(class_stores: Stores) -> tuple[MemoryStore, list[MemoryItem]]:
        items = corpus()
        results = await class_stores.memories.insert_many(items)
        assert all(result.inserted for result in results)
        return class_stores.memories, items

    @given(scope=SCOPES, where=NARROW)
    @settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
    async def test_a_filter_keeps_exactly_what_it_says(
        self, filled: tuple[MemoryStore, list[MemoryItem]], scope: ReadScope, where: ItemFilter
    ) -> None:
        store, items = filled
        expected = {i.point_id for i in items if may_read(scope, i) and matches(i, where)}
        found = await _all(store, scope, where)
        assert {item.point_id for item in found} == expected
        assert len(found) == len(expected) == await store.count(scope, where)

    @given(scope=SCOPES, where=NARROW, with_failed=st.booleans(), limit=st.integers(0, 20))
    @settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
    async def test_what_waits_is_what_the_filter_says_the_newest_first(
        self,
        filled: tuple[MemoryStore, list[MemoryItem]],
        scope: ReadScope,
        where: ItemFilter,
        with_failed: bool,
        limit: int,
    ) -> None:
        store, items = filled
        states = {SyncState.PENDING, SyncState.FAILED} if with_failed else {SyncState.PENDING}
        kept = [i for i in items if may_read(scope, i) and matches(i, where)]
        expected = {i.point_id for i in kept if i.index.sync_state in states and not is_coming(i)}
        found = await store.pending(scope, where, len(items), with_failed=with_failed)
        assert {item.point_id for item in found} == expected
        assert len(found) == len(expected)
        times = [item.stored_at for item in found]
        assert times == sorted(times, reverse=True)
        first = await store.pending(scope, where, limit, with_failed=with_failed)
        assert [item.stored_at for item in first] == times[:limit]

    @given(scope=SCOPES, where=FILTERS | NARROW, text=st.sampled_from(["note", "number 3"]))
    @settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
    async def test_no_read_path_gives_a_foreign_item(
        self,
        filled: tuple[MemoryStore, list[MemoryItem]],
        scope: ReadScope,
        where: ItemFilter,
        text: str,
    ) -> None:
        store, items = filled
        found = await _all(store, scope, where)
        found += [item for item, _ in await store.text_search(scope, where, text, 50)]
        found += await store.by_points(scope, [item.point_id for item in items])
        found += [item for n in range(3) if (item := await store.get(scope, f"c-{n}"))]
        for item in found:
            shared = item.user_id == SYSTEM_USER and item.tier is Tier.DATAGOV_SCHEMA
            assert item.user_id == scope.user_id or (shared and scope.include_shared)

    @pytest.mark.parametrize("sort", list(SORT_KEYS))
    @pytest.mark.parametrize("scope", [DANA, ReadScope("dana", False)])
    async def test_pages_by_cursor_and_by_offset_give_the_sorted_list(
        self, filled: tuple[MemoryStore, list[MemoryItem]], sort: SortKey, scope: ReadScope
    ) -> None:
        store, items = filled
        where = ItemFilter(statuses=None, include_superseded=True)
        kept = [i for i in items if may_read(scope, i) and matches(i, where)]
        expected = [i.point_id for i in sorted(kept, key=lambda i: sort_values(i, sort))][::-1]
        by_cursor: list[str] = []
        cursor: str | None = None
        while True:
            page = await store.page(scope, where, ItemQuery(sort=sort, limit=7, cursor=cursor))
            by_cursor += [item.point_id for item in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        by_offset: list[str] = []
        for offset in range(0, len(expected) + 7, 7):
            page = await store.page(scope, where, ItemQuery(sort=sort, limit=7, offset=offset))
            by_offset += [item.point_id for item in page.items]
        assert by_cursor == expected
        assert by_offset == expected


class ListContract:
    @pytest.mark.parametrize(
        "cursor",
        ["", "!!", "e30", "bnVsbA", "WyJyZWNlbnQiLDEsMiwzXQ", "WyJzY29yZSIsMC41LDEsIngiXQ"],
    )
    async def test_a_tampered_cursor_is_refused(self, stores: Stores, cursor: str) -> None:
        with pytest.raises(InvalidInput):
            await stores.memories.page(DANA, ItemFilter(), ItemQuery(limit=5, cursor=cursor))

    async def test_a_cursor_with_an_operator_in_it_is_refused(self, stores: Stores) -> None:
        raw = b'["updated",{"$gt":0},"x"]'
        cursor = base64.urlsafe_b64encode(raw).decode()
        with pytest.raises(InvalidInput):
            await stores.memories.page(
                DANA, ItemFilter(), ItemQuery(sort="updated", limit=5, cursor=cursor)
            )

    async def test_a_limit_of_zero_gives_nothing(self, stores: Stores) -> None:
        await stores.memories.insert(an_item(text="hello"))
        page = await stores.memories.page(DANA, ItemFilter(), ItemQuery(limit=0))
        assert (page.items, page.next_cursor) == ([], None)
        assert await stores.memories.pending(DANA, ItemFilter(), 0) == []
        assert await stores.memories.text_search(DANA, ItemFilter(), "hello", 0) == []

    async def test_page_with_text_keeps_the_sort(self, stores: Stores) -> None:
        for n, text in enumerate(["red car", "blue car", "red bus"]):
            at = STORED_AT + n * HOUR
            await stores.memories.insert(an_item(memory_id=text, text=text, created_at=at))
        page = await stores.memories.page(DANA, ItemFilter(), ItemQuery(limit=5, text_query="car"))
        assert ids(page.items) == ["blue car", "red car"]
        empty = await stores.memories.page(DANA, ItemFilter(), ItemQuery(limit=5, text_query='"-"'))
        assert empty.items == []

    @pytest.mark.parametrize(
        "kept",
        [
            *(
                "\u05e9\u05dc\u05d5\u05dd",
                "\u05e9\u05dc\u200f\u05d5\u05dd",
                "\u202b\u05e9\u05dc\u05d5\u05dd\u202c",
            ),
            *(
                "\ufb2a\u05dc\u05d5\u05dd",
                "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd",
                "\u05e9\u00ad\u05dc\u05d5\u05dd",
            ),
            *("sh\u200dalom", "\ufb01nd", "\uff34\uff25\uff21", "CAFE\u0301"),
        ],
    )
    async def test_lists_by_words_read_them_in_one_form(self, stores: Stores, kept: str) -> None:
        text = f"They say {kept} here"
        other = an_item(memory_id="other", text="Nobody is there")
        for item in (an_item(memory_id="m", text=text), other):
            await stores.memories.insert(item)
        for asked in (kept, normalize(kept), normalize(kept).lower()):
            query = ItemQuery(limit=5, text_query=f"nothing {asked}")
            page = await stores.memories.page(DANA, ItemFilter(), query)
            assert [item.text for item in page.items] == [text]
            assert await stores.memories.count(DANA, ItemFilter(), text_query=asked) == 1
            hits = await stores.memories.text_search(DANA, ItemFilter(), asked, 5)
            assert [item.memory_id for item, _ in hits] == ["m"]
            tagged = ItemFilter(tags_any=("x",))
            assert (await stores.memories.page(DANA, tagged, query)).items == []

    async def test_chunks_that_are_coming_are_not_among_what_waits(self, stores: Stores) -> None:
        """A document is searched when the index has taken it up; what was edited since is read."""
        chunk = Source(type=SourceType.DOCUMENT, doc_id="d", chunk_id="0")
        taken = IndexState(sync_state=SyncState.PENDING, vector_hash="h")
        failed = IndexState(sync_state=SyncState.FAILED)
        for name, source, state in (
            ("coming", chunk, IndexState()),
            ("edited", chunk, taken),
            ("gave up", chunk, failed),
            ("stored", Source(type=SourceType.DOCUMENT, doc_id="d"), IndexState()),
        ):
            item = an_item(memory_id=name, text=name, tier=Tier.BOOKS, source=source, index=state)
            await stores.memories.insert(item)
        for with_failed, names in (
            (False, {"edited", "stored"}),
            (True, {"edited", "stored", "gave up"}),
        ):
            found = await stores.memories.pending(DANA, ItemFilter(), 9, with_failed=with_failed)
            assert {item.memory_id for item in found} == names

    async def test_pending_gives_the_newest_unsynced(self, stores: Stores) -> None:
        for n in range(4):
            at = STORED_AT + n * HOUR
            await stores.memories.insert(an_item(memory_id=f"p-{n}", stored_at=at))
        claimed = await stores.memories.claim(token="t", limit=10, claim_s=60)
        last = next(item for item in claimed if item.memory_id == "p-3")
        done = IndexResult(
            user_id=last.user_id, point_id=last.point_id, rev=last.index.rev, op=last.index.op
        )
        await stores.memories.finish("t", [done], SCHEMA)
        found = await stores.memories.pending(DANA, ItemFilter(), 2)
        assert ids(found) == ["p-2", "p-1"]
        assert all(item.index.sync_state is SyncState.PENDING for item in found)

    async def test_text_search_asks_me_and_system(self, stores: Stores) -> None:
        await stores.memories.insert_many(
            [
                an_item(memory_id="mine", text="hospital beds in Haifa"),
                an_item(memory_id="theirs", text="hospital", user_id="noa"),
                an_item(
                    memory_id="shared",
                    text="hospital",
                    user_id=SYSTEM_USER,
                    tier=Tier.DATAGOV_SCHEMA,
                ),
                an_item(memory_id="hidden", text="hospital", user_id=SYSTEM_USER),
                an_item(memory_id="archived", text="hospital x", status=Status.ARCHIVED),
            ]
        )
        hits = await stores.memories.text_search(DANA, ItemFilter(), "Hospital", 10)
        assert {item.memory_id for item, _ in hits} == {"mine", "shared"}
        assert [score for _, score in hits] == sorted((s for _, s in hits), reverse=True)
        assert all(score > 0 for _, score in hits)

    async def test_text_search_ranks_more_matching_words_first(self, stores: Stores) -> None:
        await stores.memories.insert_many(
            [an_item(memory_id="one", text="red bus"), an_item(memory_id="two", text="red car")]
        )
        hits = await stores.memories.text_search(DANA, ItemFilter(), "red car", 10)
        assert [item.memory_id for item, _ in hits] == ["two", "one"]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("חתול", {"he"}),
            ("חָתוּל", {"he"}),
            ("-dogs cats", {"cats", "dogs"}),
            ('"cats dogs"', {"cats", "dogs"}),
            ("cat", set()),
            ("the", {"stop"}),
            ('- " \\', set()),
            ("", set()),
            ("$where {}", set()),
        ],
    )
    async def test_text_is_words_in_no_language_and_no_operators(
        self, stores: Stores, query: str, expected: set[str]
    ) -> None:
        texts = {"he": "חתול שחור", "cats": "two cats", "dogs": "two dogs", "stop": "the end"}
        for name, text in texts.items():
            await stores.memories.insert(an_item(memory_id=name, text=text))
        hits = await stores.memories.text_search(DANA, ItemFilter(), query, 10)
        assert {item.memory_id for item, _ in hits} == expected
