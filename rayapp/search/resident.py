"""The users that this process serves, held as columns: a search reads what changed, not the index.

A view is of one user. Each search asks the primary store what was written of the user since, and
reads that again before it looks: what it shows, the store confirmed in this request. A user that is
not held, too large or asked about the past is searched in the index (decision 0055).
"""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence, Set
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import numpy as np

from rayapp.core.deadline import Deadline
from rayapp.core.errors import DeadlineExceeded, DependencyDown, StoreDown
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.runtime import Runtime
from rayapp.core.vectors import IndexSchema, SparseVector
from rayapp.graphs.ports import GraphStore
from rayapp.index.ports import VectorIndex
from rayapp.index.records import Projection, StoredPoint
from rayapp.index.rules.points import (
    PASSAGES,
    VECTOR_HASH,
    passage_point,
    vector_hash_of,
    was_embedded,
)
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.ports import Change, ChangeLog, Changes, MemoryStore
from rayapp.memory.rules.filtering import is_coming
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.search.rules.view import Held, Row, UserView
from rayapp.search.tracing import Trace
from rayapp.text.analyser import Analyser
from rayapp.text.passages import passages_of

log = logging.getLogger("rayapp.search")
# A write is noted before it is done: what it names is read again for this long, more than a write
# may take. Not of a note that says that it is done: then it is read once more.
SETTLE_S = 15.0
# Notes of one look, and memories that a search reads again, 0.04 ms each, with new vectors up to
# 1 ms while the engine takes in many. Of a user of whom more was written just now the view is
# brought up to date beside searches, which ask the index meanwhile; from `MOST_BEHIND` on it is
# made anew.
MOST_CHANGES, MOST_POINTS, MOST_BEHIND = 500, 100, 5_000
# Memories that wait for the index, whose words are read here: 0.2 ms each, a long text 8 ms. After
# an import the index answers until it has caught up.
MOST_WAITING = 100
# Without a search for this long a view is made anew: notes live for an hour. And in any case after
# this, for whatever changed the rows without a note.
IDLE_S, AGE_S = 1_800.0, 3_600.0
# What the first search of a user waits for the view; then the index answers it.
WAIT_S = 0.05
# Of a user with more memories than this, .1 ms of processor each, the view is made when the first
# search has been answered: beside it, it would take the processor from it.
SMALL, LATER_S = 100, 0.1
# Before a user is looked at again: one that is too large, one whose vectors are not all there, and
# one of whom much is being written.
LARGE_S, DRIFT_S, RETRY_S = 600.0, 60.0, 5.0
# Points read at once for a view that is made, and for one that is brought up to date, between whose
# reads searches take their turns; rows made on the event loop rather than in a thread.
BATCH, BESIDE, INLINE_ROWS = 256, 32, 1_000
# Views made at once, beside searches.
BUILDS = 2
MOST_COLD = 100_000


@dataclass(slots=True)
class _Held:
    """A view, and the notes of its last look.

    Attributes:
        bare: the user has no graph.
        until: the server's time of that look.
        seen: notes of that look, and whether the write was done.
        behind: so much was written that it is read beside searches.
    """

    view: UserView
    bare: bool
    built: float
    asked: float
    until: int
    seen: frozenset[tuple[str, bool]]
    nbytes: int = 0
    behind: asyncio.Task[None] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def see(self, look: Changes) -> None:
        self.until, self.seen = look.until, _seen(look)


class Seen(NamedTuple):
    """A held view at one moment. Equal to another one: what was read of it is still true."""

    view: UserView
    changed: int
    bare: bool


