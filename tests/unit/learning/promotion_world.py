"""The owner of tiers over in-memory stores, for its tests."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from rayapp.container.bootstrap import runtime_of
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.learning.promotion import PromotionService
from rayapp.learning.records import PromotionReport
from rayapp.memory.item import MemoryItem, Stats
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope
from tests.support.clock import FakeClock
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.lifecycle import InMemoryLifecycleStore
from tests.support.stores.stores import InMemoryEventStore, InMemoryLeaseStore

DANA = ReadScope("dana")
READY = Stats(uses=2, success_count=2.0, score=0.9, tier_uses=2, tier_success=2.0)
PROVEN = Stats(uses=9, success_count=9.0, score=1.0, tier_uses=6, tier_success=6.0)
BAD = Stats(uses=3, score=0.05)
DAY = timedelta(days=1)


class World:
    """The service over in-memory stores; `before` and `after` run around every transition."""

    def __init__(self, **settings: Any) -> None:
        self.clock, self.metrics = FakeClock(), InMemoryMetrics()
        self.items = InMemoryMemoryStore(self.clock)
        self.events = InMemoryEventStore(self.clock)
        self.leases = InMemoryLeaseStore(self.clock)
        self.lifecycle: Any = InMemoryLifecycleStore(self.items, self.events, self.leases)
        self.settings = load_settings(env={}, overrides={"promotion": settings})

    @property
    def service(self) -> PromotionService:
        runtime = runtime_of(self.settings, self.metrics, self.clock)
        return PromotionService(self.lifecycle, self.leases, runtime=replace(runtime, random=_zero))

    async def holds(self, *items: MemoryItem) -> None:
        assert all(result.inserted for result in await self.items.insert_many(items))

    async def item(self, memory_id: str, user: str = "dana") -> MemoryItem:
        found = await self.items.get(ReadScope(user), memory_id)
        assert found is not None
        return found

    async def everything(self) -> dict[str, Any]:
        """The whole truth of dana, without what depends on how often a cycle was started."""
        page = await self.items.page(
            DANA, ItemFilter(statuses=None, include_superseded=True), ItemQuery(limit=1_000)
        )
        versions = [await self.items.versions(DANA, i.memory_id, 50) for i in page.items]
        events = await self.events.recent(DANA, None, 1_000)
        return {
            "items": sorted(page.items, key=lambda item: item.memory_id),
            "versions": sorted((row for rows in versions for row in rows), key=str),
            "events": sorted(
                (
                    replace(e, data={k: v for k, v in e.data.items() if k != "owner"})
                    for e in events
                ),
                key=lambda event: event.event_id,
            ),
        }


def _zero() -> float:
    return 0.0


def counts(report: PromotionReport) -> dict[str, int]:
    names = ("examined", "promoted", "demoted", "archived", "merged", "errors")
    return {name: getattr(report, name) for name in names if getattr(report, name)}


class Around:
    """Stands before the store and runs `hook` around every transition."""

    def __init__(
        self, inner: InMemoryLifecycleStore, hook: Callable[[str, int], Awaitable[None]]
    ) -> None:
        self.inner, self.hook, self.calls = inner, hook, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def transition(self, *args: Any, **options: Any) -> list[MemoryItem]:
        self.calls += 1
        call = self.calls
        await self.hook("before", call)
        items = await self.inner.transition(*args, **options)
        await self.hook("after", call)
        return items
