"""Memory of every process of a local stack."""

import contextlib
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import psutil

from rayapp.core.errors import ConfigError
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.processes import members
from rayapp.local.stack.state import read_state

KIB = 1024
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """PSS counts a shared page once over all its users, so the sum of a stack is honest."""

    pid: int
    name: str
    rss_mib: float
    pss_mib: float


def stack_memory(data_dir: Path) -> list[ProcessMemory]:
    """All processes of the stack of this data directory, largest first.

    Raises:
        ConfigError: no stack runs there.
    """
    rows = []
    for process in stack_processes(data_dir):
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            rows.append(_memory(process))
    return sorted(rows, key=lambda row: -row.pss_mib)


def stack_cpu(data_dir: Path) -> dict[str, float]:
    """Seconds that the processes of the stack have computed so far, by what they are called.

    Raises:
        ConfigError: no stack runs there.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    for process in stack_processes(data_dir):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds[_short_name(process)] += times.user + times.system
    return seconds


def stack_processes(data_dir: Path) -> Collection[psutil.Process]:
    """The living processes of the stack of this data directory.

    Raises:
        ConfigError: no stack runs there.
    """
    state = read_state(StackPaths.of(data_dir))
    if state is None:
        raise ConfigError(f"No stack runs in {data_dir}: start one with `rayapp up`.")
    found = {process.pid: process for process in members(state.stack_id, leaders=state.children)}
    supervisor = state.supervisor.find()
    if supervisor is not None:
        found[supervisor.pid] = supervisor
    return found.values()


def _memory(process: psutil.Process) -> ProcessMemory:
    return ProcessMemory(
        process.pid,
        _short_name(process),
        process.memory_info().rss / MIB,
        pss_bytes(Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii")) / MIB,
    )


def pss_bytes(rollup: str) -> int:
    """The `Pss:` line of a smaps_rollup, in bytes."""
    for line in rollup.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * KIB
    raise ValueError("no Pss line in smaps_rollup")


def _short_name(process: psutil.Process) -> str:
    """`ray::ServeReplica:…` titles as they are, else program and module."""
    line = process.cmdline()
    if not line:
        return process.name()
    if line[0].startswith("ray::"):
        return line[0].split()[0]
    words = [Path(line[0]).name]
    if "-m" in line[1:-1]:
        words.append(line[line.index("-m") + 1])
    elif len(line) > 1 and line[1].endswith(".py"):
        words.append(Path(line[1]).name)
    return " ".join(words)
