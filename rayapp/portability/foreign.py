"""Imports from other systems: read without trust, made rows, and taken in like an archive."""

import hashlib
import stat
import tempfile
import zipfile
from asyncio import to_thread
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import IO

from rayapp.core.runtime import Runtime
from rayapp.memory.bank_capacity import BANK
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import ItemQuery
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.scope import WriteScope
from rayapp.portability.archive import BROKEN, ENCRYPTED, Archive, PartSum, check_unpacked
from rayapp.portability.imports import ImportService
from rayapp.portability.ports import ImportReport, ImportRequest
from rayapp.portability.rules.archive import (
    FORMAT,
    MAX_LINE_BYTES,
    VERSION,
    BadArchive,
    Manifest,
    Row,
    renewed_fields,
    to_line,
)
from rayapp.portability.rules.collections import BY_NAME, ITEMS
from rayapp.portability.rules.foreign import Files, Found, shown
from rayapp.portability.rules.foreign_rows import SESSIONS, TURNS, ForeignRows
from rayapp.portability.rules.importers import chatgpt, claude, markdown, mem0, roampal
from rayapp.portability.rules.kinds import Merge, Origin

READERS: Mapping[Origin, Callable[[Files], Iterator[Found]]] = {
    Origin.MEM0: mem0.read,
    Origin.CHATGPT: chatgpt.read,
    Origin.CLAUDE: claude.read,
    Origin.MARKDOWN: markdown.read,
    Origin.ROAMPAL: roampal.read,
}
MAX_FILES = 100_000
# Small archives may be packed better than any ratio says.
SPARE_BYTES = 1 << 20
# Of rows that are in memory before they go to the disk.
SPOOL_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignReport:
    """`found`: what the file holds, by tier, conversations and turns. `left_out`: what of it does
    not come, why, and how often."""

    found: dict[str, int]
    left_out: dict[tuple[str, str], int]
    report: ImportReport


@dataclass(eq=False)
class ForeignImportService:
    """Raises BadArchive before anything is written; StoreDown."""

    imports: ImportService
    items: MemoryStore
    _: KW_ONLY
    limits: TextLimits
    runtime: Runtime

    async def run(
        self, scope: WriteScope, origin: Origin, file: IO[bytes], name: str, *, dry_run: bool
    ) -> ForeignReport:
        """Read all, then write; the same file again adds nothing."""
        capacity = self.runtime.settings.memory_bank.capacity
        kept = await self.items.page(scope.own, BANK, ItemQuery(limit=capacity))
        rows = ForeignRows(
            scope.user_id,
            origin,
            self.runtime.clock.now(),
            limits=self.limits,
            bank=frozenset(item.memory_id for item in kept.items),
            capacity=capacity,
        )
        with _Spool() as spool:
            await to_thread(self._read, origin, file, name, rows, spool)
            made_of = f"{origin.value}:{await to_thread(_sha256, file)}"
            archive = spool.archive(scope.user_id, self.runtime.clock.now(), made_of)
            request = ImportRequest(merge=Merge.SKIP, dry_run=dry_run)
            report = await self.imports.run(scope, archive, request)
        return ForeignReport(found=dict(rows.counts), left_out=dict(rows.left_out), report=report)

    def _read(
        self, origin: Origin, file: IO[bytes], name: str, rows: ForeignRows, spool: "_Spool"
    ) -> None:
        with ExitStack() as stack:
            end = "" if origin is Origin.MARKDOWN else ".json"
            files = _opened(file, name, end, self.runtime.settings.backup.max_unpacked_bytes, stack)
            try:
                for found in READERS[origin](files):
                    for collection, row in rows.rows(found):
                        spool.add(collection, row)
            except (*BROKEN, RecursionError) as error:
                raise BadArchive(
                    f"The file cannot be read as an export of {origin.value} "
                    f"({type(error).__name__}); send it as it was."
                ) from None


