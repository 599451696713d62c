"""The one search over the whole service on fakes: retrievers, rungs, filters, receipts, explain."""

import random
from datetime import timedelta
from typing import Any

import pytest

from rayapp.core import errors
from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search.requests import SearchQuery, SortMode
from tests.support.harness import FixedReranker, Harness
from tests.unit.search.pies import nine_pies

ME = WriteScope("dana")
READ = ReadScope("dana")
WHO = ("Dana", "Noa", "דנה", "נועה", "the printer", "המדפסת", "the car", "הרכב")
DID = ("parks", "broke", "was repaired", "חונה", "התקלקל", "תוקן", "moved", "אוהבת")
WHERE = ("in Haifa", "בחיפה", "in the garage", "במוסך", "on Monday", "ביום שני", "קפה")
PAGED_TIERS = (Tier.WORKING, Tier.HISTORY, Tier.PATTERNS)


async def test_hebrew_prefixes_and_plurals_are_found(service: Harness) -> None:
    car = await service.store("הרכב החדש חונה בירושלים")
    await service.store("קניתי לחם וחלב במכולת")
    await service.drain()
    for query in ("רכבים", "איפה הרכב?", "ירושלים", "מה שברכב"):
        assert (await service.found(query))[0] == car


async def test_a_new_memory_is_found_before_it_is_indexed(service: Harness) -> None:
    new = await service.store("the spare key is under the blue flowerpot")
    answer = await service.search("where is the spare key")
    assert [hit.item.memory_id for hit in answer.hits] == [new]
    assert answer.hits[0].summary.pending_rank == 1
    assert answer.degraded == ()


async def test_an_edit_is_found_under_its_new_words_only(service: Harness) -> None:
    edited = await service.store("the meeting is about giraffes", tier=Tier.HISTORY)
    await service.store("lunch was excellent pasta", tier=Tier.HISTORY)
    await service.drain()
    edit = MemoryEdit(text="the meeting is about submarines")
    await service.services.memories.edit(ME, edited, edit)
    assert (await service.found("submarines"))[0] == edited
    assert edited not in await service.found("giraffes")
    await service.drain()
    assert (await service.found("submarines"))[0] == edited
    answer = await service.search("giraffes")
    assert all((hit.summary.text_similarity or 0) == 0 for hit in answer.hits)


async def test_archive_restore_and_delete_take_effect_at_once(service: Harness) -> None:
    memories = service.services.memories
    one = await service.store("passport number is in the drawer")
    await service.drain()
    await memories.archive(ME, one)
    assert await service.found("passport") == []
    await memories.restore(ME, one)
    assert await service.found("passport") == [one]
    await service.drain()
    assert await service.found("passport") == [one]
    await memories.delete(ME, one)
    assert await service.found("passport") == []
    await service.drain()
    assert await service.found("passport") == []
    with pytest.raises(errors.NotFound):
        await memories.get(READ, one)


async def test_users_never_see_each_other_even_with_equal_ids(service: Harness) -> None:
    await service.store("dana likes tea", user="dana", memory_id="same")
    await service.store("omer likes tea too", user="omer", memory_id="same")
    await service.drain()
    for user in ("dana", "omer"):
        answer = await service.search("who likes tea", user=user)
        assert {hit.item.user_id for hit in answer.hits} == {user}


async def test_index_down_falls_to_the_truth_and_says_so(service: Harness) -> None:
    one = await service.store("the boiler code is 4711")
    await service.drain()
    service.index.error = errors.IndexDown("The index is away.")
    answer = await service.search("boiler code")
    assert [hit.item.memory_id for hit in answer.hits] == [one]
    assert "index" in answer.degraded
    assert answer.errors[0].stage == "index"
    later = await service.store("the shed code is 1147")
    assert (await service.found("shed code"))[0] == later
    service.index.error = None
    service.clock.advance(60)
    await service.drain()
    assert (await service.search("boiler code")).degraded == ()


async def test_embedder_down_leaves_words_and_says_so(service: Harness) -> None:
    one = await service.store("the boiler code is 4711")
    await service.drain()
    service.embedder.error = errors.EmbedderDown("The embedder is away.")
    answer = await service.search("boiler code")
    assert [hit.item.memory_id for hit in answer.hits] == [one]
    assert answer.degraded == ("embedder",)
    assert answer.hits[0].summary.dense_similarity is None


async def test_a_hanging_embedder_cannot_outlast_the_deadline(service: Harness) -> None:
    one = await service.store("the boiler code is 4711")
    await service.drain()
    service.model.hang = True
    answer = await service.search("boiler code", timeout_s=0.2)
    assert [hit.item.memory_id for hit in answer.hits] == [one]
    assert "embedder" in answer.degraded


