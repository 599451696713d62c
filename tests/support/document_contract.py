"""What every store of documents must do; run on the fake and on MongoDB."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from rayapp.core.errors import DuplicateMemory
from rayapp.core.runtime import Clock
from rayapp.documents.ports import (
    Book,
    BookDigest,
    BookQuery,
    BookQuote,
    BookStage,
    BookState,
    BookStore,
    TitleTaken,
)
from rayapp.memory.item import MemoryItem, Source, SourceType, point_id_of
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import new_item
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier

DANA, NOA = WriteScope("dana"), WriteScope("noa")
READS = ReadScope("dana")
BOOK_ID = "doc_0123456789abcdef"
CLAIM_S = 60.0
# Long enough for a claim to be taken, short enough to be waited for, seconds.
SHORT_S = 0.3


class DocumentStores(NamedTuple):
    books: BookStore
    items: MemoryStore
    clock: Clock
    elapse: Callable[[float], Awaitable[None]]


def a_book(clock: Clock, book_id: str = BOOK_ID, **changes: Any) -> Book:
    now = clock.now()
    made = Book(
        user_id="dana",
        book_id=book_id,
        upload_id="u-1",
        principal="agent",
        title=f"ספר $one {book_id}",
        file_name="one.pdf",
        file_hash=f"f-{book_id}",
        file_bytes=10,
        state=BookState.PENDING,
        stage=BookStage.QUEUED,
        uploaded_at=now,
        updated_at=now,
    )
    return replace(made, **changes)


def chunks(book: Book, number: int, clock: Clock) -> list[MemoryItem]:
    return [
        new_item(
            NewMemory(
                text=f"chunk {index} of {book.title}",
                tier=Tier.BOOKS,
                source=Source(type=SourceType.DOCUMENT, doc_id=book.book_id),
                attached_to=book.attached_to,
            ),
            user_id=book.user_id,
            memory_id=f"{book.book_id}:{index}",
            now=clock.now(),
        )
        for index in range(number)
    ]


class DocumentContract:
    @pytest.fixture
    def stores(self) -> DocumentStores:
        raise NotImplementedError

    async def claimed(self, stores: DocumentStores, **changes: Any) -> Book:
        await stores.books.add(a_book(stores.clock, **changes))
        book = await stores.books.claim(token="t", claim_s=CLAIM_S)
        assert book is not None
        return book

    async def held_items(self, stores: DocumentStores, user_id: str = "dana") -> int:
        return await stores.items.count(ReadScope(user_id), ItemFilter())

    async def test_an_upload_is_kept_whole_and_for_its_user(self, stores: DocumentStores) -> None:
        data = bytes(range(256)) * 40_000  # more than one row takes
        await stores.books.put_upload(DANA, "u-1", data)
        await stores.books.put_upload(DANA, "u-1", data)
        assert await stores.books.upload(READS, "u-1") == data
        assert await stores.books.upload(ReadScope("noa"), "u-1") is None
        await stores.books.drop_upload(NOA, "u-1")
        await stores.books.keep_upload(DANA, "u-1")
        assert await stores.books.upload(READS, "u-1") == data
        await stores.books.drop_upload(DANA, "u-1")
        assert await stores.books.upload(READS, "u-1") is None

    async def test_a_document_is_queued_once(self, stores: DocumentStores) -> None:
        book = a_book(stores.clock)
        added = await asyncio.gather(*(stores.books.add(book) for _ in range(6)))
        assert [one is None for one in added].count(True) == 1
        in_the_way = await stores.books.add(replace(book, title="other"))
        assert in_the_way is not None
        assert in_the_way.title == book.title
        assert await stores.books.add(replace(book, user_id="noa")) is None

    async def test_what_failed_may_be_tried_again(self, stores: DocumentStores) -> None:
        book = await self.claimed(stores)
        failed = replace(book, state=BookState.FAILED, stage=BookStage.FAILED, error="no")
        assert await stores.books.end(failed, "t")
        assert await stores.books.claim(token="u", claim_s=CLAIM_S) is None
        assert await stores.books.add(a_book(stores.clock, upload_id="u-2")) is None
        again = await stores.books.claim(token="u", claim_s=CLAIM_S)
        assert again is not None
        assert (again.upload_id, again.error) == ("u-2", None)
        assert not await stores.books.update(book, "t")

    async def test_one_worker_has_a_document_until_its_claim_ends(
        self, stores: DocumentStores
    ) -> None:
        await stores.books.add(a_book(stores.clock))
        book = await stores.books.claim(token="t", claim_s=SHORT_S)
        assert book is not None
        assert book.state is BookState.PROCESSING
        assert await stores.books.claim(token="u", claim_s=CLAIM_S) is None
        assert await stores.books.hold(book, "t", SHORT_S)
        await stores.elapse(1.5 * SHORT_S)
        other = await stores.books.claim(token="u", claim_s=CLAIM_S)
        assert other is not None
        assert not await stores.books.hold(book, "t", CLAIM_S)
        assert not await stores.books.update(book, "t")
        assert not await stores.books.store(book, "t", chunks(book, 2, stores.clock))
        assert await self.held_items(stores) == 0

    async def test_a_named_document_is_claimed_alone(self, stores: DocumentStores) -> None:
        first = a_book(stores.clock, user_id="noa")
        second = a_book(stores.clock, "doc_2")
        for book in (first, second):
            await stores.books.add(book)
        found = await stores.books.claim(token="t", claim_s=CLAIM_S, only=second)
        assert found is not None
        assert found.book_id == "doc_2"
        assert await stores.books.claim(token="u", claim_s=CLAIM_S, only=second) is None
        other = await stores.books.claim(token="u", claim_s=CLAIM_S)
        assert other is not None
        assert other.book_id == first.book_id

    async def test_what_is_let_go_comes_back(self, stores: DocumentStores) -> None:
        book = await self.claimed(stores)
        assert await stores.books.again(replace(book, tries=1), "t", SHORT_S)
        assert await stores.books.claim(token="u", claim_s=CLAIM_S) is None
        await stores.elapse(1.5 * SHORT_S)
        back = await stores.books.claim(token="u", claim_s=CLAIM_S)
        assert back is not None
        assert back.tries == 1

    @pytest.mark.parametrize("number", [30, 230])
    async def test_chunks_come_with_their_row(self, stores: DocumentStores, number: int) -> None:
        book = await self.claimed(stores)
        stored = replace(book, stage=BookStage.INGESTING, chunks=number, text_hash="t" * 64)
        assert await stores.books.store(stored, "t", chunks(book, number, stores.clock))
        assert await self.held_items(stores) == number
        assert await stores.books.unindexed(stored) == number
        assert await stores.books.get(READS, BOOK_ID) == stored
        assert await stores.books.hashed(READS, "t" * 64) == stored
        assert await stores.books.hashed(READS, book.file_hash) == stored
        assert await stores.books.hashed(ReadScope("noa"), "t" * 64) is None
        done = replace(stored, state=BookState.COMPLETED, stage=BookStage.COMPLETED)
        assert await stores.books.end(done, "t")
        assert await self.held_items(stores) == number
        assert await stores.books.claim(token="u", claim_s=CLAIM_S) is None

    async def test_what_a_dead_worker_left_goes(self, stores: DocumentStores) -> None:
        book = await self.claimed(stores)
        assert await stores.books.store(book, "t", chunks(book, 5, stores.clock))
        assert await stores.books.again(book, "t", 0.0)
        again = await stores.books.claim(token="u", claim_s=CLAIM_S)
        assert again is not None
        assert await stores.books.store(again, "u", chunks(book, 3, stores.clock))
        assert await self.held_items(stores) == 3

    async def test_a_chunk_that_cannot_be_stored_leaves_none(self, stores: DocumentStores) -> None:
        book = await self.claimed(stores)
        items = chunks(book, 5, stores.clock)
        mine = replace(items[3], dedup_scope="", text="mine", content_hash="other")
        await stores.items.insert(mine)
        with pytest.raises(DuplicateMemory):
            await stores.books.store(replace(book, chunks=5), "t", items)
        assert await self.held_items(stores) == 1
        kept = await stores.books.get(READS, BOOK_ID)
        assert kept is not None
        assert kept.chunks == 0

    async def test_cancelling_takes_everything(self, stores: DocumentStores) -> None:
        book = await self.claimed(stores)
        assert await stores.books.store(book, "t", chunks(book, 3, stores.clock))
        gone = replace(book, state=BookState.CANCELLED, stage=BookStage.CANCELLED)
        assert await stores.books.end(gone)
        assert not await stores.books.end(gone)
        assert await self.held_items(stores) == 0
        assert not await stores.books.update(book, "t")
        assert not await stores.books.end(replace(book, state=BookState.COMPLETED), "t")

    async def test_deleting_takes_one_document_at_once(self, stores: DocumentStores) -> None:
        book = await self.claimed(stores)
        other = replace(book, book_id="doc_2", title="2", upload_id="u-2", linked_to=BOOK_ID)
        mine = replace(book, user_id="noa")
        for one in (other, mine):
            await stores.books.add(one)
        assert [one.book_id for one in await stores.books.linked(READS, BOOK_ID)] == ["doc_2"]
        assert await stores.books.linked(ReadScope("noa"), BOOK_ID) == []
        await stores.books.put_upload(DANA, "u-1", b"x")
        assert await stores.books.store(book, "t", chunks(book, 4, stores.clock))
        hers = await stores.books.claim(token="v", claim_s=CLAIM_S)
        while hers is not None and hers.user_id != "noa":
            hers = await stores.books.claim(token="v", claim_s=CLAIM_S)
        assert hers is not None
        assert await stores.books.store(hers, "v", chunks(hers, 2, stores.clock))
        assert await stores.books.delete(DANA, "doc_none", stores.clock.now()) is None
        assert await stores.books.delete(DANA, BOOK_ID, stores.clock.now()) == 4
        assert await self.held_items(stores) == 0
        assert await self.held_items(stores, "noa") == 2
        assert await stores.books.get(READS, BOOK_ID) is None
        assert await stores.books.get(READS, "doc_2") is None
        assert await stores.books.upload(READS, "u-1") is None

    async def test_the_same_document_may_come_again_after_it_was_deleted(
        self, stores: DocumentStores
    ) -> None:
        for _ in range(2):
            book = await self.claimed(stores)
            assert await stores.books.store(book, "t", chunks(book, 3, stores.clock))
            assert await self.held_items(stores) == 3
            assert await stores.books.delete(DANA, BOOK_ID, stores.clock.now()) == 3
        book = await self.claimed(stores)
        assert await stores.books.store(book, "t", chunks(book, 3, stores.clock))
        (first,) = await stores.items.by_points(READS, [point_id_of("dana", f"{BOOK_ID}:0")])
        assert first.version > 1

    async def test_lists_are_newest_first(self, stores: DocumentStores) -> None:
        clock = stores.clock
        for number in range(3):
            at = clock.now() + timedelta(seconds=number)
            kind = "pdf" if number else "txt"
            await stores.books.add(
                a_book(clock, f"doc_{number}", title=f"t{number}", uploaded_at=at, kind=kind)
            )
        page, total = await stores.books.page(READS, BookQuery(limit=1, offset=1))
        assert ([one.book_id for one in page], total) == (["doc_1"], 3)
        page, total = await stores.books.page(READS, BookQuery(kind="txt"))
        assert ([one.book_id for one in page], total) == (["doc_0"], 1)
        page, total = await stores.books.page(READS, BookQuery(titles=("t2", "t9")))
        assert ([one.book_id for one in page], total) == (["doc_2"], 1)
        assert await stores.books.page(READS, BookQuery(titles=())) == ([], 0)
        book = await stores.books.claim(token="t", claim_s=CLAIM_S, only=page[0])
        assert book is not None
        failed = replace(book, state=BookState.FAILED, stage=BookStage.FAILED, error="no")
        assert await stores.books.end(failed, "t")
        page, total = await stores.books.page(READS, BookQuery(failed=False))
        assert ([one.book_id for one in page], total) == (["doc_1", "doc_0"], 2)
        assert (await stores.books.page(READS, BookQuery()))[1] == 3
        assert await stores.books.page(ReadScope("noa"), BookQuery()) == ([], 0)

    async def test_a_title_is_one_documents(self, stores: DocumentStores) -> None:
        """Whoever comes first has it, until it ends or is replaced."""
        books = stores.books
        eight = [a_book(stores.clock, f"doc_{n}", title="same") for n in range(8)]
        added = await asyncio.gather(*(books.add(one) for one in eight))
        assert [one is None for one in added].count(True) == 1
        (first,) = {one.book_id for one in added if one is not None}
        assert await books.add(a_book(stores.clock, title="same", user_id="noa")) is None
        other = a_book(stores.clock, "doc_other", title="other")
        assert await books.add(other) is None
        held = await books.claim(token="t", claim_s=CLAIM_S, only=other)
        assert held is not None
        with pytest.raises(TitleTaken):
            await books.update(replace(held, title="same"), "t")
        assert await books.update(replace(held, title="third"), "t")
        assert await books.add(a_book(stores.clock, "doc_o2", title="other")) is None
        new = a_book(stores.clock, "doc_new", title="same", titled=True, replaces=True)
        assert await books.add(new) is None
        held = await books.claim(token="t", claim_s=CLAIM_S, only=new)
        assert held is not None
        assert [one.book_id for one in await books.alike(new)] == [first]
        assert await books.delete(DANA, first, stores.clock.now()) == 0
        done = replace(held, state=BookState.COMPLETED, stage=BookStage.COMPLETED, replaces=False)
        assert await books.end(done, "t")
        in_the_way = await books.add(a_book(stores.clock, "doc_x", title="same"))
        assert in_the_way is not None
        assert in_the_way.book_id == "doc_new"
        assert await books.delete(DANA, "doc_new", stores.clock.now()) == 0
        assert await books.add(a_book(stores.clock, "doc_x", title="same")) is None

    async def test_documents_are_alike_by_title_or_file(self, stores: DocumentStores) -> None:
        books, clock = stores.books, stores.clock
        for name, file, titled in (("a", "1", False), ("b", "1", True), ("c", "2", False)):
            await books.add(a_book(clock, f"doc_{name}", title=name, file_name=file, titled=titled))
        for title, file, titled, found in (
            ("a", "9", True, ["doc_a"]),
            ("z", "1", False, ["doc_a"]),
            ("z", "1", True, []),
            ("b", "2", False, ["doc_b", "doc_c"]),
        ):
            book = a_book(clock, "doc_z", title=title, file_name=file, titled=titled)
            assert [one.book_id for one in await books.alike(book)] == found
        assert await books.alike(a_book(clock, user_id="noa", title="a")) == []

    async def test_users_take_turns(self, stores: DocumentStores) -> None:
        """One document of a user is read at a time; what is stored is not held up by it."""
        books = stores.books
        for number in range(3):
            await books.add(a_book(stores.clock, f"doc_{number}"))
        first = await books.claim(token="t", claim_s=CLAIM_S)
        assert first is not None
        assert await books.claim(token="u", claim_s=CLAIM_S) is None
        await books.add(a_book(stores.clock, "doc_n", user_id="noa"))
        hers = await books.claim(token="u", claim_s=CLAIM_S)
        assert hers is not None
        assert hers.user_id == "noa"
        stored = replace(first, stage=BookStage.INGESTING, chunks=1)
        assert await books.store(stored, "t", chunks(first, 1, stores.clock))
        assert await books.again(stored, "t", 0.0)
        found = [await books.claim(token=f"v{n}", claim_s=CLAIM_S) for n in range(3)]
        taken = sorted(one.book_id for one in found if one is not None)
        assert first.book_id in taken
        assert len(taken) == 2

    async def test_hashes_find_a_document_or_one_that_rests_on_it(
        self, stores: DocumentStores
    ) -> None:
        books = stores.books
        book = await self.claimed(stores)
        stored = replace(book, chunks=1, text_hash="t" * 64, words_hash="w" * 64)
        assert await books.store(stored, "t", chunks(book, 1, stores.clock))
        other = a_book(stores.clock, "doc_2", linked_to=BOOK_ID, text_hash="t" * 64)
        await books.add(other)
        await books.add(a_book(stores.clock, "doc_3", words_hash="w" * 64))
        for sha, found in (("t", BOOK_ID), ("w", BOOK_ID)):
            known = await books.hashed(READS, "x" * 64, sha * 64)
            assert known is not None
            assert known.book_id == found
        linked = await books.hashed(READS, other.file_hash)
        assert linked is not None
        assert linked.book_id == "doc_2"
        assert await books.hashed(READS, "f-doc_3") is None

    async def test_what_is_attached_is_its_conversations_until_it_is_published(
        self, stores: DocumentStores
    ) -> None:
        books, items, clock = stores.books, stores.items, stores.clock
        book = await self.claimed(stores, attached_to="c1", text_hash="t" * 64)
        assert await books.store(replace(book, chunks=130), "t", chunks(book, 130, clock))
        seen = {None: 0, "c1": 130, "c2": 0}
        for conversation, number in seen.items():
            where = ItemFilter(attached_to=conversation)
            assert await items.count(READS, where) == number
            page, total = await books.page(READS, BookQuery(attached_to=conversation))
            assert (len(page), total) == (number // 130, number // 130)
            found = await books.hashed(READS, "t" * 64, attached_to=conversation)
            assert (found is not None) == bool(number)
            named = BookQuery(titles=(book.title,), attached_to=conversation, books=False)
            assert (await books.page(READS, named))[1] == number // 130
        assert await items.tier_counts(READS) == []
        assert await items.growth(READS, clock.now() - timedelta(days=1)) == [("", "", 0)]
        opened = replace(book, attached_to=None, stage=BookStage.INGESTING, chunks=130)
        assert not await books.publish(opened)  # somebody works on it
        done = replace(book, state=BookState.COMPLETED, stage=BookStage.COMPLETED, chunks=130)
        assert await books.end(done, "t")
        assert await books.publish(opened)
        assert not await books.open_chunks(opened, "t")
        held = await books.claim(token="u", claim_s=CLAIM_S)
        assert held is not None
        assert held.attached_to is None
        before = await items.count(READS, ItemFilter(include_attached=True))
        for _ in range(2):
            assert await books.open_chunks(held, "u")
        assert await items.count(READS, ItemFilter()) == before == 130
        (first,) = await items.by_points(READS, [point_id_of("dana", f"{BOOK_ID}:0")])
        assert (first.attached_to, first.version) == (None, 2)
        (count,) = await items.tier_counts(READS)
        assert (count.active, count.waiting) == (130, 130)

    async def test_each_conversation_has_titles_of_its_own(self, stores: DocumentStores) -> None:
        books, clock = stores.books, stores.clock
        places = (None, "c1", "c2")
        for number, place in enumerate(places):
            book = a_book(clock, f"doc_{number}", title="same", attached_to=place)
            assert await books.add(book) is None
        for number, place in enumerate(places):
            other = a_book(clock, "doc_x", title="same", attached_to=place)
            assert [one.book_id for one in await books.alike(other)] == [f"doc_{number}"]
            in_the_way = await books.add(other)
            assert in_the_way is not None
            assert in_the_way.book_id == f"doc_{number}"
        held = await books.claim(token="t", claim_s=CLAIM_S, only=a_book(clock, "doc_1"))
        assert held is not None
        done = replace(held, state=BookState.COMPLETED, stage=BookStage.COMPLETED)
        assert await books.end(done, "t")
        with pytest.raises(TitleTaken):
            await books.publish(replace(held, attached_to=None, stage=BookStage.INGESTING))

    async def test_a_completed_document_waits_to_be_read_by_a_model(
        self, stores: DocumentStores
    ) -> None:
        """What waited longest comes first, so that a long book of one keeps no other waiting."""
        books, clock = stores.books, stores.clock
        assert await books.claim_digest(token="a", claim_s=CLAIM_S) is None
        made = []
        for number, chunked in ((1, 2), (2, 3), (3, 0)):
            book = await self.claimed(stores, book_id=f"doc_{number}")
            items = chunks(book, chunked, clock)
            stored = replace(book, stage=BookStage.INGESTING, chunks=chunked)
            assert await books.store(stored, "t", items)
            done = replace(stored, state=BookState.COMPLETED, stage=BookStage.COMPLETED)
            done = replace(done, updated_at=clock.now())
            assert await books.end(done, "t")
            made.append(done)
            await stores.elapse(SHORT_S)
        first = await books.claim_digest(token="a", claim_s=SHORT_S)
        other = await books.claim_digest(token="b", claim_s=CLAIM_S)
        assert [one and one.book_id for one in (first, other)] == ["doc_1", "doc_2"]
        assert first is not None
        assert other is not None
        assert await books.claim_digest(token="c", claim_s=CLAIM_S) is None  # no chunks, no text
        quotes = (BookQuote(text="שלום", chunk_index=1, page=2),)
        read = replace(first, summary="s", digest=BookDigest(noted=6, quotes=quotes))
        assert not await books.keep_digest(read, "x", 0.0)
        assert await books.keep_digest(read, "a", 0.0)
        assert not await books.keep_digest(read, "a", 0.0)
        kept = await books.get(READS, "doc_1")
        assert kept is not None
        assert (kept.summary, kept.digest) == ("s", read.digest)
        await stores.elapse(SHORT_S)
        again = await books.claim_digest(token="d", claim_s=SHORT_S)
        assert again is not None
        assert again == kept
        await stores.elapse(1.5 * SHORT_S)  # it died
        taken = await books.claim_digest(token="e", claim_s=CLAIM_S)
        assert taken is not None
        assert not await books.keep_digest(again, "d", 0.0)
        over = replace(taken, digest=replace(taken.digest, done=True))
        assert await books.keep_digest(over, "e", 0.0)
        assert await books.delete(DANA, "doc_2", clock.now()) == 3
        assert not await books.keep_digest(other, "b", 0.0)
        assert await books.claim_digest(token="f", claim_s=CLAIM_S) is None
