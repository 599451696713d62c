"""From a file to a document of a user, and from its chunks to memories. Pure."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath

from rayapp.core.errors import InvalidInput, TooLarge
from rayapp.documents.ports import MAX_TITLE_CHARS, Book, BookStage, BookState
from rayapp.documents.records import Extracted
from rayapp.documents.rules.chunks import Chunk
from rayapp.documents.rules.kinds import EMPTY
from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import NewMemory
from rayapp.memory.tiers import Tier
from rayapp.text.normalize import (
    below_headings,
    content_hash,
    find_forbidden,
    name_form,
    shows_nothing,
    without_forbidden,
)

ID_DIGITS = 16
BOOK_ID = re.compile(r"doc_[0-9a-f]{16}")
SHA256 = re.compile(r"[0-9a-f]{64}")
# The place of a chunk, with far more digits than a document needs.
CHUNK_INDEX = re.compile(r"[0-9]{1,9}")
# What a list shows of a document, characters. Our choice.
SUMMARY_CHARS = 400
# Of one section in it, characters.
SENTENCE_CHARS = 160
# The first sentence of a line, in Latin, Hebrew, Arabic and CJK writing.
_SENTENCE = re.compile(r""".+?(?:[.!?…׃؟۔]+["”’»)\]״]*(?=\s|$)|[。！？])""")
# What programs write as the author of a file when nobody told them.
PROGRAMS = frozenset(
    (
        *("admin", "administrator", "author", "calibre", "microsoft", "microsoft office user"),
        *("openpyxl", "owner", "pptxgenjs", "python-docx", "python-pptx", "unknown", "user"),
        *("windows user", "xlsxwriter", "משתמש", "מחבר"),
    )
)


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def words_hash(text: str) -> str:
    """SHA-256 of a text without its white space: what we show of a document breaks lines where its
    chunks end."""
    return sha256_of("".join(text.split()).encode("utf-8"))


def book_id_of(file_hash: str, attached_to: str | None = None) -> str:
    """The same file has another id in each conversation that it is attached to."""
    if attached_to is not None:
        file_hash = sha256_of(f"{file_hash}\n{attached_to}".encode())
    return f"doc_{file_hash[:ID_DIGITS]}"


def chunk_id(book_id: str, index: int) -> str:
    """The id of the memory that a chunk becomes: made of what it is, so that a repeat doubles
    nothing."""
    return f"{book_id}:{index}"


def title_of(given: str | None, file_name: str) -> str:
    """What a document is called: as asked, or as its file without the ending."""
    if given is None or not given.strip():
        return checked_label(visible_label(stem_of(file_name)), "title")
    return checked_label(" ".join(name_form(given).split()), "title")


def author_of(given: str | None) -> str | None:
    """Whom a user names as the author."""
    if given is None or not given.strip():
        return None
    return checked_label(" ".join(name_form(given).split()), "author")


def name_of(file_name: str) -> str:
    """A file's name without the folders that old browsers send, in characters that show."""
    name = PurePosixPath(file_name.replace("\\", "/")).name
    return visible_label(name[-MAX_TITLE_CHARS:])


def stem_of(file_name: str) -> str:
    name = PurePosixPath(file_name.replace("\\", "/")).name
    return PurePosixPath(name).stem or name


def visible_label(value: str | None) -> str:
    """What a file says of itself in one line: without marks that show nothing, cut; "" where
    nothing is left."""
    text = " ".join(name_form(without_forbidden(value or "")).split())[:MAX_TITLE_CHARS]
    return "" if shows_nothing(text) else text


def checked_label(value: str, noun: str) -> str:
    """Raises InvalidInput: too long, with control characters, or nothing that can be seen."""
    if shows_nothing(value) or len(value) > MAX_TITLE_CHARS or find_forbidden(value):
        raise InvalidInput(
            f"{noun} needs 1 to {MAX_TITLE_CHARS} printable characters.",
            code=f"bad_{noun}",
            details={"field": noun},
        )
    return value


def checked_size(size: int, most: int) -> None:
    """Raises InvalidInput, TooLarge."""
    if size == 0:
        raise InvalidInput("The file is empty; send one with text.", code=EMPTY)
    if size > most:
        raise TooLarge(
            f"The file has {size / 1e6:.1f} MB, {most / 1e6:.0f} MB are allowed; cut it into "
            "parts.",
            details={"bytes": size, "limit": most},
        )


def titles_of(book: Book, found: Extracted) -> list[str]:
    """What it may be called, the best first: as was asked; as its file says, else as the file is
    called."""
    if book.titled:
        return [book.title]
    own = visible_label(found.title)
    return list(dict.fromkeys([*([own] if own else []), book.title, book.file_name]))


def read_book(book: Book, found: Extracted, now: datetime) -> Book:
    """`book` with what its file says of itself."""
    return replace(
        book,
        author=book.author or _author(found.author),
        kind=found.kind,
        language=found.language,
        pages=found.pages,
        pages_without_text=found.pages_without_text,
        characters=sum(len(block.text) for block in found.blocks),
        text_hash=found.sha256,
        words_hash=words_hash(found.text),
        stage=BookStage.CHUNKING,
        updated_at=now,
    )


def cut_book(book: Book, chunks: Sequence[Chunk], now: datetime) -> tuple[Book, list[NewMemory]]:
    """The memories of a document, and its row as it is when they are stored. What a document says
    twice in the same words is one memory, as everywhere."""
    once = {content_hash(chunk.text): chunk for chunk in reversed(chunks)}
    kept = list(reversed(once.values()))
    around = [None, *(chunk.index for chunk in kept), None]
    memories = [
        _memory(book, chunk, previous=around[at], following=around[at + 2])
        for at, chunk in enumerate(kept)
    ]
    cut = replace(
        book,
        stage=BookStage.INGESTING,
        chunks=len(memories),
        summary=summary_of(chunks) if chunks else "",
        updated_at=now,
    )
    return cut, memories


def _memory(book: Book, chunk: Chunk, *, previous: int | None, following: int | None) -> NewMemory:
    said = {
        "book_id": book.book_id,
        "title": book.title,
        "author": book.author,
        "chunk_index": chunk.index,
        "previous": previous,
        "next": following,
        "section": " > ".join(chunk.section),
        "headings": list(chunk.headings),
        "pages": list(chunk.pages) if chunk.pages else None,
        "position": chunk.position,
        "has_code": chunk.has_code,
        "token_count": chunk.tokens,
        "overlap": chunk.overlap,
        "file_type": book.kind,
        "document_hash": book.file_hash,
    }
    return NewMemory(
        text=chunk.text,
        tier=Tier.BOOKS,
        memory_id=chunk_id(book.book_id, chunk.index),
        created_at=book.uploaded_at,
        attached_to=book.attached_to,
        source=Source(
            type=SourceType.DOCUMENT, doc_id=book.book_id, chunk_id=str(chunk.index), book=said
        ),
    )


def summary_of(chunks: Sequence[Chunk]) -> str:
    """What the document is about, in its own words: the first sentence of each section, as many as
    find room; of one without sections how it begins."""
    firsts: dict[tuple[str, ...], str] = {}
    for chunk in chunks:
        firsts.setdefault(chunk.section, _body(chunk))
    bodies = [body for body in firsts.values() if body]
    if len(bodies) < 2:
        return _shortened(bodies[0] if bodies else _squeezed(chunks[0].text), SUMMARY_CHARS)
    said = ""
    for body in bodies:
        end = _SENTENCE.match(body)
        sentence = _shortened(end[0] if end else body, SENTENCE_CHARS)
        if said and len(said) + len(sentence) >= SUMMARY_CHARS:
            break
        said = f"{said} {sentence}".lstrip()
    return said


def _body(chunk: Chunk) -> str:
    """The words of a chunk below its headings, in one line."""
    lines = [_squeezed(line) for line in chunk.text[chunk.overlap :].splitlines()]
    return " ".join(below_headings(line for line in lines if line not in chunk.section))


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


def ended(book: Book, state: BookState, now: datetime, error: InvalidInput | None = None) -> Book:
    """Its row when nobody works on it any more; without chunks it says nothing of them."""
    if state is not BookState.COMPLETED:
        book = replace(book, chunks=0, text_hash=None, words_hash=None)
    return replace(
        book,
        state=state,
        replaces=False,
        stage=BookStage(state.value),
        error=error.message if error else None,
        error_code=error.code if error else None,
        updated_at=now,
    )


def last_index(book: Book) -> int:
    """One more than the place of its last chunk: places of repeated words are left out, and such
    are few."""
    return 2 * book.chunks + 1


def _author(said: str | None) -> str | None:
    """Whom a file names as its author, unless that is the program that wrote it."""
    name = visible_label(said)
    return name if name and name.casefold() not in PROGRAMS else None
