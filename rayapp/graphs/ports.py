"""The seams of the three graphs.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from rayapp.graphs import records
from rayapp.learning.records import OutcomeEvent
from rayapp.memory.scope import ReadScope, WriteScope


class GraphStore(Protocol):
    """`kg_routing`, `kg_nodes`, `kg_edges`, `kg_actions`, `known_solutions`, and book counters."""

    async def priors(
        self, scope: ReadScope, question: records.GraphQuestion
    ) -> records.GraphPriors:
        """One round trip over all graphs, actions without their examples.

        Books come when they were judged three times.
        """

    async def top_routing(self, scope: ReadScope, limit: int) -> list[records.RoutingRow]:
        """The concepts seen last, newest first."""

    async def is_empty(self, scope: ReadScope) -> bool:
        """Whether nothing was learned of the user: every settled outcome leaves an action row."""

    async def top_nodes(self, scope: ReadScope, limit: int) -> list[records.ContentNode]:
        """By average quality, then mentions, then id."""

    async def nodes(
        self, scope: ReadScope, node_ids: Sequence[str]
    ) -> list[records.ContentNode]: ...
    async def edges_of(
        self, scope: ReadScope, node_ids: Sequence[str], limit: int
    ) -> list[records.ContentEdge]:
        """Edges that touch one of the nodes, heaviest first."""

    async def actions(
        self, scope: ReadScope, *, context_type: str | None, limit: int
    ) -> list[records.ActionRow]:
        """Most used first."""

    async def stats(self, scope: ReadScope) -> records.ContentStats: ...
    async def follow_ups(self, limit: int) -> list[records.FollowUp]:
        """Items of all users whose follow-up is due, longest waiting first.

        Inserting, editing, moving, archiving or deleting an item of a tier with follow-ups
        (`memory.tiers.FOLLOWED_TIERS`) makes it due.
        """

    async def settle_outcomes(
        self, events: Sequence[OutcomeEvent], changes: records.OutcomeChanges
    ) -> bool:
        """Increments and the `graph` flags of `events` (one user's) in one transaction.

        False, with nothing written, when one of them was settled already, or when more of it was
        withdrawn since it was read.
        """

    async def settle_content(
        self,
        done: records.FollowUp,
        contribution: records.Contribution,
        changes: records.ContentChanges,
    ) -> bool:
        """Increments, the stored contribution and the cleared mark in one transaction.

        A node or edge without mentions left is removed. A tombstone whose point is gone goes
        too. False, with nothing written, when the item changed meanwhile: it is still due.
        """

    async def postpone(self, point_id: str, until: datetime) -> None:
        """Look at this item again at `until`."""

    async def ask_follow_up(self, scope: WriteScope, limit: int, *, dry_run: bool) -> int:
        """Make items of the user without a contribution due again (backfill); how many."""

    async def forget(self, scope: WriteScope, point_ids: Sequence[str]) -> int:
        """Remove references to dead items from examples, known solutions and nodes."""

    async def dead_references(
        self, limit: int, after: str | None
    ) -> tuple[list[tuple[str, str]], str | None]:
        """(user_id, point_id) named by examples or known solutions whose item is not active, nor a
        failure that was archived for it (`buried`).

        Looks at `limit` rows from `after` on; the second value continues, None ends the round.
        """


GraphMode = Literal["routing", "content", "both"]
