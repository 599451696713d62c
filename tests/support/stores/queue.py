"""The index queue of the in-memory store: claims, results, backlog."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rayapp.core.runtime import Clock
from rayapp.core.vectors import IndexSchema
from rayapp.memory.item import IndexOp, MemoryItem, Status, SyncState
from rayapp.memory.ports import IndexBacklog, IndexResult
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.rules.revision import requeued
from tests.support.stores.rows import Row


class InMemoryQueue:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[str, Row] = {}
        self._last_user = ""

    async def claim(self, *, token: str, limit: int, claim_s: float) -> list[MemoryItem]:
        now = self._now()
        due = [row for row in self._rows.values() if row.due_at is not None and row.due_at <= now]
        taken = _fair(due, limit, self._last_user)
        if taken:
            self._last_user = taken[-1].item.user_id
        for row in taken:
            state = replace(
                row.item.index, claim=token, next_attempt_at=now + timedelta(seconds=claim_s)
            )
            row.hold(replace(row.item, index=state), now)
        return [row.item for row in taken]

    async def finish(self, token: str, results: Sequence[IndexResult], schema: IndexSchema) -> int:
        return sum(self._finish_one(token, result, schema) for result in results)

    async def mark_all_pending(self) -> int:
        now, marked = self._now(), 0
        for row in self._rows.values():
            failed = row.item.index.sync_state is SyncState.FAILED
            if row.item.status is Status.ACTIVE and not failed:
                state = requeued(row.item.index, IndexOp.VECTOR, now)
                row.hold(replace(row.item, index=state), now)
                marked += 1
        return marked

    async def mark_restored(self) -> int:
        now = self._now()
        for row in self._rows.values():
            active = row.item.status is Status.ACTIVE
            op = IndexOp.VECTOR if active else IndexOp.DELETE
            state = requeued(row.item.index, op, now)
            above = max(state.rev, round(now.timestamp() * 1000))
            row.hold(replace(row.item, index=replace(state, rev=above)), now)
        return len(self._rows)

    async def backlog(self) -> IndexBacklog:
        states = [row.item.index.sync_state for row in self._rows.values()]
        since = [row.pending_since for row in self._rows.values() if row.pending_since]
        age = (self._now() - min(since)).total_seconds() if since else 0.0
        rows = self._rows.values()
        fresh = [r.pending_since for r in rows if r.pending_since and not r.item.index.attempts]
        untried = (self._now() - min(fresh)).total_seconds() if fresh else None
        return IndexBacklog(
            pending=states.count(SyncState.PENDING),
            synced=states.count(SyncState.SYNCED),
            failed=states.count(SyncState.FAILED),
            oldest_pending_s=max(0.0, age),
            oldest_untried_s=untried,
        )

    async def failures(self, limit: int, user_id: str | None = None) -> list[MemoryItem]:
        return self._failed(user_id)[: max(0, limit)]

    async def retry_failed(self, user_id: str | None = None) -> int:
        now, failed = self._now(), self._failed(user_id)
        for item in failed:
            row = self._rows[item.point_id]
            row.hold(replace(item, index=requeued(item.index, item.index.op, now)), now)
        return len(failed)

    async def requeue(self, user_id: str | None) -> int:
        changed, now = await self.retry_failed(user_id), self._now()
        for row in self.rows_of(user_id):
            state = row.item.index
            if row.due_at is not None and row.due_at > now and state.claim is None:
                row.hold(replace(row.item, index=replace(state, next_attempt_at=now)), now)
                changed += 1
        return changed

    async def waiting(self, user_id: str | None) -> int:
        owed = {SyncState.PENDING, SyncState.FAILED}
        return sum(row.item.index.sync_state in owed for row in self.rows_of(user_id))

    async def waiting_since(self, user_id: str | None, since: datetime) -> int:
        waits = (row.pending_since for row in self.rows_of(user_id))
        return sum(at is not None and at <= since for at in waits)

    def rows_of(self, user_id: str | None) -> list[Row]:
        owner = None if user_id is None else checked_user(user_id)
        return [row for row in self._rows.values() if owner in (None, row.item.user_id)]

    def living(self, user_id: str) -> list[MemoryItem]:
        items = (row.item for row in self.rows_of(user_id))
        return [item for item in items if item.status is not Status.DELETED]

    def _failed(self, user_id: str | None = None) -> list[MemoryItem]:
        items = (row.item for row in self.rows_of(user_id))
        return [item for item in items if item.index.sync_state is SyncState.FAILED]

    def _now(self) -> datetime:
        now = self._clock.now()
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def _finish_one(self, token: str, result: IndexResult, schema: IndexSchema) -> bool:
        row = self._rows.get(result.point_id)
        if row is None or row.item.index.claim != token:
            return False
        now, item = self._now(), row.item
        if item.index.rev != result.rev:
            state = replace(item.index, claim=None, next_attempt_at=now)
            row.hold(replace(item, index=state), now)
            return False
        if result.context_prefix:
            row.hold(replace(item, context_prefix=result.context_prefix), now)
        if result.error is not None:
            self._fail(row, result)
        elif (
            result.op is IndexOp.DELETE
            and item.status is Status.DELETED
            and row.contributed is None
        ):
            del self._rows[result.point_id]
        else:
            self._succeed(row, result, schema)
        return True

    def _fail(self, row: Row, result: IndexResult) -> None:
        state = replace(
            row.item.index,
            sync_state=SyncState.FAILED if result.failed else SyncState.PENDING,
            attempts=row.item.index.attempts + int(result.blamed),
            next_attempt_at=None if result.failed else result.next_attempt_at or self._now(),
            claim=None,
            last_error=result.error,
        )
        row.hold(replace(row.item, index=state), self._now())

    def _succeed(self, row: Row, result: IndexResult, schema: IndexSchema) -> None:
        state = replace(
            row.item.index,
            sync_state=SyncState.SYNCED,
            attempts=0,
            next_attempt_at=None,
            claim=None,
            last_error=None,
            indexed_at=self._now(),
        )
        if result.op is IndexOp.VECTOR:
            state = replace(
                state,
                model=schema.model,
                dims=schema.dims,
                analyser=schema.analyser,
                vector_hash=result.vector_hash,
            )
        row.hold(replace(row.item, index=state), self._now())


def _fair(due: list[Row], limit: int, last_user: str) -> list[Row]:
    """One item of each user in turn from after `last_user`, alternately newest and oldest."""
    waiting: dict[str, list[Row]] = {}
    for row in sorted(due, key=lambda row: row.due_at or row.item.stored_at):
        waiting.setdefault(row.item.user_id, []).append(row)
    users = sorted(waiting, key=lambda user: (user <= last_user, user))
    taken: list[Row] = []
    newest = True
    while users and len(taken) < limit:
        for user in users[: limit - len(taken)]:
            taken.append(waiting[user].pop(-1 if newest else 0))
        users = [user for user in users if waiting[user]]
        newest = not newest
    return taken
