"""A working `OutcomeStore` in process memory. One event loop only: no step waits in between."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rayapp.core.ids import SYSTEM_USER
from rayapp.core.runtime import Clock
from rayapp.learning.ports import OutcomeLimits, OutcomesOf
from rayapp.learning.records import AppliedOutcome, Effect, OutcomeEvent
from rayapp.learning.rules import outcomes, verdicts
from rayapp.memory.item import MemoryItem, Outcome, Status, point_id_of
from rayapp.memory.rules.creation import dedup_scope
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import TIER_POLICY, Tier
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.rows import to_ms
from tests.support.stores.stores import InMemoryReceiptStore


@dataclass(slots=True)
class EventRow:
    """One event and the effects it still owes."""

    event: OutcomeEvent
    owed: set[Effect]
    taken: str | None = None


class InMemoryOutcomeStore:
    """Implements `OutcomeStore`."""

    def __init__(
        self, items: InMemoryMemoryStore, receipts: InMemoryReceiptStore, clock: Clock
    ) -> None:
        self._items = items
        self._receipts = receipts
        self._clock = clock
        self._events: dict[tuple[str, str], EventRow] = {}
        self._judged: dict[str, set[str]] = {}

    async def record(
        self, event: OutcomeEvent, limits: OutcomeLimits, *, strict: bool
    ) -> tuple[OutcomeEvent, bool]:
        event = replace(event, at=to_ms(event.at))
        key = (checked_user(event.user_id), event.idempotency_key)
        first = self._events.get(key)
        if first is not None:
            outcomes.check_same(first.event, event)
            return first.event, True
        found = {name: t for name in event.memory_ids if (t := self._target(event.user_id, name))}
        guest = None if event.owner else self._guest(event, limits)
        plan = outcomes.plan_outcome(event, found, guest=guest, strict=strict)
        if plan.closes_turn and event.receipt_id is not None:
            self._close_turn(event, event.receipt_id, limits, plan)
        self._replace(event, found, plan)
        applied = {target.point_id: self._apply(event, target) for target in plan.targets}
        done = outcomes.recorded(event, plan, applied)
        owed: set[Effect] = set()
        if verdicts.counts(done):
            owed.add("graph")
        if done.applied:
            owed.add("promotion")
        self._events[key] = EventRow(done, owed)
        return done, False

    async def find(self, scope: ReadScope, idempotency_key: str) -> OutcomeEvent | None:
        row = self._events.get((checked_user(scope.user_id), idempotency_key))
        return row.event if row else None

    async def latest(self, scope: ReadScope, prefix: str, limit: int) -> list[OutcomeEvent]:
        user_id = checked_user(scope.user_id)
        keys = [k for user, k in self._events if user == user_id and k.startswith(prefix)]
        newest = sorted(keys, reverse=True)[: max(0, limit)]
        return [self._events[user_id, key].event for key in newest]

    async def due(self, effect: Effect, limit: int, *, before: datetime) -> list[OutcomeEvent]:
        owing = [row.event for row in self._events.values() if effect in row.owed]
        owing = [event for event in owing if event.at < before]
        return sorted(owing, key=lambda event: event.at)[: max(0, limit)]

    async def settle(self, effect: Effect, events: Sequence[OutcomeEvent]) -> int:
        rows = [row for event in events if (row := self._owing(event, effect))]
        for row in rows:
            row.owed.discard(effect)
        return len(rows)

    async def withdraw(self, scope: WriteScope, of: OutcomesOf, at: datetime) -> list[OutcomeEvent]:
        about = self._about(checked_user(scope.user_id), of)
        for row in sorted(about, key=lambda one: one.event.at, reverse=True):
            if row.taken is None:
                self._take_back(row, to_ms(at))
        receipt = self._receipts._receipts.get(of.receipt_id or "")
        if receipt is not None and receipt.user_id == scope.user_id:
            self._receipts._receipts[receipt.receipt_id] = replace(receipt, scored_at=None)
        self._judged.pop(of.receipt_id or "", None)
        return [row.event for row in about if "graph" in row.owed]

    async def forget(self, scope: WriteScope, of: OutcomesOf) -> int:
        about = self._about(checked_user(scope.user_id), of)
        for row in about:
            if "graph" not in row.owed:
                del self._events[row.event.user_id, row.event.idempotency_key]
        return sum("graph" in row.owed for row in about)

    async def backlog(self) -> int:
        return sum(bool(row.owed) for row in self._events.values())

    async def failures(self, scope: ReadScope, point_ids: Sequence[str]) -> list[OutcomeEvent]:
        user_id = checked_user(scope.user_id)
        failed = [
            row.event
            for row in self._events.values()
            if row.event.user_id == user_id and row.event.outcome is Outcome.FAILED
        ]
        failed.sort(key=lambda event: (event.at, event.idempotency_key), reverse=True)
        newest: dict[str, OutcomeEvent] = {}
        for event in failed:
            for one in verdicts.standing(event, event.withdrawn).applied:
                newest.setdefault(one.point_id, event)
        chosen = {newest[p].idempotency_key for p in point_ids if p in newest}
        return [event for event in failed if event.idempotency_key in chosen]

    def settle_graph(self, events: Sequence[OutcomeEvent]) -> bool:
        """Clear the `graph` flags of all of them, or, when one has none, of none."""
        rows = [self._owing(event, "graph") for event in events]
        pairs = zip(rows, events, strict=True)
        read = [row for row, one in pairs if row and row.event.withdrawn == one.withdrawn]
        if len(read) < len(events):
            return False
        for row in read:
            row.owed.discard("graph")
        return True

    # --- inside

    def _about(self, user_id: str, of: OutcomesOf) -> list[EventRow]:
        def is_about(row: EventRow) -> bool:
            event, key = row.event, row.taken or row.event.idempotency_key
            if (event.user_id, event.conversation_id) != (user_id, of.conversation_id):
                return False
            shown = of.receipt_id is not None and event.receipt_id == of.receipt_id
            return of.whole or shown or key in of.keys or key.startswith(of.prefixes)

        return [row for row in self._events.values() if is_about(row)]

    def _take_back(self, row: EventRow, at: datetime) -> None:
        event = row.event
        takings, whole = verdicts.everything(event)
        changed, owes = verdicts.withdrawing(event, whole, owes="graph" in row.owed)
        row.taken = event.idempotency_key
        key = verdicts.withdrawn_key(event.idempotency_key, uuid.uuid4().hex)
        del self._events[event.user_id, event.idempotency_key]
        row.event = replace(changed, idempotency_key=key)
        self._events[event.user_id, key] = row
        row.owed.discard("graph")
        row.owed.update({"graph"} if owes else ())
        for taking in takings:
            self._gives_back(event.user_id, taking, at)

    def _gives_back(self, user_id: str, taking: verdicts.Taking, at: datetime) -> None:
        held = self._items._rows.get(taking.applied.point_id)
        if held is None:
            return
        into = held.item.merged_into
        winner = self._items._rows.get(point_id_of(user_id, into)) if into is not None else None
        for row in (held, winner):
            if row is not None and row.item.status is not Status.DELETED:
                last = self._last(row.item)
                row.hold(verdicts.given_back(row.item, (taking,), last, at), at)

    def _last(self, item: MemoryItem) -> OutcomeEvent | None:
        """The newest outcome that counts for this item, or for what was merged into it."""
        all_items = (row.item for row in self._items._rows.values())
        parts = [
            one
            for one in all_items
            if (one.user_id, one.merged_into) == (item.user_id, item.memory_id)
            and one.status is not Status.DELETED
        ]
        since = verdicts.counted_since((one.point_id, one.stored_at) for one in (item, *parts))
        standing = (
            verdicts.standing(row.event, row.event.withdrawn) for row in self._events.values()
        )
        counting = (
            event
            for event in standing
            if any(
                one.point_id in since and event.at >= since[one.point_id] for one in event.applied
            )
        )
        return max(counting, key=lambda event: event.at, default=None)

    def _owing(self, event: OutcomeEvent, effect: Effect) -> EventRow | None:
        row = self._events.get((event.user_id, event.idempotency_key))
        return row if row is not None and effect in row.owed else None

    def _target(self, user_id: str, name: str) -> outcomes.Target | None:
        item = self._living(user_id, name)
        if item is None:
            item = self._living(SYSTEM_USER, name)
            if item is None or not TIER_POLICY[item.tier].shared:
                return None
        if item.merged_into is not None:
            item = self._living(item.user_id, item.merged_into)
            if item is None:
                return None
        book = item.tier is Tier.BOOKS
        return outcomes.Target(
            memory_id=item.memory_id,
            point_id=item.point_id,
            tier=item.tier,
            doc_id=dedup_scope(item.tier, item.source) if book else item.source.doc_id,
            stored_by=item.stored_by,
        )

    def _living(self, user_id: str, memory_id: str) -> MemoryItem | None:
        row = self._items._rows.get(point_id_of(user_id, memory_id))
        if row is None or row.item.status is Status.DELETED:
            return None
        return row.item

    def _guest(self, event: OutcomeEvent, limits: OutcomeLimits) -> outcomes.GuestLimits:
        receipt = self._receipts.held(event.user_id, event.receipt_id or "")
        if receipt is None or receipt.principal != event.principal:
            return outcomes.GuestLimits()
        past = [
            (row.event.at, tuple(one.point_id for one in row.event.applied))
            for row in self._events.values()
            if row.event.user_id == event.user_id
            and row.event.principal == event.principal
            and row.event.at > event.at - outcomes.GUEST_MEMORY_WINDOW
        ]
        return outcomes.guest_limits(
            (shown.memory_id for shown in receipt.shown),
            self._judged.get(receipt.receipt_id, ()),
            past,
            event.at,
            limits.guest_per_hour,
        )

    def _close_turn(
        self,
        event: OutcomeEvent,
        receipt_id: str,
        limits: OutcomeLimits,
        plan: outcomes.OutcomePlan,
    ) -> None:
        keep_until = to_ms(limits.keep_receipt_until)
        self._receipts.scored(event.user_id, receipt_id, event.at, keep_until)
        if not event.owner:
            self._judged.setdefault(receipt_id, set()).update(plan.points)

    def _replace(
        self, event: OutcomeEvent, found: Mapping[str, outcomes.Target], plan: outcomes.OutcomePlan
    ) -> None:
        """Take back what the verdicts before this one did to its items."""
        known = [self._events.get((event.user_id, key)) for key in event.replaces or ()]
        rows = {row.event.idempotency_key: row for row in known if row}
        change = verdicts.replacement([row.event for row in rows.values()], event, found, plan)
        now = to_ms(self._clock.now())
        for point_id, takings in change.takings.items():
            held = self._items._rows.get(point_id)
            if held is not None and held.item.status is not Status.DELETED:
                held.hold(verdicts.taken_back(held.item, takings, event.at), now)
        for key, taken in change.withdrawn.items():
            row = rows[key]
            row.event, owes = verdicts.withdrawing(row.event, taken, owes="graph" in row.owed)
            row.owed.discard("graph")
            row.owed.update({"graph"} if owes else ())

    def _apply(self, event: OutcomeEvent, target: outcomes.Target) -> AppliedOutcome:
        row, now = self._items._rows[target.point_id], to_ms(self._clock.now())
        applied = outcomes.applied_to(row.item, event)
        row.hold(outcomes.apply_outcome(row.item, event.outcome, event.at, now), now)
        return applied