@dataclass(frozen=True, slots=True)
class _Building:
    """A view that is being made. `large`: it will not be there at once, so nobody waits for it."""

    task: asyncio.Task[_Held | None]
    large: asyncio.Event

    async def held(self) -> _Held | None:
        """None: the user is large."""
        known = asyncio.create_task(self.large.wait())
        try:
            await asyncio.wait({self.task, known}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            known.cancel()
        return self.task.result() if self.task.done() else None


@dataclass(eq=False)
class ResidentViews:
    """LRU of `UserView` by bytes. Of one event loop."""

    store: MemoryStore
    changes: ChangeLog
    graphs: GraphStore
    index: VectorIndex
    analyser: Analyser
    _: KW_ONLY
    schema: IndexSchema
    runtime: Runtime

    def __post_init__(self) -> None:
        self._users: OrderedDict[str, _Held] = OrderedDict()
        self._building: dict[str, _Building] = {}
        self._cold: dict[str, float] = {}
        self._builds = asyncio.Semaphore(BUILDS)

    async def of(
        self, scope: ReadScope, where: ItemFilter, deadline: Deadline, trace: Trace
    ) -> UserView | None:
        """The user's view, as the primary store has it now; None: ask the index.

        Raises StoreDown and DeadlineExceeded: without the store nothing may be shown.
        """
        if not self._serves(scope, where):
            return None
        limit = deadline.limit(self.runtime.settings.mongo.timeout_s)
        try:
            async with trace.stage("view"), asyncio.timeout(limit):
                view = await self.current(scope, (where,))
        except TimeoutError:
            raise DeadlineExceeded("The truth did not answer in time; try again.") from None
        self.runtime.metrics.count("views", kind="index" if view is None else "view")
        return view

    async def current(self, scope: ReadScope, wheres: Sequence[ItemFilter]) -> UserView | None:
        """The same for filters that are asked of one view, whoever limits the time."""
        if not all(self._serves(scope, where) for where in wheres):
            return None
        try:
            return await self._current(scope.user_id)
        except StoreDown:
            raise
        except DependencyDown:
            return None

    def last_seen(self, scope: ReadScope, where: ItemFilter) -> Seen | None:
        """The user's view as it is held, which the primary store may say more about by now."""
        held = self._users.get(scope.user_id)
        if held is None or held.behind is not None or not self._serves(scope, where):
            return None
        return Seen(held.view, held.view.changed, held.bare)

    def is_bare(self, user_id: str) -> bool:
        """Whether the user is held and had no graph at the last look."""
        held = self._users.get(user_id)
        return held is not None and held.bare

    def _serves(self, scope: ReadScope, where: ItemFilter) -> bool:
        """A past state and shared open data are asked of the index."""
        return (
            self.runtime.settings.search.resident_bytes > 0
            and not scope.include_shared
            and scope.user_id != SYSTEM_USER
            and where.statuses == (Status.ACTIVE,)
            and not where.include_superseded
        )

    async def _current(self, user_id: str) -> UserView | None:
        now = self.runtime.clock.monotonic()
        held = self._users.get(user_id)
        if held is None or now - held.asked > IDLE_S or now - held.built > AGE_S:
            self._users.pop(user_id, None)
            held = await self._first(user_id, now)
        else:
            self._users.move_to_end(user_id)
        if held is None:
            return None
        held.asked = now
        # Of a view that was just made as well: it may have begun before this search did.
        return held.view if await self._is_current(user_id, held) else None

    async def _is_current(self, user_id: str, held: _Held) -> bool:
        """Whether the view has all that the store says; what is new to it is read."""
        if held.behind is not None:
            return False
        look = await self.changes.since(user_id, held.until, MOST_CHANGES)
        if held.behind is not None:  # begun meanwhile: it would be waited for
            return False
        if not look.whole:
            self._forget(user_id, held)
            return False
        fresh = [
            one
            for one in look.found
            if (one.key, one.done) not in held.seen or self._may_be_under_way(one, look)
        ]
        if not fresh:
            held.see(look)
            return True
        held.bare = held.bare and not any(one.of_graphs for one in fresh)
        points = {point_id for one in fresh for point_id in one.points}
        if len(look.found) == MOST_CHANGES or len(points) > MOST_BEHIND:
            self._forget(user_id, held)
        elif len(points) <= MOST_POINTS:
            return await self._brought_up(user_id, held, look, points)
        else:
            held.behind = asyncio.create_task(self._catch_up(user_id, held, look, points))
        return False

    async def _catch_up(self, user_id: str, held: _Held, look: Changes, points: Set[str]) -> None:
        try:
            async with self._builds:
                await self._brought_up(user_id, held, look, points)
        except (DependencyDown, DeadlineExceeded) as error:
            log.info("a view is not brought up to date now: %s", error.message)
            self._forget(user_id, held)
        except Exception:  # as of one that is made
            log.exception("a view was not brought up to date")
            self._forget(user_id, held)
        finally:
            held.behind = None

    async def _brought_up(self, user_id: str, held: _Held, look: Changes, points: Set[str]) -> bool:
        """Read again what changed; False, and the view is gone, when the index lacks some of it."""
        ids = list(points)
        async with held.lock:
            # Whoever reads last writes last: no search lays an older state over a newer one.
            for begin in range(0, len(ids), BESIDE):
                if not await self._apply(held, user_id, frozenset(ids[begin : begin + BESIDE])):
                    self._forget(user_id, held)
                    return False
        held.see(look)
        self._resize(user_id, held)
        return True

    def _forget(self, user_id: str, held: _Held) -> None:
        """For some seconds the index answers, before the view is made anew."""
        if self._users.get(user_id) is held:
            del self._users[user_id]
        self._cold[user_id] = self.runtime.clock.monotonic() + RETRY_S

    def _may_be_under_way(self, change: Change, look: Changes) -> bool:
        return not change.done and change.at > self.changes.before(look.until, SETTLE_S)

    async def _first(self, user_id: str, now: float) -> _Held | None:
        """Of a user that is not held; None: it is not made in the time that a search waits."""
        if now < self._cold.get(user_id, 0.0):
            return None
        building = self._building.get(user_id)
        if building is None:
            large = asyncio.Event()
            task = asyncio.create_task(self._build(user_id, large))
            building = self._building[user_id] = _Building(task, large)
            task.add_done_callback(lambda _: self._building.pop(user_id, None))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                return await building.held()
        return None

    async def _build(self, user_id: str, large: asyncio.Event) -> _Held | None:
        """None where the user is too large, or a dependency is away; a later search asks again."""
        held = None
        try:
            scope = ReadScope(user_id, include_shared=False)
            if await self.store.count(scope, ItemFilter(include_attached=True)) > SMALL:
                large.set()
                await asyncio.sleep(LATER_S)
            async with self._builds:
                held = await self._made(user_id)
        except (DependencyDown, DeadlineExceeded) as error:
            log.info("a view is not made now: %s", error.message)
        except Exception:  # the index answers: a search must not fail for what only speeds it up
            log.exception("a view was not made")
        if held is None:
            if len(self._cold) > MOST_COLD:
                self._cold.clear()
            again = self.runtime.clock.monotonic() + RETRY_S
            self._cold[user_id] = max(again, self._cold.get(user_id, 0.0))
        else:
            self._cold.pop(user_id, None)
            self._users[user_id] = held
            self._resize(user_id, held)
        return held

    async def _made(self, user_id: str) -> _Held | None:
        now = self.runtime.clock.monotonic()
        # From index keys alone: a user is not read in vain every few seconds of an import.
        if await self.store.waiting(user_id) > MOST_WAITING:
            return None
        # Before the items: what is written in between is read again.
        look = await self.changes.since(user_id, None, MOST_CHANGES)
        if len(self._young(look)) > MOST_POINTS:
            return None
        most = self.runtime.settings.search.resident_max_items
        scope = ReadScope(user_id, include_shared=False)
        items, empty = await asyncio.gather(
            self.store.searchable(scope, most), self.graphs.is_empty(scope)
        )
        if items is None:
            self._cold[user_id] = now + LARGE_S
            return None
        self._cold.pop(user_id, None)
        rows = await self._rows(items)
        if rows is None:
            self._cold[user_id] = now + DRIFT_S
            return None
        if len(rows) > INLINE_ROWS:
            view = await asyncio.to_thread(self._view_of, rows)
        else:
            view = self._view_of(rows)
        # A graph that was noted may gain more without another note.
        noted = len(look.found) == MOST_CHANGES or any(one.of_graphs for one in look.found)
        return _Held(view, empty and not noted, now, now, look.until, _seen(look))

    def _view_of(self, rows: Sequence[Row]) -> UserView:
        return UserView(rows, self.schema.dims, self.schema.encoder_dims)

    async def _apply(self, held: _Held, user_id: str, points: Set[str]) -> bool:
        """Read again what changed; False when the index does not have what the store says."""
        found = await self.store.by_points(ReadScope(user_id, include_shared=False), list(points))
        living = {item.point_id: item for item in found if item.status is Status.ACTIVE}
        same, other = [], []
        for point_id, item in living.items():
            known = held.view.held(point_id)
            if known is None or not self._same_words(item, known):
                other.append(item)
            elif known.item is not item:
                same.append(item)
        rows = await self._rows(other)
        if rows is None:
            return False
        # Of one that is stored again and is only coming there is no row that would replace it.
        held.view.drop(points - living.keys() | {item.point_id for item in other})
        held.view.set_items(same)
        held.view.put(rows)
        return True

    def _same_words(self, item: MemoryItem, known: Held) -> bool:
        """Whether what is held of its words is still right, and all that there is. Whether the
        encoder read it by now the index alone knows."""
        if known.embedded and not known.encoded and self.schema.encoder:
            return False
        same = self._hash_of(item) == self._hash_of(known.item)
        return same and was_embedded(item) == known.embedded

    def _hash_of(self, item: MemoryItem) -> str:
        return vector_hash_of(item.content_hash, self.schema, item.context_prefix)

    async def _rows(self, items: Sequence[MemoryItem]) -> list[Row] | None:
        """The items with their vectors, those that wait for the index with their words alone; None
        when too many wait, or the index lacks some that it should have."""
        indexed = [item for item in items if was_embedded(item)]
        waiting = [item for item in items if not (was_embedded(item) or is_coming(item))]
        if len(waiting) > MOST_WAITING:
            return None
        rows: list[Row] = []
        for begin in range(0, len(indexed), BATCH):
            batch = indexed[begin : begin + BATCH]
            points = await self._points(batch)
            for item in batch:
                found = points.get(item.point_id)
                if found is None or found[0].payload.get(VECTOR_HASH) != self._hash_of(item):
                    return None
                rows.append(_row(item, found))
        return rows + self._worded(waiting)

    async def _points(self, items: Sequence[MemoryItem]) -> dict[str, list[StoredPoint]]:
        """The points of the passages of each item that has all of them."""
        read = Projection((VECTOR_HASH, PASSAGES), vectors=True)
        firsts = await self.index.retrieve([item.point_id for item in items], read)
        others = [
            passage_point(point.point_id, number)
            for point in firsts
            for number in range(1, point.payload.get(PASSAGES, 1))
        ]
        found = {point.point_id: point for point in firsts}
        for begin in range(0, len(others), BATCH):
            more = await self.index.retrieve(others[begin : begin + BATCH], read)
            found |= {point.point_id: point for point in more}
        whole: dict[str, list[StoredPoint]] = {}
        for first in firsts:
            count = first.payload.get(PASSAGES, 1)
            ids = [passage_point(first.point_id, number) for number in range(count)]
            if all(one in found for one in ids):
                whole[first.point_id] = [found[one] for one in ids]
        return whole

    def _worded(self, items: Iterable[MemoryItem]) -> list[Row]:
        return [
            Row(item, None, [self.analyser.document(one.of(item.text)) for one in passages])
            for item in items
            if (passages := passages_of(item.text))
        ]

    def _young(self, look: Changes) -> set[str]:
        """Points whose write may still be under way."""
        young = [one for one in look.found if self._may_be_under_way(one, look)]
        return {point_id for one in young for point_id in one.points}

    def _resize(self, user_id: str, held: _Held) -> None:
        """Count its bytes anew; those that were asked for longest ago make room."""
        held.nbytes = held.view.nbytes
        total = sum(one.nbytes for one in self._users.values())
        while total > self.runtime.settings.search.resident_bytes and len(self._users) > 1:
            oldest = next(iter(self._users))
            if oldest == user_id:
                break
            total -= self._users.pop(oldest).nbytes
        self.runtime.metrics.gauge("view_bytes", total)


def _seen(look: Changes) -> frozenset[tuple[str, bool]]:
    return frozenset((one.key, one.done) for one in look.found)


def _row(item: MemoryItem, points: Sequence[StoredPoint]) -> Row:
    vectors = [point.dense for point in points if point.dense is not None]
    words = [point.sparse or SparseVector([], []) for point in points]
    read = [point.encoder for point in points if point.encoder is not None]
    whole = len(read) == len(points)
    return Row(item, np.stack(vectors), words, np.stack(read) if whole else None)
