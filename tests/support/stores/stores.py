"""Receipts, events, leases, API keys and idempotency keys in process memory."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from rayapp.admin.ports import ApiKey, AuditEntry, AuditQuestion, DayRow, IdempotencyRow, LegalHold
from rayapp.bulk.ports import Lease
from rayapp.core.errors import Conflict
from rayapp.core.runtime import Clock
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import Change, Changes, Event
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope
from rayapp.search.ports import Receipt
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.graph_rows import GraphRows, Key

EVENT_LIFETIME = timedelta(days=90)
IDEMPOTENCY_LIFETIME = timedelta(hours=24)
RowT = TypeVar("RowT")


def add_row(rows: dict[str, RowT], key: str, row: RowT) -> None:
    if key in rows:
        raise Conflict("The same row exists already: read it instead of adding it.")
    rows[key] = row


class InMemoryReceiptStore:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._receipts: dict[str, Receipt] = {}

    async def put_many(self, receipts: Sequence[Receipt]) -> None:
        for receipt in receipts:
            add_row(self._receipts, receipt.receipt_id, receipt)

    async def get(self, scope: ReadScope, receipt_id: str) -> Receipt | None:
        user_id, receipt = checked_user(scope.user_id), self._receipts.get(receipt_id)
        if receipt is None or receipt.user_id != user_id:
            return None
        return receipt if receipt.expires_at > self._clock.now() else None

    async def latest(
        self, scope: ReadScope, conversation_id: str, limit: int, *, unscored: bool = False
    ) -> list[Receipt]:
        user_id, now = checked_user(scope.user_id), self._clock.now()
        found = [
            receipt
            for receipt in self._receipts.values()
            if receipt.user_id == user_id
            and receipt.conversation_id == conversation_id
            and receipt.expires_at > now
            and not (unscored and receipt.scored_at)
        ]
        found.sort(key=lambda receipt: (receipt.at, receipt.receipt_id), reverse=True)
        return found[: max(0, limit)]

    async def questions(
        self, scope: ReadScope, conversation_id: str, limit: int, *, besides_turn: str | None = None
    ) -> list[tuple[str, tuple[str, ...], datetime]]:
        living = await self.latest(scope, conversation_id, len(self._receipts))
        found = [one for one in living if besides_turn is None or one.turn_id != besides_turn]
        return [(one.query, one.concepts, one.at) for one in found[: max(0, limit)]]

    async def recent(self, limit: int) -> list[Receipt]:
        living = [r for r in self._receipts.values() if r.expires_at > self._clock.now()]
        living.sort(key=lambda receipt: (receipt.at, receipt.receipt_id), reverse=True)
        return living[: max(0, limit)]

    def held(self, user_id: str, receipt_id: str) -> Receipt | None:
        """The user's receipt, expired or not; asked by the outcome store."""
        receipt = self._receipts.get(receipt_id)
        return receipt if receipt is not None and receipt.user_id == user_id else None

    def scored(self, user_id: str, receipt_id: str, at: datetime, keep_until: datetime) -> None:
        """Called by the outcome store: a scored receipt lives longer and ends its turn."""
        receipt = self.held(user_id, receipt_id)
        if receipt is not None:
            self._receipts[receipt_id] = replace(
                receipt, scored_at=at, expires_at=max(receipt.expires_at, keep_until)
            )


class InMemoryEventStore:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: dict[str, Event] = {}

    async def add(self, event: Event) -> None:
        add_row(self._events, event.event_id, event)

    async def recent(self, scope: ReadScope, kind: str | None, limit: int) -> list[Event]:
        """Newest first."""
        user_id, since = checked_user(scope.user_id), self._clock.now() - EVENT_LIFETIME
        found = [
            event
            for event in self._events.values()
            if event.user_id == user_id and kind in (None, event.kind) and event.at > since
        ]
        found.sort(key=lambda event: (event.at, event.event_id), reverse=True)
        return found[: max(0, limit)]

    async def of_conversation(
        self, scope: ReadScope, conversation_id: str, kind: str
    ) -> list[Event]:
        found = await self.recent(scope, kind, len(self._events))
        return [one for one in found if one.data.get("conversation_id") == conversation_id]


