"""What goes by itself when it is old enough, and users of whom nothing may go."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Protocol

from rayapp.admin import ports
from rayapp.admin.rules import retention_limits
from rayapp.assistant.history.rules import encode_place
from rayapp.assistant.history.service import ConversationsService
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.core.ids import SYSTEM_USER
from rayapp.core.runtime import Runtime
from rayapp.documents.ports import BookQuery
from rayapp.documents.service import BooksService
from rayapp.memory.ports import Event, EventStore
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.user_data import UserDataService

log = logging.getLogger("rayapp.retention")
# Kinds of the event log.
REMOVED, HELD, RELEASED = "retention", "hold_placed", "hold_released"
# Conversations and documents of one page: each is many steps.
FEW = 20


class LegalHolds:
    """Raises Conflict, code `legal_hold`, where something of a held user would be deleted."""

    def __init__(self, store: ports.HoldStore, events: EventStore, *, runtime: Runtime) -> None:
        self._store = store
        self._events = events
        self._runtime = runtime

    async def place(self, user_id: str, reason: str, by: str) -> ports.LegalHold:
        """A repeat answers the hold that is there."""
        now = self._runtime.clock.now()
        hold = ports.LegalHold(user_id=user_id, reason=reason, placed_by=by, at=now)
        if await self._store.place(hold):
            await self._note(HELD, user_id, by)
        return await self._store.get(user_id) or hold

    async def release(self, user_id: str, by: str) -> None:
        """Raises NotFound."""
        if not await self._store.release(user_id):
            raise NotFound(
                "This user is not held; list /api/memory/ops/holds to see who is.",
                code="not_held",
                details={"user_id": user_id},
            )
        await self._note(RELEASED, user_id, by)

    async def all(self) -> list[ports.LegalHold]:
        return await self._store.all()

    async def users(self) -> frozenset[str]:
        return frozenset(one.user_id for one in await self._store.all())

    async def check(self, user_id: str) -> None:
        """Before something of the user is deleted."""
        if await self._store.get(user_id) is not None:
            raise Conflict(
                "An operator holds the data of this user, so nothing of it is deleted; ask the "
                "operator to release the hold first.",
                code="legal_hold",
            )

    async def check_nobody(self) -> None:
        """Before everything is removed."""
        if held := await self._store.all():
            raise Conflict(
                f"The data of {len(held)} users are held; release them at "
                "/api/memory/ops/holds before everything is removed.",
                code="legal_hold",
            )

    async def _note(self, kind: str, user_id: str, by: str) -> None:
        log.warning("%s by %s", kind, by)
        # A row of the system names no user: an erasure after the release would not find it.
        whose = hashlib.sha256(user_id.encode()).hexdigest()
        data = {"user_sha256": whose, "by": by}
        await add_event(self._events, self._runtime, kind, SYSTEM_USER, data)


async def add_event(
    events: EventStore, runtime: Runtime, kind: str, user_id: str, data: Mapping[str, object]
) -> None:
    at = runtime.clock.now()
    found = Event(event_id=runtime.new_id(), user_id=user_id, kind=kind, at=at, data=dict(data))
    await events.add(found)


class RetentionStores(Protocol):
    """What retention reads, and where it says what it did."""

    housekeeping: ports.Housekeeping
    events: EventStore


@dataclass(eq=False)
class RetentionService:
    """Deletes as the routes do: memories by pages, conversations and documents each as a whole."""

    stores: RetentionStores
    holds: LegalHolds
    data: UserDataService
    conversations: ConversationsService
    books: BooksService
    _: KW_ONLY
    runtime: Runtime

    def limits(self) -> tuple[ports.RetentionLimit, ...]:
        """None are set: nothing goes by itself."""
        settings = self.runtime.settings.retention
        return retention_limits(settings.days, pinned=settings.pinned, now=self.runtime.clock.now())

    async def preview(self) -> ports.RetentionReport:
        """What a run would delete now. A row past two limits counts for both."""
        return (await self._look(self.limits()))[0]

    async def run(self) -> ports.RetentionReport:
        """Within the time of a request; a repeat goes on."""
        until = self.runtime.clock.monotonic() + self.runtime.budget_s
        limits = self.limits()
        report, found = await self._look(limits)
        removed = dict.fromkeys((limit.kind for limit in limits), 0)
        skipped = 0
        for limit in limits:
            for user_id, rows in found[limit.kind].items():
                left_s = until - self.runtime.clock.monotonic()
                if left_s <= 0:
                    return replace(report, removed=removed, skipped=skipped, complete=False)
                if user_id in await self.holds.users():
                    continue  # since the look
                scope = WriteScope(user_id, REMOVED)
                gone, stays = await self._remove(scope, limit, rows, left_s)
                removed[limit.kind] += gone
                skipped += stays
                await self._note(user_id, limit.kind, gone)
        complete = self.runtime.clock.monotonic() < until
        return replace(report, removed=removed, skipped=skipped, complete=complete)

    async def _look(
        self, limits: Sequence[ports.RetentionLimit]
    ) -> tuple[ports.RetentionReport, dict[ports.RetentionKind, dict[str, int]]]:
        held = await self.holds.users()
        found = {limit.kind: await self.stores.housekeeping.aged(limit, held) for limit in limits}
        report = ports.RetentionReport(
            at=self.runtime.clock.now(),
            limits=limits,
            due={kind: sum(rows.values()) for kind, rows in found.items()},
            users=len({user_id for rows in found.values() for user_id in rows}),
            held=sorted(held),
        )
        return report, found

    async def _remove(
        self, scope: WriteScope, limit: ports.RetentionLimit, rows: int, budget_s: float
    ) -> tuple[int, int]:
        """(how many went, how many stay although they are due)."""
        if limit.memories is not None:
            return await self.data.delete(scope, limit.memories, budget_s), 0
        if limit.kind is ports.RetentionKind.CONVERSATIONS:
            return await self._conversations_of(scope, limit, budget_s)
        return await self._documents_of(scope, limit, rows, budget_s)

    async def _conversations_of(
        self, scope: WriteScope, limit: ports.RetentionLimit, budget_s: float
    ) -> tuple[int, int]:
        until, read = self.runtime.clock.monotonic() + budget_s, ReadScope(scope.user_id)
        gone = stays = 0
        cursor: str | None = encode_place((limit.before, ""))
        while cursor is not None and self.runtime.clock.monotonic() < until:
            page = await self.conversations.page(read, limit=FEW, cursor=cursor)
            for one in page.conversations:
                try:
                    await self.conversations.delete(scope, one.conversation_id)
                    gone += 1
                except (InvalidInput, NotFound):
                    stays += 1  # its user is in it, or deleted it meanwhile
            cursor = page.next_cursor
        return gone, stays

    async def _documents_of(
        self, scope: WriteScope, limit: ports.RetentionLimit, rows: int, budget_s: float
    ) -> tuple[int, int]:
        until, read = self.runtime.clock.monotonic() + budget_s, ReadScope(scope.user_id)
        _, total = await self.books.page(read, BookQuery(limit=1))
        oldest = BookQuery(limit=rows, offset=max(0, total - rows))
        due = [
            one
            for one in (await self.books.page(read, oldest))[0]
            if one.uploaded_at < limit.before
        ]
        gone = stays = 0
        # Those that rest on the text of another one go first.
        for one in sorted(due, key=lambda book: book.linked_to is None):
            if self.runtime.clock.monotonic() >= until:
                break
            try:
                await self.books.delete(scope, one.book_id)
                gone += 1
            except (Conflict, NotFound):
                stays += 1
        return gone, stays

    async def _note(self, user_id: str, kind: ports.RetentionKind, gone: int) -> None:
        if not gone:
            return
        self.runtime.metrics.count("retention_removed", float(gone), kind=kind.value)
        data = {"what": kind.value, "rows": gone}
        await add_event(self.stores.events, self.runtime, REMOVED, user_id, data)
