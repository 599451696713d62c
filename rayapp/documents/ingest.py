"""A folder of files as documents of one user: the work of the job `documents_ingest`."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rayapp.bulk.lease import Sleep
from rayapp.bulk.model import Finish, Partition, PartitionRow, Plan, Step, shares_of
from rayapp.core.errors import Conflict, DependencyDown, InvalidInput
from rayapp.documents.ports import OPEN, Book, BookState
from rayapp.documents.rules.kinds import kind_of_name
from rayapp.documents.rules.library import sha256_of
from rayapp.documents.service import BooksService, BookWork, Duplicate
from rayapp.memory.scope import ReadScope, WriteScope

# Sentences of files that were not taken in, in the report.
SAMPLES = 20
# Tries to take one document in while something is away or another process has it, and the pause
# between them, seconds: longer than a file is read, and than a claim or a breaker lasts.
TRIES, PAUSE_S = 100, 1.0
# Before a name that no store takes, written in ASCII; no path of a folder begins like this.
UNNAMED = "/"


class DocumentsIngest:
    """Implements `bulk.ports.JobWork`: a file is a partition, and repeating one is harmless.

    The worker reads what it keeps itself; what another process has claimed is left to it.
    """

    def __init__(
        self,
        books: BooksService,
        work: BookWork,
        folder: Path,
        user_id: str,
        author: str | None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._books = books
        self._work = work
        self._folder = folder
        self._scope = WriteScope(user_id, "documents_ingest")
        self._author = author
        self._sleep = sleep

    async def plan(self) -> Plan:
        if not self._folder.is_dir():
            raise InvalidInput(f"{self._folder} is no folder: name the one with the files.")
        names = sorted(
            str(path.relative_to(self._folder))
            for path in self._folder.rglob("*")
            if path.is_file() and _is_read(path.name)
        )
        parts = shares_of({"file": _storable(name)} for name in names)
        return Plan(partitions=parts, total=len(names), facts={"folder": str(self._folder)})

    async def begin(self, facts: Mapping[str, Any]) -> None:
        """Nothing has to exist."""

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        name = str(partition.payload["file"])
        try:
            if name.startswith(UNNAMED):
                raise InvalidInput(
                    f"The file name {name.removeprefix(UNNAMED)} is not UTF-8: rename the file."
                )
            said, error = await self._taken_in(name)
        except (InvalidInput, Conflict) as refused:
            said, error = "failed", refused.message
        samples = [{"file": name.removeprefix(UNNAMED), "error": error}] if error else []
        return Step(
            cursor=None, done=1, failed=int(said == "failed"), counts={said: 1}, samples=samples
        )

    async def _taken_in(self, name: str) -> tuple[str, str | None]:
        """What became of a file, and why it failed."""
        path = self._folder / name
        try:
            self._books.check_size(path.stat().st_size)
            data = path.read_bytes()
        except OSError as error:
            raise InvalidInput(f"It cannot be read: {error.strerror}.") from None
        file_hash = sha256_of(data)
        try:
            book = await self._kept(data, name, None)
        except Duplicate as known:
            if known.details["file_hash"] == file_hash:
                return await self._known(known.details["existing_book_id"])
            # Files of one name in several folders.
            book = await self._kept(data, name, str(Path(name).with_suffix("")))
        return await self._ended(book)

    async def _ended(self, book: Book) -> tuple[str, str | None]:
        """What becomes of a document, once it is stored or cannot be."""
        for attempt in range(TRIES):
            if attempt:
                await self._sleep(PAUSE_S)
            await self._work.run_once(book)
            found = await self._books.get(ReadScope(book.user_id), book.book_id)
            if found.chunks or found.state is BookState.COMPLETED:
                return "recognised" if found.linked_to else "stored", None
            if found.state not in OPEN:
                return "failed", found.error or f"It was {found.state.value}."
        raise DependencyDown("A document was not stored: run the job again.")

    async def _kept(self, data: bytes, name: str, title: str | None) -> Book:
        return await self._books.upload(
            self._scope, data, Path(name).name, title=title, author=self._author
        )

    async def _known(self, book_id: str) -> tuple[str, str | None]:
        """It is here, or this job kept it before it died, or another process has it."""
        book = await self._books.get(ReadScope(self._scope.user_id), book_id)
        if book.chunks or book.state is BookState.COMPLETED:
            return "here_already", None
        return await self._ended(book)

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        counts: Counter[str] = Counter()
        for row in partitions:
            counts.update(row.counts)
        errors = [sample for row in partitions for sample in row.samples][:SAMPLES]
        report = {"files": len(partitions), **counts, "errors": errors}
        return Finish(report=report, complete=not counts["failed"])

    async def close(self) -> None:
        """Nothing is open."""


def _storable(name: str) -> str:
    """A name that is not UTF-8 is told of by its step, as the failure of one file."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"{UNNAMED}{name!a}"
    return name


def _is_read(name: str) -> bool:
    try:
        kind_of_name(name)
    except InvalidInput:
        return False
    return True
