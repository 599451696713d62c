"""The seams of learning: outcomes, transitions by rule, and the three graphs.

Errors: an implementation raises only classes of `rayapp.errors`. Times are tz-aware UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rayapp.domain.graphs.records import (
    ActionRow,
    ContentChanges,
    ContentEdge,
    ContentNode,
    ContentStats,
    Contribution,
    FollowUp,
    GraphPriors,
    OutcomeChanges,
    RoutingRow,
)
from rayapp.domain.learning import Effect, Move, OutcomeEvent
from rayapp.domain.memory import MemoryItem
from rayapp.domain.scope import ReadScope, WriteScope
from rayapp.domain.tiers import Tier
from rayapp.protocols import Event, Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeLimits:
    """What an outcome may not do. `keep_receipt_until`: a scored receipt lives at least so long.

    `guest_per_hour`: outcomes per hour of a principal that does not own the memories.
    """

    keep_receipt_until: datetime
    guest_per_hour: int


class OutcomeStore(Protocol):
    """`memory_outcomes`, and the counters of items that they move."""

    async def record(
        self, event: OutcomeEvent, limits: OutcomeLimits, *, strict: bool
    ) -> tuple[OutcomeEvent, bool]:
        """Event, counters, index queue and receipt in one transaction: all of it or nothing.

        Each item is changed by one atomic pipeline update (`domain.lifecycle.outcomes` is the
        rule). Merged ids resolve to their winner, a winner named twice is moved once.
        Returns the event with `applied` and `skipped`, and whether it was there before: a known
        key changes nothing and answers the first result. Of the events in `replaces`, what this
        one judges anew is taken back in the same transaction (`domain.lifecycle.verdicts`), and
        they owe the graphs the difference.
        Raises NotFound when `strict` and an id is not the user's; Conflict when the key was used
        for another request (`domain.lifecycle.outcome_plan.check_same`).
        """
        ...

    async def find(self, scope: ReadScope, idempotency_key: str) -> OutcomeEvent | None:
        """The event recorded with this key; a retry asks before it looks for a receipt again."""
        ...

    async def latest(self, scope: ReadScope, prefix: str, limit: int) -> list[OutcomeEvent]:
        """Events whose key starts with `prefix`, the greatest key first."""
        ...

    async def due(self, effect: Effect, limit: int, *, before: datetime) -> list[OutcomeEvent]:
        """Events recorded before `before` that still owe `effect`, oldest first, of all users."""
        ...

    async def settle(self, effect: Effect, events: Sequence[OutcomeEvent]) -> int:
        """Clear a flag whose effect can be repeated without harm; how many were set."""
        ...

    async def backlog(self) -> int:
        """Events that still owe an effect, of all users."""
        ...

    async def failures(self, scope: ReadScope, point_ids: Sequence[str]) -> list[OutcomeEvent]:
        """The newest `failed` events about these items, at most one per item, newest first.

        What was withdrawn is about nothing any more.
        """
        ...


class LifecycleStore(Protocol):
    """`memory_items` as the owner of tiers sees them."""

    async def candidates(
        self,
        *,
        judged: bool,
        user_id: str | None,
        now: datetime,
        after: MemoryItem | None,
        limit: int,
    ) -> list[MemoryItem]:
        """Active working, history and patterns items that a rule could touch.

        By user and point_id, those that come after `after`, the last item of the page before;
        fewer than `limit` only on the last page. Two walks see all of them: `judged` gives those
        with an outcome, otherwise come those without one whose time is over. `user_id` None: of
        all users.
        """
        ...

    async def by_ids(self, user_id: str, memory_ids: Sequence[str]) -> list[MemoryItem]:
        """Active items of one user, whatever their expiry."""
        ...

    async def same_text(self, item: MemoryItem, tier: Tier) -> MemoryItem | None:
        """The active item with this text and scope in `tier`, if there is one."""
        ...

    async def transition(
        self, moves: Sequence[Move], events: Sequence[Event], *, lease: Lease | None = None
    ) -> list[MemoryItem]:
        """All moves with their version rows, and the events, in one transaction.

        Moves are applied in order, so a loser gives its text free before the winner takes it.
        Ids merged into a loser are pointed at its winner. With `lease`, nothing is written once
        another holder has it (Conflict, code `lease_lost`).
        Raises VersionConflict, NotFound, DuplicateMemory, Conflict.
        """
        ...

    async def activity(self, since: datetime) -> list[tuple[str, int, int]]:
        """(user, working items stored since, conversations they came from), busy users first."""
        ...


class GraphStore(Protocol):
    """`kg_routing`, `kg_nodes`, `kg_edges`, `kg_actions`, `known_solutions`, and book counters."""

    async def priors(
        self,
        scope: ReadScope,
        *,
        concepts: Sequence[str],
        context_type: str,
        problem_hash: str | None,
    ) -> GraphPriors:
        """One round trip over all graphs, actions without their examples.

        Books come when they were judged three times.
        """
        ...

    async def top_routing(self, scope: ReadScope, limit: int) -> list[RoutingRow]:
        """The concepts seen last, newest first."""
        ...

    async def top_nodes(self, scope: ReadScope, limit: int) -> list[ContentNode]:
        """By average quality, then mentions, then id."""
        ...

    async def nodes(self, scope: ReadScope, node_ids: Sequence[str]) -> list[ContentNode]: ...
    async def edges_of(
        self, scope: ReadScope, node_ids: Sequence[str], limit: int
    ) -> list[ContentEdge]:
        """Edges that touch one of the nodes, heaviest first."""
        ...

    async def actions(
        self, scope: ReadScope, *, context_type: str | None, limit: int
    ) -> list[ActionRow]:
        """Most used first."""
        ...

    async def stats(self, scope: ReadScope) -> ContentStats: ...
    async def follow_ups(self, limit: int) -> list[FollowUp]:
        """Items of all users whose follow-up is due, longest waiting first.

        Inserting, editing, moving, archiving or deleting an item of a tier with follow-ups
        (`domain.tiers.FOLLOWED_TIERS`) makes it due.
        """
        ...

    async def settle_outcomes(
        self, events: Sequence[OutcomeEvent], changes: OutcomeChanges
    ) -> bool:
        """Increments and the `graph` flags of `events` (one user's) in one transaction.

        False, with nothing written, when one of them was settled already, or when more of it was
        withdrawn since it was read.
        """
        ...

    async def settle_content(
        self, done: FollowUp, contribution: Contribution, changes: ContentChanges
    ) -> bool:
        """Increments, the stored contribution and the cleared mark in one transaction.

        A node or edge without mentions left is removed. A tombstone whose point is gone goes
        too. False, with nothing written, when the item changed meanwhile: it is still due.
        """
        ...

    async def postpone(self, point_id: str, until: datetime) -> None:
        """Look at this item again at `until`."""
        ...

    async def ask_follow_up(self, scope: WriteScope, limit: int, *, dry_run: bool) -> int:
        """Make items of the user without a contribution due again (backfill); how many."""
        ...

    async def forget(self, scope: WriteScope, point_ids: Sequence[str]) -> int:
        """Remove references to dead items from examples, known solutions and nodes."""
        ...

    async def dead_references(
        self, limit: int, after: str | None
    ) -> tuple[list[tuple[str, str]], str | None]:
        """(user_id, point_id) named by examples or known solutions whose item is not active.

        Looks at `limit` rows from `after` on; the second value continues, None ends the round.
        """
        ...
