"""What was last seen of the index; refreshed beside the requests, read by each of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from rayapp.core.breaker import Breaker
from rayapp.core.errors import RayappError
from rayapp.index.ports import VectorIndex
from rayapp.memory.ports import MemoryStore


@dataclass(slots=True)
class IndexWatch:
    """One per process.

    Attributes:
        rebuilding: it answers, but with a part of the truth.
        refused: it was built for another model or analyser; its answers mean nothing here.
        has_failed: some items gave up, so the index does not hold their current state.
        points: how many points it held, of all users.
    """

    breaker: Breaker
    rebuilding: bool = False
    refused: bool = False
    has_failed: bool = False
    points: int = 0

    @property
    def reason(self) -> str | None:
        """Why the index must not be asked; None when it may."""
        if self.refused:
            return "index_refused"
        return "index_rebuilding" if self.rebuilding else None

    async def look(self, index: VectorIndex, store: MemoryStore) -> None:
        """Refresh; a part that is away leaves what was known of it."""
        with suppress(RayappError):
            health = await index.health()
            self.rebuilding, self.points = health.needs_rebuild, health.points
        with suppress(RayappError):
            self.has_failed = bool(await store.failures(1))
