"""The work of the job `promotion`: the owner's cycle for every user that a rule could touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rayapp.bulk.model import Finish, Partition, PartitionRow, Plan, Step
from rayapp.bulk.rules import summed
from rayapp.core.errors import Conflict
from rayapp.core.ports import Clock
from rayapp.learning.ports import LifecycleStore, Promotion
from rayapp.learning.requests import PromotionReport

# Users of one partition: enough that its checkpoints cost little, few enough to share the work.
USERS_PER_PARTITION = 100
# A step ends after the user that passes this time, seconds: a pause is then heard soon.
STEP_S = 1.0
# Items read at once while users are listed.
PAGE = 1_000
COUNTED = ("examined", "promoted", "demoted", "archived", "merged", "errors")


class PromotionWork:
    """Implements `JobWork`. A user whose cycle goes on elsewhere is counted as `busy`, not redone:
    that cycle does the same."""

    def __init__(self, promotion: Promotion, store: LifecycleStore, *, clock: Clock) -> None:
        self._promotion = promotion
        self._store = store
        self._clock = clock

    async def plan(self) -> Plan:
        users = sorted(await self._users())
        shares = [
            users[start : start + USERS_PER_PARTITION]
            for start in range(0, len(users), USERS_PER_PARTITION)
        ]
        partitions = [
            Partition(index=index, payload={"users": share}) for index, share in enumerate(shares)
        ]
        return Plan(partitions=partitions, total=len(users))

    async def begin(self, facts: Mapping[str, Any]) -> None:
        """Nothing needs to exist."""

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        users: Sequence[str] = partition.payload["users"]
        first = 0 if cursor is None else int(cursor["next"])
        place, began = first, self._clock.monotonic()
        counts: list[Mapping[str, int]] = []
        while place < len(users) and (place == first or self._clock.monotonic() - began < STEP_S):
            counts.append(await self._cycle(users[place]))
            place += 1
        over = place >= len(users)
        return Step(
            cursor=None if over else {"next": place}, done=place - first, counts=summed(counts)
        )

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        counts = summed(row.counts for row in partitions)
        users = sum(row.done for row in partitions)
        report = {"users": users, **{name: counts.get(name, 0) for name in (*COUNTED, "busy")}}
        return Finish(report=report, complete=not counts.get("errors"))

    async def close(self) -> None:
        """Holds nothing."""

    async def _cycle(self, user_id: str) -> Mapping[str, int]:
        try:
            report = await self._promotion.run(user_id)
        except Conflict:
            return {"busy": 1}
        return _counts(report)

    async def _users(self) -> set[str]:
        """Owners of items that a rule could touch; the same reads as those of one cycle."""
        users: set[str] = set()
        now = self._clock.now()
        for judged in (True, False):
            after = None
            while True:
                page = await self._store.candidates(
                    judged=judged, user_id=None, now=now, after=after, limit=PAGE
                )
                users.update(item.user_id for item in page)
                if len(page) < PAGE:
                    break
                after = page[-1]
        return users


def _counts(report: PromotionReport) -> dict[str, int]:
    found = asdict(report)
    return {name: found[name] for name in COUNTED if found[name]}
