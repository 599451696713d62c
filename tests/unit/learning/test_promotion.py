"""The owner of tiers: what a cycle does, and that a second one does nothing."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from rayapp.core.errors import Conflict
from rayapp.learning import promotion as module
from rayapp.learning.promotion import LEASE
from rayapp.learning.rules.promotion import OWNER_LEASE
from rayapp.memory.item import ChangeType, MemoryItem, Source, Stats, Status
from rayapp.memory.rules.revision import replaced_state
from rayapp.memory.tiers import Tier, expiry_in
from tests.support.builders import an_item
from tests.support.clock import START
from tests.support.harness import Harness
from tests.unit.learning.promotion_world import BAD, DANA, DAY, PROVEN, READY, Around, World, counts


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

    async def test_check_under_the_lease_of_the_owner(self) -> None:
        world = World()
        await world.holds(an_item(memory_id="a", stats=READY), an_item(memory_id="b", stats=READY))
        lease = await world.leases.acquire("maintenance", "owner", 60)
        assert lease is not None
        assert (await world.service.check("dana", ["a"], lease=lease)).promoted == 1
        (event,) = await world.events.recent(DANA, None, 5)
        assert event.data["owner"] == "owner"
        world.clock.advance(61)
        assert await world.leases.acquire("maintenance", "another process", 60)
        with pytest.raises(Conflict) as caught:
            await world.service.check("dana", ["b"], lease=lease)
        assert caught.value.code == "lease_lost"
        assert (await world.item("b")).tier is Tier.WORKING

    async def test_an_item_that_stays_as_it_was_counts_once(self) -> None:
        world = World()
        await world.holds(an_item(memory_id="m", expires_at=START))
        item = await world.item("m")

        class Stuck(Around):
            async def transition(self, *args: Any, **options: Any) -> list[MemoryItem]:
                return [item]

        world.lifecycle = Stuck(world.lifecycle, None)  # type: ignore[arg-type]
        assert counts(await world.service.run(None)) == {"examined": 1, "archived": 1}
        assert world.metrics.counters["transitions", (("kind", "archived"),)] == 1


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

    async def test_a_fact_that_was_replaced_and_is_said_again_is_current(self) -> None:
        world = World()
        await world.holds(
            an_item(
                memory_id="first",
                text="port 8080",
                tier=Tier.HISTORY,
                stored_at=START - 3 * DAY,
                expires_at=START + DAY,
                superseded_by="second",
                valid_to=START - 2 * DAY,
            ),
            an_item(memory_id="second", text="port 9090", tier=Tier.HISTORY, supersedes="first"),
            an_item(
                memory_id="third",
                text="port 8080",
                stats=READY,
                stored_at=START,
                expires_at=START + DAY,
            ),
        )
        assert counts(await world.service.run(None)) == {"examined": 1, "merged": 1}
        first = await world.item("third")
        assert (first.memory_id, first.status) == ("first", Status.ACTIVE)
        assert (first.superseded_by, first.valid_to) == (None, None)
        # It has the lifetime of what is promoted now, not the rest of its own.
        assert first.expires_at == expiry_in(Tier.HISTORY, world.clock.now())

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


class TestSchedule:
    async def test_says_when_it_ran_and_that_it_will_run_again(self) -> None:
        world = World(interval_s=90)
        before = await world.service.schedule()
        assert (before.interval_ms, before.running, before.last_run_at) == (90_000, True, None)
        await world.service.run(None)
        after = await world.service.schedule()
        assert (after.running, after.last_run_at) == (True, world.clock.now())

    async def test_between_cycles_it_is_scheduled_for_every_user(self) -> None:
        world = World(interval_s=90)
        await world.service.run(None)
        assert await world.leases.acquire(OWNER_LEASE, "a", 3_600)
        world.clock.advance(3_000)
        assert await world.leases.current(LEASE) is None
        for user in (None, "dana"):
            assert (await world.service.schedule(user)).running

    async def test_an_overdue_cycle_that_nobody_owns_is_not_scheduled(self) -> None:
        world = World(interval_s=90)
        await world.service.run(None)
        world.clock.advance(90)
        assert (await world.service.schedule()).running
        world.clock.advance(1)
        assert not (await world.service.schedule()).running

    async def test_a_cycle_of_one_user_is_not_a_cycle_of_all(self) -> None:
        world = World()
        await world.service.run("dana")
        assert (await world.service.schedule()).last_run_at is None

    async def test_a_user_sees_the_later_of_both_cycles(self) -> None:
        world = World()
        await world.service.run("dana")
        own = world.clock.now()
        assert (await world.service.schedule("dana")).last_run_at == own
        assert (await world.service.schedule("noa")).last_run_at is None
        world.clock.advance(60)
        await world.service.run(None)
        for user in (None, "dana", "noa"):
            assert (await world.service.schedule(user)).last_run_at == world.clock.now()


class TestDueUsers:
    async def exchanges(self, user: str, at: datetime, *conversations: str | None) -> World:
        world = World(exchanges=3)
        for conversation in conversations:
            source = Source(conversation_id=conversation)
            await world.holds(an_item(user_id=user, stored_at=at, source=source))
        return world

    @pytest.mark.parametrize(
        ("conversations", "counted"),
        [
            (("c", "c"), (2, 1)),
            (("c", "d", "c"), (3, 2)),
            ((None, "c"), (2, 1)),
            ((None, None, None), (3, 0)),
        ],
    )
    async def test_exchanges_and_their_conversations_are_counted(
        self, conversations: tuple[str | None, ...], counted: tuple[int, int]
    ) -> None:
        world = await self.exchanges("dana", START, *conversations)
        assert await world.service.activity(START) == [("dana", *counted)]

    async def test_what_was_stored_before_does_not_count(self) -> None:
        world = await self.exchanges("dana", START - DAY, "c", "d", "e")
        assert await world.service.activity(START) == []


class TestSurvival:
    """A score of 0.9 outlives the expiry in every read, not only in the rules (decision 0015)."""

    @pytest.mark.parametrize(("score", "seen"), [(0.9, True), (0.8999, False)])
    async def test_an_expired_item_is_read_only_with_a_high_score(
        self, score: float, seen: bool
    ) -> None:
        service = await Harness.open()
        item = an_item(
            memory_id="m",
            text="איך מאתחלים את השרת בחיפה",
            stats=Stats(uses=1, score=score),
            stored_at=START,
            expires_at=START + DAY,
        )
        await service.items.insert(item)
        await service.drain()
        service.clock.advance(2 * DAY.total_seconds())
        assert await service.found("איך מאתחלים את השרת") == (["m"] if seen else [])
        report = await service.services.promotion.run(None)
        assert report.archived == (0 if seen else 1)

    async def test_saying_a_surviving_text_again_only_mentions_it(self) -> None:
        service = await Harness.open()
        memory_id = await service.store("the router is in the cellar")
        item = await service.services.memories.get(DANA, memory_id)
        assert item.expires_at is not None
        row = replaced_state(item, ChangeType.UPDATE, None, START)
        new = replace(item, stats=Stats(uses=1, score=0.95))
        await service.items.replace(new, expected_version=item.version, row=row)
        service.clock.advance(2 * DAY.total_seconds())
        assert await service.store("the router is in the cellar") == memory_id
        again = await service.services.memories.get(DANA, memory_id)
        assert again.expires_at == item.expires_at
        assert again.quality.mentioned_count == 2