class InMemoryLeaseStore:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._leases: dict[str, Lease] = {}
        self._released: dict[str, datetime] = {}

    async def acquire(self, name: str, holder: str, ttl_s: float) -> Lease | None:
        """Renewing keeps the fence; any other way to get the lease raises it."""
        held, alive = self._leases.get(name), await self.current(name)
        if alive is not None and alive.holder != holder:
            return None
        fence = alive.fence if alive else (held.fence if held else 0) + 1
        lease = Lease(name, holder, fence, self._clock.now() + timedelta(seconds=ttl_s))
        self._leases[name] = lease
        return lease

    async def release(self, lease: Lease) -> None:
        held = self._leases.get(lease.name)
        if held and (held.holder, held.fence) == (lease.holder, lease.fence):
            now = self._clock.now()
            self._leases[lease.name] = replace(held, expires_at=now)
            self._released[lease.name] = now

    async def last_released(self, name: str) -> datetime | None:
        return self._released.get(name)

    async def current(self, name: str) -> Lease | None:
        held = self._leases.get(name)
        return held if held and held.expires_at > self._clock.now() else None


class InMemoryApiKeyStore:
    def __init__(self) -> None:
        self._keys: dict[str, ApiKey] = {}
        self._ended: set[str] = set()

    async def add(self, key: ApiKey) -> None:
        """Raises Conflict when the key is there already."""
        add_row(self._keys, key.key_hash, key)

    async def find(self, key_hash: str) -> ApiKey | None:
        """Revoked keys as well: the caller looks at `revoked_at`."""
        return self._keys.get(key_hash)

    async def revoke(self, principal: str | None, at: datetime, *, org_id: str | None) -> int:
        revoked = [
            replace(key, revoked_at=at)
            for key in self._keys.values()
            if principal in (None, key.principal)
            and key.org_id == org_id
            and key.revoked_at is None
        ]
        self._keys |= {key.key_hash: key for key in revoked}
        return len(revoked)

    async def end(self, key_hash: str, at: datetime) -> None:
        self._change(key_hash, lambda key: replace(key, revoked_at=key.revoked_at or at))

    async def expire(self, key_hash: str, at: datetime) -> None:
        self._change(key_hash, lambda key: replace(key, expires_at=min(at, key.expires_at or at)))

    async def used(self, key_hash: str, at: datetime) -> None:
        self._change(
            key_hash, lambda key: replace(key, last_used_at=max(at, key.last_used_at or at))
        )

    def _change(self, key_hash: str, change: Callable[[ApiKey], ApiKey]) -> None:
        if key_hash in self._keys:
            self._keys[key_hash] = change(self._keys[key_hash])

    async def end_token(self, token_id: str, expires_at: datetime) -> None:
        self._ended.add(token_id)

    async def token_ended(self, token_id: str) -> bool:
        return token_id in self._ended

    async def all(self) -> list[ApiKey]:
        """Oldest first."""
        return sorted(self._keys.values(), key=lambda key: (key.created_at, key.key_hash))


class InMemoryAuditStore:
    """Implements `admin.ports.AuditStore`."""

    def __init__(self) -> None:
        self._rows: list[AuditEntry] = []

    async def append(self, entry: AuditEntry) -> None:
        self._rows.append(entry)

    async def page(self, asked: AuditQuestion, now: datetime) -> list[AuditEntry]:
        found = [
            row
            for row in sorted(self._rows, key=lambda row: row.entry_id, reverse=True)
            if row.expires_at > now
            and (asked.before is None or row.entry_id < asked.before)
            and asked.principal in (None, row.principal)
            and asked.user_id in (None, row.user_id)
            and asked.route in (None, row.route)
            and (asked.since is None or row.at >= asked.since)
            and (asked.until is None or row.at < asked.until)
        ]
        return found[: asked.limit]


