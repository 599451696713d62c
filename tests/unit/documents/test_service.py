"""From an upload to memories, on in-memory stores."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from rayapp.core.errors import Conflict, InvalidInput, NotFound, StoreDown, TooLarge
from rayapp.documents.ports import Book, BookState
from rayapp.documents.reading import ReadLimits
from rayapp.documents.records import Block, BlockKind, Extracted
from rayapp.documents.rules.library import last_index
from rayapp.documents.rules.order import joined
from rayapp.documents.service import CLAIM_S, TRIES, BookWork, Duplicate
from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from tests.support.harness import Harness

DANA, READS = WriteScope("dana", "agent"), ReadScope("dana")
PARAGRAPH = "הילדים שיחקו בחצר. The house stands by the river. "


def extracted(text: str = PARAGRAPH, **changes: Any) -> Extracted:
    blocks = [Block(BlockKind.HEADING, "Chapter One", 1, 1)]
    blocks += [Block(BlockKind.PARAGRAPH, f"{n}. {text * 12}", page=n + 1) for n in range(12)]
    found = Extracted("txt", "A Title", "An Author", "mixed", tuple(blocks), pages=12)
    return replace(found, **changes)


class World:
    """A service whose reader says what it is told to."""

    def __init__(self) -> None:
        self.world = Harness.ready()
        self.says: Extracted | Exception = extracted()
        self.begun = asyncio.Event()
        self.wait = False
        self.work = self.another()

    def another(self) -> BookWork:
        return self.world.reading(self.read)

    async def read(self, data: bytes, name: str, limits: ReadLimits) -> Extracted:
        self.begun.set()
        if self.wait:
            await asyncio.Event().wait()
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    async def upload(self, data: bytes = b"a text", **options: Any) -> Book:
        return await self.world.services.books.upload(DANA, data, "my book.txt", **options)

    async def book(self, book: Book) -> Book:
        return await self.world.services.books.get(READS, book.book_id)

    async def chunks(self) -> int:
        return int(await self.world.items.count(READS, ItemFilter()))

    async def done(self, book: Book) -> Book:
        """After the owner and the indexer have worked."""
        await self.work.run_once()
        while await self.world.container.indexing.run_once():
            pass
        await self.world.clock.elapse(CLAIM_S)
        await self.work.run_once()
        return await self.book(book)


@pytest.fixture
def world() -> World:
    return World()


async def test_an_upload_becomes_memories_that_say_where_they_come_from(world: World) -> None:
    book = await world.upload()
    assert (book.state, book.title) == (BookState.PENDING, "my book")
    done = await world.done(book)
    assert done.state is BookState.COMPLETED
    assert (done.title, done.author, done.pages) == ("A Title", "An Author", 12)
    assert done.chunks == await world.chunks() > 3
    items = await world.world.services.books.chunks(READS, done, 0, last_index(done))
    said = items[1].source.book or {}
    assert items[1].memory_id == f"{book.book_id}:1"
    assert (said["title"], said["section"], said["chunk_index"]) == ("A Title", "Chapter One", 1)
    assert said["pages"][0] <= said["pages"][1]
    text = await world.world.services.books.text(READS, done, 10**6)
    assert "".join(text.split()) == "".join(extracted().text.split())
    assert not world.world.books.uploads


async def test_it_is_processing_until_the_index_has_it_all(world: World) -> None:
    book = await world.upload()
    await world.work.run_once()
    stored = await world.book(book)
    assert stored.state is BookState.PROCESSING
    assert await world.world.services.books.indexed(stored) == 0
    done = await world.done(book)
    assert done.state is BookState.COMPLETED
    assert await world.world.services.books.indexed(done) == done.chunks


async def test_the_same_file_is_known_at_once(world: World) -> None:
    book = await world.upload()
    with pytest.raises(Duplicate) as caught:
        await world.upload()
    assert caught.value.details["existing_book_id"] == book.book_id
    await world.done(book)
    with pytest.raises(Duplicate):
        await world.upload(title="another title")


async def test_the_same_text_in_another_file_is_recognised(world: World) -> None:
    first = await world.done(await world.upload())
    before = await world.chunks()
    second = await world.done(await world.upload(b"other bytes", title="Second"))
    assert second.state is BookState.COMPLETED
    assert (second.linked_to, second.chunks) == (first.book_id, 0)
    assert await world.chunks() == before
    known = await world.world.services.books.recognised(READS, extracted().sha256)
    assert known is not None
    assert known.book_id == first.book_id


async def test_a_document_does_not_go_from_under_another_that_rests_on_it(world: World) -> None:
    books = world.world.services.books
    first = await world.done(await world.upload(title="First"))
    second = await world.done(await world.upload(b"other bytes", title="Second"))
    assert second.linked_to == first.book_id
    text = await books.text(READS, first, 10_000)
    assert await books.text(READS, second, 10_000) == text != ""
    (around,) = await books.surrounding(READS, second, f"{first.book_id}:0", 0)
    assert around.source.doc_id == first.book_id
    with pytest.raises(Conflict, match="delete them first"):
        await books.delete(DANA, first.book_id)
    with pytest.raises(Conflict, match="Second"):
        await world.upload(b"new", title="First", replaces=True)
    await books.delete(DANA, second.book_id)
    assert await world.chunks() > 0
    assert await books.delete(DANA, first.book_id) == first.chunks


async def test_the_same_title_is_refused_or_replaced(world: World) -> None:
    first = await world.done(await world.upload(title="Title"))
    with pytest.raises(Duplicate, match="another title"):
        await world.upload(b"new", title="Title")
    world.says = extracted("A new edition says other things. ")
    second = await world.done(await world.upload(b"new", title="Title", replaces=True))
    assert second.state is BookState.COMPLETED
    with pytest.raises(NotFound):
        await world.book(first)
    assert await world.chunks() == second.chunks


async def test_a_title_that_a_file_gives_itself_is_one_documents_too(world: World) -> None:
    books = world.world.services.books
    first = await world.done(await books.upload(DANA, b"1", "scan1.txt"))
    assert first.title == "A Title"
    with pytest.raises(Duplicate):  # the same file, changed
        await books.upload(DANA, b"2", "scan1.txt")
    world.says = extracted("Other words. ")
    second = await world.done(await books.upload(DANA, b"2", "scan2.txt"))
    assert second.title == "scan2"
    world.says = extracted("Newer words. ")
    third = await world.done(await books.upload(DANA, b"3", "scan3.txt", replaces=True))
    assert (third.state, third.title) == (BookState.COMPLETED, "A Title")
    with pytest.raises(NotFound):
        await world.book(first)
    assert (await world.book(second)).state is BookState.COMPLETED


async def test_of_uploads_at_once_under_one_title_one_is_taken(world: World) -> None:
    sent = await asyncio.gather(
        *(world.upload(b"%d" % number, title="Same") for number in range(8)), return_exceptions=True
    )
    assert sum(isinstance(one, Duplicate) for one in sent) == 7
    assert len(world.world.books.uploads) == 1


async def test_the_last_upload_takes_the_place_of_all_before(world: World) -> None:
    """Also of one that is not completed, and of one that waits to replace it."""
    first = await world.upload(title="T")
    second = await world.upload(b"second", title="T", replaces=True)
    third = await world.upload(b"third", title="T", replaces=True)
    await world.work.run_once(third)
    await world.world.indexed()
    await world.world.clock.elapse(CLAIM_S)
    await world.work.run_once(third)
    assert (await world.book(third)).state is BookState.COMPLETED
    for one in (first, second):
        with pytest.raises(NotFound):
            await world.book(one)
    assert await world.chunks() == (await world.book(third)).chunks


async def test_a_text_that_is_known_takes_a_place_too(world: World) -> None:
    known = await world.done(await world.upload(title="Known"))
    world.says = extracted("Other words. ")
    old = await world.done(await world.upload(b"old", title="Old"))
    world.says = extracted()
    new = await world.done(await world.upload(b"new", title="Old", replaces=True))
    assert (new.state, new.linked_to) == (BookState.COMPLETED, known.book_id)
    with pytest.raises(NotFound):
        await world.book(old)


async def test_what_others_rest_on_is_neither_cancelled_nor_replaced(world: World) -> None:
    books = world.world.services.books
    first = await world.upload(title="First")
    await world.work.run_once()
    second = await world.upload(b"other bytes", title="Second")
    world.says = extracted()
    await world.work.run_once(second)
    assert (await world.book(second)).linked_to == first.book_id
    with pytest.raises(Conflict, match="Second"):
        await books.cancel(DANA, first.book_id)
    assert await books.with_passages(READS, (second.book_id, first.book_id, "doc_none")) == (
        first.book_id,
    )


async def test_what_we_show_of_a_document_is_recognised(world: World) -> None:
    books = world.world.services.books
    first = await world.done(await world.upload(title="First"))
    second = await world.done(await world.upload(b"other bytes", title="Second"))
    shown = await books.text(READS, first, 10**6)
    for found in (
        await books.recognised_text(READS, shown),
        await books.recognised_text(READS, extracted().text),
    ):
        assert found is not None
        assert found.book_id == first.book_id
    linked = await books.recognised(READS, second.file_hash)
    assert linked is not None
    assert linked.book_id == second.book_id
    assert await books.recognised_text(READS, "other words") is None


async def test_documents_by_what_they_are_called(world: World) -> None:
    books = world.world.services.books
    first = await world.upload(title="First, the book")
    assert await books.named(READS, ["First, the book"], None) == [first.book_id]
    assert await books.named(READS, [first.book_id, "other"], None) == [first.book_id]
    with pytest.raises(NotFound, match="leave the name out"):
        await books.named(READS, ["other"], None)


async def test_chunks_that_were_changed_or_hidden(world: World) -> None:
    books, services = world.world.services.books, world.world.services
    book = await world.done(await world.upload())
    before = await books.chunks(READS, book, 0, 4)
    assert any((item.source.book or {})["overlap"] for item in before)
    await services.user_data.hide(DANA, before[1].memory_id, "user_action")
    await services.memories.edit(
        DANA, before[3].memory_id, MemoryEdit(text="Somebody wrote this instead.")
    )
    around = await books.surrounding(READS, book, "2", 1)
    assert [item.memory_id for item in around] == [before[2].memory_id, before[3].memory_id]
    assert "Somebody wrote this instead." in await books.text(READS, book, 10**6)
    with pytest.raises(NotFound):
        await books.surrounding(READS, book, "1", 1)


async def test_files_of_one_name_but_another_ending_are_two_documents(world: World) -> None:
    books = world.world.services.books
    first = await books.upload(DANA, b"a text", "plan.txt")
    second = await books.upload(DANA, b"# another", "plan.md")
    assert (first.title, second.title) == ("plan", "plan.md")
    with pytest.raises(Duplicate, match="another title"):
        await books.upload(DANA, b"a newer text", "plan.txt")


async def test_what_cannot_be_read_says_why_and_leaves_nothing(world: World) -> None:
    world.says = InvalidInput("The file is broken; save it again.", code="document_broken")
    book = await world.done(await world.upload())
    assert (book.state, book.error) == (BookState.FAILED, "The file is broken; save it again.")
    assert await world.chunks() == 0
    assert not world.world.books.uploads
    world.says = extracted()
    assert (await world.done(await world.upload())).state is BookState.COMPLETED


async def test_a_bug_is_tried_again_and_then_named(world: World) -> None:
    world.says = RuntimeError("a bug")
    book = await world.upload()
    for _ in range(TRIES):
        await world.work.run_once()
        await world.world.clock.elapse(CLAIM_S)
    failed = await world.book(book)
    assert failed.state is BookState.FAILED
    assert "another format" in (failed.error or "")


async def test_what_is_away_is_waited_for(world: World) -> None:
    world.says = StoreDown("away")
    book = await world.upload()
    for _ in range(2 * TRIES):
        await world.work.run_once()
        await world.world.clock.elapse(CLAIM_S)
    world.says = extracted()
    assert (await world.done(book)).state is BookState.COMPLETED


async def test_a_worker_that_died_is_followed_by_another(world: World) -> None:
    book = await world.upload()
    world.wait = True
    dying = asyncio.create_task(world.work.run_once())
    await world.begun.wait()
    dying.cancel()
    await asyncio.wait([dying])
    world.wait = False
    assert await world.another().run_once() == 0
    await world.world.clock.elapse(CLAIM_S)
    assert (await world.done(book)).state is BookState.COMPLETED


async def test_the_file_goes_though_its_worker_died_when_all_was_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = await world.upload()

    async def killed(*_: Any) -> None:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(world.work, "_settle_upload", killed)
        with suppress(asyncio.CancelledError):
            await world.work.run_once()
    assert await world.chunks() > 0
    await world.world.clock.elapse(CLAIM_S)
    assert (await world.done(book)).state is BookState.COMPLETED
    assert not world.world.books.uploads


async def test_cancelling_ends_the_work(world: World) -> None:
    book = await world.upload()
    world.wait = True
    working = asyncio.create_task(world.work.run_once())
    await world.begun.wait()
    cancelled = await world.world.services.books.cancel(DANA, book.book_id)
    assert cancelled.state is BookState.CANCELLED
    working.cancel()
    await asyncio.wait([working])
    assert await world.chunks() == 0
    assert not world.world.books.uploads


async def test_deleting_takes_everything(world: World) -> None:
    book = await world.done(await world.upload())
    assert await world.world.services.books.delete(DANA, book.book_id) == book.chunks
    assert await world.chunks() == 0
    with pytest.raises(NotFound):
        await world.world.services.books.delete(DANA, book.book_id)
    assert (await world.done(await world.upload())).chunks == book.chunks


async def test_what_stands_around_a_chunk(world: World) -> None:
    book = await world.done(await world.upload())
    books = world.world.services.books
    around = await books.surrounding(READS, book, f"{book.book_id}:2", 1)
    assert [item.memory_id.rpartition(":")[2] for item in around] == ["1", "2", "3"]
    assert len(await books.surrounding(READS, book, "0", 2)) == 3
    assert joined(around).startswith(around[0].text)
    for strange in ("999", "x", "-1", "²", "٢"):
        with pytest.raises(NotFound):
            await books.surrounding(READS, book, strange, 2)


async def test_refusals_before_anything_is_kept(world: World) -> None:
    books = world.world.services.books
    with pytest.raises(TooLarge):
        await books.upload(DANA, b"x" * (world.world.settings.documents.max_bytes + 1), "a.txt")
    for data, name, options in (
        (b"", "a.txt", {}),
        (b"text", "a.exe", {}),
        (b"text", "a.pdf", {}),
        (b"text", "a.txt", {"title": "x" * 201}),
        (b"text", "a.txt", {"title": "\u200b\u202e"}),
        (b"text", "\u200b.txt", {}),
    ):
        with pytest.raises(InvalidInput):
            await books.upload(DANA, data, name, **options)
    assert not world.world.books.uploads
    assert not world.world.books.rows


async def test_a_document_is_searched_when_the_index_has_it(world: World) -> None:
    """Before, each search would read the words of a thousand chunks."""
    book = await world.upload()
    await world.work.run_once()
    assert await world.world.found("children in the yard", user="dana") == []
    await world.done(book)
    found = await world.world.found("children in the yard", user="dana")
    assert f"{book.book_id}:1" in found
    new = MemoryEdit(text="The kettle whistles in the attic.")
    await world.world.services.memories.edit(DANA, f"{book.book_id}:1", new)
    assert (await world.world.found("kettle attic", user="dana"))[0] == f"{book.book_id}:1"
