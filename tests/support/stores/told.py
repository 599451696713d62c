"""What a change stream of MongoDB would tell of the rows in memory, for `tests.serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayapp.admin.ports import StreamKind
from rayapp.memory.item import ChangeType, Status, SyncState

if TYPE_CHECKING:
    from tests.support.harness import Harness

BY_CHANGE = {
    ChangeType.ARCHIVE: StreamKind.ARCHIVED,
    ChangeType.RESTORE: StreamKind.RESTORED,
    ChangeType.UPDATE: StreamKind.UPDATED,
    ChangeType.MERGE: StreamKind.MERGED,
}


class ToldChanges:
    """Compares the rows with those of the last look. Moves between tiers are not told."""

    def __init__(self, world: Harness) -> None:
        self._world = world
        self._states: dict[str, SyncState] = {}
        self._versions: dict[tuple[str, str], int] = {}
        self._outcomes: set[tuple[str, str]] = set()

    async def run_once(self) -> int:
        """How many events were told."""
        before = len(self._world.stream.log)
        await self._tell_items()
        await self._tell_versions()
        await self._tell_outcomes()
        return len(self._world.stream.log) - before

    async def _tell_items(self) -> None:
        for point_id, row in list(self._world.items.inner._rows.items()):
            item, state = row.item, row.item.index.sync_state
            data = {"memory_id": item.memory_id, "tier": item.tier}
            if point_id not in self._states:
                more = {"source": item.source.type, "conversation_id": item.source.conversation_id}
                await self._world.stream.tell(item.user_id, StreamKind.STORED, data | more)
            synced = state is SyncState.SYNCED and item.status is Status.ACTIVE
            if synced and self._states.get(point_id) is not SyncState.SYNCED:
                await self._world.stream.tell(item.user_id, StreamKind.INDEXED, data)
            self._states[point_id] = state

    async def _tell_versions(self) -> None:
        for key, kept in list(self._world.items.inner._versions.items()):
            for version in kept[self._versions.get(key, 0) :]:
                kind = BY_CHANGE.get(version.change_type)
                if kind is not None:
                    data = {"memory_id": version.memory_id}
                    await self._world.stream.tell(version.user_id, kind, data)
            self._versions[key] = len(kept)

    async def _tell_outcomes(self) -> None:
        for key, row in list(self._world.outcomes.inner._events.items()):
            if key in self._outcomes:
                continue
            self._outcomes.add(key)
            event = row.event
            data = {
                "outcome": event.outcome,
                "memory_ids": [one.memory_id for one in event.applied],
                "receipt_id": event.receipt_id,
                "conversation_id": event.conversation_id,
            }
            await self._world.stream.tell(event.user_id, StreamKind.OUTCOME, data)