async def test_truth_down_is_an_error_not_an_empty_answer(service: Harness) -> None:
    service.items.error = errors.StoreDown("MongoDB is away.")
    with pytest.raises(errors.StoreDown):
        await service.search("anything")


async def test_a_lost_receipt_is_said(service: Harness) -> None:
    await service.store("tea is at five")
    service.receipts.error = errors.StoreDown("MongoDB is away.")
    answer = await service.search("tea")
    assert answer.receipt_id is None
    assert answer.degraded == ("receipt",)


async def test_the_receipt_lists_what_was_shown_in_order(service: Harness) -> None:
    for number in range(4):
        await service.store(f"recipe number {number} uses tomatoes", tier=Tier.HISTORY)
    answer = await service.search("tomatoes recipe", limit=3)
    assert answer.receipt_id is not None
    receipt = await service.receipts.get(READ, answer.receipt_id)
    shown = [(line.position, line.memory_id) for line in receipt.shown]
    assert shown == [(hit.position, hit.item.memory_id) for hit in answer.hits]
    assert await service.receipts.get(ReadScope("omer"), answer.receipt_id) is None


async def test_limit_offset_and_next_offset(service: Harness) -> None:
    for number in range(7):
        await service.store(f"plum jam jar {number}", tier=Tier.HISTORY)
    await service.drain()
    first = await service.search("plum jam", limit=3)
    second = await service.search("plum jam", limit=3, offset=3)
    last = await service.search("plum jam", limit=3, offset=6)
    assert (first.next_offset, second.next_offset, last.next_offset) == (3, 6, None)
    ids = [h.item.memory_id for a in (first, second, last) for h in a.hits]
    assert len(set(ids)) == 7
    assert [hit.position for hit in second.hits] == [4, 5, 6]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (ItemFilter(tags_any=("garden",)), {"a"}),
        (ItemFilter(tags_any=()), set()),
        (ItemFilter(source_types=("tool",)), {"b"}),
        (ItemFilter(conversation_ids=("c1",)), {"b"}),
        (ItemFilter(langs=("he",)), set()),
        (ItemFilter(), {"a", "b"}),
    ],
)
async def test_filters_change_the_answer(
    service: Harness, where: ItemFilter, expected: set[str]
) -> None:
    await service.store("roses need water", memory_id="a", tags=("garden",))
    source = Source(type=SourceType.TOOL, conversation_id="c1")
    await service.store("roses need sun", memory_id="b", source=source)
    assert set(await service.found("roses", where=where)) == expected
    await service.drain()
    assert set(await service.found("roses", where=where)) == expected


async def test_tiers_limit_the_search(service: Harness) -> None:
    await service.store("old oak tree", memory_id="w", tier=Tier.WORKING)
    await service.store("old oak forest", memory_id="h", tier=Tier.HISTORY)
    await service.drain()
    assert await service.found("oak", tiers=(Tier.HISTORY,)) == ["h"]
    assert set(await service.found("oak")) == {"w", "h"}


async def test_expired_items_are_not_shown(service: Harness) -> None:
    await service.store("parking spot 12", tier=Tier.WORKING)
    await service.drain()
    service.clock.advance(timedelta(hours=25).total_seconds())
    assert await service.found("parking spot") == []


async def test_validity_window_and_as_of(service: Harness) -> None:
    now = service.clock.now()
    await service.store(
        "lives in Haifa", memory_id="past", tier=Tier.HISTORY, valid_to=now - timedelta(days=1)
    )
    await service.store("lives in Jaffa", memory_id="now", tier=Tier.HISTORY)
    await service.drain()
    assert await service.found("lives in") == ["now"]
    assert "past" in await service.found("lives in", as_of=now - timedelta(days=2))


async def test_near_duplicates_are_shown_once(service: Harness) -> None:
    await service.store("The alarm code is 9876", memory_id="a", tier=Tier.WORKING)
    await service.store("The alarm code is 9876", memory_id="b", tier=Tier.HISTORY)
    await service.store("The alarm code is 9877", memory_id="c", tier=Tier.HISTORY)
    await service.drain()
    answer = await service.search("alarm code")
    shown = {hit.item.memory_id: hit.collapsed_ids for hit in answer.hits}
    assert "c" in shown
    assert len(shown) == 2
    assert {*shown, *(i for ids in shown.values() for i in ids)} == {"a", "b", "c"}


async def test_confidence_and_abstention(service: Harness) -> None:
    await service.store("the dentist appointment is on Tuesday")
    await service.drain()
    sure = await service.search("when is the dentist appointment", min_confidence="medium")
    assert not sure.abstained
    unsure = await service.search("quantum chromodynamics lattice", min_confidence="high")
    assert unsure.abstained
    assert unsure.hits == ()
    assert unsure.best_rejected is not None


