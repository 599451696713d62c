"""Processes by identity, and one server of a local stack: start, readiness, restart."""

import contextlib
import http.client
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Self

import psutil
from pydantic import BaseModel, ConfigDict

from rayapp.core.errors import ConfigError
from rayapp.local.stack.paths import rotate, tail
from rayapp.local.stack.programs import explain

# Every process of a stack inherits `<stack id>/<service>`. Ray's workers leave the process group of
# their parent and survive it; the mark and the session stay. Some programs write their title over
# the environment (Ray's dashboard): those are found by their session.
MARK = "RAYAPP_STACK"
# Which boot this is; only Linux says so.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Seconds; the parts of the difference below are read one after the other.
SAME_START_S = 2.0


class ProcessRef(BaseModel):
    """A process that cannot be mistaken for a later one with the same pid.

    `started_s`: after the boot, because a time of day moves when the clock is set.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    pid: int
    started_s: float
    boot: str = ""

    @classmethod
    def of(cls, name: str, pid: int) -> Self:
        """Raises psutil.NoSuchProcess when it is gone already."""
        return cls(name=name, pid=pid, started_s=_started_s(psutil.Process(pid)), boot=_boot())

    def find(self) -> psutil.Process | None:
        """The process while it runs; None when it is gone or its pid has another owner."""
        try:
            process = psutil.Process(self.pid)
            same = abs(_started_s(process) - self.started_s) < SAME_START_S
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if same and alive and self.boot == _boot() else None


def _started_s(process: psutil.Process) -> float:
    # psutil adds the time of the boot, as it is by now.
    return process.create_time() - psutil.boot_time()


def _boot() -> str:
    try:
        return BOOT_ID.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def mark_of(stack_id: str, service: str) -> dict[str, str]:
    """The environment entry that marks a process and its descendants."""
    return {MARK: f"{stack_id}/{service}"}


def spawn(
    command: list[str],
    mark: Mapping[str, str],
    log: IO[bytes],
    *,
    stdin: int = subprocess.DEVNULL,
    detached: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a process of a stack.

    Args:
        mark: `mark_of`, with what else it finds in its environment.
        detached: in a session of its own, which outlives this process.
    """
    return subprocess.Popen(
        command,
        env=os.environ | mark,
        stdin=stdin,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=detached,
    )


def members(
    stack_id: str, service: str = "", leaders: Iterable[ProcessRef] = ()
) -> list[psutil.Process]:
    """Living processes of a stack, or of one service of it.

    `leaders`: its session leaders, alive or not.
    """
    sessions = {ref.pid for ref in leaders if _owns_session(ref)}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            ours = os.getsid(process.pid) in sessions or _mark(process).startswith(
                f"{stack_id}/{service}"
            )
            if ours and is_alive(process):
                found.append(process)
    return found


def _mark(process: psutil.Process) -> str:
    """Empty for processes of other users, whose environment cannot be read."""
    with contextlib.suppress(psutil.AccessDenied):
        return process.environ().get(MARK, "")
    return ""


def _owns_session(ref: ProcessRef) -> bool:
    """False when the pid has another owner by now. While one process of a session lives, the kernel
    does not give its number to a new process. Number 0 is the session of every kernel thread, and
    of whatever entered this pid namespace from outside: nobody owns it."""
    if ref.pid <= 0 or ref.boot != _boot():
        return False
    return ref.find() is not None or not psutil.pid_exists(ref.pid)


def http_get(host: str, port: int, path: str, timeout_s: float) -> http.client.HTTPResponse | None:
    """The answer without its body; None when nothing answers."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        return connection.getresponse()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stop_all(
    processes: Iterable[psutil.Process], *, wait_s: float, grace_s: float | None = None
) -> int:
    """SIGTERM, wait, SIGKILL what is left; returns how many needed the SIGKILL.

    Args:
        wait_s: how long their end may take.
        grace_s: how long they may take to end by themselves, `wait_s` by default; 0 asks nobody.
    """
    left = [process for process in processes if is_alive(process)]
    if grace_s is None or grace_s > 0:
        _signal(left, signal.SIGTERM)
        _, left = psutil.wait_procs(left, timeout=wait_s if grace_s is None else grace_s)
        left = [process for process in left if is_alive(process)]
    _signal(left, signal.SIGKILL)
    psutil.wait_procs(left, timeout=wait_s)
    return len(left)


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


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
            mark = mark_of(self.stack_id, self.name)
            self.process = spawn(self.command, self.env | mark, log)
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

        Raises ConfigError: it ended, or was not ready in time; says why.
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

        Raises ConfigError: it ended, or is not ready in time; said once.
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
