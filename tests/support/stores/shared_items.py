"""A working `SharedItems` in process memory, on the rows of the other in-memory stores."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rayapp.core.ids import SYSTEM_USER
from rayapp.datagov.ports import PutCounts
from rayapp.datagov.rules.changes import (
    Change,
    check_shared,
    graph_changes,
    put_change,
    retire_change,
)
from rayapp.datagov.rules.items import record_hash_of
from rayapp.graphs.records import ContentEdge, ContentNode
from rayapp.memory.item import MemoryItem, Status, point_id_of
from rayapp.memory.tiers import DATAGOV_TIERS
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.rows import Row, stored_form, to_ms


class InMemorySharedItems:
    def __init__(self, items: InMemoryMemoryStore, graphs: InMemoryGraphStore) -> None:
        self._items = items
        self._graphs = graphs

    async def record_hashes(
        self, memory_ids: Sequence[str] | None = None
    ) -> dict[str, tuple[str, Status]]:
        wanted = None if memory_ids is None else set(memory_ids)
        return {
            row.item.memory_id: (record_hash_of(row.item), row.item.status)
            for row in self._items._rows.values()
            if row.item.user_id == SYSTEM_USER
            and row.item.tier in DATAGOV_TIERS
            and (wanted is None or row.item.memory_id in wanted)
        }

    async def put(self, items: Sequence[MemoryItem]) -> PutCounts:
        check_shared(items)
        inserted = updated = 0
        for item in {item.memory_id: item for item in items}.values():
            row = self._row(item.memory_id)
            changed = put_change(row.item if row else None, stored_form(item))
            if changed is not None:
                self._keep(row, changed)
                inserted += changed[1] is None
                updated += changed[1] is not None
        return PutCounts(inserted=inserted, updated=updated)

    async def retire(self, memory_ids: Sequence[str], reason: str, at: datetime) -> int:
        retired = 0
        for memory_id in dict.fromkeys(memory_ids):
            row = self._row(memory_id)
            changed = None if row is None else retire_change(row.item, reason, at)
            if changed is not None:
                self._keep(row, changed)
                retired += 1
        return retired

    async def put_graph(self, nodes: Sequence[ContentNode], edges: Sequence[ContentEdge]) -> int:
        rows = self._graphs._rows
        known = [node for key, node in rows.nodes.items() if key[0] == SYSTEM_USER]
        changed, gone = graph_changes(known, nodes)
        for node in gone:
            del rows.nodes[SYSTEM_USER, node.node_id]
        for node in changed:
            rows.nodes[SYSTEM_USER, node.node_id] = _in_ms(node)
        linked = [edge for key, edge in rows.edges.items() if key[0] == SYSTEM_USER]
        drawn, cut = graph_changes(linked, edges)
        for edge in cut:
            rows.edges = {key: kept for key, kept in rows.edges.items() if kept is not edge}
        for edge in drawn:
            rows.edges[SYSTEM_USER, edge.source, edge.target] = replace(
                edge, first_seen_at=to_ms(edge.first_seen_at), last_seen_at=to_ms(edge.last_seen_at)
            )
        return len(changed) + len(gone) + len(drawn) + len(cut)

    def _row(self, memory_id: str) -> Row | None:
        return self._items._rows.get(point_id_of(SYSTEM_USER, memory_id))

    def _keep(self, row: Row | None, changed: Change) -> None:
        item, version = stored_form(changed[0]), changed[1]
        if row is None:
            self._items._rows[item.point_id] = Row(item, item.stored_at)
        else:
            row.revise(item)
        if version is not None:
            self._items.keep_version(version)


def _in_ms(node: ContentNode) -> ContentNode:
    return replace(
        node, first_seen_at=to_ms(node.first_seen_at), last_seen_at=to_ms(node.last_seen_at)
    )
