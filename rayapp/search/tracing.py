"""What happened to one request: stage times, what was skipped, which errors were absorbed."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rayapp.core.deadline import Span, exclusive_ms
from rayapp.core.errors import BadVector, DeadlineExceeded, DependencyDown, Overloaded, RayappError
from rayapp.core.runtime import Clock, Metrics
from rayapp.search.requests import StageError

log = logging.getLogger("rayapp.search")
# A stage that fails with one of these is skipped and said so; anything else is a bug and raises.
ABSORBED = (DependencyDown, DeadlineExceeded, Overloaded, BadVector, TimeoutError)


class Trace:
    """Collects stage times, degraded reasons and stage errors of one request.

    `timings_ms` are the whole times of stages, which may overlap; `finish` gives those that add up.
    """

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._started = clock.monotonic()
        self.timings_ms: dict[str, float] = {}
        self.spans: list[Span] = []
        self.degraded: list[str] = []
        self.errors: list[StageError] = []

    @asynccontextmanager
    async def stage(
        self,
        name: str,
        *,
        degrades: str | None = None,
        absorbs: tuple[type[Exception], ...] = ABSORBED,
    ) -> AsyncIterator[None]:
        """Time a stage. With `degrades`, the errors in `absorbs` are recorded, not raised."""
        begun = self._clock.monotonic()
        try:
            yield
        except absorbs as error:
            if degrades is None:
                raise
            self.degrade(degrades, name, error)
        finally:
            ended = self._clock.monotonic()
            taken = ended - begun
            self.spans.append(Span(name, begun, ended))
            before = self.timings_ms.get(f"{name}_ms", 0.0)
            self.timings_ms[f"{name}_ms"] = round(before + taken * 1000, 3)
            self._metrics.observe("stage_latency_s", taken, stage=name)

    def degrade(self, reason: str, stage: str, error: Exception | None = None) -> None:
        """Say that a stage was skipped: on the answer, in a counter, in the log."""
        if reason not in self.degraded:
            self.degraded.append(reason)
            self._metrics.count("degraded", reason=reason)
        if error is not None:
            code = error.code if isinstance(error, RayappError) else "timeout"
            message = str(error) or "The stage ran out of time."
            self.errors.append(StageError(stage=stage, message=message, code=code))
            log.warning("stage %s skipped: %s", stage, message)
        else:
            log.info("stage %s skipped: %s", stage, reason)

    def finish(self, inner: Sequence[Span] = ()) -> dict[str, float]:
        """Milliseconds per stage, each instant counted once: their sum is the time until now.

        `inner` are stages of a search within this request.
        """
        return exclusive_ms([*inner, *self.spans], self._started, self._clock.monotonic())
