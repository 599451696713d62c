"""What an update writes to ask for another index write of an item."""

from __future__ import annotations

from typing import Any

from rayapp.memory.item import IndexOp, SyncState

Document = dict[str, Any]

RELEASED: Document = {"index.claim": None, "index.next_attempt_at": "$$NOW"}
_ALREADY = {"$eq": ["$index.sync_state", SyncState.PENDING.value]}
_DELETED = {"$eq": ["$index.op", IndexOp.DELETE.value]}


def queue_again() -> Document:
    """The `$set` stage of an item that becomes due with the op it has: next rev, no claim, no
    back-off. An item that waits already goes on waiting since the same moment."""
    return {
        "index.rev": {"$add": ["$index.rev", 1]},
        "index.sync_state": SyncState.PENDING.value,
        "index.pending_since": {"$cond": [_ALREADY, "$index.pending_since", "$$NOW"]},
        "index.attempts": 0,
        "index.last_error": None,
        **RELEASED,
    }


def queue_synced(op: IndexOp) -> Document:
    """`queue_again` of a synced item, for `op`; the point of a deleted one must be made anew."""
    if op is not IndexOp.PAYLOAD:
        return {**queue_again(), "index.op": op.value}
    whole, some = IndexOp.VECTOR.value, IndexOp.PAYLOAD.value
    return {**queue_again(), "index.op": {"$cond": [_DELETED, whole, some]}}
