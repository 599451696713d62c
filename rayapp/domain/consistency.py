"""What drift between the truth and the index is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Drift(StrEnum):
    """The six kinds; what is done about each is in the table of the sweep."""

    MISSING = "missing_in_index"
    ORPHAN = "orphan_in_index"
    NOT_ACTIVE = "inactive_in_index"  # archived, deleted, or of another tenant than its row
    PAYLOAD = "payload_mismatch"
    VECTOR = "vector_mismatch"
    DUPLICATE = "duplicate_point"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """One difference. `repaired`: its repair was asked for or done."""

    kind: Drift
    point_id: str
    memory_id: str = ""
    user_id: str = ""
    details: str = ""
    repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """`found` and `repaired` count per kind; `issues` are the first ones."""

    checked_at: datetime
    duration_s: float
    checked: int
    found: Mapping[Drift, int]
    repaired: Mapping[Drift, int]
    issues: Sequence[Issue]
    truth_count: int
    index_count: int
    quarantined: int = 0