def _sha256(file: IO[bytes]) -> str:
    file.seek(0)
    seen = hashlib.sha256()
    while data := file.read(SPOOL_BYTES):
        seen.update(data)
    return seen.hexdigest()


# --- opening


def _opened(file: IO[bytes], name: str, end: str, max_bytes: int, stack: ExitStack) -> Files:
    """The files of a zip, or the one file that was sent, whose name ends in `end` whatever it is
    called. Nothing is unpacked to the disk."""
    if not zipfile.is_zipfile(file):
        file.seek(0)
        base = name.replace("\\", "/").rpartition("/")[2].removesuffix(end) + end

        def alone(_: str) -> AbstractContextManager[IO[bytes]]:
            file.seek(0)
            return nullcontext(file)  # it is read more than once

        return Files((base,), alone, lambda _: None)
    try:
        found = stack.enter_context(zipfile.ZipFile(file))
    except BROKEN:
        raise BadArchive("The zip is broken; send it as it was exported.") from None
    members = {one.filename: one for one in found.infolist() if not one.is_dir()}
    _check(found, max_bytes)
    return Files(tuple(members), found.open, lambda one: _changed(members[one]))


def _check(found: zipfile.ZipFile, max_bytes: int) -> None:
    """Raises BadArchive: names that lead elsewhere, bombs, secrets, links."""
    members = found.infolist()
    if len(members) > MAX_FILES:
        raise BadArchive(f"The zip holds more than {MAX_FILES:,} files; send fewer at a time.")
    for one in members:
        name = one.filename
        parts = name.replace("\\", "/").split("/")
        if ".." in parts or name.startswith(("/", "\\")) or ":" in parts[0] or "\0" in name:
            raise BadArchive(f"The zip holds the file {shown(name)}, which leads out of it.")
        if stat.S_ISLNK(one.external_attr >> 16):
            raise BadArchive(f"The zip holds the link {shown(name)}; remove it.")
        if one.flag_bits & ENCRYPTED:
            raise BadArchive("The zip is encrypted; send it without a password.")
    if len({one.filename for one in members}) < len(members):
        raise BadArchive("The zip holds a file twice; send it as it was exported.")
    check_unpacked(members, max_bytes, SPARE_BYTES)


def _changed(member: zipfile.ZipInfo) -> datetime | None:
    """A zip has no zones: UTC."""
    try:
        return datetime(*member.date_time, tzinfo=UTC)
    except ValueError:
        return None


# --- rows on the disk


class _SpooledPart(PartSum):
    """The lines of one collection, on the disk when there are many."""

    def __init__(self, collection: str) -> None:
        super().__init__(collection)
        self.file = tempfile.SpooledTemporaryFile(SPOOL_BYTES)  # noqa: SIM115 - `_Spool` closes it

    def add(self, data: bytes, rows: int = 1) -> None:
        self.file.write(data)
        super().add(data, rows)


class _Spool:
    """Rows by collection, in the order in which they come; they go with it."""

    def __init__(self) -> None:
        self._parts = {name: _SpooledPart(name) for name in (ITEMS, SESSIONS, TURNS)}

    def __enter__(self) -> "_Spool":
        return self

    def __exit__(self, *_: object) -> None:
        for part in self._parts.values():
            part.file.close()

    def add(self, collection: str, row: Row) -> None:
        line = to_line(row)
        if len(line) > MAX_LINE_BYTES:
            raise BadArchive(f"A row has more than {MAX_LINE_BYTES:,} bytes; send less at a time.")
        self._parts[collection].add(line)

    def archive(self, user_id: str, at: datetime, made_of: str) -> Archive:
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            exported_at=at,
            user_id=user_id,
            partial=True,
            parts=tuple(one.part() for one in self._parts.values()),
            renewed=renewed_fields([BY_NAME[one] for one in self._parts]),
        )
        return Archive(manifest, self._lines, made_of)

    def _lines(self, collection: str) -> Iterator[bytes]:
        file = self._parts[collection].file
        file.seek(0)
        yield from file
