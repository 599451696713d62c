"""One server process of a local stack: start, readiness, restart with backoff."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rayapp.core.errors import ConfigError
from rayapp.local.stack.binaries import explain
from rayapp.local.stack.paths import rotate, tail
from rayapp.local.stack.processes import ProcessRef, mark_of, members, stop_all

POLL_S = 0.05
# Pauses before the restarts of a server that keeps dying; the last one repeats.
BACKOFF_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
# A server that lived this long starts again without a pause.
STABLE_S = 60.0


@dataclass
class Child:
    """A server. `ready` is asked until it is True; `clean` runs before every start."""

    name: str
    command: list[str]
    env: dict[str, str]
    log: Path
    ready: Callable[[], bool]
    start_timeout_s: float
    stop_wait_s: float
    stack_id: str
    # Longest start after a death; `start_timeout_s` where nothing is said.
    again_timeout_s: float = 0.0
    # Folders and files that must not be there when it starts.
    clean: Callable[[], None] = lambda: None
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    started_at: float = 0.0
    leader: ProcessRef | None = None
    # Started after a death, and not seen ready since.
    returning: bool = False
    _failures: int = field(default=0, repr=False)
    _due_at: float | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start in a session of its own, output to the log, nothing left of the last time."""
        self.stop()
        self.clean()
        rotate(self.log)
        self.started_at = time.monotonic()
        self._due_at = None
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=os.environ | self.env | mark_of(self.stack_id, self.name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.leader = ProcessRef.of(self.name, self.process.pid)

    def stop(self) -> int:
        """End it with all its descendants; returns how many needed a SIGKILL.

        What outlived its leader has nobody to end it in order, and is in the way of the next start.
        """
        leaders = [self.leader] if self.leader else []
        orphans = self.leader is not None and self.ref is None
        return stop_all(
            members(self.stack_id, self.name, leaders),
            wait_s=self.stop_wait_s,
            grace_s=0.0 if orphans else self.stop_wait_s,
        )

    @property
    def ref(self) -> ProcessRef | None:
        """Identity while it runs."""
        if self.process is None or self.process.poll() is not None:
            return None
        return self.leader

    def wait_ready(self) -> Iterator[None]:
        """Yields between looks, so that the caller can stop; returns when ready.

        Raises:
            ConfigError: it ended, or was not ready in time; says why.
        """
        begun = time.monotonic()
        while not self._ready_within(self.start_timeout_s, begun):
            yield

    def start_again(self) -> None:
        """Start after a death; `has_returned` says when it is there."""
        self.start()
        self.returning = True

    def has_returned(self) -> bool:
        """One look at a server that was started again: True once, when it is ready.

        Raises:
            ConfigError: it ended, or is not ready in time; said once.
        """
        if not self.returning:
            return False
        limit_s = self.again_timeout_s or self.start_timeout_s
        try:
            there = self._ready_within(limit_s, self.started_at)
        except ConfigError:
            self.returning = False
            raise
        self.returning = not there
        return there

    def _ready_within(self, limit_s: float, begun: float) -> bool:
        if self.ready():
            return True
        if self.gone or self.process is None:
            raise ConfigError(explain(self.name, tail(self.log)))
        if time.monotonic() - begun > limit_s:
            raise ConfigError(f"{self.name} was not ready in {limit_s:.0f} s: see {self.log}.")
        return False

    @property
    def gone(self) -> bool:
        """Whether it was started and has ended."""
        return self.process is not None and self.process.poll() is not None

    def drop_pause(self) -> None:
        """What it died of was no fault of its own: the next start waits for nothing else."""
        self._failures = 0
        self._due_at = time.monotonic()

    def restart_due(self, now: float) -> bool:
        """True when the process is gone and its pause is over; call it every poll."""
        if not self.gone:
            return False
        if self._due_at is None:
            self._failures = 0 if now - self.started_at > STABLE_S else self._failures
            self._due_at = now + BACKOFF_S[min(self._failures, len(BACKOFF_S) - 1)]
            self._failures += 1
        return now >= self._due_at
