"""What the owner of maintenance does at its own times: named duties, and when each is due."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from rayapp.core.errors import RayappError
from rayapp.core.ports import Clock

log = logging.getLogger("rayapp.duties")
# After a duty failed, or asked for it, it is tried again so soon, seconds; sooner when it is due.
RETRY_S = 60.0
# `every_s` of a duty that is done once in the life of an owner.
ONCE = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """One thing that the owner does again and again.

    Attributes:
        every_s: pause from one begin to the next one.
        first_s: pause before the first one, from when a process became the owner.
        run: False = it was not done, and is tried again soon.
    """

    name: str
    every_s: float
    first_s: float
    run: Callable[[], Awaitable[bool]]


class Duties:
    """Runs what is due, one after the other. A duty that fails never stops the others."""

    def __init__(self, duties: Sequence[Duty], clock: Clock) -> None:
        self._duties = tuple(duties)
        self._clock = clock
        self._due: dict[str, float] = {}

    def forget(self) -> None:
        """This process is not the owner any more: it begins anew when it is."""
        self._due = {}

    async def run_due(self) -> None:
        now = self._clock.monotonic()
        for duty in self._duties:
            due = self._due.setdefault(duty.name, now + duty.first_s)
            if due <= now:
                await self._run(duty)

    async def _run(self, duty: Duty) -> None:
        began, done = self._clock.monotonic(), False
        try:
            done = await duty.run()
        except RayappError as error:
            log.warning("%s waits: %s", duty.name, error.message)
        except Exception:  # a bug in one duty must not stop the others
            log.exception("%s failed and is tried again", duty.name)
        self._due[duty.name] = began + (duty.every_s if done else min(duty.every_s, RETRY_S))
