"""What a stored item becomes when an edit meets it. Pure; every store applies the same rule."""

from dataclasses import fields, replace
from datetime import datetime
from typing import Any, TypeVar

from rayapp.memory.item import (
    REWRITTEN,
    ChangeType,
    IndexOp,
    IndexState,
    MemoryItem,
    MemoryVersion,
    Quality,
    Stats,
    Status,
    SyncState,
)

Counters = TypeVar("Counters", Quality, Stats)


def queued(item: MemoryItem) -> MemoryItem:
    """A new item as it enters the index queue: due from the moment it was stored."""
    if item.index.sync_state is not SyncState.PENDING or item.index.next_attempt_at is not None:
        return item
    return replace(item, index=replace(item.index, next_attempt_at=item.stored_at))


def combined_op(state: IndexState, op: IndexOp) -> IndexOp:
    """What the index still needs when `op` is asked of an item in `state`.

    A payload change cannot replace a vector write, or follow a delete, that has not happened yet.
    """
    if op is not IndexOp.PAYLOAD or state.op is IndexOp.PAYLOAD:
        return op
    written = state.op is IndexOp.VECTOR and state.sync_state is SyncState.SYNCED
    return op if written else IndexOp.VECTOR


def requeued(state: IndexState, op: IndexOp, at: datetime) -> IndexState:
    """`state` asked to be indexed again from `at`: next rev, no claim, no back-off. What was put
    away has no vectors any more."""
    return replace(
        state,
        vector_hash=None if state.op is IndexOp.DELETE else state.vector_hash,
        op=combined_op(state, op),
        rev=state.rev + 1,
        sync_state=SyncState.PENDING,
        attempts=0,
        next_attempt_at=at,
        claim=None,
        last_error=None,
    )


def touch(item: MemoryItem, op: IndexOp, now: datetime, **changes: Any) -> MemoryItem:
    """`item` with `changes` made now, which the index follows by `op`."""
    index = requeued(item.index, op, now)
    return replace(item, updated_at=now, index=index, **changes)


def said_elsewhere(item: MemoryItem, now: datetime) -> MemoryItem:
    """The item as one of the first other conversation that said it, its own being deleted."""
    first, *rest = item.source.also
    source = replace(item.source, conversation_id=first or None, message_id=None, also=tuple(rest))
    index = item.index
    if item.status is Status.ACTIVE:
        index = requeued(index, IndexOp.PAYLOAD, now)
    return replace(item, source=source, index=index)


def revised(stored: MemoryItem, wanted: MemoryItem, read: MemoryVersion) -> MemoryItem:
    """`stored` with the changes of `wanted`, made by an editor who had seen `read`.

    Counters and a lifetime that the editor did not change, and where else it was said, keep what
    outcomes and mentions wrote meanwhile, and the index state is the store's own: only a pending
    `wanted.index` asks for another write. The prefix is the indexer's, who may have written it
    meanwhile; it was said of the text, and goes with it.
    """
    index = stored.index
    if wanted.index.sync_state is SyncState.PENDING:
        index = requeued(index, wanted.index.op, wanted.updated_at)
        index = replace(index, rev=max(index.rev, wanted.index.rev))
    if wanted.text != stored.text and index.vector_hash is not None:
        index = replace(index, vector_hash=REWRITTEN)
    return replace(
        wanted,
        memory_id=stored.memory_id,
        point_id=stored.point_id,
        user_id=stored.user_id,
        stored_at=stored.stored_at,
        version=stored.version + 1,
        stats=_changed(stored.stats, wanted.stats, read.stats),
        quality=_changed(stored.quality, wanted.quality, read.quality),
        expires_at=_lifetime(stored, wanted, read),
        source=replace(wanted.source, also=stored.source.also),
        index=index,
        context_prefix=stored.context_prefix if wanted.text == stored.text else "",
    )


def revived(tombstone: MemoryItem, item: MemoryItem) -> MemoryItem:
    """`item` in the place of a deleted one with its id; rev and version keep growing."""
    fresh = queued(item)
    return replace(
        fresh,
        version=tombstone.version + 1,
        index=replace(fresh.index, rev=tombstone.index.rev + 1),
    )


def _lifetime(stored: MemoryItem, wanted: MemoryItem, read: MemoryVersion) -> datetime | None:
    """Outcomes move it together with the counters. An editor beside whom they did gives another one
    only to what enters a tier anew, or is an instruction from now on, or no more."""
    given = wanted.tier_entered_at != stored.tier_entered_at
    given = given or bool(wanted.instruction) != bool(stored.instruction)
    return wanted.expires_at if given or stored.stats == read.stats else stored.expires_at


def _changed(stored: Counters, wanted: Counters, read: Counters) -> Counters:
    changes = {
        f.name: getattr(wanted, f.name)
        for f in fields(stored)
        if getattr(wanted, f.name) != getattr(read, f.name)
    }
    return replace(stored, **changes)


def replaced_state(
    item: MemoryItem, change: ChangeType, reason: str | None, now: datetime
) -> MemoryVersion:
    """The version row of the state of `item` that a change replaces."""
    same = fields(MemoryVersion)[:-3]
    state = {one.name: getattr(item, one.name) for one in same}
    return MemoryVersion(**state, change_type=change, reason=reason, at=now)
