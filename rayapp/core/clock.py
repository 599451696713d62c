"""The one clock of the running service. Domain code never reads it: `now` is passed in."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Implements `core.ports.Clock`."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