class InMemoryDayStore:
    """Implements `admin.ports.DayStore`."""

    def __init__(self) -> None:
        self._rows: dict[str, DayRow] = {}

    async def keep(self, row: DayRow) -> None:
        self._rows[row.day] = row

    async def recent(self, days: int) -> list[DayRow]:
        found = sorted(self._rows.values(), key=lambda row: row.day, reverse=True)
        return found[: max(0, days)]


class InMemoryHoldStore:
    """Implements `admin.ports.HoldStore`."""

    def __init__(self) -> None:
        self._rows: dict[str, LegalHold] = {}

    async def place(self, hold: LegalHold) -> bool:
        new = checked_user(hold.user_id) not in self._rows
        self._rows.setdefault(hold.user_id, hold)
        return new

    async def release(self, user_id: str) -> bool:
        return self._rows.pop(checked_user(user_id), None) is not None

    async def get(self, user_id: str) -> LegalHold | None:
        return self._rows.get(checked_user(user_id))

    async def all(self) -> list[LegalHold]:
        return sorted(self._rows.values(), key=lambda hold: (hold.at, hold.user_id))


class InMemoryIdempotencyStore:
    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], IdempotencyRow] = {}

    async def begin(self, row: IdempotencyRow) -> IdempotencyRow | None:
        first = self._rows.get(_key(row))
        if first is not None and first.at > row.at - IDEMPOTENCY_LIFETIME:
            return first
        self._rows[_key(row)] = row
        return None

    async def finish(self, row: IdempotencyRow) -> None:
        first = self._rows.get(_key(row))
        if first is not None:
            self._rows[_key(row)] = replace(
                first, state=row.state, status=row.status, response=row.response
            )

    async def drop(self, row: IdempotencyRow) -> None:
        first = self._rows.get(_key(row))
        if first is not None and first.state == "running" and first.at == row.at:
            del self._rows[_key(row)]


def _key(row: IdempotencyRow) -> tuple[str, str, str]:
    return row.user_id, row.route, row.key


class InMemoryChangeLog:
    """Finds out by looking: an item, or a row of a graph, is another object after each write."""

    def __init__(self, items: InMemoryMemoryStore, graphs: GraphRows) -> None:
        self._items = items
        self._graphs = graphs
        self._known: dict[str, MemoryItem] = {}
        self._known_rows: dict[Key, object] = {}
        self._changes: dict[str, list[Change]] = {}
        self._at = 0

    async def since(self, user_id: str, until: int | None, limit: int) -> Changes:
        await self._items.ping()  # it is one store with the items: away when they are
        self._look()
        found = [one for one in self._changes.get(user_id, []) if one.at >= (until or 0)]
        return Changes(found[: -limit - 1 : -1], self._at)

    def before(self, at: int, seconds: float) -> int:
        """Whoever writes has written."""
        return at

    @asynccontextmanager
    async def around(self, items: Iterable[tuple[str, str]]) -> AsyncIterator[None]:
        """Told when it is done: nobody reads in between."""
        named = list(items)
        yield
        for user_id, point_id in named:
            self._add(user_id, (point_id,))

    def _look(self) -> None:
        now = {point_id: row.item for point_id, row in self._items._rows.items()}
        gone = [item for point_id, item in self._known.items() if point_id not in now]
        changed = [item for point_id, item in now.items() if self._known.get(point_id) is not item]
        for item in (*gone, *changed):
            self._add(item.user_id, (item.point_id,))
        rows: dict[Key, object] = {
            (user_id, name, *key): row
            for name, table in vars(self._graphs).items()
            for (user_id, *key), row in table.items()
        }
        for user_id in {key[0] for key in rows if self._known_rows.get(key) is not rows[key]}:
            self._add(user_id, ())
        self._known, self._known_rows = now, rows

    def _add(self, user_id: str, points: tuple[str, ...]) -> None:
        self._at += 1
        change = Change(str(self._at), self._at, points)
        self._changes.setdefault(user_id, []).append(change)
