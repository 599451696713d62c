"""The seams of learning: outcomes, transitions by rule, and its services.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rayapp.bulk.ports import Lease
from rayapp.learning.records import Effect, Move, OutcomeEvent, ToolUse
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import Event
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGiven:
    """What a score is about; None = not named. `score`: -1, 0 or 1, None = by another way.

    Without a message it is about the turn that owes one, in that conversation, or with that
    receipt. At least one of the three is named.
    """

    at: datetime
    conversation_id: str | None = None
    message_id: str | None = None
    receipt_id: str | None = None
    score: int | None = None


class ScoredSessions(Protocol):
    """The conversations whose turns wait for a score."""

    async def scored(self, scope: WriteScope, given: ScoreGiven) -> bool:
        """A score was given: its turn is marked, and owes nothing any more. Atomic.

        False when no kept turn fits.
        """


class TurnTools(Protocol):
    """Which tools a kept turn used."""

    async def used(self, scope: ReadScope, given: ScoreGiven) -> ToolUse | None:
        """Of the turn that a score is about; None when none fits, or it used none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeLimits:
    """What an outcome may not do. `keep_receipt_until`: a scored receipt lives at least so long.

    `guest_per_hour`: outcomes per hour of a principal that does not own the memories.
    """

    keep_receipt_until: datetime
    guest_per_hour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesOf:
    """The outcomes of one conversation: all of them, or those that are about one turn of it.

    A turn's: those of `receipt_id`, with one of `keys`, or whose key has one of `prefixes`.
    """

    conversation_id: str
    whole: bool = False
    receipt_id: str | None = None
    keys: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()


class OutcomeStore(Protocol):
    """`memory_outcomes`, and the counters of items that they move."""

    async def record(
        self, event: OutcomeEvent, limits: OutcomeLimits, *, strict: bool
    ) -> tuple[OutcomeEvent, bool]:
        """Event, counters, index queue and receipt in one transaction: all of it or nothing.

        Each item is changed by one atomic pipeline update (`learning.rules.outcomes` is the
        rule). Merged ids resolve to their winner, a winner named twice is moved once.
        Returns the event with `applied` and `skipped`, and whether it was there before: a known
        key changes nothing and answers the first result. Of the events in `replaces`, what this
        one judges anew is taken back in the same transaction (`learning.rules.verdicts`), and
        they owe the graphs the difference.
        Raises NotFound when `strict` and an id is not the user's; Conflict when the key was used
        for another request (`learning.rules.outcomes.check_same`).
        """

    async def find(self, scope: ReadScope, idempotency_key: str) -> OutcomeEvent | None:
        """The event recorded with this key; a retry asks before it looks for a receipt again."""

    async def latest(self, scope: ReadScope, prefix: str, limit: int) -> list[OutcomeEvent]:
        """Events whose key starts with `prefix`, the greatest key first."""

    async def due(self, effect: Effect, limit: int, *, before: datetime) -> list[OutcomeEvent]:
        """Events recorded before `before` that still owe `effect`, oldest first, of all users."""

    async def settle(self, effect: Effect, events: Sequence[OutcomeEvent]) -> int:
        """Clear a flag whose effect can be repeated without harm; how many were set."""

    async def withdraw(self, scope: WriteScope, of: OutcomesOf, at: datetime) -> list[OutcomeEvent]:
        """Take back all that these outcomes did, each in one transaction: items give back what they
        counted, and the events keep what was withdrawn, under another key: their own is free.

        A receipt that is named counts as not scored. Answers those events that owe the graphs now,
        from an earlier call too.
        """

    async def forget(self, scope: WriteScope, of: OutcomesOf) -> int:
        """Remove the rows of these outcomes that owe the graphs nothing; how many are left."""

    async def backlog(self) -> int:
        """Events that still owe an effect, of all users."""

    async def failures(self, scope: ReadScope, point_ids: Sequence[str]) -> list[OutcomeEvent]:
        """The newest `failed` events about these items, at most one per item, newest first.

        What was withdrawn is about nothing any more.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Which items a cycle looks at.

    Attributes:
        judged: those with an outcome; else those without one whose time is over.
        user_id: None = of all users.
        after: the last item of the page before.
    """

    judged: bool
    user_id: str | None
    now: datetime
    after: MemoryItem | None = None
    limit: int


class LifecycleStore(Protocol):
    """`memory_items` as the owner of tiers sees them."""

    async def candidates(self, asked: Candidates) -> list[MemoryItem]:
        """A page of the active working, history and patterns items that a rule could touch, by user
        and point_id; fewer than `limit` only on the last page."""

    async def by_ids(self, user_id: str, memory_ids: Sequence[str]) -> list[MemoryItem]:
        """Active items of one user, whatever their expiry."""

    async def same_text(self, item: MemoryItem, tier: Tier) -> MemoryItem | None:
        """The active item with this text and scope in `tier`, if there is one."""

    async def transition(
        self, moves: Sequence[Move], events: Sequence[Event], *, lease: Lease | None = None
    ) -> list[MemoryItem]:
        """All moves with their version rows, and the events, in one transaction.

        Moves are applied in order, so a loser gives its text free before the winner takes it.
        Ids merged into a loser are pointed at its winner. With `lease`, nothing is written once
        another holder has it (Conflict, code `lease_lost`).
        Raises VersionConflict, NotFound, DuplicateMemory, Conflict.
        """

    async def activity(self, since: datetime) -> list[tuple[str, int, int]]:
        """(user, working items stored since, conversations they came from), busy users first."""
