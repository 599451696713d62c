"""What storing a record again does to its item, and which graph rows differ. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from rayapp.core.errors import Forbidden
from rayapp.core.ids import SYSTEM_USER
from rayapp.datagov.rules.items import record_hash_of
from rayapp.graphs.records import ContentEdge, ContentNode
from rayapp.memory.item import ChangeType, IndexOp, MemoryItem, MemoryVersion, Status
from rayapp.memory.rules.creation import archived
from rayapp.memory.rules.revision import queued, requeued, revived
from rayapp.memory.tiers import DATAGOV_TIERS

UPDATED = "the catalogue changed"
RETURNED = "the catalogue has it again"

Change = tuple[MemoryItem, MemoryVersion | None]


def check_shared(items: Iterable[MemoryItem]) -> None:
    """Raise Forbidden unless all of them belong to the shared tenant and its tiers."""
    for item in items:
        if item.user_id != SYSTEM_USER or item.tier not in DATAGOV_TIERS:
            raise Forbidden(
                f"{item.memory_id} is not an item of the shared catalogue: store it as its user."
            )


def put_change(stored: MemoryItem | None, fresh: MemoryItem) -> Change | None:
    """The item to store and the version row it leaves; None when nothing is to be done."""
    if stored is None:
        return queued(fresh), None
    if stored.status is Status.DELETED:
        return revived(stored, fresh), None
    active = stored.status is Status.ACTIVE
    if active and record_hash_of(stored) == record_hash_of(fresh):
        return None
    mentioned = stored.quality.mentioned_count
    item = replace(
        fresh,
        stats=stored.stats,
        quality=replace(fresh.quality, mentioned_count=mentioned),
        created_at=stored.created_at,
        stored_at=stored.stored_at,
        tier_entered_at=stored.tier_entered_at if active else fresh.tier_entered_at,
        version=stored.version + 1,
        index=requeued(stored.index, IndexOp.VECTOR, fresh.updated_at),
    )
    kind, reason = (ChangeType.UPDATE, UPDATED) if active else (ChangeType.RESTORE, RETURNED)
    return item, _row(stored, kind, reason, fresh.updated_at)


def retire_change(stored: MemoryItem, reason: str, at: datetime) -> Change | None:
    """The same for an item whose record is gone; None unless it is active."""
    if stored.status is not Status.ACTIVE:
        return None
    item = replace(archived(stored, reason, at), version=stored.version + 1)
    return item, _row(stored, ChangeType.ARCHIVE, reason, at)


def node_changes(
    stored: Sequence[ContentNode], wanted: Sequence[ContentNode]
) -> tuple[list[ContentNode], list[ContentNode]]:
    """Nodes to write, and nodes to remove. A known node keeps when it was first seen."""
    known = {node.node_id: node for node in stored}
    kept = {node.node_id for node in wanted}
    write = []
    for node in wanted:
        old = known.get(node.node_id)
        if old is None:
            write.append(node)
            continue
        same = replace(node, first_seen_at=old.first_seen_at, last_seen_at=old.last_seen_at)
        if same != old:
            write.append(replace(node, first_seen_at=old.first_seen_at))
    return write, [node for node in stored if node.node_id not in kept]


def edge_changes(
    stored: Sequence[ContentEdge], wanted: Sequence[ContentEdge]
) -> tuple[list[ContentEdge], list[ContentEdge]]:
    """The same for edges."""
    known = {edge_key(edge): edge for edge in stored}
    kept = {edge_key(edge) for edge in wanted}
    write = []
    for edge in wanted:
        old = known.get(edge_key(edge))
        if old is None:
            write.append(edge)
        elif old.weight != edge.weight:
            write.append(replace(edge, first_seen_at=old.first_seen_at))
    return write, [edge for edge in stored if edge_key(edge) not in kept]


def edge_key(edge: ContentEdge) -> tuple[str, str, str]:
    return edge.source, edge.target, edge.relation


def _row(stored: MemoryItem, kind: ChangeType, reason: str, at: datetime) -> MemoryVersion:
    return MemoryVersion(
        user_id=stored.user_id,
        memory_id=stored.memory_id,
        version=stored.version,
        text=stored.text,
        tags=stored.tags,
        quality=stored.quality,
        stats=stored.stats,
        change_type=kind,
        reason=reason,
        at=at,
    )
