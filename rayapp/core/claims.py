"""Work that is claimed: one of many processes holds a row for a time, under a fence.

A claim ends by itself, so a process that dies leaves nothing behind. Each claim of a row has a
higher fence than the one before: who comes back late has lost it and changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

Row = TypeVar("Row")
# An offer makes it higher by one, and a claim too.
FIRST_FENCE = 2


class WorkState(StrEnum):
    """WAITING: due now or later, claimed or not. DONE: finished. DEAD: given up on."""

    WAITING = "waiting"
    DONE = "done"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Claim(Generic[Row]):
    """A row in hand. `fence`: of this claim; `tries`: those before it that failed."""

    row: Row
    fence: int
    tries: int = 0

    @property
    def first(self) -> bool:
        """Nobody ever held this row, and it was offered once."""
        return self.fence == FIRST_FENCE


@dataclass(frozen=True, slots=True)
class Queued(Generic[Row]):
    """A row as it stands in the queue; `error`: of the last try that failed."""

    row: Row
    state: WorkState
    tries: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a row waits after each failed try, seconds, and how many it has."""

    pause_s: float
    most_s: float
    tries: int

    def pause(self, failed: int, random: float) -> float | None:
        """After so many failed tries, this one among them; None: it is given up on.

        `random` of 0 to 1 spreads them, so that not all come back at once.
        """
        if failed >= self.tries:
            return None
        return min(self.pause_s * 2.0 ** (failed - 1), self.most_s) * (0.5 + random)


class ClaimQueue(Protocol[Row]):
    """Rows that are worked on one by one, by whoever claims them.

    Who has lost a claim changes nothing: `beat`, `keep`, `finish`, `retry` and `bury` answer False.
    """

    async def offer(self, row: Row, *, priority: int = 0, delay_s: float = 0.0) -> None:
        """Put a row into the queue, in the place of the one with its key.

        Whoever works on the earlier one has lost it. The lowest `priority` is taken first.
        """

    async def offer_all(self, rows: Sequence[Row], *, priority: int = 0) -> None:
        """Several at once, each as `offer` does."""

    async def claim(self, owner: str, limit: int, claim_s: float) -> list[Claim[Row]]:
        """Take what is due for `claim_s` seconds; takes over what others let end."""

    async def beat(self, claim: Claim[Row], claim_s: float) -> bool:
        """Hold it for so long from now."""

    async def keep(self, claim: Claim[Row], row: Row) -> bool:
        """Keep how far the work has come; a crash goes on from there."""

    async def finish(self, claim: Claim[Row], row: Row | None) -> bool:
        """Keep what came of it; None: nothing, the row goes."""

    async def keep_all(self, kept: Sequence[tuple[Claim[Row], Row]]) -> list[bool]:
        """Several at once, each as `keep` does."""

    async def finish_all(self, done: Sequence[tuple[Claim[Row], Row]]) -> list[bool]:
        """Several at once, each as `finish` does; what the same claim has finished before counts as
        held."""

    async def retry(self, claim: Claim[Row], *, delay_s: float, error: str, counts: bool) -> bool:
        """Try again later. `counts` False: something was away, and the try is none."""

    async def bury(self, claim: Claim[Row], error: str) -> bool:
        """Give it up: the row stays, and nobody takes it until it is offered again."""

    async def count(self, state: WorkState) -> int:
        """Rows of all users in this state."""


async def put_back(
    queue: ClaimQueue[Row], claim: Claim[Row], error: str, *, backoff: Backoff, random: float
) -> bool:
    """After a try that failed: later, or never again. False: it was lost."""
    pause = backoff.pause(claim.tries + 1, random)
    if pause is None:
        return await queue.bury(claim, error)
    return await queue.retry(claim, delay_s=pause, error=error, counts=True)
