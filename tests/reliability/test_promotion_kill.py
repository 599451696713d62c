"""A promotion cycle killed -9 in the middle: the next finishes it, and nothing happens twice."""

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

from rayapp.container.bootstrap import runtime_of
from rayapp.core.errors import Conflict, DeadlineExceeded, DependencyDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.load import load_settings
from rayapp.learning.promotion import PromotionService
from rayapp.learning.records import PromotionReport
from rayapp.learning.rules.promotion import Decision, PromotionParams, apply_move, decide
from rayapp.memory.item import MemoryItem, Stats
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.event_stream import MongoEventStore
from rayapp.storage.mongo.jobs import MongoLeaseStore
from rayapp.storage.mongo.lifecycle import MongoLifecycleStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from tests.support.builders import an_item
from tests.support.mongo_server import MongoServer

pytestmark = [pytest.mark.engine, pytest.mark.fault]

DANA = ReadScope("dana")
ITEMS = 300
# The dead owner's lease is in the way until it ends by itself.
LEASE_S = 2.0
TRIES = 120
KINDS = {"promote": "promoted", "demote": "demoted", "archive": "archived"}


def service(database: MongoDatabase, store: Any) -> PromotionService:
    settings = load_settings(
        env={}, overrides={"promotion": {"lease_s": LEASE_S, "batch_size": 50}}
    )
    runtime = runtime_of(settings, InMemoryMetrics())
    return PromotionService(store, MongoLeaseStore(database), runtime=runtime)


def items() -> list[MemoryItem]:
    """Every rule in turn; one in six is left alone, some go two steps."""
    now = SystemClock().now()
    good = Stats(uses=6, success_count=6.0, score=0.95, tier_uses=6, tier_success=6.0)
    bad = Stats(uses=6, score=0.05, tier_uses=6)
    kinds: list[dict[str, Any]] = [
        {"tier": Tier.WORKING, "stats": good},
        {"tier": Tier.HISTORY, "stats": good},
        {"tier": Tier.PATTERNS, "stats": bad},
        {"tier": Tier.WORKING, "expires_at": now - timedelta(hours=1)},
        {"tier": Tier.HISTORY, "stats": bad},
        {"tier": Tier.MEMORY_BANK, "stats": bad},
    ]
    old = now - timedelta(days=30)
    return [
        an_item(memory_id=f"k-{n}", text=f"פריט {n} item", stored_at=old, **kinds[n % len(kinds)])
        for n in range(ITEMS)
    ]


def ruled(item: MemoryItem) -> tuple[MemoryItem, list[Decision]]:
    """Where the rules alone lead, and by which steps."""
    now, steps = SystemClock().now(), []
    while (decision := decide(item, now, PromotionParams())).action != "keep":
        steps.append(decision)
        item = apply_move(item, decision, now)
    return item, steps


class Dying(MongoLifecycleStore):
    """Kills its own process at the transition that the environment names."""

    def __init__(self, database: MongoDatabase) -> None:
        super().__init__(database)
        when, call = os.environ["DIE"].split()
        self.when, self.left = when, int(call)

    def die_if(self, when: str) -> None:
        if when == self.when:
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)

    async def _write(self, *args: Any) -> list[MemoryItem]:
        new = await super()._write(*args)
        self.die_if("uncommitted")
        return new

    async def transition(self, *args: Any, **options: Any) -> list[MemoryItem]:
        new = await super().transition(*args, **options)
        self.die_if("committed")
        return new


async def cycle_that_dies(uri: str, name: str) -> None:
    settings = load_settings(env={}, overrides={"mongo": {"uri": uri, "database": name}})
    database = MongoDatabase(settings.mongo)
    await service(database, Dying(database)).run(None)


@pytest.mark.parametrize(
    ("when", "call"), [("uncommitted", 1), ("uncommitted", 4), ("committed", 3)]
)
async def test_the_next_cycle_finishes_what_a_killed_one_left(
    mongo: MongoServer, when: str, call: int
) -> None:
    name = f"{when}-{call}"
    database = MongoDatabase(mongo.settings(name))
    await database.ensure_schema()
    store = MongoMemoryStore(database)
    before = items()
    assert all(result.inserted for result in await store.insert_many(before))

    child = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", __name__, mongo.uri, name],
        env={**os.environ, "DIE": f"{when} {call}"},
    )
    assert child.returncode == -signal.SIGKILL
    events = MongoEventStore(database)
    done = await events.recent(DANA, None, 10_000)
    assert len(done) < sum(len(ruled(item)[1]) for item in before)
    assert (len(done) > 0) == (call > 1)

    report = await finished(database)
    assert (report.errors, (await finished(database)).examined) == (0, 0)
    recorded: dict[str, list[str]] = {}
    for event in reversed(await events.recent(DANA, None, 10_000)):
        recorded.setdefault(str(event.memory_id), []).append(event.kind)
    for item in before:
        wanted, steps = ruled(item)
        found = await store.get(DANA, item.memory_id)
        assert found is not None
        assert (found.tier, found.status) == (wanted.tier, wanted.status)
        rows = await store.versions(DANA, item.memory_id, 50)
        assert [row.change_type.value for row in reversed(rows)] == [s.action for s in steps]
        assert sorted(recorded.get(item.memory_id, [])) == sorted(KINDS[s.action] for s in steps)
    await database.close()


async def finished(database: MongoDatabase) -> PromotionReport:
    """A cycle, as soon as the dead owner is out of the way."""
    for _ in range(TRIES):
        try:
            return await service(database, MongoLifecycleStore(database)).run(None)
        except (Conflict, DependencyDown, DeadlineExceeded):
            await asyncio.sleep(0.5)
    raise AssertionError("The dead owner is still in the way.")


if __name__ == "__main__":
    asyncio.run(cycle_that_dies(sys.argv[1], sys.argv[2]))
