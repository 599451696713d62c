"""An `OutboxService` over given stores, with a promotion and a dedup that only take notes."""

from collections.abc import Sequence
from typing import Any, cast

from rayapp.bulk.ports import Lease
from rayapp.container import bootstrap
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import Clock
from rayapp.core.settings.load import load_settings
from rayapp.graphs.ports import GraphStore
from rayapp.learning.dedup import DedupService
from rayapp.learning.outbox import OutboxService
from rayapp.learning.ports import OutcomeStore
from rayapp.learning.promotion import PromotionService
from rayapp.learning.records import PromotionReport
from rayapp.memory.item import MemoryItem


class NotingPromotion:
    """`checked` holds (user, ids); `error` is raised for a user named in `bad`."""

    def __init__(self) -> None:
        self.checked: list[tuple[str, tuple[str, ...]]] = []
        self.bad: dict[str, Exception] = {}

    async def check(
        self, user_id: str, memory_ids: Sequence[str], *, lease: Lease | None = None
    ) -> PromotionReport:
        if user_id in self.bad:
            raise self.bad[user_id]
        self.checked.append((user_id, tuple(memory_ids)))
        return PromotionReport()


class NotingDedup:
    """`merged` answers for ids; an exception there is raised."""

    def __init__(self, *, enabled: bool = False) -> None:
        self.enabled = enabled
        self.asked: list[str] = []
        self.answers: dict[str, bool | Exception] = {}

    async def merge(self, item: MemoryItem) -> bool:
        self.asked.append(item.memory_id)
        answer = self.answers.get(item.memory_id, False)
        if isinstance(answer, Exception):
            raise answer
        return answer


class OutboxRig:
    """The service and what was noted; `overrides` are settings."""

    def __init__(
        self, outcomes: OutcomeStore, graphs: GraphStore, clock: Clock, **overrides: Any
    ) -> None:
        self.metrics = InMemoryMetrics()
        self.promotion = NotingPromotion()
        self.dedup = NotingDedup()
        runtime = bootstrap.runtime_of(
            load_settings(env={}, overrides=overrides), self.metrics, clock
        )
        self.outbox = OutboxService(
            outcomes,
            graphs,
            cast(PromotionService, self.promotion),
            cast(DedupService, self.dedup),
            texts=bootstrap.load_texts(),
            runtime=runtime,
        )

    async def settle(self) -> int:
        """Run until nothing is settled any more."""
        total = 0
        while settled := await self.outbox.run_once():
            total += settled
        return total

    def counted(self, name: str, kind: str) -> float:
        return self.metrics.counters[name, (("kind", kind),)]
