"""Completed documents read by a language model, in the background: notes on their passages, joined
to one summary with themes.

One question at a time, and the row keeps how far it came: a kill, a model that is away or a used-up
budget lose one question at most. Without a model the extract of the document stays its summary.
"""

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

from rayapp.core.errors import Conflict, DependencyDown, InvalidInput, NotFound
from rayapp.core.runtime import Runtime
from rayapp.documents.ports import Book, BookDigest, BookQuote, BookStore
from rayapp.documents.rules import digest, library
from rayapp.documents.service import AWAY_S, BooksService
from rayapp.inference.chat.rules.answers import DocumentNotes, DocumentSummary
from rayapp.inference.ports import ModelPort, ModelQuestion, T, WhyNot, prompt_language
from rayapp.memory.item import MemoryItem
from rayapp.memory.requests import MemoryEdit
from rayapp.memory.rules.creation import MAX_TAGS
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.service import MemoriesService

log = logging.getLogger("rayapp.documents")
# Longer than a question with its second try, seconds.
CLAIM_S = 300.0
# A day's budget is used up: looked at again after this, seconds.
BUDGET_S = 3_600.0
REASON = "summarised"


class _Wait(Exception):
    """The model cannot be asked now."""

    def __init__(self, why: WhyNot) -> None:
        super().__init__(why)
        self.delay_s = BUDGET_S if why == "budget" else AWAY_S


@dataclass(eq=False)
class BookDigests:
    """Any number may run at once: a claim gives each document to one of them."""

    store: BookStore
    books: BooksService
    memories: MemoriesService
    models: ModelPort
    _: KW_ONLY
    runtime: Runtime

    async def run_once(self) -> int:
        """One question about the document that waits longest; how many there were, 0 or 1."""
        if not (self.models.enabled("document_notes") and self.models.enabled("document_summary")):
            return 0
        token = self.runtime.new_id()
        book = await self.store.claim_digest(token=token, claim_s=CLAIM_S)
        if book is None:
            return 0
        delay_s = 0.0
        try:
            book = await self._step(book)
        except _Wait as wait:
            delay_s = wait.delay_s
        except DependencyDown as error:
            log.warning("a document is summed up later: %s", error.message)
            delay_s = AWAY_S
        except Exception:  # a bug met by one document must not stop those of others
            log.exception("a document was not summed up")
            book = replace(book, digest=replace(book.digest, done=True))
        if await self.store.keep_digest(book, token, delay_s) and book.digest.done:
            self.runtime.metrics.count("documents", result="summed_up")
        return 1

    async def _step(self, book: Book) -> Book:
        """`book` after the next question."""
        at, end = book.digest.noted, library.last_index(book)
        while at < end:
            items = await self._chunks(book, at, at + digest.PASSAGES)
            at += digest.PASSAGES
            if items:
                quotes = await self._note(book, items)
                return _with(book, noted=at, quotes=digest.spread((*book.digest.quotes, *quotes)))
        at = book.digest.joined
        while end > digest.SUMMARIES and at < end:
            texts = await self._summaries(book, at, at + digest.SUMMARIES)
            at += digest.SUMMARIES
            if texts:
                part, _ = await self._join(book, texts)
                parts = (*book.digest.parts, part) if part else book.digest.parts
                return _with(book, noted=end, joined=at, parts=parts)
        texts = list(book.digest.parts) or await self._summaries(book, 0, end)
        return await self._finished(book, texts)

    async def _note(self, book: Book, items: Sequence[MemoryItem]) -> list[BookQuote]:
        """Ask about passages, and keep what is said of them; quotes."""
        new = [item for item in items if item.summary is None]
        if not new:
            return []
        texts = [item.text for item in new]
        said = await self._ask(book, "document_notes", DocumentNotes, texts)
        notes = digest.noted(new, said) if said is not None else []
        for note in notes:
            await self._keep(book, note)
        return [note.quote for note in notes if note.quote is not None]

    async def _keep(self, book: Book, note: digest.Noted) -> None:
        """A passage that was changed or deleted meanwhile stays as it is."""
        item = note.item
        tags = tuple(dict.fromkeys((*item.tags, note.category)))[:MAX_TAGS]
        edit = MemoryEdit(
            summary=note.summary, tags=tags, expected_version=item.version, reason=REASON
        )
        scope = WriteScope(book.user_id, book.principal)
        try:
            await self.memories.edit(scope, item.memory_id, edit)
        except (Conflict, InvalidInput, NotFound) as error:
            log.info("a passage has no summary: %s", error.code)

    async def _finished(self, book: Book, texts: list[str]) -> Book:
        """With one summary of all parts, where the passages have any."""
        while len(texts) > digest.SUMMARIES:
            groups = range(0, len(texts), digest.SUMMARIES)
            joined = [
                await self._join(book, texts[begin : begin + digest.SUMMARIES]) for begin in groups
            ]
            texts = [part for part, _ in joined if part]
        summary, themes = await self._join(book, texts) if texts else ("", ())
        book = replace(book, summary=summary or book.summary)
        return _with(book, themes=themes, done=True)

    async def _join(self, book: Book, texts: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        said = await self._ask(book, "document_summary", DocumentSummary, texts, title=book.title)
        return digest.joined_summary(said, texts) if said is not None else ("", ())

    async def _ask(
        self,
        book: Book,
        helper: digest.Helper,
        answer: type[T],
        texts: Sequence[str],
        **others: str,
    ) -> T | None:
        """None: the answer cannot be used, twice. Raises _Wait."""
        question = ModelQuestion(
            helper=helper,
            variables={"texts": list(texts), **others},
            answer=answer,
            language=prompt_language("\n".join(texts)),
        )
        reply = await self.models.ask(book.user_id, question)
        if reply.why is not None and reply.why != "invalid":
            raise _Wait(reply.why)
        return reply.value

    async def _chunks(self, book: Book, begin: int, end: int) -> list[MemoryItem]:
        return await self.books.chunks(ReadScope(book.user_id), book, begin, end - 1)

    async def _summaries(self, book: Book, begin: int, end: int) -> list[str]:
        items = await self._chunks(book, begin, end)
        return [item.summary for item in items if item.summary is not None]


def _with(book: Book, **changes: object) -> Book:
    changed: BookDigest = replace(book.digest, **changes)  # type: ignore[arg-type]
    return replace(book, digest=changed)
