"""The owner of tiers: what a cycle does, what stops it, and that a second one does nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from rayapp.adapters.in_memory import InMemoryMemoryStore
from rayapp.adapters.in_memory_lifecycle import InMemoryLifecycleStore
from rayapp.adapters.in_memory_stores import InMemoryEventStore, InMemoryLeaseStore
from rayapp.bootstrap import runtime_of
from rayapp.domain.learning_requests import PromotionReport
from rayapp.domain.memory import ChangeType, MemoryItem, Source, Stats, Status
from rayapp.domain.scope import ItemFilter, ReadScope
from rayapp.domain.tiers import Tier
from rayapp.errors import Conflict, RayappError, StoreDown
from rayapp.observability.metrics import InMemoryMetrics
from rayapp.services import promotion as module
from rayapp.services.promotion import LEASE, PromotionService
from rayapp.settings import load_settings
from rayapp.testing.builders import an_item
from rayapp.testing.clock import START, FakeClock

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
            DANA, ItemFilter(statuses=None, include_superseded=True), sort="recent", limit=1_000
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


class TestCycle:
    async def test_every_kind_of_transition_is_counted_recorded_and_explained(self) -> None:
        world = World()
        await world.holds(
            an_item(memory_id="up", stats=READY, text="עובד טוב"),
            an_item(memory_id="proven", tier=Tier.HISTORY, stats=PROVEN),
            an_item(memory_id="worn", tier=Tier.PATTERNS, stats=replace(PROVEN, score=0.25)),
            an_item(memory_id="over", expires_at=START),
            an_item(memory_id="bad", tier=Tier.HISTORY, stats=BAD),
            an_item(memory_id="fresh"),
            an_item(memory_id="fact", tier=Tier.MEMORY_BANK, stats=BAD, expires_at=START),
        )
        report = await world.service.run(None)
        assert counts(report) == {"examined": 5, "promoted": 2, "demoted": 1, "archived": 2}
        expected = {
            "up": (Tier.HISTORY, Status.ACTIVE),
            "proven": (Tier.PATTERNS, Status.ACTIVE),
            "worn": (Tier.HISTORY, Status.ACTIVE),
            "over": (Tier.WORKING, Status.ARCHIVED),
            "bad": (Tier.HISTORY, Status.ARCHIVED),
            "fresh": (Tier.WORKING, Status.ACTIVE),
            "fact": (Tier.MEMORY_BANK, Status.ACTIVE),
        }
        found = {name: await world.item(name) for name in expected}
        assert {n: (i.tier, i.status) for n, i in found.items()} == expected
        events = {e.memory_id: e for e in await world.events.recent(DANA, None, 50)}
        assert {name: event.kind for name, event in events.items()} == {
            "up": "promoted",
            "proven": "promoted",
            "worn": "demoted",
            "over": "archived",
            "bad": "archived",
        }
        data = dict(events["up"].data)
        assert data.pop("owner")
        assert data == {
            "from": "working",
            "to": "history",
            "reason": "score 0.9 after 2 uses",
            "rule": "promote_working",
        }
        (row,) = await world.items.versions(DANA, "over", 5)
        assert (row.change_type, row.reason) == (ChangeType.ARCHIVE, "expired")
        assert world.metrics.counters["transitions", (("kind", "promoted"),)] == 2

    async def test_a_second_run_writes_nothing(self) -> None:
        world = World()
        for number in range(90):
            stats = Stats(uses=number % 4, score=(number % 11) / 10, tier_uses=3, tier_success=5.0)
            tier = (Tier.WORKING, Tier.HISTORY, Tier.PATTERNS)[number % 3]
            expires_at = START if number % 5 == 0 else None
            await world.holds(an_item(tier=tier, stats=stats, expires_at=expires_at))
        first = await world.service.run(None)
        assert min(first.promoted, first.demoted, first.archived) > 0
        before = await world.everything()
        assert counts(await world.service.run(None)).keys() <= {"examined"}
        assert await world.everything() == before

    async def test_a_demoted_pattern_that_is_garbage_in_history_leaves_in_the_same_run(
        self,
    ) -> None:
        world = World()
        await world.holds(an_item(memory_id="m", tier=Tier.PATTERNS, stats=BAD))
        report = await world.service.run(None)
        assert (report.demoted, report.archived) == (1, 1)
        rows = await world.items.versions(DANA, "m", 5)
        assert [row.change_type for row in rows] == [ChangeType.ARCHIVE, ChangeType.DEMOTE]

    async def test_all_pages_are_worked_through(self) -> None:
        world = World(batch_size=7)
        await world.holds(*(an_item(stats=READY) for _ in range(100)))
        assert counts(await world.service.run(None)) == {"examined": 100, "promoted": 100}

    async def test_one_user_only(self) -> None:
        world = World()
        await world.holds(
            an_item(memory_id="m", stats=READY), an_item(memory_id="m", user_id="noa", stats=READY)
        )
        assert counts(await world.service.run("noa")) == {"examined": 1, "promoted": 1}
        assert (await world.item("m")).tier is Tier.WORKING
        assert (await world.item("m", "noa")).tier is Tier.HISTORY

    async def test_the_wilson_policy_gates_promotions(self) -> None:
        world = World(policy="wilson")
        await world.holds(
            an_item(memory_id="lucky", stats=READY),
            an_item(memory_id="sure", stats=replace(READY, uses=9, wilson_score=0.7007)),
        )
        assert (await world.service.run(None)).promoted == 1
        assert (await world.item("sure")).tier is Tier.HISTORY

    async def test_check_moves_the_named_items_only(self) -> None:
        world = World()
        await world.holds(an_item(memory_id="a", stats=READY), an_item(memory_id="b", stats=READY))
        assert counts(await world.service.check("dana", ["a", "x"])) == {
            "examined": 1,
            "promoted": 1,
        }
        assert (await world.item("b")).tier is Tier.WORKING
        assert counts(await world.service.check("noa", ["b"])) == {}


class TestMerge:
    async def merged(self, promoted_is_older: bool) -> tuple[World, MemoryItem]:
        world = World()
        old, new = START - 3 * DAY, START - 2 * DAY
        await world.holds(
            an_item(
                memory_id="below",
                text="השרת נופל בלילה",
                stats=READY,
                stored_at=old if promoted_is_older else new,
            ),
            an_item(
                memory_id="above",
                text="השרת נופל בלילה",
                tier=Tier.HISTORY,
                stats=Stats(uses=2, success_count=1.0, score=0.5, tier_uses=1, tier_success=1.0),
                stored_at=new if promoted_is_older else old,
            ),
        )
        report = await world.service.run(None)
        assert counts(report) == {"examined": 1, "merged": 1}
        winner = await world.item("below")
        assert await world.item("above") == winner
        return world, winner

    @pytest.mark.parametrize("promoted_is_older", [True, False])
    async def test_the_older_id_is_kept_in_the_target_tier_with_all_counters(
        self, promoted_is_older: bool
    ) -> None:
        _, winner = await self.merged(promoted_is_older)
        assert winner.memory_id == ("below" if promoted_is_older else "above")
        assert (winner.tier, winner.status) == (Tier.HISTORY, Status.ACTIVE)
        assert (winner.stats.uses, winner.stats.success_count, winner.stats.score) == (4, 3.0, 0.7)
        # Only what was earned in history counts for its probation.
        assert (winner.stats.tier_uses, winner.stats.tier_success) == (1, 1.0)

    @pytest.mark.parametrize("promoted_is_older", [True, False])
    async def test_one_event_and_a_version_row_for_each(self, promoted_is_older: bool) -> None:
        world, winner = await self.merged(promoted_is_older)
        (event,) = await world.events.recent(DANA, None, 5)
        loser = "above" if promoted_is_older else "below"
        assert (event.kind, event.memory_id, event.data["into"]) == (
            "merged",
            loser,
            winner.memory_id,
        )
        assert (event.data["from"], event.data["to"]) == ("working", "history")
        for name in ("below", "above"):
            (row,) = await world.items.versions(DANA, name, 5)
            assert row.change_type is ChangeType.MERGE
        before = await world.everything()
        await world.service.run(None)
        assert await world.everything() == before

    async def test_two_equal_items_that_go_up_together_become_one(self) -> None:
        """They cannot be equal in one tier, but may meet: one is promoted, one demoted."""
        world = World()
        await world.holds(
            an_item(memory_id="up", text="same", stats=READY),
            an_item(memory_id="down", text="same", tier=Tier.PATTERNS, stats=Stats(uses=1)),
        )
        down = await world.item("down")
        await world.items.replace(
            replace(down, stats=Stats(uses=1, score=0.25)),
            expected_version=1,
            row=module.replaced_state(down, ChangeType.UPDATE, None, START),
        )
        report = await world.service.run(None)
        assert (report.merged, report.errors) == (1, 0)
        assert (await world.item("up")).memory_id == (await world.item("down")).memory_id


class TestBadItems:
    async def test_one_bad_item_never_stops_the_cycle(self) -> None:
        world = World()
        items = [an_item(stats=READY) for _ in range(100)]
        await world.holds(*items)
        inner, bad = world.lifecycle, items[50].memory_id

        class Picky(Around):
            async def transition(self, moves: Any, events: Any, **options: Any) -> Any:
                if any(move.item.memory_id == bad for move in moves):
                    raise ValueError("a defect")
                return await inner.transition(moves, events, **options)

        world.lifecycle = Picky(inner, None)  # type: ignore[arg-type]
        assert counts(await world.service.run(None)) == {
            "examined": 100,
            "promoted": 99,
            "errors": 1,
        }
        world.lifecycle = inner
        assert counts(await world.service.run(None)) == {"examined": 1, "promoted": 1}

    async def test_what_was_judged_meanwhile_is_decided_again(self) -> None:
        world = World()
        await world.holds(an_item(memory_id="m", stats=READY), an_item(memory_id="n", stats=READY))

        async def fail_once(when: str, call: int) -> None:
            if (when, call) == ("before", 1):
                row = world.items._rows[(await world.item("m")).point_id]
                row.item = replace(row.item, stats=Stats(uses=3, score=0.4))

        world.lifecycle = Around(world.lifecycle, fail_once)
        assert counts(await world.service.run(None)) == {"examined": 2, "promoted": 1}
        assert (await world.item("m")).tier is Tier.WORKING

    async def test_what_was_deleted_meanwhile_is_no_error(self) -> None:
        world = World()
        await world.holds(an_item(memory_id="m", stats=READY))

        async def delete(when: str, call: int) -> None:
            item = await world.item("m") if call == 1 else None
            if item is not None and when == "before":
                await world.items.replace(
                    replace(item, status=Status.DELETED),
                    expected_version=1,
                    row=module.replaced_state(item, ChangeType.ARCHIVE, None, START),
                )

        world.lifecycle = Around(world.lifecycle, delete)
        assert counts(await world.service.run(None)) == {"examined": 1}

    async def test_a_store_that_is_away_ends_the_cycle_and_frees_the_lease(self) -> None:
        world = World()
        await world.holds(*(an_item(stats=READY) for _ in range(3)))

        async def away(when: str, call: int) -> None:
            raise StoreDown("away")

        world.lifecycle = Around(world.lifecycle, away)
        with pytest.raises(StoreDown):
            await world.service.run(None)
        assert await world.leases.current(LEASE) is None


class Killed(BaseException):
    """The process ends here: nothing after it runs."""


class TestCrash:
    """The cycle dies around each of its transitions; the next run finishes the work."""

    def world(self) -> World:
        return World(batch_size=3)

    def items(self) -> list[MemoryItem]:
        """All kinds of transitions, a merge and a chain of two among them."""
        return [
            an_item(memory_id="a", text="one", stats=READY),
            an_item(memory_id="b", text="one", tier=Tier.HISTORY, stored_at=START - DAY),
            an_item(memory_id="c", text="two", tier=Tier.HISTORY, stats=PROVEN),
            an_item(memory_id="d", text="three", tier=Tier.PATTERNS, stats=BAD),
            an_item(memory_id="e", text="four", expires_at=START),
            an_item(memory_id="f", text="five", stats=BAD),
            an_item(memory_id="g", text="six", stats=READY),
        ]

    async def uninterrupted(self, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], int]:
        world = self.world()
        await world.holds(*self.items())
        world.lifecycle = Around(world.lifecycle, _nothing)
        await world.service.run(None)
        return await world.everything(), world.lifecycle.calls

    @pytest.mark.parametrize("group", [1, 32])
    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize("error", [Killed, RayappError, StoreDown])
    async def test_the_next_run_ends_where_an_uninterrupted_one_does(
        self, monkeypatch: pytest.MonkeyPatch, group: int, when: str, error: type[BaseException]
    ) -> None:
        monkeypatch.setattr(module, "GROUP", group)
        expected, transitions = await self.uninterrupted(monkeypatch)
        assert transitions > 3
        for stop in range(1, transitions + 1):
            world = self.world()
            await world.holds(*self.items())
            inner = world.lifecycle

            async def fail(
                now: str, call: int, stop: int = stop, error: type[BaseException] = error
            ) -> None:
                if (now, call) == (when, stop):
                    raise error("killed")

            world.lifecycle = Around(inner, fail)
            with contextlib.suppress(Killed, RayappError):
                await world.service.run(None)
            world.lifecycle = inner
            await world.service.run(None)
            assert await world.everything() == expected, stop
            events = await world.events.recent(DANA, None, 50)
            assert max(Counter((e.memory_id, e.kind) for e in events).values()) == 1


async def _nothing(when: str, call: int) -> None:
    """No fault."""


class TestLease:
    async def test_a_cycle_that_goes_on_keeps_others_out(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = World()
        await world.holds(an_item(stats=READY))
        held = await world.leases.acquire(LEASE, "another process", 600)
        assert held is not None
        with pytest.raises(Conflict) as caught:
            await world.service.run(None)
        assert caught.value.code == "busy"
        await world.leases.release(held)
        assert (await world.service.run(None)).promoted == 1

    async def test_two_cycles_of_one_process_exclude_each_other(self) -> None:
        world = World()
        service, entered, go_on = world.service, asyncio.Event(), asyncio.Event()
        await world.holds(an_item(stats=READY))

        async def wait(when: str, call: int) -> None:
            entered.set()
            await go_on.wait()

        world.lifecycle = Around(world.lifecycle, wait)
        first = asyncio.create_task(world.service.run(None))
        await entered.wait()
        with pytest.raises(Conflict):
            await service.run(None)
        go_on.set()
        assert (await first).promoted == 1

    async def test_a_cycle_of_one_user_does_not_wait_for_another_user(self) -> None:
        world = World()
        await world.holds(an_item(user_id="noa", stats=READY))
        assert await world.leases.acquire(f"{LEASE}:dana", "another process", 600)
        assert (await world.service.run("noa")).promoted == 1
        with pytest.raises(Conflict):
            await world.service.run("dana")

    async def test_a_cycle_that_lost_its_lease_stops_and_moves_nothing_more(self) -> None:
        world = World(batch_size=2)
        await world.holds(*(an_item(stats=READY) for _ in range(6)))

        async def take_over(when: str, call: int) -> None:
            if (when, call) == ("after", 1):
                world.clock.advance(61)
                assert await world.leases.acquire(LEASE, "another process", 60)

        world.lifecycle = Around(world.lifecycle, take_over)
        with pytest.raises(Conflict) as caught:
            await world.service.run(None)
        assert caught.value.code == "lease_lost"
        assert len(await world.events.recent(DANA, "promoted", 50)) == 2

    async def test_a_transition_under_a_lost_lease_is_not_tried_one_by_one(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "GROUP", 2)
        world = World()
        await world.holds(*(an_item(stats=READY) for _ in range(6)))

        async def take_over(when: str, call: int) -> None:
            if (when, call) == ("after", 1):
                world.clock.advance(61)
                assert await world.leases.acquire(LEASE, "another process", 60)

        world.lifecycle = Around(world.lifecycle, take_over)
        with pytest.raises(Conflict):
            await world.service.run(None)
        assert world.lifecycle.calls == 2

    async def test_the_lease_is_kept_alive_between_pages(self) -> None:
        world = World(batch_size=2, lease_s=60)
        await world.holds(*(an_item(stats=READY) for _ in range(8)))

        async def slow(when: str, call: int) -> None:
            if when == "before":
                world.clock.advance(40)

        world.lifecycle = Around(world.lifecycle, slow)
        assert (await world.service.run(None)).promoted == 8


class TestSchedule:
    async def test_says_when_it_ran_and_whether_it_runs(self) -> None:
        world = World(interval_s=90)
        before = await world.service.schedule()
        assert (before.interval_ms, before.running, before.last_run_at) == (90_000, False, None)
        assert await world.leases.acquire(LEASE, "a", 60)
        assert (await world.service.schedule()).running
        world.clock.advance(61)
        await world.service.run(None)
        after = await world.service.schedule()
        assert (after.running, after.last_run_at) == (False, world.clock.now())

    async def test_a_cycle_of_one_user_is_not_a_cycle_of_all(self) -> None:
        world = World()
        await world.service.run("dana")
        assert (await world.service.schedule()).last_run_at is None


class TestDueUsers:
    async def exchanges(self, user: str, at: datetime, *conversations: str | None) -> World:
        world = World(exchanges=3)
        for conversation in conversations:
            source = Source(conversation_id=conversation)
            await world.holds(an_item(user_id=user, stored_at=at, source=source))
        return world

    @pytest.mark.parametrize(
        ("conversations", "due"),
        [
            (("c", "c"), False),
            (("c", "c", "c"), True),
            (("c", "d"), True),
            ((None, "c"), False),
            ((None, None, None), True),
        ],
    )
    async def test_enough_exchanges_or_another_conversation(
        self, conversations: tuple[str | None, ...], due: bool
    ) -> None:
        world = await self.exchanges("dana", START, *conversations)
        assert await world.service.due_users(START) == (["dana"] if due else [])

    async def test_what_was_stored_before_does_not_count(self) -> None:
        world = await self.exchanges("dana", START - DAY, "c", "d", "e")
        assert await world.service.due_users(START) == []