async def test_a_reranker_reorders_and_its_absence_is_said() -> None:
    service = await nine_pies()
    answer = await service.search("apple pie", limit=2)
    assert answer.hits[0].item.text.endswith("8")
    assert answer.hits[0].summary.ce_rank == 1
    service.reranker.error = errors.RerankerDown("The reranker is away.")
    assert (await service.search("apple pie", limit=2)).degraded == ("reranker",)


@pytest.mark.parametrize("question", ["the most recent apple pie", "פאי התפוחים האחרון apple pie"])
async def test_what_the_reranker_did_not_read_passes_nothing_that_it_read(question: str) -> None:
    service = await Harness.open(
        reranker={"backend": "http", "url": "http://127.0.0.1:1", "max_candidates": 3}
    )
    for number in range(9):
        await service.store(f"apple pie variant {number}", tier=Tier.HISTORY)
    await service.drain()
    service.reranker.inner = FixedReranker(lambda _q, _text: 1.0)
    answer = await service.search(question, limit=4)
    read = [hit.summary.ce_rank is not None for hit in answer.hits]
    assert read == [True, True, True, False]


async def test_an_unknown_recipe_names_the_known_ones(service: Harness) -> None:
    with pytest.raises(errors.InvalidInput, match="default, lexical, rrf"):
        await service.search("x", recipe="nope")


async def test_recipes_change_the_weights(service: Harness) -> None:
    await service.store("a sentence about whales")
    await service.drain()
    answer = await service.search("whales", recipe="lexical")
    assert answer.hits[0].summary.weights["dense"] == 0.0


async def test_explain_gives_the_places_that_the_search_gives(service: Harness) -> None:
    """Of two values of one thing the newer stands first, whatever the words say."""
    old = await service.store("My phone number is 054-1111111")
    service.clock.advance(3_600)
    new = await service.store("My phone number is 052-2222222")
    await service.drain()
    query = SearchQuery(query="what is my phone number 054")
    hits = (await service.services.search.search(READ, query)).hits
    places = {
        one: (await service.services.explainer.explain(READ, one, query)).position
        for one in (old, new)
    }
    assert places == {
        hit.item.memory_id: hit.position for hit in hits if hit.item.memory_id in places
    }
    assert places[new] < places[old]


async def test_explain_says_where_a_memory_was_lost(service: Harness) -> None:
    for number in range(12):
        await service.store(f"meeting about budget item {number}", tier=Tier.HISTORY)
    lost = await service.store("the cat sleeps", tier=Tier.HISTORY)
    await service.drain()
    query = SearchQuery(query="meeting about budget", limit=3)
    explained = await service.services.explainer.explain(READ, lost, query)
    assert not explained.found
    assert explained.lost_at in ("retrieve", "rank")
    shown = (await service.found("meeting about budget", limit=3))[1]
    explained = await service.services.explainer.explain(READ, shown, query)
    assert explained.found
    assert explained.position == 2
    await service.services.memories.archive(ME, lost)
    explained = await service.services.explainer.explain(READ, lost, query)
    assert explained.lost_at == "truth"


async def test_explain_of_another_users_memory_is_not_found(service: Harness) -> None:
    theirs = await service.store("private", user="omer")
    with pytest.raises(errors.NotFound):
        await service.services.explainer.explain(READ, theirs, SearchQuery(query="private"))


async def test_filters_hold_against_the_truth_before_the_index_follows(service: Harness) -> None:
    one = await service.store("roses need water", tags=("old",), tier=Tier.HISTORY)
    await service.drain()
    await service.services.memories.edit(ME, one, MemoryEdit(tags=("new",)))
    assert await service.found("roses", where=ItemFilter(tags_any=("old",))) == []
    assert await service.found("roses", where=ItemFilter(tags_any=("new",))) == [one]
    await service.services.memories.edit(ME, one, MemoryEdit(valid_to=service.clock.now()))
    assert await service.found("roses") == []


async def test_explain_names_the_twin_that_is_shown_instead(service: Harness) -> None:
    await service.store("The alarm code is 9876", memory_id="a", tier=Tier.WORKING)
    await service.store("The alarm code is 9876", memory_id="b", tier=Tier.HISTORY)
    await service.drain()
    shown = (await service.found("alarm code"))[0]
    hidden = "b" if shown == "a" else "a"
    query = SearchQuery(query="alarm code")
    explained = await service.services.explainer.explain(READ, hidden, query)
    assert (explained.found, explained.lost_at) == (False, "collapse")
    assert shown in explained.stages[-1].detail


