"""Room on the disk of the data: says early that it goes, and keeps a reserve for what runs.

MongoDB ends itself when a write of its own finds no space, and then nobody can read either
(decision 0051). So writes are refused while there still is some: ok → low below `warn_bytes` →
tight below `bulk_bytes`, where work that takes much is refused → full below `min_bytes`, and back
only above the same bound plus a margin, so that it does not flap.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rayapp.core.errors import StoreFull

# A state is left at 1.25 times the bound at which it was entered: what one checkpoint of MongoDB
# gives back and takes again is less (measured).
MARGIN = 1.25
# Down to this share of the reserve the index takes in what was stored. A part of its own, because a
# state is left by what one process has seen: what one process still accepts, another must index.
INDEX_SHARE = 2
# Below this share of the reserve nothing at all is written, deletions neither, and a server that
# ended is not started again: it would only end once more.
LAST_SHARE = 4
RETRY_AFTER_S = 30.0
MIB = 1 << 20

# (total, free) bytes.
Measure = Callable[[], tuple[int, int]]


def measured(folder: Path) -> tuple[int, int]:
    """(total, free) bytes of the disk of the folder, or of the nearest one above it that exists."""
    existing = next(one for one in (folder, *folder.parents) if one.exists())
    usage = shutil.disk_usage(existing)
    return usage.total, usage.free


class DiskState(StrEnum):
    OK = "ok"
    LOW = "low"
    TIGHT = "tight"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLimits:
    """Free bytes below which it is said, below which jobs, imports and uploads of documents are
    refused, and below which every write is."""

    warn_bytes: int
    min_bytes: int
    bulk_bytes: int = 0

    @property
    def steps(self) -> tuple[tuple[DiskState, int], ...]:
        """The states by their bounds, the worst first."""
        bulk = max(self.bulk_bytes, self.min_bytes)
        warn = max(self.warn_bytes, bulk)
        return (DiskState.FULL, self.min_bytes), (DiskState.TIGHT, bulk), (DiskState.LOW, warn)

    @property
    def index_bytes(self) -> int:
        return self.min_bytes // INDEX_SHARE

    @property
    def last_bytes(self) -> int:
        return self.min_bytes // LAST_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskReport:
    """One look; `reason` is a sentence that says what to do, empty while there is room."""

    folder: str
    state: DiskState
    total_bytes: int
    free_bytes: int
    reason: str


def judge(before: DiskState, free_bytes: int, limits: DiskLimits) -> DiskState:
    """The state that follows `before` when so many bytes are free."""
    order = list(DiskState)
    for state, bound in limits.steps:
        was_there = order.index(before) >= order.index(state)
        if free_bytes < bound * (MARGIN if was_there else 1.0):
            return state
    return DiskState.OK


def reason_of(folder: str, state: DiskState, free_bytes: int, limits: DiskLimits) -> str:
    """What is the matter and what to do, in one sentence; empty when nothing is."""
    left = f"{free_bytes // MIB} MiB are left"
    if state is DiskState.FULL:
        enough = round(limits.min_bytes * MARGIN) // MIB
        return (
            f"The disk of {folder} is full ({left}, writes go on at {enough} MiB): free space "
            "on it, or move data.dir to a larger one"
        )
    if state is DiskState.TIGHT:
        enough = round(limits.bulk_bytes * MARGIN) // MIB
        return (
            f"The disk of {folder} is nearly full ({left}; jobs, imports and uploads go on at "
            f"{enough} MiB): free space on it, or move data.dir to a larger one"
        )
    if state is DiskState.LOW:
        return (
            f"The disk of {folder} is filling up ({left}, writes are refused below "
            f"{limits.min_bytes // MIB} MiB): free space on it"
        )
    return ""


class DiskSpace:
    """The disk of one folder. A look is one system call; it is made anew for every write.

    `measure`: None when the data are on another machine: then there is nothing to look at.
    """

    def __init__(self, folder: str, limits: DiskLimits, measure: Measure | None) -> None:
        self.folder = folder
        self._limits = limits
        self._measure = measure
        self._state = DiskState.OK

    def look(self) -> DiskReport | None:
        """None when there is nothing to look at."""
        if self._measure is None:
            return None
        total, free = self._measure()
        self._state = judge(self._state, free, self._limits)
        return DiskReport(
            folder=self.folder,
            state=self._state,
            total_bytes=total,
            free_bytes=free,
            reason=reason_of(self.folder, self._state, free, self._limits),
        )

    @property
    def full(self) -> bool:
        """Whether writes are refused now."""
        found = self.look()
        return found is not None and found.state is DiskState.FULL

    @property
    def full_for_index(self) -> bool:
        """Whether the index takes in nothing now."""
        found = self.look()
        return found is not None and found.free_bytes < self._limits.index_bytes

    @property
    def exhausted(self) -> bool:
        """Whether even the reserve is nearly used up."""
        found = self.look()
        return found is not None and found.free_bytes < self._limits.last_bytes

    @property
    def tight(self) -> bool:
        """Whether work that takes much room is refused now."""
        found = self.look()
        return found is not None and found.state in (DiskState.TIGHT, DiskState.FULL)

    def check(self, *, frees: bool = False, bulk: bool = False) -> None:
        """Before a write; with `frees` one after which less is kept, with `bulk` one that takes
        much.

        Raises StoreFull: there is no room, and nothing was stored.
        """
        found = self.look()
        if found is None or found.state in (DiskState.OK, DiskState.LOW):
            return
        if found.state is DiskState.TIGHT and not bulk:
            return
        if frees and found.free_bytes >= self._limits.last_bytes:
            return
        raise StoreFull(
            f"{found.reason}; nothing was stored.",
            details={"folder": found.folder, "free_bytes": found.free_bytes},
            retry_after_s=RETRY_AFTER_S,
        )


# For processes whose data are on other machines, and for tests.
ELSEWHERE = DiskSpace("", DiskLimits(warn_bytes=0, min_bytes=0), None)
