"""A working `LifecycleStore` in process memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rayapp.bulk.ports import Lease
from rayapp.core.errors import Conflict, DuplicateMemory, NotFound, VersionConflict
from rayapp.learning.ports import Walk
from rayapp.learning.records import Move
from rayapp.learning.rules.promotion import (
    PromotionParams,
    after_move,
    decide,
    not_found,
    winner_of,
)
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.ports import Event
from rayapp.memory.tiers import Tier
from tests.support.stores import InMemoryMemoryStore, text_key
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.rows import Row, stored_form
from tests.support.stores.stores import InMemoryEventStore, InMemoryLeaseStore

EVERY_POLICY = (PromotionParams(policy="score"), PromotionParams(policy="wilson"))


def could_move(item: MemoryItem, now: datetime) -> bool:
    """Whether a rule moves the item under one of the policies: what a cycle must look at."""
    return any(decide(item, now, params).action != "keep" for params in EVERY_POLICY)


@dataclass(eq=False)
class InMemoryLifecycleStore:
    """`graphs` holds what the graphs remember of the items; None where they are not looked at."""

    _items: InMemoryMemoryStore
    _events: InMemoryEventStore
    _leases: InMemoryLeaseStore
    _graphs: InMemoryGraphStore | None = None

    async def candidates(
        self, walk: Walk, after: MemoryItem | None, limit: int
    ) -> list[MemoryItem]:
        """Exactly what `could_move` says."""
        found = [
            row.item
            for row in self._items.rows_of(walk.user_id)
            if (after is None or _place(row.item) > _place(after))
            and walk.judged == (row.item.stats.uses > 0)
            and could_move(row.item, walk.now)
        ]
        found.sort(key=_place)
        return found[: max(0, limit)]

    async def by_ids(self, user_id: str, memory_ids: Sequence[str]) -> list[MemoryItem]:
        living, wanted = self._items.living(user_id), set(memory_ids)
        return [one for one in living if one.memory_id in wanted and one.status is Status.ACTIVE]

    async def same_text(self, item: MemoryItem, tier: Tier) -> MemoryItem | None:
        return self._equal(replace(item, tier=tier), {})

    async def transition(
        self, moves: Sequence[Move], events: Sequence[Event], *, lease: Lease | None = None
    ) -> list[MemoryItem]:
        if lease is not None:
            self._check(lease)
        try:
            changed = self._changed(moves)
        except (VersionConflict, NotFound, DuplicateMemory):
            if events and self._happened(moves, events):
                return [self._row(move).item for move in moves]
            raise
        for event in events:
            await self._events.add(event)
        for move, item in changed:
            self._row(move).revise(item)
            self._items.keep_version(move.row)
            self._repoint(item, [item for _, item in changed])
        return [item for _, item in changed]

    async def activity(self, since: datetime) -> list[tuple[str, int, int]]:
        """Counts every exchange, those that were archived or deleted meanwhile too."""
        conversations: dict[str, list[str | None]] = {}
        for row in self._items._rows.values():
            item = row.item
            if item.tier is Tier.WORKING and item.stored_at >= since:
                conversations.setdefault(item.user_id, []).append(item.source.conversation_id)
        counted = [
            (user_id, len(found), len(set(found) - {None}))
            for user_id, found in conversations.items()
        ]
        return sorted(counted, key=lambda row: (-row[1], row[0]))

    # --- inside

    def _check(self, lease: Lease) -> None:
        held = self._leases._leases.get(lease.name)
        if held is None or (held.holder, held.fence) != (lease.holder, lease.fence):
            raise Conflict(
                "Another owner took over: nothing was moved, it goes on with the work.",
                code="lease_lost",
                details={"lease": lease.name},
            )

    def _happened(self, moves: Sequence[Move], events: Sequence[Event]) -> bool:
        """The events alone prove nothing: the items themselves must have left the version read."""
        recorded = all(event.event_id in self._events._events for event in events)
        return recorded and all(
            self._row(move).item.version > move.expected_version for move in moves
        )

    def _changed(self, moves: Sequence[Move]) -> list[tuple[Move, MemoryItem]]:
        """The items after `moves`, in order; raises before anything is written."""
        new: dict[str, MemoryItem] = {}
        for move in moves:
            item = stored_form(after_move(self._row(move).item, move))
            other = self._equal(item, new)
            if item.status is Status.ACTIVE and other is not None:
                raise DuplicateMemory(
                    f"An active memory with this text exists: use {other.memory_id}.",
                    details={"memory_id": other.memory_id},
                )
            new[item.point_id] = item
        return [(move, new[move.item.point_id]) for move in moves]

    def _row(self, move: Move) -> Row:
        row = self._items._rows.get(move.item.point_id)
        if row is None or row.item.status is Status.DELETED:
            raise not_found(move)
        return row

    def _equal(self, item: MemoryItem, new: dict[str, MemoryItem]) -> MemoryItem | None:
        """Another active item with the text of `item` in its tier, once `new` is in force."""
        for row in self._items._rows.values():
            other = new.get(row.item.point_id, row.item)
            if (
                other.point_id != item.point_id
                and other.status is Status.ACTIVE
                and text_key(other) == text_key(item)
            ):
                return other
        return None

    def _repoint(self, loser: MemoryItem, items: Sequence[MemoryItem]) -> None:
        """Chains are flattened when they are written, so that a read follows one step.

        The winner is one of `items`, the items of this transition.
        """
        if loser.merged_into is None:
            return
        for row in self._items._rows.values():
            if (row.item.user_id, row.item.merged_into) == (loser.user_id, loser.memory_id):
                row.item = replace(row.item, merged_into=loser.merged_into)
        winner = winner_of(loser, items)
        if winner is not None and self._graphs is not None:
            self._graphs._rows.hand_over(loser, winner)


def _place(item: MemoryItem) -> tuple[str, str]:
    return item.user_id, item.point_id
