"""What a sweep leaves behind: an event per repaired item, its report, and the drift counters.

A process of a job is scraped by nobody, so nothing is counted there: the owner of maintenance
reads the reports of jobs and counts for them (`owner_duties.drift_duty`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rayapp.core.ids import SYSTEM_USER, USER_ID_PATTERN
from rayapp.core.ports import Metrics
from rayapp.core.runtime import Runtime
from rayapp.index.consistency.rules import Issue, SweepReport
from rayapp.memory.ports import Event, EventStore
from rayapp.memory.scope import ReadScope

# Kind of the event of one repair, and of the one that holds a sweep's report.
REPAIRED = "repaired"
REPORT = "consistency"
# Events of one sweep: more says no more than their number in the report does.
MAX_EVENTS = 1_000
# Issues that a report names.
MAX_ISSUES = 50


@dataclass(frozen=True, slots=True)
class SweepLog:
    """`owner` is written into every event: who repaired."""

    events: EventStore
    owner: str
    runtime: Runtime

    async def repaired(self, issues: Sequence[Issue], room: int) -> int:
        """Write an event for the first `room` repairs; how many were written."""
        told = [issue for issue in issues if issue.repaired][: max(0, room)]
        for issue in told:
            data = {"what": issue.kind.value, "why": issue.details, "owner": self.owner}
            # A point of nobody, or of an id that no user can have, is the system's to tell.
            known = USER_ID_PATTERN.fullmatch(issue.user_id) is not None
            await self._add(
                REPAIRED,
                {**data, "point_id": issue.point_id},
                user_id=issue.user_id if known else SYSTEM_USER,
                memory_id=issue.memory_id or None,
            )
        return len(told)

    async def report(self, row: Mapping[str, Any]) -> None:
        """Keep the report, for diagnostics in any replica."""
        await self._add(REPORT, {**row, "owner": self.owner}, user_id=SYSTEM_USER)

    async def _add(
        self, kind: str, data: dict[str, Any], *, user_id: str, memory_id: str | None = None
    ) -> None:
        event = Event(
            event_id=self.runtime.new_id(),
            user_id=user_id,
            kind=kind,
            at=self.runtime.clock.now(),
            memory_id=memory_id,
            data=data,
        )
        await self.events.add(event)


def count_drift(metrics: Metrics, found: Mapping[str, int]) -> None:
    """Count what a report found, in a process whose metrics are scraped."""
    for kind, number in found.items():
        if number:
            metrics.count("drift", number, kind=kind)


async def last_report(events: EventStore) -> dict[str, Any] | None:
    """The report of the newest sweep, by whichever process, with its time."""
    found = await events.recent(ReadScope(SYSTEM_USER), REPORT, 1)
    return {"at": found[0].at.isoformat(), **found[0].data} if found else None


def report_row(report: SweepReport) -> dict[str, Any]:
    """A sampled sweep's report as plain JSON."""
    return {
        "mode": "sample",
        "checked": report.checked,
        "found": {kind.value: number for kind, number in report.found.items()},
        "repaired": {kind.value: number for kind, number in report.repaired.items()},
        "quarantined": report.quarantined,
        "unreadable": report.unreadable,
        "truth_count": report.truth_count,
        "index_count": report.index_count,
        "duration_s": report.duration_s,
    }


def issue_row(issue: Issue) -> dict[str, Any]:
    return {
        "kind": issue.kind.value,
        "point_id": issue.point_id,
        "memory_id": issue.memory_id,
        "user_id": issue.user_id,
        "details": issue.details,
        "repaired": issue.repaired,
    }
