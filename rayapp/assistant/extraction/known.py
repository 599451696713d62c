"""What is known of a user already, for the rules that keep a fact from being learned twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.assistant.extraction.rules.facts import adds, known_near, known_text
from rayapp.assistant.extraction.rules.placing import LEARNED_TAG
from rayapp.index.ports import VectorIndex
from rayapp.index.records import Arm, ScoredPoint
from rayapp.inference.ports import Embedder
from rayapp.memory.item import MemoryItem, SourceType, Status, point_id_of
from rayapp.memory.ports import MemoryStore
from rayapp.memory.rules.creation import is_raw_exchange
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import CORE_TIERS

# Memories that a model is told of, so that it does not say them again (the extraction design).
TOLD = 8
# Nearest memories that a fact is compared with (the extraction design).
COMPARED = 5
# Memories that wait for the index and are compared by their words.
WAITING = 100


@dataclass(frozen=True, slots=True)
class Met:
    """`extends`: a learned memory that says the same, but not all of it."""

    known: bool
    extends: MemoryItem | None = None


class KnownMemories:
    """Looks into index and truth. Raises DependencyDown: unseen is not learned either."""

    def __init__(
        self, items: MemoryStore, index: VectorIndex, embedder: Embedder, *, timeout_s: float
    ) -> None:
        self._items = items
        self._index = index
        self._embedder = embedder
        self._timeout_s = timeout_s

    async def active(self, user_id: str, memory_id: str) -> MemoryItem | None:
        """The memory unless its user deleted it or put it away."""
        item = await self._items.get(_own(user_id), memory_id)
        return item if item is not None and item.status is Status.ACTIVE else None

    async def told(self, user_id: str, text: str) -> list[str]:
        """Facts near to what the user said, the nearest first."""
        near = await self._near(user_id, text, TOLD)
        return [item.text for item, _ in near]

    async def says(self, user_id: str, line: str) -> Met:
        """Whether a memory, of whatever tier, says the same."""
        near = await self._near(user_id, line, COMPARED)
        same = [item for item, cosine in near if known_near(line, item.text, cosine)]
        if not same:
            waiting = await self._items.pending(
                _own(user_id), ItemFilter(), WAITING, with_failed=True
            )
            return Met(known_text(line, [item.text for item in _facts(waiting)]))
        if all(adds(line, item.text) for item in same):
            return Met(True, next((item for item in same if _is_learned(item)), None))
        return Met(True)

    async def shown(self, user_id: str, memory_ids: Sequence[str]) -> list[MemoryItem]:
        """The memories of a receipt that are still there, raw turns among them."""
        points = [point_id_of(user_id, memory_id) for memory_id in memory_ids]
        return await self._items.by_points(_own(user_id), points) if points else []

    async def _near(self, user_id: str, text: str, limit: int) -> list[tuple[MemoryItem, float]]:
        (vector,) = await self._embedder.embed([text], "passage", timeout_s=self._timeout_s)
        # Raw turns lie near too, and are left out afterwards: they are where facts come from.
        arm = Arm(name="known", limit=3 * limit, dense=vector, tiers=CORE_TIERS)
        (points,) = await self._index.query(_own(user_id), ItemFilter(tiers=CORE_TIERS), [arm])
        scores = {point.point_id: point.score for point in _ordered(points)}
        found = await self._items.by_points(_own(user_id), list(scores))
        near = [(item, scores[item.point_id]) for item in _facts(found)]
        return sorted(near, key=lambda one: -one[1])[:limit]


def _is_learned(item: MemoryItem) -> bool:
    """Made here, of an exchange: what a person stored under the same tag is theirs."""
    source = item.source
    made = source.type is SourceType.ASSISTANT and source.tool_run_id is not None
    return made and LEARNED_TAG in item.tags


def _facts(items: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Active memories that are no raw turns."""
    return [i for i in items if i.status is Status.ACTIVE and not is_raw_exchange(i.text)]


def _ordered(points: Sequence[ScoredPoint]) -> list[ScoredPoint]:
    return sorted(points, key=lambda point: (-point.score, point.point_id))


def _own(user_id: str) -> ReadScope:
    return ReadScope(user_id, include_shared=False)
