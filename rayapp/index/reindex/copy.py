"""Brings items into the collection that a reindex fills; rests while people search."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from rayapp.core.errors import BadVector, InvalidInput, NotFound
from rayapp.core.runtime import Clock
from rayapp.core.vectors import IndexSchema
from rayapp.index.point_builder import PointFailure, written
from rayapp.index.ports import ItemScan, RowState
from rayapp.index.records import EncoderUpdate, Projection, StoredPoint
from rayapp.index.reindex.parts import (
    Refresh,
    ReindexFacts,
    ReindexParts,
    belongs,
    is_wanted,
    schema_or_none,
)
from rayapp.index.rules.points import VECTOR_HASH, copy_of, vector_hash_of
from rayapp.memory.item import REWRITTEN, MemoryItem
from rayapp.search.ports import ReceiptStore

# How a worker of a reindex goes through its range: reading ahead, resting while people search.

Page = tuple[list[MemoryItem], str | None]
Range = tuple[str | None, str | None]

# After a search people may search again for so long, seconds: as the engine takes it.
LIVE_S = 1.0
# A rest is so many times the work before it, up to `MAX_REST_S`: with two workers on two cores
# searches then have three quarters of each, beside an embedder that takes milliseconds.
RESTS = 3.0
# A worker that is asked to stop does so after its rest, so a rest ends soon, seconds.
MAX_REST_S = 2.0


class PagesAhead:
    """Reads the next page of a range while the last one is written.

    A page may be old when it is written: what changed since the plan is followed, and what was
    deleted is looked for, at the end of the job.
    """

    def __init__(self, scan: ItemScan, limit: int) -> None:
        self._scan, self._limit = scan, limit
        self._next: tuple[Range, asyncio.Task[Page]] | None = None

    async def page(self, after: str | None, until: str | None) -> Page:
        """Raises what the reading raised; asked again, it reads again."""
        ahead, self._next = self._next, None
        if ahead is not None and ahead[0] == (after, until):
            items, last = await ahead[1]
        else:
            _drop(ahead)
            items, last = await self._read(after, until)
        if last is not None:
            self._next = (last, until), asyncio.create_task(self._read(last, until))
        return items, last

    def close(self) -> None:
        _drop(self._next)
        self._next = None

    async def _read(self, after: str | None, until: str | None) -> Page:
        return await self._scan.page(after=after, until=until, limit=self._limit)


def _drop(ahead: tuple[Range, asyncio.Task[Page]] | None) -> None:
    """Nobody asks for it any more, nor for why it failed."""
    if ahead is not None:
        ahead[1].add_done_callback(lambda task: task.cancelled() or task.exception())
        ahead[1].cancel()


class SearchBackoff:
    """Lets the searches of people go first: while there are any, each step is followed by a rest.

    A search leaves a receipt, so another newest one says that people searched. The times in it are
    those of another machine and are not looked at.
    """

    def __init__(
        self, receipts: ReceiptStore, clock: Clock, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._receipts, self._clock, self._sleep = receipts, clock, sleep
        self._known: str | None = None
        self._looked = False
        self._searched_s: float | None = None
        self._worked_s = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Around one step; the rest comes before the next one, when the step is checkpointed."""
        if await self._live():
            await self._sleep(min(MAX_REST_S, RESTS * self._worked_s))
        began_s = self._clock.monotonic()
        try:
            yield
        finally:
            self._worked_s = self._clock.monotonic() - began_s

    async def _live(self) -> bool:
        newest = await self._receipts.recent(1)
        known, self._known = self._known, newest[0].receipt_id if newest else None
        now_s = self._clock.monotonic()
        # What came before the first look is no sign of people who are there now.
        if self._looked and self._known is not None and self._known != known:
            self._searched_s = now_s
        self._looked = True
        return self._searched_s is not None and now_s - self._searched_s < LIVE_S