async def test_pages_neither_repeat_nor_skip(service: Harness) -> None:
    for number in range(90):
        await service.store(f"plum jam of year {number} and jar {number % 7}", tier=Tier.HISTORY)
    await service.drain()
    assert await paged(service, "plum jam jar 3", limit=30) == 90


@pytest.mark.parametrize(
    ("limit", "sort_by", "resident"),
    [(20, "recency", True), (20, "recency", False), (7, "recency", True), (50, "relevance", True)],
)
async def test_pages_of_more_memories_than_one_search_reads_neither_repeat_nor_skip(
    service: Harness, limit: int, sort_by: SortMode, resident: bool
) -> None:
    rnd = random.Random(1)
    for number in range(400):
        words = [rnd.choice(choices) for choices in (WHO, DID, WHERE, WHERE)]
        await service.store(f"{' '.join(words)}, note {number}", tier=rnd.choice(PAGED_TIERS))
    await service.drain()
    # What is asked as of a time is asked of the index.
    as_of = None if resident else service.clock.now()
    question = "where is the car in Haifa?"
    assert await paged(service, question, limit=limit, sort_by=sort_by, as_of=as_of) == 400


async def test_documents_keep_their_places_on_all_pages_and_in_what_is_explained(
    service: Harness,
) -> None:
    """All of the best hundred are of one book: what stands behind them takes no place of theirs."""
    source = Source(type=SourceType.DOCUMENT, doc_id="lamps")
    for number in range(130):
        text = f"the blue lighthouse of Haifa, part {number} on lighthouse lamps"
        await service.store(text, tier=Tier.BOOKS, source=source)
    for number in range(100):
        await service.store(f"the printer was repaired, note {number}", tier=Tier.HISTORY)
    await service.drain()
    question = "the blue lighthouse of Haifa and its lamps"
    assert await paged(service, question, limit=50) == 230
    answer = await service.search(question, limit=50)
    assert {hit.item.tier for hit in answer.hits} == {Tier.BOOKS}
    query, last = SearchQuery(query=question, limit=50), answer.hits[-1]
    explained = await service.services.explainer.explain(READ, last.item.memory_id, query)
    assert explained.position == last.position == 50


async def test_what_says_the_same_as_a_hit_of_an_earlier_page_comes_on_no_later_one(
    service: Harness,
) -> None:
    rnd = random.Random(1)
    words = ["the", "gardener", "waters", "roses", "beside", "an", "old", "fence", "at", "noon"]
    for number in range(12):
        rnd.shuffle(words)
        await service.store(" ".join(words), tier=Tier.HISTORY)
        await service.clock.elapse(60)
        for other in range(6):
            text = f"roses of the gardener by the gate, note {number * 6 + other}"
            await service.store(text, tier=Tier.HISTORY)
            await service.clock.elapse(60)
    await service.drain()
    question = "gardener roses fence"
    shown: list[str] = []
    for offset in range(0, 80, 10):
        answer = await service.search(question, limit=10, offset=offset, sort_by="recency")
        shown += [hit.item.text for hit in answer.hits]
    assert len(shown) == 12 * 6 + 1
    assert sum("fence" in text for text in shown) == 1


async def paged(service: Harness, question: str, **search: Any) -> int:
    """How many hits all pages have; none is there twice, and each is in its place."""
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        answer = await service.search(question, offset=offset, **search)
        places = [hit.position for hit in answer.hits]
        assert places == list(range(offset + 1, offset + 1 + len(places)))
        seen += [hit.item.memory_id for hit in answer.hits]
        offset = answer.next_offset
    assert len(seen) == len(set(seen))
    return len(seen)


async def test_the_total_does_not_change_with_the_page(service: Harness) -> None:
    for number in range(150):
        await service.store(f"roses by the gate, note {number} of {number * 7}", tier=Tier.HISTORY)
    await service.drain()
    pages = [
        await service.search("roses by the gate", limit=10, offset=offset)
        for offset in (0, 10, 60, 130)
    ]
    assert all(page.hits for page in pages)
    assert len({page.total for page in pages}) == 1


async def test_explain_counts_places_as_the_search_shows_them(service: Harness) -> None:
    for tier in (Tier.WORKING, Tier.HISTORY, Tier.PATTERNS):
        await service.store("The alarm code is 9876", tier=tier)
    other = await service.store("The alarm code of the shed", tier=Tier.HISTORY)
    await service.drain()
    assert (await service.found("alarm code is", limit=2))[1] == other
    query = SearchQuery(query="alarm code is", limit=2)
    explained = await service.services.explainer.explain(READ, other, query)
    assert (explained.found, explained.position, explained.lost_at) == (True, 2, None)
