"""A working `MemoryStore` in process memory, for tests and demos. One event loop only.

It passes the same contract suite as the MongoDB store, with times cut to milliseconds like there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rayapp.core.errors import DuplicateMemory, NotFound, VersionConflict
from rayapp.core.runtime import Clock
from rayapp.memory.item import MOST_ALSO, MemoryItem, MemoryVersion, Status, SyncState
from rayapp.memory.ports import InsertResult, Page, TierCount
from rayapp.memory.requests import ItemQuery, decode_cursor, encode_cursor, sort_values
from rayapp.memory.rules.creation import deleted
from rayapp.memory.rules.filtering import (
    MANUAL_SOURCE,
    bare_words,
    checked_user,
    is_coming,
    is_followed,
    is_understood,
    matches,
    readable,
)
from rayapp.memory.rules.hiding import hidden_reason
from rayapp.memory.rules.revision import queued, revised, revived
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.stores.queue import InMemoryQueue
from tests.support.stores.rows import Row, stored_form, to_ms, version_form

TEXT_WEIGHT, SUMMARY_WEIGHT, TAG_WEIGHT = 10, 5, 3  # the weights of the text index
NEVER = datetime(1, 1, 1, tzinfo=UTC)


def may_read(scope: ReadScope, item: MemoryItem) -> bool:
    """Whether `item` is inside `scope`."""
    return any(
        item.user_id == owner.user_id and (owner.tiers is None or item.tier in owner.tiers)
        for owner in readable(scope)
    )


class InMemoryMemoryStore(InMemoryQueue):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._versions: dict[tuple[str, str], list[MemoryVersion]] = {}
        self._deletions: Counter[tuple[str, Tier]] = Counter()

    async def ensure_schema(self) -> None:
        """Nothing to create."""

    async def ping(self) -> float:
        return 0.0

    # --- writes

    async def insert(self, item: MemoryItem) -> InsertResult:
        item = stored_form(queued(item))
        by_id = self._rows.get(item.point_id)
        if by_id is not None and by_id.item.status is not Status.DELETED:
            return InsertResult(inserted=False, existing=by_id.item, clash="id")
        same = self._same_text(item)
        if same is not None and item.status is Status.ACTIVE:
            return InsertResult(inserted=False, existing=same, clash="text")
        if by_id is not None:
            item = revived(by_id.item, item)
        pending = item.index.sync_state is SyncState.PENDING
        contributed = by_id.contributed if by_id is not None else None
        followed = contributed is not None or is_followed(item)
        self._rows[item.point_id] = Row(
            item,
            item.stored_at if pending else None,
            follow_up_at=item.stored_at if followed else None,
            contributed=contributed,
            understand_at=item.stored_at if is_understood(item) else None,
        )
        return InsertResult(inserted=True)

    async def insert_many(self, items: Sequence[MemoryItem]) -> list[InsertResult]:
        return [await self.insert(item) for item in items]

    async def mention(
        self, scope: WriteScope, memory_id: str, at: datetime, also: str | None = None
    ) -> None:
        row = self._own_row(scope, memory_id)
        quality = replace(row.item.quality, mentioned_count=row.item.quality.mentioned_count + 1)
        updated_at = max(row.item.updated_at, to_ms(at))
        source = row.item.source
        if also is not None:
            names = dict.fromkeys((*source.also, also))
            source = replace(source, also=tuple(names)[:MOST_ALSO])
        row.item = replace(row.item, quality=quality, updated_at=updated_at, source=source)

    async def replace(
        self, item: MemoryItem, *, expected_version: int, row: MemoryVersion
    ) -> MemoryItem:
        place = self._own_row(WriteScope(item.user_id), item.memory_id)
        stored = place.item
        if stored.version != expected_version:
            raise VersionConflict(
                f"{item.memory_id} changed meanwhile: read it again and repeat the edit.",
                details={"memory_id": item.memory_id, "version": stored.version},
            )
        new = stored_form(revised(stored, item, row))
        other = self._same_text(new)
        if new.status is Status.ACTIVE and other is not None and other.point_id != new.point_id:
            raise DuplicateMemory(
                f"An active memory with this text exists: use {other.memory_id}.",
                details={"memory_id": other.memory_id},
            )
        place.revise(new)
        if new.status is Status.DELETED:
            self._forget_versions(new)
            self.delete_merged(new)
        else:
            self.keep_version(row)
        return new

    def delete_merged(self, winner: MemoryItem) -> None:
        """The items that became part of a deleted one hold its facts: they go with it."""
        for item in self.living(winner.user_id):
            if item.merged_into == winner.memory_id:
                self.delete(item, winner.updated_at)

    def delete(self, item: MemoryItem, at: datetime) -> MemoryItem:
        """Leaves a tombstone."""
        gone = stored_form(replace(deleted(item, at), version=item.version + 1))
        self._rows[item.point_id].revise(gone)
        self._forget_versions(gone)
        return gone

    def _forget_versions(self, gone: MemoryItem) -> None:
        self._versions.pop((gone.user_id, gone.memory_id), None)
        self._deletions[gone.user_id, gone.tier] += 1

    def keep_version(self, row: MemoryVersion) -> None:
        rows = self._versions.setdefault((row.user_id, row.memory_id), [])
        rows.insert(0, version_form(row))

    # --- reads

    async def get(self, scope: ReadScope, memory_id: str) -> MemoryItem | None:
        item = self._by_id(scope, memory_id)
        if item is None or item.merged_into is None:
            return item
        return self._by_id(scope, item.merged_into)

    async def by_points(self, scope: ReadScope, point_ids: Sequence[str]) -> list[MemoryItem]:
        wanted = set(point_ids)
        return [item for item in self._living(scope) if item.point_id in wanted]

    async def searchable(self, scope: ReadScope, limit: int) -> list[MemoryItem] | None:
        own = ReadScope(scope.user_id, include_shared=False)
        found = [item for item in self._living(own) if item.status is Status.ACTIVE]
        return found if len(found) <= limit else None

    async def find_duplicate(
        self, scope: WriteScope, tier: Tier, dedup_scope: str, content_hash: str
    ) -> MemoryItem | None:
        user_id = checked_user(scope.user_id)
        return self._active_text((user_id, tier, dedup_scope, content_hash))

    async def page(self, scope: ReadScope, where: ItemFilter, query: ItemQuery) -> Page:
        last: tuple[Any, ...] | None = None
        if query.cursor is not None:
            last = decode_cursor(query.cursor, query.sort)
        if query.limit < 1:
            return Page([], None)
        words = None if query.text_query is None else bare_words(query.text_query)
        found = [
            item
            for item in self._select(scope, where)
            if (last is None or sort_values(item, query.sort) < last)
            and (words is None or _text_score(item, words) > 0)
        ]
        found.sort(key=lambda item: sort_values(item, query.sort), reverse=True)
        end = query.offset + query.limit
        items = found[query.offset : end]
        return Page(items, encode_cursor(items[-1], query.sort) if len(found) > end else None)

    async def count(
        self, scope: ReadScope, where: ItemFilter, *, text_query: str | None = None
    ) -> int:
        found = self._select(scope, where)
        if text_query is None:
            return len(found)
        words = bare_words(text_query)
        return sum(_text_score(item, words) > 0 for item in found)

    async def pending(
        self, scope: ReadScope, where: ItemFilter, limit: int, *, with_failed: bool = False
    ) -> list[MemoryItem]:
        states = {SyncState.PENDING, SyncState.FAILED} if with_failed else {SyncState.PENDING}
        found = [item for item in self._select(scope, where) if not is_coming(item)]
        waiting = [item for item in found if item.index.sync_state in states]
        waiting.sort(key=lambda item: item.stored_at, reverse=True)
        return waiting[: max(0, limit)]

    async def text_search(
        self, scope: ReadScope, where: ItemFilter, query: str, limit: int
    ) -> list[tuple[MemoryItem, float]]:
        words = bare_words(query)
        hits = [(item, _text_score(item, words)) for item in self._select(scope, where)]
        hits = [hit for hit in hits if hit[1] > 0]
        hits.sort(key=lambda hit: hit[1], reverse=True)
        return hits[: max(0, limit)]

    async def versions(self, scope: ReadScope, memory_id: str, limit: int) -> list[MemoryVersion]:
        rows = self._versions.get((checked_user(scope.user_id), memory_id), [])
        return rows[: max(0, limit)]

    async def lowest_quality(self, scope: WriteScope, tier: Tier, limit: int) -> list[MemoryItem]:
        mine = self.living(scope.user_id)
        items = [item for item in mine if item.tier is tier and item.status is Status.ACTIVE]
        items.sort(
            key=lambda item: (
                item.superseded_by is None,
                item.quality.quality_score,
                item.stats.wilson_score,
                item.stats.last_outcome_at or NEVER,
                item.point_id,
            )
        )
        return items[: max(0, limit)]

    # --- counts

    async def tier_counts(
        self, scope: ReadScope | None, tier: Tier | None = None
    ) -> list[TierCount]:
        everyone = (row.item for row in self._rows.values())
        rows = list(everyone) if scope is None else _unattached(self._readable(scope))
        living = [item for item in rows if item.status is not Status.DELETED]
        by_tier = {one: [item for item in living if item.tier is one] for one in Tier}
        gone = {one: self._deleted(scope, one) for one in Tier}
        return [
            _tier_count(one, items, gone[one])
            for one, items in by_tier.items()
            if (items or gone[one]) and tier in (None, one)
        ]

    def _deleted(self, scope: ReadScope | None, tier: Tier) -> int:
        return sum(
            count
            for (user, one), count in self._deletions.items()
            if one is tier and (scope is None or user == scope.user_id)
        )

    async def tags(self, scope: ReadScope, tier: Tier) -> list[str]:
        every = (Status.ACTIVE, Status.ARCHIVED)
        items = self._select(
            scope, ItemFilter(tiers=(tier,), statuses=every, include_superseded=True)
        )
        return sorted({tag for item in items for tag in item.tags})

    async def growth(self, scope: ReadScope, since: datetime) -> list[tuple[str, str, int]]:
        found = _unattached(self._living(scope))
        items = [item for item in found if item.user_id == scope.user_id]
        days = Counter(
            (i.stored_at.astimezone(UTC).strftime("%Y-%m-%d"), i.source.tool_name or MANUAL_SOURCE)
            for i in items
            if i.stored_at >= since
        )
        base = sum(1 for item in items if item.stored_at < since)
        return [("", "", base), *((day, label, n) for (day, label), n in sorted(days.items()))]

    # --- inside

    def _select(self, scope: ReadScope, where: ItemFilter) -> list[MemoryItem]:
        return [item for item in self._readable(scope) if matches(item, where)]

    def _readable(self, scope: ReadScope) -> list[MemoryItem]:
        checked_user(scope.user_id)
        return [row.item for row in self._rows.values() if may_read(scope, row.item)]

    def _living(self, scope: ReadScope) -> list[MemoryItem]:
        return [item for item in self._readable(scope) if item.status is not Status.DELETED]

    def _own_row(self, scope: WriteScope, memory_id: str) -> Row:
        for item in self.living(scope.user_id):
            if item.memory_id == memory_id:
                return self._rows[item.point_id]
        raise NotFound(
            "There is no such memory; it may have been deleted.", details={"memory_id": memory_id}
        )

    def _by_id(self, scope: ReadScope, memory_id: str) -> MemoryItem | None:
        found = [item for item in self._living(scope) if item.memory_id == memory_id]
        found.sort(key=lambda item: item.user_id != scope.user_id)
        return found[0] if found else None

    def _same_text(self, item: MemoryItem) -> MemoryItem | None:
        return self._active_text(text_key(item))

    def _active_text(self, key: tuple[str, Tier, str, str]) -> MemoryItem | None:
        for row in self._rows.values():
            if text_key(row.item) == key and row.item.status is Status.ACTIVE:
                return row.item
        return None


def text_key(item: MemoryItem) -> tuple[str, Tier, str, str]:
    """What tells active texts apart."""
    return item.user_id, item.tier, item.dedup_scope, item.content_hash


def _text_score(item: MemoryItem, words: list[str]) -> float:
    parts = ((item.text, TEXT_WEIGHT), (item.summary or "", SUMMARY_WEIGHT))
    tagged = tuple((tag, TAG_WEIGHT) for tag in item.tags)
    return float(
        sum(weight for text, weight in parts + tagged for word in bare_words(text) if word in words)
    )


def _unattached(items: Iterable[MemoryItem]) -> list[MemoryItem]:
    return [item for item in items if item.attached_to is None]


def _tier_count(tier: Tier, items: list[MemoryItem], deleted_ever: int) -> TierCount:
    def total(read: Callable[[MemoryItem], int]) -> int:
        return sum(read(item) for item in items)

    states = Counter(item.status for item in items)
    hidden = total(lambda item: hidden_reason(item) is not None)
    return TierCount(
        tier=tier,
        active=states[Status.ACTIVE],
        archived=states[Status.ARCHIVED] - hidden,
        hidden=hidden,
        deleted=deleted_ever,
        uses_total=total(lambda item: item.stats.uses),
        worked=total(lambda item: item.stats.worked_count),
        failed=total(lambda item: item.stats.failed_count),
        waiting=total(lambda item: item.index.sync_state is not SyncState.SYNCED),
        indexed=total(
            lambda item: item.status is Status.ACTIVE and item.index.sync_state is SyncState.SYNCED
        ),
    )
