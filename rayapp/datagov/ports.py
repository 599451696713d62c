"""The seams of the open-data catalogue: where it comes from, where it is kept.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rayapp.datagov.records import Catalogue
from rayapp.graphs.records import ContentEdge, ContentNode
from rayapp.memory.item import MemoryItem, Status


class CatalogueSource(Protocol):
    """A catalogue as it was read, kept under a key so that every worker sees the same one."""

    @property
    def name(self) -> str:
        """What it was opened with: `ckan` or a folder."""
        ...

    async def read(self) -> tuple[str, Catalogue]:
        """Read it now. ConfigError: it is not there; DependencyDown: the site does not answer."""
        ...

    async def load(self, key: str) -> Catalogue:
        """What `read` gave with this key, also in another process. ConfigError when it is gone."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PutCounts:
    """What a put wrote; items that were there already are in neither."""

    inserted: int = 0
    updated: int = 0


class SharedItems(Protocol):
    """The items and the graph of the shared tenant (`core.ids.SYSTEM_USER`).

    The only way to write them. Items of another user are refused with Forbidden, before anything
    is written.
    """

    async def record_hashes(
        self, memory_ids: Sequence[str] | None = None
    ) -> dict[str, tuple[str, Status]]:
        """Hash and status by memory id, of these or of all items in the shared tiers."""
        ...

    async def put(self, items: Sequence[MemoryItem]) -> PutCounts:
        """Store what is new or has another record hash, and restore what was archived.

        A changed item keeps its stats and the times it was made and stored at, gets the next
        version, leaves a version row and is indexed again. Repeating it writes nothing.
        """
        ...

    async def retire(self, memory_ids: Sequence[str], reason: str, at: datetime) -> int:
        """Archive those that are active; how many were."""
        ...

    async def put_graph(self, nodes: Sequence[ContentNode], edges: Sequence[ContentEdge]) -> int:
        """Make the graph exactly this; how many rows were written or removed."""
        ...
