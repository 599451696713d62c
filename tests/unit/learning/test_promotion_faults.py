"""What stops the owner of tiers: bad items, crashes, a store that is away, a lost lease."""

import asyncio
import contextlib
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from rayapp.core.errors import Conflict, RayappError, StoreDown
from rayapp.learning import promotion as module
from rayapp.learning.ports import Candidates
from rayapp.learning.promotion import LEASE
from rayapp.memory.item import ChangeType, MemoryItem, Stats, Status
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.clock import START
from tests.unit.learning.promotion_world import BAD, DANA, DAY, PROVEN, READY, Around, World, counts


def lose_the_lease(world: World) -> None:
    """To another process, after the first transition."""

    async def take_over(when: str, call: int) -> None:
        if (when, call) == ("after", 1):
            world.clock.advance(61)
            assert await world.leases.acquire(LEASE, "another process", 60)

    world.lifecycle = Around(world.lifecycle, take_over)


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

    @pytest.mark.parametrize("user_id", [None, "dana"])
    async def test_an_item_that_no_rule_can_judge_is_an_error_of_its_own(
        self, user_id: str | None
    ) -> None:
        world = World(batch_size=2)
        await world.holds(*(an_item(memory_id=f"m-{n}", stats=READY) for n in range(5)))
        inner, bad = world.lifecycle, (await world.item("m-2")).point_id

        class Broken(Around):
            async def candidates(self, asked: Candidates) -> list[MemoryItem]:
                page = await inner.candidates(asked)
                nonsense: Any = "long ago"
                return [
                    replace(i, stored_at=nonsense, stats=BAD) if i.point_id == bad else i
                    for i in page
                ]

        world.lifecycle = Broken(inner, _nothing)
        assert counts(await world.service.run(user_id)) == {
            "examined": 5,
            "promoted": 4,
            "errors": 1,
        }

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
        lose_the_lease(world)
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
        lose_the_lease(world)
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
