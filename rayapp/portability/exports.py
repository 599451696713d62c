"""Exports of a user's data: sizes, the stream, and those that are kept."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, closing
from dataclasses import replace

from rayapp.core.cancelling import ahead
from rayapp.core.errors import IndexDown
from rayapp.core.runtime import Clock
from rayapp.index.ports import VectorIndex
from rayapp.memory.scope import ReadScope
from rayapp.portability.archive import ArchiveWriter
from rayapp.portability.files import ArchiveFiles, file_name
from rayapp.portability.ports import Estimate, ExportRequest, KeptArchive, RowReader, UserArchive
from rayapp.portability.rules.archive import Row
from rayapp.portability.rules.collections import Collection
from rayapp.portability.rules.kinds import Kind

# An export of so many bytes, as stored, is answered as a whole.
SMALL_BYTES = 4 << 20


class ExportService:
    """A user's own data. Raises StoreDown, Conflict."""

    def __init__(
        self, archive: UserArchive, files: ArchiveFiles, index: VectorIndex, clock: Clock
    ) -> None:
        self._archive = archive
        self.files = files
        self._index = index
        self._clock = clock

    async def estimate(self, scope: ReadScope, request: ExportRequest) -> Estimate:
        names = {one.name for one in request.collections}
        found = await self._archive.sizes(scope, request.wanted)
        sizes = {name: size for name, size in found.items() if name in names}
        return Estimate(at=self._clock.now(), collections=sizes)

    async def points(self, scope: ReadScope) -> tuple[int, int | None] | None:
        """Of the user in the index, and the size of its vectors; None when it is away."""
        try:
            health = await self._index.health()
            dims = health.facts.get("dims")
            return await self._index.count(scope), dims if isinstance(dims, int) else None
        except IndexDown:
            return None

    def name(self, request: ExportRequest) -> str:
        return file_name(self._clock.now(), request.format)

    async def stream(self, scope: ReadScope, request: ExportRequest) -> AsyncIterator[bytes]:
        """All rows as they stood at one moment; a page is read while the last one is packed."""
        writer = ArchiveWriter(request, user_id=scope.user_id, at=self._clock.now())
        with closing(writer):
            async with (
                self._archive.snapshot(scope) as reader,
                aclosing(ahead(_pages(reader, request))) as pages,
            ):
                async for begun, rows in pages:
                    if begun is not None:
                        data = writer.begin(begun)
                    else:
                        # Packing is as long as several searches: it must not hold up the loop.
                        data = await asyncio.to_thread(writer.rows, rows)
                    if data:
                        yield data
            yield writer.end()

    async def safety(self, scope: ReadScope) -> KeptArchive:
        """All there is, kept: as JSON where it is small, so that it can be answered too."""
        whole = ExportRequest(kinds=frozenset(Kind))
        small = (await self.estimate(scope, whole)).bytes <= SMALL_BYTES
        return await self.keep(scope, replace(whole, format="json" if small else "zip"))

    async def keep(self, scope: ReadScope, request: ExportRequest) -> KeptArchive:
        """An export into the folder of backups."""
        name = self.name(request)
        return await self.files.keep(scope.user_id, name, self.stream(scope, request))

    async def kept(self, scope: ReadScope) -> list[KeptArchive]:
        return await self.files.kept(scope.user_id)

    async def cleanup(self, scope: ReadScope, keep: int) -> list[KeptArchive]:
        """Remove all but the newest; which went."""
        return await self.files.cleanup(scope.user_id, keep)


async def _pages(
    reader: RowReader, request: ExportRequest
) -> AsyncGenerator[tuple[Collection | None, Iterable[Row]]]:
    """A collection that begins, or rows of it."""
    for collection in request.collections:
        yield collection, ()
        async for rows in reader.pages(collection, request.wanted):
            yield None, rows
