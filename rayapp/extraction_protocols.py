"""The seam of what is learned from conversations: the queue of stored exchanges.

Errors: an implementation raises only classes of `rayapp.errors`. Times are tz-aware UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from rayapp.domain.extraction.exchange import LearnedExchange
from rayapp.domain.scope import ReadScope, WriteScope

# How the work on an exchange ended. `skipped`: nothing was to be asked; `failed`: tried enough.
WorkEnd = Literal["done", "skipped", "failed"]
# A reaction or a summary a week later is about nothing, and the texts of a user lie here a second
# time. Our choice.
EXCHANGE_TTL_S = 7 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedExchange:
    """`plan`: what was decided about it so far, as plain JSON. `attempts`: tries that failed."""

    exchange: LearnedExchange
    attempts: int = 0
    plan: Mapping[str, Any] = field(default_factory=dict)


class ExchangeSink(Protocol):
    """Where the hook leaves a turn."""

    async def offer(self, scope: WriteScope, exchange: LearnedExchange) -> bool:
        """Queue a turn, once per conversation and message; False when it was queued before.

        Raises Forbidden when it is not the scope's own.
        """
        ...


class ExchangeQueue(ExchangeSink, Protocol):
    """`exchanges`: each turn is worked on once, by whoever claims it. Rows live for a week.

    Whoever has lost its claim changes nothing: `keep`, `finish` and `again` answer False then.
    """

    async def claim(
        self, *, token: str, limit: int, claim_s: float, per_user: int | None = None
    ) -> list[ClaimedExchange]:
        """Take what is due for `claim_s` seconds; takes over expired.

        One turn of each user in turn, each user's oldest first, at most `per_user` of one; none of
        a user whose earlier turn is being worked on or was put back and is not due.
        The next claim goes on behind the last user of this one, so nobody's backlog is in the way.
        """
        ...

    async def keep(self, exchange: LearnedExchange, token: str, plan: Mapping[str, Any]) -> bool:
        """Keep what was decided, before it is done: a crash repeats the doing, not the deciding."""
        ...

    async def finish(
        self, exchange: LearnedExchange, token: str, end: WorkEnd, notes: Mapping[str, str]
    ) -> bool:
        """The turn is not looked at again, and its plan is dropped.

        `notes`: what came of it, by task; no text of users.
        """
        ...

    async def again(
        self, exchange: LearnedExchange, token: str, *, delay_s: float, error: str, blamed: bool
    ) -> bool:
        """Try again later. `blamed` False: something was away, and the try does not count."""
        ...

    async def earlier(
        self, scope: ReadScope, exchange: LearnedExchange, limit: int
    ) -> list[LearnedExchange]:
        """The turns of its conversation before it, the newest first."""
        ...

    async def number_of(self, scope: ReadScope, exchange: LearnedExchange) -> int:
        """Which turn of its conversation it is, from 1, among those that became memories."""
        ...

    async def erase(self, exchange: LearnedExchange) -> None:
        """Its memory is gone: so are its texts and its plan, and nobody works on it any more.

        The row stays, so that no other turn is taken for the one before the next message.
        """
        ...

    async def purge(self, point_ids: Sequence[str]) -> None:
        """Erase the turns that these memories held, as `erase` does."""
        ...

    async def skip_waiting(self, why: str, limit: int) -> int:
        """End so many waiting turns without looking at them; how many there were."""
        ...

    async def waiting(self) -> int:
        """Turns that are not finished, of all users."""
        ...
