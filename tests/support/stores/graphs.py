"""A working `GraphStore` in process memory. It passes the contract suite of the MongoDB store."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rayapp.core.errors import InvalidInput
from rayapp.core.runtime import Clock
from rayapp.core.settings.model import GraphSettings
from rayapp.graphs import records
from rayapp.graphs.rules import content
from rayapp.learning.records import OutcomeEvent
from rayapp.learning.rules.promotion import buried
from rayapp.memory.item import IndexOp, MemoryItem, Status, SyncState, point_id_of
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.stores import NEVER, InMemoryMemoryStore
from tests.support.stores.graph_rows import GraphRows
from tests.support.stores.outcomes import InMemoryOutcomeStore
from tests.support.stores.rows import Row, to_ms


class InMemoryGraphStore:
    """It writes to the rows of `items`, where follow-ups and contributions are kept."""

    def __init__(
        self,
        items: InMemoryMemoryStore,
        outcomes: InMemoryOutcomeStore,
        clock: Clock,
        settings: GraphSettings,
    ) -> None:
        self._store, self._items = items, items._rows
        self._outcomes = outcomes
        self._clock = clock
        self._caps = settings
        self._rows = GraphRows()
        self._refused: dict[str, content.Refused] = {}
        self._followed: dict[str, datetime] = {}

    # --- reads

    async def priors(
        self, scope: ReadScope, question: records.GraphQuestion
    ) -> records.GraphPriors:
        user_id = checked_user(scope.user_id)
        wanted = dict.fromkeys(question.concepts)
        routing = [self._rows.routing.get((user_id, key)) for key in wanted]
        return records.GraphPriors(
            routing=tuple(row for row in routing if row is not None),
            nodes=tuple(await self.nodes(scope, list(wanted))),
            actions=tuple(
                replace(row, examples=())
                for row in await self.actions(
                    scope, context_type=question.context_type, limit=content.PRIOR_ACTIONS
                )
            ),
            solutions=tuple(self._solutions(user_id, question.problem)[: content.PRIOR_SOLUTIONS]),
            documents=tuple(self._documents(user_id)[: content.JUDGED_BOOKS]),
        )

    async def top_routing(self, scope: ReadScope, limit: int) -> list[records.RoutingRow]:
        user_id = checked_user(scope.user_id)
        found = [row for key, row in self._rows.routing.items() if key[0] == user_id]
        found.sort(key=lambda row: row.last_seen_at, reverse=True)
        return found[: max(0, limit)]

    async def is_empty(self, scope: ReadScope) -> bool:
        actions = await self.actions(scope, context_type=None, limit=1)
        return not (actions or self._nodes_of(scope.user_id))

    async def top_nodes(self, scope: ReadScope, limit: int) -> list[records.ContentNode]:
        found = self._nodes_of(checked_user(scope.user_id))
        found.sort(key=lambda node: (-node.avg_quality, -node.mentions, node.node_id))
        return found[: max(0, limit)]

    async def nodes(self, scope: ReadScope, node_ids: Sequence[str]) -> list[records.ContentNode]:
        user_id, wanted = checked_user(scope.user_id), set(node_ids)
        return [node for node in self._nodes_of(user_id) if node.node_id in wanted]

    async def edges_of(
        self, scope: ReadScope, node_ids: Sequence[str], limit: int
    ) -> list[records.ContentEdge]:
        user_id, ends = checked_user(scope.user_id), set(node_ids)
        found = [
            edge for edge in self._edges_of(user_id) if edge.source in ends or edge.target in ends
        ]
        found.sort(key=lambda edge: (-edge.weight, edge.source, edge.target))
        return found[: max(0, limit)]

    async def actions(
        self, scope: ReadScope, *, context_type: str | None, limit: int
    ) -> list[records.ActionRow]:
        user_id = checked_user(scope.user_id)
        found = [
            row
            for key, row in self._rows.actions.items()
            if key[0] == user_id and context_type in (None, row.context_type)
        ]
        found.sort(key=lambda row: (-row.counters.uses, row.action, row.tier or ""))
        return found[: max(0, limit)]

    async def stats(self, scope: ReadScope) -> records.ContentStats:
        user_id = checked_user(scope.user_id)
        nodes, edges = self._nodes_of(user_id), self._edges_of(user_id)
        times = [node.last_seen_at for node in nodes] + [edge.last_seen_at for edge in edges]
        return records.ContentStats(
            nodes=len(nodes), edges=len(edges), last_updated_at=max(times, default=None)
        )

    # --- settling

    async def settle_outcomes(
        self, events: Sequence[OutcomeEvent], changes: records.OutcomeChanges
    ) -> bool:
        if not events:
            return True
        users = {event.user_id for event in events}
        if len(users) != 1:
            raise InvalidInput("Outcomes of several users were settled at once: settle each one's.")
        user_id = checked_user(users.pop())
        if not self._outcomes.settle_graph(events):
            return False
        changes = content.told_of_winners(changes, self._merged(user_id, changes))
        known = frozenset(key[1] for key in self._rows.routing if key[0] == user_id)
        room = content.GraphQuota(known, self._caps.max_concepts - len(known))
        for routing in content.admitted_routing(changes.routing, room):
            self._rows.add_routing(user_id, routing)
        for action in changes.actions:
            self._rows.add_action(user_id, action)
        for solution in changes.solutions:
            self._rows.add_solution(user_id, solution)
        for document in changes.documents:
            self._rows.add_document(user_id, document)
        return True

    async def settle_content(
        self,
        done: records.FollowUp,
        contribution: records.Contribution,
        changes: records.ContentChanges,
    ) -> bool:
        user_id, point_id = checked_user(done.item.user_id), done.item.point_id
        row = self._items.get(point_id)
        if row is None or not _as_read(row, done):
            return False
        admitted, self._refused[point_id] = content.admitted_content(
            changes,
            contribution,
            self._refused.get(point_id, content.Refused()),
            self._room(self._nodes_of(user_id), self._caps.max_nodes),
            self._room(self._edges_of(user_id), self._caps.max_edges),
        )
        at = to_ms(done.item.updated_at)
        for node in admitted.nodes:
            self._rows.add_node(user_id, node, at)
        for edge in admitted.edges:
            self._rows.add_edge(user_id, edge, at)
        row.contributed = contribution if contribution.concepts else None
        row.follow_up_at = None
        self._followed[point_id] = self._now()
        if row.contributed is None and _is_gone(row):
            del self._items[point_id]
        return True

    # --- follow-ups

    async def follow_ups(self, limit: int) -> list[records.FollowUp]:
        now = self._now()
        due = [
            (row.follow_up_at, row)
            for row in self._items.values()
            if row.follow_up_at is not None and row.follow_up_at <= now
        ]
        due.sort(key=lambda pair: pair[0])
        return [
            records.FollowUp(item=row.item, contributed=row.contributed or records.Contribution())
            for _, row in due[: max(0, limit)]
        ]

    async def postpone(self, point_id: str, until: datetime) -> None:
        row = self._items.get(point_id)
        if row is not None and row.follow_up_at is not None:
            row.follow_up_at = to_ms(until)

    async def ask_follow_up(self, scope: WriteScope, limit: int, *, dry_run: bool) -> int:
        now = self._now()
        rows = [
            row
            for row in self._store.rows_of(scope.user_id)
            if row.item.tier in content.CONTENT_TIERS
            and row.item.status is Status.ACTIVE
            and row.contributed is None
            and row.item.attached_to is None
        ]
        rows.sort(key=lambda row: self._followed.get(row.item.point_id, NEVER))
        chosen = rows[: max(0, limit)]
        if not dry_run:
            for row in chosen:
                row.follow_up_at = now
        return len(chosen)

    # --- references

    async def forget(self, scope: WriteScope, point_ids: Sequence[str]) -> int:
        user_id, points = checked_user(scope.user_id), set(point_ids)
        found = [self._items[point].item for point in points if point in self._items]
        memory_ids = {item.memory_id for item in found if item.user_id == user_id}
        return self._rows.forget(user_id, points, memory_ids)

    async def dead_references(
        self, limit: int, after: str | None
    ) -> tuple[list[tuple[str, str]], str | None]:
        """References stand for rows here: `after` is a number of them."""
        start = int(after or 0)
        named = self._rows.named()
        looked_at = named[start : start + max(0, limit)]
        alive = {
            (row.item.user_id, row.item.point_id)
            for row in self._items.values()
            if row.item.status is Status.ACTIVE or buried(row.item)
        }
        end = start + len(looked_at)
        return [pair for pair in looked_at if pair not in alive], (
            str(end) if end < len(named) else None
        )

    # --- inside

    def _merged(
        self, user_id: str, changes: records.OutcomeChanges
    ) -> dict[str, tuple[MemoryItem, MemoryItem]]:
        found = {}
        for point in content.points_of(changes):
            row = self._items.get(point)
            into = row.item.merged_into if row is not None else None
            winner = self._items.get(point_id_of(user_id, into)) if into is not None else None
            if row is not None and winner is not None and row.item.user_id == user_id:
                found[point] = row.item, winner.item
        return found

    def _now(self) -> datetime:
        return to_ms(self._clock.now())

    def _nodes_of(self, user_id: str) -> list[records.ContentNode]:
        return [node for key, node in self._rows.nodes.items() if key[0] == user_id]

    def _edges_of(self, user_id: str) -> list[records.ContentEdge]:
        return [edge for key, edge in self._rows.edges.items() if key[0] == user_id]

    def _solutions(self, user_id: str, problem_hash: str | None) -> list[records.KnownSolution]:
        found = [
            row
            for key, row in self._rows.solutions.items()
            if key[0] == user_id and row.problem_hash == problem_hash
        ]
        return sorted(found, key=lambda row: (-row.success_count, row.memory_id))

    def _documents(self, user_id: str) -> list[records.DocumentEffect]:
        found = [
            row
            for key, row in self._rows.documents.items()
            if key[0] == user_id and row.counters.uses >= content.JUDGED_OFTEN
        ]
        return sorted(found, key=lambda row: (-row.counters.uses, row.doc_id))

    @staticmethod
    def _room(
        rows: Sequence[records.ContentNode] | Sequence[records.ContentEdge], cap: int
    ) -> content.GraphQuota:
        known = frozenset(
            row.node_id if isinstance(row, records.ContentNode) else (row.source, row.target)
            for row in rows
        )
        return content.GraphQuota(known, cap - len(known))


def _as_read(row: Row, done: records.FollowUp) -> bool:
    """Whether the row is still due, in the version and with the contribution that was read."""
    return (
        row.follow_up_at is not None
        and row.item.user_id == done.item.user_id
        and (row.item.version, row.item.status) == (done.item.version, done.item.status)
        and (row.contributed or records.Contribution()) == done.contributed
    )


def _is_gone(row: Row) -> bool:
    """A tombstone whose point has left the index."""
    state = row.item.index
    deleted = row.item.status is Status.DELETED and state.op is IndexOp.DELETE
    return deleted and state.sync_state is SyncState.SYNCED