# Points per page of a look through a collection, about 200 bytes each.
TIDY_PAGE = 1_000
# What a look reads of each point.
LOOKED_AT = Projection(("rev", VECTOR_HASH))
# A point that was replaced while it was looked at is looked at again, so often at most.
LOOKS = 3
# `indexed_at` is written a moment before it can be read: a pass begins this much earlier than the
# last one did, seconds. A majority write takes 3 ms here; a pass skips what it already has.
MARGIN_S = 10.0


@dataclass(slots=True)
class Copied:
    """What was written: with vectors of the old collection, or with new ones."""

    copied: int = 0
    embedded: int = 0
    failures: list[PointFailure] = field(default_factory=list)

    @property
    def written(self) -> int:
        return self.copied + self.embedded

    def add(self, other: Self) -> None:
        self.copied += other.copied
        self.embedded += other.embedded
        self.failures += other.failures


class Copier:
    """Writes to `facts.collection`, with vectors of `facts.previous` where they still fit."""

    def __init__(self, parts: ReindexParts, facts: ReindexFacts, refresh: Refresh) -> None:
        self._index, self._scan = parts.index.at(facts.collection), parts.scan
        self._maker = parts.maker()
        self._schema, self._previous = facts.schema, facts.previous
        self._refresh = refresh
        self._old: IndexSchema | None = None

    async def fill(self, items: Sequence[MemoryItem]) -> Copied:
        """Write those of `items` that belong there. `tidy` must follow.

        Raises what is not the items' fault: an outage, or a collection that was lost.
        """
        here = [item for item in items if belongs(item)]
        copied = await self._copy(here)
        rest = [item for item in here if item.point_id not in copied]
        made, failures = await self._maker.made(rest)
        stored, refused = await written(self._index, made)
        _raise_unless_theirs([*failures, *refused])
        return Copied(len(copied), len(stored), [*failures, *refused])

    async def bring(self, items: Sequence[MemoryItem]) -> Copied:
        """`fill` those that the collection does not have as they are, and look again."""
        there = {p.point_id: p for p in await self._stored([item.point_id for item in items])}
        missing = [item for item in items if not self._has(there.get(item.point_id), item)]
        if not missing:
            return Copied()
        done = await self.fill(missing)
        _, again = await self._settle([item.point_id for item in missing])
        done.failures += again.failures
        return done

    async def tidy(self) -> int:
        """Look at every point of the collection: how many had to go. A page is read while the one
        before it is looked at."""
        removed = 0
        page, following = await self._page(None)
        while following is not None:
            (ahead, following), gone = await asyncio.gather(
                self._page(following), self._outdated(page)
            )
            removed += await self._take_out(gone)
            page = ahead
        return removed + await self._take_out(await self._outdated(page))

    async def _page(self, after: str | None) -> tuple[list[StoredPoint], str | None]:
        return await self._index.scroll(after=after, limit=TIDY_PAGE, read=LOOKED_AT)

    async def _take_out(self, gone: Sequence[str]) -> int:
        return (await self._settle(gone))[0] if gone else 0

    async def _settle(self, point_ids: Sequence[str]) -> tuple[int, Copied]:
        """Take out the points that the truth does not hold any more; write again what had a
        point of an earlier life (a deleted memory may be stored again under its id)."""
        removed, done = 0, Copied()
        for _ in range(LOOKS):
            points = await self._stored(point_ids)
            gone = await self._outdated(points)
            if not gone:
                break
            revs = {p.point_id: int(p.payload.get("rev", 0)) for p in points}
            await self._index.delete(gone, revs)
            removed += len(gone)
            # What still belongs there had a stale point in its way.
            items = [item for item in await self._scan.by_points(gone) if belongs(item)]
            if items:
                done.add(await self.fill(items))
            point_ids = gone
        return removed, done

    async def _outdated(self, points: Sequence[StoredPoint]) -> list[str]:
        """Points that were read before this call and are not what the truth says now."""
        ids = [point.point_id for point in points]
        rows = {row.point_id: row for row in await self._scan.states(ids)} if ids else {}
        return [p.point_id for p in points if not self._may_stay(p, rows.get(p.point_id))]

    def _may_stay(self, point: StoredPoint, row: RowState | None) -> bool:
        """The row was read after the point, so a lower rev than the point's is another life's."""
        if row is None or not is_wanted(row.status, row.sync_state):
            return False
        rev = int(point.payload.get("rev", 0))
        return self._same_words(point, row) if rev == row.rev else rev < row.rev

    def _has(self, point: StoredPoint | None, item: MemoryItem) -> bool:
        if point is None or int(point.payload.get("rev", 0)) < item.index.rev:
            return False
        return self._same_words(point, item)

    def _same_words(self, point: StoredPoint, row: RowState | MemoryItem) -> bool:
        wanted_hash = vector_hash_of(row.content_hash, self._schema, row.context_prefix)
        return point.payload.get(VECTOR_HASH) == wanted_hash

    async def _stored(self, point_ids: Sequence[str]) -> list[StoredPoint]:
        return await self._index.retrieve(list(point_ids), LOOKED_AT)

    async def _copy(self, items: Sequence[MemoryItem]) -> set[str]:
        """Points written with the vectors of the old collection, where they are of the same
        words."""
        fit = [item for item in items if not self._refresh.takes(item) and not _rewritten(item)]
        if not fit or self._previous is None or not await self._can_reuse():
            return set()
        copies = [copy_of(item, self._schema) for item in fit]
        try:
            left = await self._index.copy(copies, self._previous)
        except NotFound:  # dropped meanwhile
            return set()
        except (BadVector, InvalidInput):
            # One of them is bad: made one by one, it fails alone.
            return set()
        copied = {item.point_id for item in fit}.difference(left)
        if self._old != self._schema:
            await self._encode([item for item in fit if item.point_id in copied])
        return copied

    async def _encode(self, items: Sequence[MemoryItem]) -> None:
        """What the old collection has no vector of this encoder of. What lacks one of the same
        encoder is the indexer's to give, whichever collection it is in."""
        vectors, failures = await self._maker.read(items)
        _raise_unless_theirs(failures)
        await self._index.set_encoder(
            [
                EncoderUpdate(
                    point_id=item.point_id,
                    vectors=tuple(vectors[item.point_id]),
                    rev=item.index.rev,
                )
                for item in items
                if item.point_id in vectors
            ]
        )

    async def _can_reuse(self) -> bool:
        if self._old is None:
            self._old = await schema_or_none(self._index, self._previous)
        return self._old is not None and self._old.first == self._schema.first


