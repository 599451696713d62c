"""Store, read and change memories. Storing never waits for an embedding."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from functools import partial

from rayapp.core import errors
from rayapp.core.runtime import Clock, Metrics
from rayapp.memory.bank_capacity import BankQuota
from rayapp.memory.item import ChangeType, IndexOp, MemoryItem, MemoryVersion, Status
from rayapp.memory.ports import InsertResult, MemoryStore
from rayapp.memory.requests import ItemList, ItemQuery, MemoryEdit, NewMemory, StoreResult
from rayapp.memory.rules import creation
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.rules.filtering import is_expired
from rayapp.memory.rules.lifecycle import (
    ANOTHER_PERIOD,
    as_period,
    brought_back,
    earlier_period,
    has_ended,
    left_for,
)
from rayapp.memory.rules.revision import replaced_state, touch
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.supersession import BatchPredecessors, Supersession
from rayapp.memory.tiers import TIER_POLICY, Tier

# An edit without an expected version is repeated on the new state when another one came between.
EDIT_ATTEMPTS = 12
# Longest first pause between two tries, seconds; a transaction takes about 3 ms.
EDIT_PAUSE_S = 0.01


@dataclass(eq=False)
class MemoriesService:
    """Store and edit. Raises InvalidInput, TooLarge, NotFound, Conflict, StoreDown.

    Args:
        new_id: makes a memory id (UUIDv7) when the caller brings none.
        capacity: active memory_bank items per user.
    """

    items: MemoryStore
    _: KW_ONLY
    clock: Clock
    metrics: Metrics
    limits: TextLimits
    capacity: int
    new_id: Callable[[], str]

    def __post_init__(self) -> None:
        self._supersession = Supersession(self.items, self.clock, self._change)
        self._room = BankQuota(self.items, self.capacity, partial(self.archive, reason="capacity"))

    async def store(self, scope: WriteScope, new: NewMemory) -> StoreResult:
        """`stored` or `duplicate`; same id with another text raises DuplicateMemory."""
        item = await self._supersession.stamped(scope, self._item(scope, new))
        if item.tier is not Tier.MEMORY_BANK:
            return await self._stored(scope, item)
        async with self._room.turn(scope.user_id):
            for full in (await self._room.refused(scope, (item,))).values():
                raise full
            result = await self._stored(scope, item)
            if result.status != "stored":
                return result
            archived, lost = await self._room.settle(scope, (item,))
            for full in lost.values():
                raise full
        return replace(result, archived=archived)

    async def _stored(self, scope: WriteScope, item: MemoryItem) -> StoreResult:
        result = await self._result(scope, item, await self.items.insert(item))
        if result.status == "rejected":
            raise _error_of(result)
        await self._supersession.close(scope, item, result.memory_id)
        self.metrics.count("stored", status=result.status)
        return result

    async def store_batch(
        self, scope: WriteScope, new: Sequence[NewMemory | StoreResult]
    ) -> list[StoreResult]:
        """Order kept; an entry that is a StoreResult already (rejected) passes through."""
        results: list[StoreResult | None] = []
        items: list[tuple[int, MemoryItem]] = []
        before = BatchPredecessors()
        first = creation.sequence_at(self.clock.now())
        for position, one in enumerate(new):
            made = await self._item_or_rejection(scope, one, before)
            if isinstance(made, StoreResult):
                results.append(made)
            else:
                results.append(None)
                made = replace(made, sequence=first + position)
                items.append((position, made))
                before.add(made)
        facts = [item for _, item in items if item.tier is Tier.MEMORY_BANK]
        if facts:
            async with self._room.turn(scope.user_id):
                full = await self._room.refused(scope, facts)
                for position, item in items:
                    if item.tier is Tier.MEMORY_BANK and item.memory_id in full:
                        results[position] = StoreResult.refused(
                            item.memory_id, full[item.memory_id]
                        )
                items = [(at, item) for at, item in items if results[at] is None]
                await self._insert_batch(scope, items, results, before)
                await self._settle_batch(scope, items, results)
        else:
            await self._insert_batch(scope, items, results, before)
        done = [result for result in results if result is not None]
        for result in done:
            self.metrics.count("stored", status=result.status)
        return done

    def made(self, scope: WriteScope, new: Sequence[NewMemory]) -> list[MemoryItem]:
        """The items that a batch would store, in order, for a store that takes them as a whole.

        Raises InvalidInput, TooLarge: one of them breaks a rule.
        """
        first = creation.sequence_at(self.clock.now())
        return [
            replace(self._item(scope, one), sequence=first + position)
            for position, one in enumerate(new)
        ]

    async def _insert_batch(
        self,
        scope: WriteScope,
        items: Sequence[tuple[int, MemoryItem]],
        results: list[StoreResult | None],
        before: BatchPredecessors,
    ) -> None:
        """Store `items`; what became of each goes to its place in `results`."""
        inserted = await self.items.insert_many([item for _, item in items])
        for (position, item), outcome in zip(items, inserted, strict=True):
            results[position] = await self._closed(
                scope, item, await self._result(scope, item, outcome), before
            )

    async def _settle_batch(
        self,
        scope: WriteScope,
        items: Sequence[tuple[int, MemoryItem]],
        results: list[StoreResult | None],
    ) -> None:
        """One check for the whole batch; each of its facts says who left for it."""
        stored = {
            item.memory_id: at
            for at, item in items
            if item.tier is Tier.MEMORY_BANK and (one := results[at]) and one.status == "stored"
        }
        if not stored:
            return
        facts = [item for _, item in items if item.memory_id in stored]
        archived, full = await self._room.settle(scope, facts)
        for item in facts:
            if item.memory_id in full:
                refusal = StoreResult.refused(item.memory_id, full[item.memory_id])
                results[stored[item.memory_id]] = refusal
        kept = [item for item in facts if item.memory_id not in full]
        for name, gone in left_for(kept, archived).items():
            results[stored[name]] = StoreResult(memory_id=name, status="stored", archived=gone)

    async def get(self, scope: ReadScope, memory_id: str) -> MemoryItem:
        item = await self.items.get(scope, memory_id)
        if item is None:
            raise errors.NotFound(
                "There is no such memory; it may have been deleted.",
                details={"memory_id": memory_id},
            )
        return item

    async def page(self, scope: ReadScope, where: ItemFilter, query: ItemQuery) -> ItemList:
        page = await self.items.page(scope, where, query)
        total = None
        if query.with_total:
            total = await self.items.count(scope, where, text_query=query.text_query)
        return ItemList(items=tuple(page.items), next_cursor=page.next_cursor, total=total)

    async def edit(self, scope: WriteScope, memory_id: str, edit: MemoryEdit) -> MemoryItem:
        self._check_edit(edit)

        def change(item: MemoryItem) -> MemoryItem:
            changed = creation.apply_edit(item, edit, self.clock.now())
            creation.check_item(changed, self.limits)
            return changed

        return await self._change(
            scope, memory_id, change, ChangeType.UPDATE, edit.reason, edit.expected_version
        )

    async def archive(
        self,
        scope: WriteScope,
        memory_id: str,
        *,
        reason: str | None = None,
        expected_version: int | None = None,
    ) -> MemoryItem:
        def change(item: MemoryItem) -> MemoryItem:
            _refuse_merged(item, memory_id, "Archive")
            if item.status is Status.ARCHIVED:
                return item
            return creation.archived(item, reason, self.clock.now())

        return await self._change(
            scope, memory_id, change, ChangeType.ARCHIVE, reason, expected_version
        )

    async def restore(
        self, scope: WriteScope, memory_id: str, *, expected_version: int | None = None
    ) -> MemoryItem:
        """Raises BankFull when it needs a place that only pinned facts, goals and values hold."""
        item = await self.get(scope.own, memory_id)
        newer = await self._living_successor(scope, item)
        restore = partial(self._restore, scope, memory_id, expected_version, newer=newer)
        if item.tier is not Tier.MEMORY_BANK:
            return await restore()
        async with self._room.turn(scope.user_id):
            if item.status is not Status.ACTIVE and item.memory_id == memory_id:
                await self._room.check_return(scope, item)
            restored = await restore()
            # What a person just brought back does not leave at once for its low quality.
            await self._room.make(scope, keep=(restored.memory_id,))
            return restored

    async def _restore(
        self,
        scope: WriteScope,
        memory_id: str,
        expected_version: int | None,
        *,
        newer: str | None = None,
        until: datetime | None = None,
    ) -> MemoryItem:
        """`newer`: what took its place and is current: then it comes back as the past it was."""

        def change(item: MemoryItem) -> MemoryItem:
            _refuse_merged(item, memory_id, "Restore")
            if item.status is not Status.ACTIVE and item.superseded_by == newer is not None:
                return creation.restored(item, self.clock.now())
            return brought_back(item, self.clock.now(), until)

        return await self._change(
            scope, memory_id, change, ChangeType.RESTORE, None, expected_version
        )

    async def _living_successor(self, scope: WriteScope, item: MemoryItem) -> str | None:
        newer = item.superseded_by
        by = await self.items.get(scope.own, newer) if newer is not None else None
        return newer if by is not None and by.status is Status.ACTIVE else None

    async def delete(self, scope: WriteScope, memory_id: str) -> None:
        """The text, its old versions and what was merged into it are gone for good."""

        def change(item: MemoryItem) -> MemoryItem:
            _refuse_merged(item, memory_id, "Delete")
            return creation.deleted(item, self.clock.now())

        await self._change(scope, memory_id, change, ChangeType.ARCHIVE, "deleted", None)

    async def versions(
        self, scope: ReadScope, memory_id: str, limit: int = 50
    ) -> list[MemoryVersion]:
        item = await self.get(scope, memory_id)
        return await self.items.versions(scope, item.memory_id, limit)

    def _item(self, scope: WriteScope, new: NewMemory) -> MemoryItem:
        creation.check_user(scope.user_id)
        creation.check_new(new, self.limits)
        return creation.new_item(
            new,
            user_id=scope.user_id,
            memory_id=new.memory_id or self.new_id(),
            now=self.clock.now(),
            stored_by=scope.principal,
        )

    async def _item_or_rejection(
        self, scope: WriteScope, new: NewMemory | StoreResult, before: BatchPredecessors
    ) -> MemoryItem | StoreResult:
        """`before`: memories of the same batch that come first."""
        if isinstance(new, StoreResult):
            return new
        try:
            return await self._supersession.stamped(scope, self._item(scope, new), before)
        except (errors.InvalidInput, errors.Conflict) as error:
            return StoreResult.refused(new.memory_id, error)

    async def _closed(
        self, scope: WriteScope, item: MemoryItem, result: StoreResult, before: BatchPredecessors
    ) -> StoreResult:
        """`result`, after what `item` replaces is closed; a batch goes on when that fails."""
        if result.status == "rejected":
            return result
        before.stored(item, result.memory_id)
        try:
            await self._supersession.close(scope, before.resolved(item), result.memory_id)
        except errors.Conflict:
            return _changed_meanwhile(item)
        return result

    async def _result(
        self, scope: WriteScope, item: MemoryItem, outcome: InsertResult
    ) -> StoreResult:
        if outcome.inserted:
            return StoreResult(memory_id=item.memory_id, status="stored")
        existing = outcome.existing
        if existing is None:
            return _changed_meanwhile(item)
        if outcome.clash == "id" and existing.content_hash != item.content_hash:
            return _reject(existing, "exists with another text; edit it or use a new id")
        if outcome.clash == "id" and existing.merged_into is not None:
            # An id that was merged goes on living in its winner: a repeated import meets it here.
            winner = await self.items.get(scope.own, existing.memory_id)
            if winner is None or winner.status is not Status.ACTIVE:
                return _reject(existing, "is part of an archived one; restore that or use a new id")
            return StoreResult(memory_id=winner.memory_id, status="duplicate")
        if outcome.clash == "id" and existing.status is not Status.ACTIVE:
            return _reject(existing, f"is {existing.status.value}; restore it or use a new id")
        return await self._repeated(scope, item, existing, same_id=outcome.clash == "id")

    async def _repeated(
        self, scope: WriteScope, item: MemoryItem, existing: MemoryItem, *, same_id: bool
    ) -> StoreResult:
        """Said before, under the same id or another one: known, or a period of its own."""
        if not same_id and earlier_period(existing, item) is not None:
            return await self._second_period(scope, existing, item)
        now = self.clock.now()
        try:
            over = existing.superseded_by is not None
            over = over or (has_ended(existing, now) and not has_ended(item, now))
            if not same_id if over else is_expired(existing, now):
                # Hidden, but still the owner of this text: saying it again makes it current.
                # A repeated import, by the same id, does not bring back what was replaced.
                # Active all the time, so it needs no other place in the bank.
                await self._restore(scope, existing.memory_id, None, until=item.valid_to)
            if not same_id:
                said_in = item.source.conversation_id
                also = None if said_in == existing.source.conversation_id else said_in or ""
                await self.items.mention(scope, existing.memory_id, now, also)
                await self._said_again(scope, existing, item)
        except (errors.NotFound, errors.Conflict):
            # In a batch this must reject itself only: the others are stored.
            return _changed_meanwhile(item)
        return StoreResult(memory_id=existing.memory_id, status="duplicate")

    async def _second_period(
        self, scope: WriteScope, existing: MemoryItem, item: MemoryItem
    ) -> StoreResult:
        """`item` beside `existing`, which says the same of another time. The older gives its text
        free first: a crash in between leaves one memory, and the caller sends the other again."""

        def change(current: MemoryItem) -> MemoryItem:
            earlier = earlier_period(current, item)
            changed = current if earlier is None else as_period(current, earlier is current)
            if changed == current:
                return current
            return touch(changed, IndexOp.PAYLOAD, self.clock.now())

        try:
            await self._change(
                scope, existing.memory_id, change, ChangeType.UPDATE, ANOTHER_PERIOD, None
            )
        except (errors.NotFound, errors.Conflict):
            return _changed_meanwhile(item)
        beside = as_period(item, earlier_period(existing, item) is item)
        return await self._result(scope, beside, await self.items.insert(beside))

    async def said_in(self, scope: WriteScope, memory_id: str, conversation_id: str) -> None:
        """Another conversation said it too, and is named once. Raises NotFound."""
        source = (await self.get(scope.own, memory_id)).source
        if conversation_id not in (source.conversation_id, *source.also):
            await self.items.mention(scope, memory_id, self.clock.now(), conversation_id)

    async def _said_again(self, scope: WriteScope, existing: MemoryItem, item: MemoryItem) -> None:
        """A fact of the memory bank keeps the best of both: it is never weakened by a repetition.
        The tags join, because a fact that is said again as a goal must be found among the goals."""
        if existing.tier is not Tier.MEMORY_BANK:
            return
        edit = MemoryEdit(
            tags=tuple(dict.fromkeys((*existing.tags, *item.tags)))[: creation.MAX_TAGS],
            importance=max(existing.quality.importance, item.quality.importance),
            confidence=max(existing.quality.confidence, item.quality.confidence),
            always_inject=existing.always_inject or item.always_inject,
            reason="said again",
        )
        if creation.apply_edit(existing, edit, self.clock.now()) is not existing:
            await self.edit(scope, existing.memory_id, edit)

    def _check_edit(self, edit: MemoryEdit) -> None:
        if edit.text is not None:
            creation.check_text(edit.text, self.limits.text)
        creation.check_labels(edit.tags or (), "tag")
        creation.check_labels(edit.entities or (), "entity")

    async def _change(
        self,
        scope: WriteScope,
        memory_id: str,
        change: Callable[[MemoryItem], MemoryItem],
        kind: ChangeType,
        reason: str | None,
        expected_version: int | None,
    ) -> MemoryItem:
        creation.check_user(scope.user_id)
        for attempt in range(1, EDIT_ATTEMPTS + 1):
            item = await self.get(scope.own, memory_id)
            if TIER_POLICY[item.tier].shared:
                raise errors.NotFound(
                    "There is no such memory of yours.", details={"memory_id": memory_id}
                )
            if expected_version is not None and item.version != expected_version:
                raise errors.VersionConflict(
                    f"Memory {memory_id} is at version {item.version}, not {expected_version}; "
                    "read it again.",
                    details={"version": item.version},
                )
            new = change(item)
            if new is item:
                return item
            row = replaced_state(item, kind, reason, self.clock.now())
            try:
                return await self.items.replace(new, expected_version=item.version, row=row)
            except errors.VersionConflict:
                if expected_version is not None or attempt == EDIT_ATTEMPTS:
                    raise
                await asyncio.sleep(random.random() * EDIT_PAUSE_S * attempt)
        raise errors.VersionConflict(f"Memory {memory_id} keeps changing; try again.")


def _refuse_merged(item: MemoryItem, asked_for: str, wish: str) -> None:
    """Reads and edits of a merged id reach its winner; what would take the winner away asks first.
    Somebody who removes one of two duplicates means to keep the other."""
    if item.memory_id != asked_for:
        raise errors.Conflict(
            f"This memory became part of another one. {wish} that one if you mean it.",
            code="merged",
            details={"memory_id": item.memory_id},
        )


def _error_of(result: StoreResult) -> errors.Conflict:
    if result.code == errors.Conflict.default_code:
        return errors.Conflict(result.error or "")
    return errors.DuplicateMemory(
        result.error or "", code=result.code, details={"memory_id": result.memory_id}
    )


def _reject(existing: MemoryItem, why: str) -> StoreResult:
    error = errors.DuplicateMemory(f"Memory {existing.memory_id} {why}.")
    return StoreResult.refused(existing.memory_id, error)


def _changed_meanwhile(item: MemoryItem) -> StoreResult:
    """What stood in the way went between the insert and the read: the caller may just retry."""
    error = errors.Conflict("The memory changed while it was stored; send it again.")
    return StoreResult.refused(item.memory_id, error)
