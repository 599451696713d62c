"""The encoder's vectors of points: they come after the points, the latest writes first.

A memory is found by its words and its static vector the moment it is indexed; a transformer takes
milliseconds to a second for a text, and nobody waits for it. What is to be done stands in no queue:
it is the points that lack the vector, so a process that dies forgets nothing. A point that is
written for another text loses it (`IndexPoint.encoder`), and one that is deleted takes it along.
"""

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass

from rayapp.bulk.ports import LeaseStore
from rayapp.core import errors
from rayapp.core.runtime import Runtime
from rayapp.core.vectors import IndexSchema, Vector
from rayapp.index.ports import ItemScan, VectorIndex
from rayapp.index.records import EncoderUpdate, Projection, StoredPoint
from rayapp.index.rules.points import VECTOR_HASH, vector_hash_of
from rayapp.index.rules.prefix import embedded_texts
from rayapp.index.write_barrier import held
from rayapp.inference.ports import Encoder
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.ports import ChangeLog

log = logging.getLogger("rayapp.encoding")
# Texts that are read and written together, between which a newer write comes first.
AT_ONCE = 16
# Texts of one call, which has a limit of time: company saves nothing, and four of the longest take
# two seconds where nobody else needs the processor.
A_CALL = 4
# Fresh points that are remembered; a longer import is found by the walk.
MOST_FRESH = 1_000
# One process walks; another takes over after this time.
WALK_LEASE, WALK_LEASE_S = "encoder_walk", 60.0
# From the end of a walk that found nothing to the next one: 2 ms of the engine for 20,000 points.
REST_S = 30.0
# Points that no vector could be made of: walked over until the process ends.
MOST_REFUSED = 10_000
READ = Projection(("rev", VECTOR_HASH))


@dataclass(frozen=True, slots=True)
class PassageEncoder:
    """The encoder's vectors of items. `timeout_s`: of one call."""

    encoder: Encoder
    timeout_s: float

    async def vectors(self, items: Sequence[MemoryItem]) -> list[tuple[Vector, ...]]:
        """Of the passages of each item, from the texts that its other vectors are made of. Raises
        as `Encoder.read`; BadVector and InvalidInput may be the fault of any of the items."""
        texts = [embedded_texts(item) for item in items]
        flat = [text for passages in texts for text in passages]
        made: list[Vector] = []
        for begin in range(0, len(flat), A_CALL):
            part = flat[begin : begin + A_CALL]
            read = await self.encoder.read(part, "passage", timeout_s=self.timeout_s)
            made += [vectors.search for vectors in read]
        following = iter(made)
        return [tuple(next(following) for _ in passages) for passages in texts]


@dataclass(eq=False)
class EncodingService:
    """One owner loop calls `run_once` again and again, beside that of the indexer."""

    scan: ItemScan
    index: VectorIndex
    encoder: PassageEncoder
    changes: ChangeLog
    leases: LeaseStore
    _: KW_ONLY
    schema: IndexSchema
    runtime: Runtime

    def __post_init__(self) -> None:
        self._fresh: deque[str] = deque(maxlen=MOST_FRESH)
        self._refused: dict[str, None] = {}
        self._after: str | None = None
        self._found = False
        self._rests_until = 0.0

    def note(self, point_ids: Iterable[str]) -> None:
        """These points were written just now, without the vector."""
        self._fresh.extend(point_ids)

    async def run_once(self) -> int:
        """Give some points their vector; how many were looked at, 0 when nothing is to be done.

        Raises what is not the texts' fault; then the same are tried again.
        """
        resting = self.runtime.clock.monotonic() < self._rests_until
        if not self._fresh and resting:
            return 0
        if self.runtime.disk.full_for_index or await held(self.leases):
            return 0
        if not self._fresh:
            return await self._walk()
        ids = [self._fresh.pop() for _ in range(min(AT_ONCE, len(self._fresh)))]
        try:
            await self._encode(await self.index.retrieve(ids, READ), "fresh")
        except errors.RayappError:
            self._fresh.extend(reversed(ids))
            raise
        return len(ids)

    async def _walk(self) -> int:
        """The next points that lack it, in the order of ids."""
        name, process = WALK_LEASE, self.runtime.process
        if await self.leases.acquire(name, process, WALK_LEASE_S) is None:
            self._rest()
            return 0
        page, after = await self.index.scroll(
            after=self._after, limit=AT_ONCE, read=READ, unencoded=True
        )
        wanted = [point for point in page if point.point_id not in self._refused]
        self._found = await self._encode(wanted, "walk") > 0 or self._found
        self._after = after
        if after is None:
            # What came behind the walk is looked for at once, as long as there was any.
            if not self._found:
                self._rest()
            self._found = False
        return len(page)

    def _rest(self) -> None:
        self._rests_until = self.runtime.clock.monotonic() + REST_S

    async def _encode(self, points: Sequence[StoredPoint], why: str) -> int:
        """Those that are still of the words that the primary store has; how many were written."""
        there = {point.point_id: point for point in points}
        items = [
            item
            for item in await self.scan.by_points(list(there))
            if item.status is Status.ACTIVE
            and there[item.point_id].payload.get(VECTOR_HASH) == self._hash_of(item)
        ]
        written = 0
        for group in _grouped(items):
            if written and why == "walk" and self._fresh:
                break  # the walk comes by here again
            written += await self._write(group, there)
        self.runtime.metrics.count("encoded", written, why=why)
        return written

    async def _write(self, items: Sequence[MemoryItem], points: dict[str, StoredPoint]) -> int:
        try:
            made = await self.encoder.vectors(items)
        except (errors.BadVector, errors.InvalidInput) as error:
            if len(items) == 1:
                self._refuse(items[0], error)
                return 0
            # One text spoils the batch: each stands alone.
            return sum([await self._write([item], points) for item in items])
        updates = [
            EncoderUpdate(
                point_id=item.point_id,
                vectors=vectors,
                rev=int(points[item.point_id].payload.get("rev", 0)),
            )
            for item, vectors in zip(items, made, strict=True)
        ]
        # Held views read again what is noted.
        async with self.changes.around((item.user_id, item.point_id) for item in items):
            await self.index.set_encoder(updates)
        return len(updates)

    def _refuse(self, item: MemoryItem, error: errors.RayappError) -> None:
        log.warning("memory %s gets no vector of the encoder: %s", item.memory_id, error.message)
        if len(self._refused) >= MOST_REFUSED:
            self._refused.clear()
        self._refused[item.point_id] = None

    def _hash_of(self, item: MemoryItem) -> str:
        return vector_hash_of(item.content_hash, self.schema, item.context_prefix)


def _grouped(items: Iterable[MemoryItem]) -> Iterable[list[MemoryItem]]:
    """Items whose texts fill one call; a long one stands alone."""
    group: list[MemoryItem] = []
    texts = 0
    for item in items:
        size = len(embedded_texts(item))
        if group and texts + size > AT_ONCE:
            yield group
            group, texts = [], 0
        group.append(item)
        texts += size
    if group:
        yield group
