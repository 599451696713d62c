"""The queue of stored exchanges in process memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from rayapp.assistant.extraction.rules.facts import LearnedExchange, in_rounds
from rayapp.assistant.ports import EXCHANGE_TTL_S, REPLACED_TTL_S, ClaimedExchange, WorkEnd
from rayapp.core.errors import Forbidden
from rayapp.core.runtime import Clock
from rayapp.memory.item import point_id_of
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.stores.rows import to_ms

LIFETIME = timedelta(seconds=EXCHANGE_TTL_S)


@dataclass(slots=True)
class _Kept:
    """`at`: what its place in the queue and its end are told by."""

    exchange: LearnedExchange
    at: datetime
    due: datetime
    state: str = "waiting"
    attempts: int = 0
    claim: str | None = None
    plan: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    error: str | None = None


class InMemoryExchangeQueue:
    """Implements `ExchangeQueue`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[tuple[str, str, str], _Kept] = {}
        self._last_user = ""

    async def offer(self, scope: WriteScope, exchange: LearnedExchange) -> bool:
        if checked_user(scope.user_id) != exchange.user_id:
            raise Forbidden("An exchange is queued by its own user: use their scope.")
        if exchange.key in self._rows:
            return False
        kept = replace(exchange, at=to_ms(exchange.at))
        self._rows[exchange.key] = _Kept(kept, at=kept.at, due=to_ms(self._clock.now()))
        return True

    async def replace(self, scope: WriteScope, exchange: LearnedExchange) -> None:
        self._rows.pop(exchange.key, None)
        await self.offer(scope, exchange)
        kept = self._rows[exchange.key]
        kept.at = max(kept.at, kept.due - LIFETIME + timedelta(seconds=REPLACED_TTL_S))

    async def claim(
        self, *, token: str, limit: int, claim_s: float, per_user: int | None = None
    ) -> list[ClaimedExchange]:
        now, last = self._clock.now(), self._last_user
        rows = [kept for kept in self._living() if kept.state == "waiting"]
        rows.sort(key=lambda kept: (kept.at, kept.exchange.message_id))
        busy = {kept.exchange.user_id for kept in rows if kept.claim and kept.due > now}
        queues: dict[str, list[_Kept]] = {}
        for kept in rows:
            if kept.exchange.user_id not in busy:
                queues.setdefault(kept.exchange.user_id, []).append(kept)
        # A user's turns are taken in their order: one that is not due yet holds up the next.
        ready = {
            user: list(takewhile(lambda kept: kept.due <= now, queue))
            for user, queue in queues.items()
        }
        waiting = {user: queue for user, queue in ready.items() if queue}
        users = sorted(waiting, key=lambda user: (user <= last, user))[: max(0, limit)]
        self._last_user = users[-1] if users else last
        taken = in_rounds([waiting[user][:per_user] for user in users])[: max(0, limit)]
        for kept in taken:
            kept.claim, kept.due = token, now + timedelta(seconds=claim_s)
        return [
            ClaimedExchange(exchange=kept.exchange, attempts=kept.attempts, plan=dict(kept.plan))
            for kept in taken
        ]

    async def keep(self, exchange: LearnedExchange, token: str, plan: Mapping[str, Any]) -> bool:
        kept = self._held(exchange, token)
        if kept is not None:
            kept.plan = dict(plan)
        return kept is not None

    async def finish(
        self, exchange: LearnedExchange, token: str, end: WorkEnd, notes: Mapping[str, str]
    ) -> bool:
        kept = self._held(exchange, token)
        if kept is not None:
            kept.state, kept.notes, kept.claim = end, dict(notes), None
            kept.plan = {}
        return kept is not None

    async def again(
        self, exchange: LearnedExchange, token: str, *, delay_s: float, error: str, blamed: bool
    ) -> bool:
        kept = self._held(exchange, token)
        if kept is not None:
            kept.attempts += blamed
            kept.due = self._clock.now() + timedelta(seconds=delay_s)
            kept.error, kept.claim = error, None
        return kept is not None

    async def earlier(
        self, scope: ReadScope, exchange: LearnedExchange, limit: int
    ) -> list[LearnedExchange]:
        end = _order(replace(exchange, at=to_ms(exchange.at)))
        found = [one for one in self._conversation(scope, exchange) if _order(one) < end]
        return sorted(found, key=_order, reverse=True)[: max(0, limit)]

    async def erase(self, exchange: LearnedExchange) -> None:
        kept = self._rows.get(exchange.key)
        if kept is not None:
            _erase(kept)

    async def purge(self, point_ids: Sequence[str]) -> None:
        wanted = set(point_ids)
        for kept in self._rows.values():
            memory_id = kept.exchange.memory_id
            if memory_id and point_id_of(kept.exchange.user_id, memory_id) in wanted:
                _erase(kept)

    async def skip_waiting(self, why: str, limit: int) -> int:
        waiting = [kept for kept in self._living() if kept.state == "waiting"][: max(0, limit)]
        for kept in waiting:
            kept.state, kept.notes, kept.claim = "skipped", {"all": why}, None
        return len(waiting)

    async def waiting(self) -> int:
        return sum(kept.state == "waiting" for kept in self._living())

    def result_of(self, exchange: LearnedExchange) -> tuple[str, dict[str, str]]:
        """(state, notes), for tests."""
        kept = self._rows[exchange.key]
        return kept.state, dict(kept.notes)

    def _conversation(self, scope: ReadScope, exchange: LearnedExchange) -> list[LearnedExchange]:
        wanted = (checked_user(scope.user_id), exchange.conversation_id)
        rows = (kept.exchange for kept in self._living())
        return [one for one in rows if (one.user_id, one.conversation_id) == wanted]

    def _living(self) -> list[_Kept]:
        oldest = self._clock.now() - LIFETIME
        return [kept for kept in self._rows.values() if kept.at > oldest]

    def _held(self, exchange: LearnedExchange, token: str) -> _Kept | None:
        kept = self._rows.get(exchange.key)
        held = kept is not None and kept.claim == token and kept.state == "waiting"
        return kept if held else None


def _erase(kept: _Kept) -> None:
    kept.exchange = replace(kept.exchange, user_text="", answer="", injected=())
    kept.plan, kept.claim = {}, None
    if kept.state == "waiting":
        kept.state, kept.notes = "skipped", {"all": "gone"}


def _order(exchange: LearnedExchange) -> tuple[datetime, str]:
    return exchange.at, exchange.message_id
