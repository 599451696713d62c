"""Processes by identity: pid and creation time, session, or the mark in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable

import psutil
from pydantic import BaseModel, ConfigDict

# Every process of a stack inherits `<stack id>/<service>`. Ray's workers leave the process group of
# their parent and survive it; the mark and the session stay. Some programs write their title over
# the environment (Ray's dashboard): those are found by their session.
MARK = "RAYAPP_STACK"
# psutil derives the creation time from the boot time, which moves when the clock is set.
CREATE_TIME_SLACK_S = 2.0


class ProcessRef(BaseModel):
    """A process that cannot be mistaken for a later one with the same pid."""

    model_config = ConfigDict(frozen=True)

    name: str
    pid: int
    create_time: float

    @classmethod
    def of(cls, name: str, pid: int) -> ProcessRef:
        """Raises psutil.NoSuchProcess when it is gone already."""
        return cls(name=name, pid=pid, create_time=psutil.Process(pid).create_time())

    def find(self) -> psutil.Process | None:
        """The process while it runs; None when it is gone or its pid has another owner."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.create_time) < CREATE_TIME_SLACK_S
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if same and alive else None


def mark_of(stack_id: str, service: str) -> dict[str, str]:
    """The environment entry that marks a process and its descendants."""
    return {MARK: f"{stack_id}/{service}"}


def members(
    stack_id: str, service: str = "", leaders: Iterable[ProcessRef] = ()
) -> list[psutil.Process]:
    """Living processes of a stack, or of one service of it.

    Args:
        leaders: its session leaders, alive or not.
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
    """False when the pid has another owner by now.

    While one process of a session lives, the kernel does not give its number to a new process.
    Number 0 is the session of every kernel thread, and of whatever entered this pid namespace
    from outside: nobody owns it.
    """
    if ref.pid <= 0 or ref.create_time < psutil.boot_time() - CREATE_TIME_SLACK_S:
        return False
    return ref.find() is not None or not psutil.pid_exists(ref.pid)


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
