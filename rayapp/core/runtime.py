"""What every service is given by the process it runs in. Passed in, never read from the air."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rayapp.core.disk_space import ELSEWHERE, DiskSpace
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.ports import Clock
from rayapp.core.settings.model import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One per process.

    Attributes:
        new_id: makes a UUIDv7.
        random: 0..1, spreads retries.
        process: names this process in claims and leases.
        disk: of the data directory; `check` it before anything is stored.
    """

    settings: Settings
    clock: Clock
    metrics: InMemoryMetrics
    new_id: Callable[[], str]
    random: Callable[[], float]
    process: str
    disk: DiskSpace = ELSEWHERE
