"""Erasing all there is of a user, with a certificate that can be checked."""

import asyncio
import contextlib
import hashlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rayapp.core.errors import IndexDown, NotFound
from rayapp.core.ids import user_of
from rayapp.core.runtime import Runtime
from rayapp.index.ports import VectorIndex
from rayapp.index.records import Projection
from rayapp.memory.scope import WriteScope
from rayapp.portability.files import ArchiveFiles
from rayapp.portability.ports import Certificate, UserArchive
from rayapp.portability.rules.collections import Erasing, of_user
from rayapp.portability.rules.kinds import Part

log = logging.getLogger("rayapp.portability")
# Memories of one transaction.
PAGE = 200
# Points of one look at an old collection.
SCROLL = 2_000
# Between two looks at what the indexer has let go of, seconds.
POLL_S = 0.2
# Looks without any progress after which the answer says what is left.
PATIENCE = 5
INDEX, ARCHIVES = "vector_index", "archives"


class ErasureService:
    """Raises StoreDown. A repeat finishes what was cut short.

    `settle` waits for what earlier answers to a user leave behind: it would come after the erasure.
    `take_back` takes back what was derived from what is gone.
    """

    def __init__(
        self,
        archive: UserArchive,
        files: ArchiveFiles,
        index: VectorIndex,
        *,
        settle: Callable[[str], Awaitable[None]],
        take_back: Callable[[], Awaitable[None]],
        runtime: Runtime,
    ) -> None:
        self._archive = archive
        self._files = files
        self._index = index
        self._settle = settle
        self._take_back = take_back
        self._clock = runtime.clock
        self._budget_s = runtime.stream_budget_s

    async def erase(self, scope: WriteScope, until: float | None = None) -> Certificate:
        """Rows of the user in every collection, points, and archives; API keys stay. It ends at
        `until` (monotonic seconds) or when the time of a request is over.

        What could add memories goes first, memories last: their tombstones stay until the indexer
        has taken their points away, which is waited for within the time of a request.
        """
        until = self._clock.monotonic() + self._budget_s if until is None else until
        await self._settle(scope.user_id)
        removed = Counter({ARCHIVES: await self._files.erase(scope.user_id)})
        points = await self._points(scope)
        await self._rows(scope, removed)
        for collection in of_user(Erasing.MEMORIES):
            while gone := await self._archive.clear(scope, collection, PAGE):
                removed[collection.name] += gone
                if self._clock.monotonic() >= until:
                    return await self._certificate(scope, removed, points)
        await self._let_go(scope, until)
        await self._rows(scope, removed)  # what the background wrote meanwhile
        await self._purge_old(scope, until)
        found = await self._certificate(scope, removed, points)
        log.info("erased a user: complete=%s certificate=%s", found.complete, found.sha256)
        return found

    async def erase_part(
        self, scope: WriteScope, part: Part, part_id: str, delete: Callable[[], Awaitable[object]]
    ) -> Certificate:
        """Delete it as its own route does, and wait while the indexer takes its points away.

        Raises what `delete` raises, but NotFound: a repeat, or what never was, has a certificate
        that says so.
        """
        until = self._clock.monotonic() + self._budget_s
        await self._settle(scope.user_id)
        before = await self._archive.left_of(scope.own, part, part_id)
        with contextlib.suppress(NotFound):
            await delete()
        await self._take_back()
        left = await self._archive.left_of(scope.own, part, part_id)
        last, still = left, 0
        while any(left.values()) and still < PATIENCE and self._clock.monotonic() < until:
            await asyncio.sleep(POLL_S)
            left = await self._archive.left_of(scope.own, part, part_id)
            last, still = left, still + 1 if left == last else 0
        removed = {name: max(0, rows - left[name]) for name, rows in before.items()}
        return self._signed(scope, removed, left, part=part, part_sha256=_sha256(part_id))

    async def _rows(self, scope: WriteScope, removed: Counter[str]) -> None:
        for collection in reversed(of_user(Erasing.ROWS, Erasing.POINTS)):
            removed[collection.name] += await self._archive.clear(scope, collection, PAGE)

    async def _let_go(self, scope: WriteScope, until: float) -> None:
        """Wait while the indexer takes tombstones away."""
        last, still = 0, 0
        while still < PATIENCE and self._clock.monotonic() < until:
            left = await self._archive.left(scope.own)
            waiting = sum(left[one.name] for one in of_user(Erasing.MEMORIES))
            if not waiting:
                return
            last, still = waiting, still + 1 if waiting == last else 0
            await asyncio.sleep(POLL_S)

    async def _points(self, scope: WriteScope) -> int | None:
        """In all collections, those that a rollback could bring back too; None: the index is
        away."""
        try:
            names = await self._index.collections()
            return sum([await self._index.at(name).count(scope.own) for name in names])
        except IndexDown:
            return None

    async def _purge_old(self, scope: WriteScope, until: float) -> None:
        """Points in collections that the indexer writes to no more, and what it wrote too late."""
        with contextlib.suppress(IndexDown):
            owner = Projection(("user_id",))
            for name in await self._index.collections():
                after: str | None = None
                points = self._index.at(name)
                while await points.count(scope.own):
                    page, after = await points.scroll(after=after, limit=SCROLL, read=owner)
                    ids = [p.point_id for p in page if p.payload.get("user_id") == scope.user_id]
                    if ids:
                        await points.delete(ids)
                    if after is None or self._clock.monotonic() >= until:
                        break

    async def _certificate(
        self, scope: WriteScope, removed: Counter[str], points: int | None
    ) -> Certificate:
        left = dict(await self._archive.left(scope.own))
        now = await self._points(scope)
        archives = await self._archives(scope)
        counts = {INDEX: now, ARCHIVES: archives}
        left |= {place: count for place, count in counts.items() if count is not None}
        unseen = tuple(sorted(place for place, count in counts.items() if count is None))
        if points is not None and now is not None:
            removed[INDEX] = max(0, points - now)
        return self._signed(scope, removed, left, unseen=unseen)

    async def _archives(self, scope: WriteScope) -> int | None:
        """How many are kept; None: their folder cannot be read."""
        try:
            return len(await self._files.kept(scope.user_id))
        except OSError:
            log.warning("archives of an erased user cannot be looked at", exc_info=True)
            return None

    def _signed(
        self, scope: WriteScope, removed: Mapping[str, int], left: Mapping[str, int], **part: Any
    ) -> Certificate:
        return Certificate(
            user_sha256=_sha256(user_of(scope.user_id)),
            at=self._clock.now(),
            removed=dict(sorted(removed.items())),
            left=dict(sorted(left.items())),
            **part,
        )


def _sha256(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