def _rewritten(item: MemoryItem) -> bool:
    """The old collection may still have the passages of its text before."""
    return item.index.vector_hash == REWRITTEN


class Follower:
    """Brings over what the indexers wrote to the old collection since a moment."""

    def __init__(self, parts: ReindexParts, copier: Copier, since: datetime) -> None:
        self._scan, self._copier = parts.scan, copier
        self._limit = parts.runtime.settings.reindex.batch_size
        self._since = since
        self.done = Copied()

    async def one_pass(self) -> int:
        """From the last pass on up to the moment at which this one begins, so that it ends however
        fast the indexers are; how many items had to be written."""
        begun = await self._scan.now()
        place: tuple[datetime, str] | None = None
        before = self.done.written
        while True:
            since = self._since - timedelta(seconds=MARGIN_S)
            items = await self._scan.indexed_since(since, place, self._limit)
            self.done.add(await self._copier.bring(items))
            if len(items) < self._limit:
                break
            place = _place_of(items)
            if place[0] > begun:
                break
        self._since = begun
        return self.done.written - before


def _place_of(items: Sequence[MemoryItem]) -> tuple[datetime, str]:
    last = items[-1]
    assert last.index.indexed_at is not None  # it was found by that time
    return last.index.indexed_at, last.point_id


def _raise_unless_theirs(failures: Iterable[PointFailure]) -> None:
    """Only a bad vector or text is an item's own fault; anything else ends the step."""
    for failure in failures:
        if not isinstance(failure.error, BadVector | InvalidInput):
            raise failure.error
