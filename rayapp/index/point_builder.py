"""Items become points, with what a model says surrounds them; what is bad fails alone."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Protocol

from rayapp.core import errors
from rayapp.core.deadline import Deadline
from rayapp.core.runtime import Runtime
from rayapp.core.vectors import IndexSchema, Vector
from rayapp.index.encoding import PassageEncoder
from rayapp.index.ports import VectorIndex
from rayapp.index.records import IndexPoint
from rayapp.index.rules.points import point_of
from rayapp.index.rules.prefix import (
    accepted_prefix,
    embedded_texts,
    facts_about,
    surroundings_of,
    wants_prefix,
)
from rayapp.inference.ports import Embedder, ModelPort, ModelQuestion, ModelReply, prompt_language
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.text.analyser import Analyser
from rayapp.text.passages import passages_of

log = logging.getLogger("rayapp.points")


# Asks a model what surrounds new texts, before they are embedded; without an answer they go on.
#
# One deadline holds for a whole batch, so a model that is slow costs the queue that much and no
# more.

# Questions at once (the client contract); fewer where `models.concurrency` is lower, because a
# question that waits for its place there spends its time.
AT_ONCE = 5
# Turns before an item that are told, and how far back they are looked for: what is older is
# another talk, and a look without an end reads all that a user ever stored. Our choice.
TURNS = 3
LOOK_BACK = timedelta(hours=1)
# Items of one batch while a model is asked, so that one of half a second serves them all before no
# question begins any more: half of the time is kept for the answers, because a question that is
# cut off counts against the breaker.
BATCH = 20
BEGIN_SHARE = 0.5
# Of the text itself, characters: its beginning says what it is about. Our choice.
MAX_TEXT_CHARS = 4_000
# After one of these no other question of the batch has a better chance.
AWAY = frozenset({"off", "breaker", "ledger"})


class Prefixing(Protocol):
    """What the indexer asks of whoever prefixes. It never raises."""

    async def given(self, items: Sequence[MemoryItem]) -> list[MemoryItem]: ...
    def batch(self, size: int) -> int:
        """How many of `size` items may be given at once."""

    async def close(self) -> None:
        """End its connections."""


class _Batch:
    """What one batch shares: its time, its places, and what was found to be away."""

    def __init__(self, limit_s: float, at_once: int, monotonic: Callable[[], float]) -> None:
        self.deadline = Deadline(limit_s, monotonic)
        self.begin = Deadline(BEGIN_SHARE * limit_s, monotonic)
        self.places = asyncio.Semaphore(at_once)
        self.away = False
        self.spent: set[str] = set()  # users without budget

    def over(self, user_id: str) -> bool:
        return self.away or user_id in self.spent or self.begin.expired

    def note(self, user_id: str, reply: ModelReply[str]) -> None:
        self.away = self.away or reply.why in AWAY
        if reply.why == "budget":
            self.spent.add(user_id)


class ModelPrefixing:
    """Implements `Prefixing` by the helper `contextual_prefix`."""

    def __init__(self, models: ModelPort, store: MemoryStore, *, runtime: Runtime) -> None:
        self._models = models
        self._store = store
        settings = runtime.settings.models
        self._limit_s = settings.prefix_timeout_s
        self._at_once = min(AT_ONCE, settings.concurrency)
        self._clock = runtime.clock
        self._metrics = runtime.metrics

    async def given(self, items: Sequence[MemoryItem]) -> list[MemoryItem]:
        """`items` in their order; those that a model placed carry its prefix."""
        if not self._models.enabled("contextual_prefix"):
            return list(items)
        batch = _Batch(self._limit_s, self._at_once, self._clock.monotonic)
        return list(await asyncio.gather(*(self._one(item, batch) for item in items)))

    def batch(self, size: int) -> int:
        return min(size, BATCH) if self._models.enabled("contextual_prefix") else size

    async def close(self) -> None:
        await self._models.close()

    async def _one(self, item: MemoryItem, batch: _Batch) -> MemoryItem:
        prefix = ""
        if wants_prefix(item):
            try:
                async with batch.places:
                    prefix = await self._prefix(item, batch)
            except Exception:  # a prefix is never worth an item that is not indexed
                log.exception("a memory goes without a prefix")
            self._metrics.count("prefixes", result="given" if prefix else "none")
        return replace(item, context_prefix=prefix) if prefix else item

    async def _prefix(self, item: MemoryItem, batch: _Batch) -> str:
        if batch.over(item.user_id):
            return ""
        turns = await self._before(item, batch.deadline)
        left = batch.deadline.remaining()
        if left <= 0:
            return ""
        question = ModelQuestion(
            helper="contextual_prefix",
            variables={
                "text": item.text[:MAX_TEXT_CHARS],
                "surroundings": surroundings_of(turns),
                "source": facts_about(item),
            },
            answer=str,
            language=prompt_language(item.text),
            timeout_s=left,
        )
        reply = await self._models.ask(item.user_id, question)
        batch.note(item.user_id, reply)
        return accepted_prefix(reply.value, item) if reply.value is not None else ""

    async def _before(self, item: MemoryItem, deadline: Deadline) -> list[MemoryItem]:
        """The turns of its conversation before it, the oldest first; none when they are away."""
        conversation = item.source.conversation_id
        if conversation is None:
            return []
        at = item.created_at
        where = ItemFilter(
            conversation_ids=(conversation,), created_from=at - LOOK_BACK, created_to=at
        )
        scope = ReadScope(item.user_id, include_shared=False)
        try:
            async with asyncio.timeout(deadline.remaining()):
                page = await self._store.page(scope, where, ItemQuery(limit=TURNS))
        except (errors.RayappError, TimeoutError):
            return []
        return list(reversed(page.items))


# What says nothing about the item itself (decision 0005).
OUTAGES = (errors.DependencyDown, errors.Overloaded, errors.DeadlineExceeded, errors.SchemaMismatch)

# Passages that the embedder is given at once; one item may have 64. Each part has the whole
# `embedding.batch_timeout_s`, and those before one that is late are in the cache when it is tried
# again: so an embedder of 7 passages/s indexes too. As many as one call to a model holds; the
# bundled one is as fast with 64 as with 256 (measured).
EMBEDDED_AT_ONCE = 64

Made = Sequence[tuple[MemoryItem, IndexPoint]]
# The vectors of the passages of each item, in order.
MakeVectors = Callable[[Sequence[MemoryItem]], Awaitable[Sequence[Sequence[Vector]]]]


@dataclass(frozen=True, slots=True)
class PointFailure:
    item: MemoryItem
    error: errors.RayappError

    @property
    def outage(self) -> bool:
        return isinstance(self.error, OUTAGES)


@dataclass(eq=False)
class PointBuilder:
    """Embeds and analyses under one schema.

    Args:
        prefixing: asks what surrounds a text; None: nobody asks.
        encoder: makes the encoder's vectors as well; None: they come later, or not at all.
    """

    embedder: Embedder
    analyser: Analyser
    _: KW_ONLY
    schema: IndexSchema
    timeout_s: float
    prefixing: Prefixing | None = None
    encoder: PassageEncoder | None = None

    async def close(self) -> None:
        """End the connections of whoever prefixes."""
        if self.prefixing is not None:
            await self.prefixing.close()

    def batch(self, size: int) -> int:
        """How many of `size` items may be made at once."""
        return size if self.prefixing is None else self.prefixing.batch(size)

    async def made(
        self, items: Sequence[MemoryItem]
    ) -> tuple[list[tuple[MemoryItem, IndexPoint]], list[PointFailure]]:
        """The points of `items`; an outage is the failure of every item it kept away."""
        if not items:
            return [], []
        if self.prefixing is not None:
            items = await self.prefixing.given(items)
        vectors, failures = await self._alone(items, self._embed)
        read, unread = await self.read([item for item in items if item.point_id in vectors])
        failures += unread
        for one in unread:
            del vectors[one.item.point_id]
        points: list[tuple[MemoryItem, IndexPoint]] = []
        for item in items:
            vector = vectors.get(item.point_id)
            if vector is None:
                continue
            try:
                points.append((item, self._point(item, vector, read.get(item.point_id, ()))))
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                # One malformed item must never stop the items of others: it fails alone.
                failures.append(PointFailure(item, _unusable(item, error)))
        return points, failures

    async def read(
        self, items: Sequence[MemoryItem]
    ) -> tuple[dict[str, Sequence[Vector]], list[PointFailure]]:
        """The encoder's vectors of `items` by point id, none without it; outages alone fail.

        A text that it cannot read is found by all that is known of it otherwise.
        """
        if self.encoder is None:
            return {}, []
        made, failures = await self._alone(items, self.encoder.vectors)
        return made, [one for one in failures if one.outage]

    def _point(
        self, item: MemoryItem, dense: Sequence[Vector], read: Sequence[Vector]
    ) -> IndexPoint:
        texts = (passage.of(item.text) for passage in passages_of(item.text))
        words = [self.analyser.document(text) for text in texts]
        return point_of(item, list(zip(dense, words, strict=True)), self.schema, read)

    async def _embed(self, items: Sequence[MemoryItem]) -> list[Sequence[Vector]]:
        """The vectors of the passages of each item."""
        texts = [embedded_texts(item) for item in items]
        flat = [text for passages in texts for text in passages]
        vectors: list[Vector] = []
        for at in range(0, len(flat), EMBEDDED_AT_ONCE):
            part = flat[at : at + EMBEDDED_AT_ONCE]
            vectors += await self.embedder.embed(part, "passage", timeout_s=self.timeout_s)
        made = iter(vectors)
        return [list(islice(made, len(passages))) for passages in texts]

    async def _alone(
        self, items: Sequence[MemoryItem], make: MakeVectors
    ) -> tuple[dict[str, Sequence[Vector]], list[PointFailure]]:
        """What `make` gives for each item, by point id; what is bad fails alone."""
        if not items:
            return {}, []
        try:
            made = await make(items)
        except (errors.BadVector, errors.InvalidInput) as error:
            if len(items) == 1:
                return {}, [PointFailure(items[0], error)]
            # One text spoils the batch: halve until it stands alone.
            half = len(items) // 2
            left, left_failures = await self._alone(items[:half], make)
            right, right_failures = await self._alone(items[half:], make)
            return {**left, **right}, left_failures + right_failures
        except errors.RayappError as error:
            return {}, [PointFailure(item, error) for item in items]
        return {item.point_id: one for item, one in zip(items, made, strict=True)}, []


async def written(index: VectorIndex, points: Made) -> tuple[list[MemoryItem], list[PointFailure]]:
    """Upsert; a batch that the index refuses is halved until the bad point stands alone."""
    if not points:
        return [], []
    try:
        await index.upsert([point for _, point in points])
    except (errors.BadVector, errors.InvalidInput) as error:
        if len(points) == 1:
            return [], [PointFailure(points[0][0], error)]
        half = len(points) // 2
        left, left_failures = await written(index, points[:half])
        right, right_failures = await written(index, points[half:])
        return left + right, left_failures + right_failures
    except errors.RayappError as error:
        return [], [PointFailure(item, error) for item, _ in points]
    return [item for item, _ in points], []


def _unusable(item: MemoryItem, error: Exception) -> errors.InvalidInput:
    """The item as it is stored cannot become a point."""
    log.error("item %s cannot be indexed", item.memory_id, exc_info=error)
    return errors.InvalidInput(f"The item cannot become a point ({type(error).__name__}): edit it.")
