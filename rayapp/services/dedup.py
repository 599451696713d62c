"""Near-duplicates of facts and patterns become one memory."""

from __future__ import annotations

from rayapp.domain.memory import MemoryItem
from rayapp.learning_protocols import LifecycleStore
from rayapp.protocols import MemoryStore, VectorIndex
from rayapp.services.runtime import Runtime


class DedupService:
    """Compares an indexed item with its nearest neighbours.

    Args:
        similarity: least cosine of two texts that say the same; 0 = off (not measured).
    """

    def __init__(
        self,
        lifecycle: LifecycleStore,
        items: MemoryStore,
        index: VectorIndex,
        *,
        similarity: float,
        runtime: Runtime,
    ) -> None:
        self._lifecycle = lifecycle
        self._items = items
        self._index = index
        self._similarity = similarity
        self._runtime = runtime

    async def merge(self, item: MemoryItem) -> bool:
        """Merge `item` with the memories that say the same; True when it did."""
        raise NotImplementedError
