"""What every `EventStream` keeps: whose events it tells, in which order, and from where on."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from rayapp.admin.ports import USER_KINDS, EventFeed, EventStream, StreamEvent, StreamKind
from rayapp.core.errors import NotFound

DANA, NOA = ("dana",), ("noa",)
ALL = frozenset(StreamKind)
POLL_S = 0.2
# Looks without an event after which nothing more is expected.
QUIET_LOOKS = 2
# What must happen in the end is waited for so long, seconds.
PATIENCE_S = 20.0


class Changes(Protocol):
    """Makes the changes of the truth that a stream tells."""

    async def store(self, user_id: str, memory_id: str) -> None: ...
    async def index(self, user_id: str, memory_id: str) -> None: ...
    async def judge(self, user_id: str, memory_id: str) -> None: ...
    async def promote(self, user_id: str, memory_id: str) -> None: ...
    async def archive(self, user_id: str, memory_id: str) -> None: ...
    async def teach(self, user_id: str, kind: StreamKind, data: Mapping[str, Any]) -> None: ...
    async def job(self, job_id: str, done: int) -> None: ...


@dataclass(frozen=True, slots=True)
class StreamRig:
    stream: EventStream
    changes: Changes

    async def open(
        self,
        users: tuple[str, ...] = DANA,
        after: str | None = None,
        kinds: Iterable[StreamKind] = USER_KINDS,
    ) -> EventFeed:
        return await self.stream.open(users, after=after, kinds=frozenset(kinds), poll_s=POLL_S)


async def told(feed: EventFeed, count: int | None = None) -> list[StreamEvent]:
    """The next `count` events, else all until it is quiet."""
    found: list[StreamEvent] = []
    quiet = 0
    while quiet < QUIET_LOOKS and (count is None or len(found) < count):
        event = await feed.next()
        quiet = quiet + 1 if event is None else 0
        if event is not None:
            found.append(event)
    return found


def kinds_of(events: Iterable[StreamEvent]) -> list[str]:
    return [event.kind.value for event in events]


class EventStreamContract:
    """Subclass it with a fixture `rig`."""

    async def test_a_life_is_told_in_its_order(self, rig: StreamRig) -> None:
        feed = await rig.open()
        await rig.changes.store("dana", "m-1")
        await rig.changes.index("dana", "m-1")
        await rig.changes.judge("dana", "m-1")
        await rig.changes.promote("dana", "m-1")
        events = await told(feed, 4)
        await rig.changes.archive("dana", "m-1")
        events += await told(feed)
        await feed.close()
        assert kinds_of(events) == ["stored", "indexed", "outcome", "promoted", "archived"]
        stored, indexed, outcome, promoted, archived = events
        assert stored.data["memory_id"] == "m-1"
        assert (stored.data["tier"], stored.data["source"]) == ("working", "user")
        assert (indexed.data["memory_id"], set(indexed.data)) == ("m-1", {"memory_id", "tier"})
        assert (outcome.data["outcome"], outcome.data["memory_ids"]) == ("worked", ["m-1"])
        assert (promoted.data["from"], promoted.data["tier"]) == ("working", "history")
        assert archived.data["memory_id"] == "m-1"
        assert all(event.at.utcoffset() is not None for event in events)

    async def test_what_a_conversation_taught_is_told(self, rig: StreamRig) -> None:
        taught: dict[StreamKind, dict[str, Any]] = {
            StreamKind.LEARNED: {"tier": "memory_bank"},
            StreamKind.EXTENDED: {},
            StreamKind.DETECTED: {"outcome": "worked", "confidence": 0.9, "receipt_id": None},
        }
        turn = {"memory_id": "m-1", "conversation_id": "c-1", "message_id": "t-1"}
        feed = await rig.open()
        for kind, more in taught.items():
            await rig.changes.teach("dana", kind, turn | more)
        events = await told(feed)
        await feed.close()
        assert {event.kind: event.data for event in events} == {
            kind: turn | more for kind, more in taught.items()
        }

    async def test_no_event_of_another_user_is_told(self, rig: StreamRig) -> None:
        """Both hold the same ids; every kind of change happens to the other one."""
        feed = await rig.open(kinds=ALL)
        for change in ("store", "index", "judge", "promote", "archive"):
            act: Callable[[str, str], Awaitable[None]] = getattr(rig.changes, change)
            await act("noa", "m-1")
        await rig.changes.store("dana", "m-1")
        events = await told(feed)
        await feed.close()
        assert kinds_of(events) == ["stored"]

    async def test_one_feed_tells_of_several_users(self, rig: StreamRig) -> None:
        feed = await rig.open((*DANA, *NOA))
        for user in ("dana", "omri", "noa"):
            await rig.changes.store(user, f"m-{user}")
        assert [event.user_id for event in await told(feed)] == ["dana", "noa"]
        await feed.close()

    async def test_each_follower_hears_its_own(self, rig: StreamRig) -> None:
        hers, other = await rig.open(DANA), await rig.open(NOA)
        await rig.changes.store("dana", "m-1")
        await rig.changes.store("noa", "m-2")
        found = [[event.data["memory_id"] for event in await told(feed)] for feed in (hers, other)]
        await hers.close()
        await other.close()
        assert found == [["m-1"], ["m-2"]]

    async def test_no_text_is_told(self, rig: StreamRig) -> None:
        feed = await rig.open()
        await rig.changes.store("dana", "m-1")
        await rig.changes.index("dana", "m-1")
        await rig.changes.judge("dana", "m-1")
        await rig.changes.archive("dana", "m-1")
        values = [str(event.data) for event in await told(feed)]
        await feed.close()
        assert values
        assert not any("secret words" in value for value in values)

    @pytest.mark.parametrize(
        ("kinds", "expected"),
        [
            ({StreamKind.STORED}, ["stored"]),
            ({StreamKind.INDEXED, StreamKind.ARCHIVED}, ["indexed", "archived"]),
            ({StreamKind.OUTCOME, StreamKind.PROMOTED}, ["outcome", "promoted"]),
            ({StreamKind.DEMOTED}, []),
            (set(), []),
        ],
    )
    async def test_only_the_wanted_kinds_are_told(
        self, rig: StreamRig, kinds: set[StreamKind], expected: list[str]
    ) -> None:
        feed = await rig.open(kinds=kinds)
        await rig.changes.store("dana", "m-1")
        await rig.changes.index("dana", "m-1")
        await rig.changes.judge("dana", "m-1")
        await rig.changes.promote("dana", "m-1")
        events = await told(feed)
        await rig.changes.archive("dana", "m-1")
        events += await told(feed)
        await feed.close()
        assert kinds_of(events) == expected

    async def test_jobs_are_told_to_those_who_may_ask_for_them(self, rig: StreamRig) -> None:
        with_jobs, without = await rig.open(kinds=ALL), await rig.open(kinds=USER_KINDS)
        await rig.changes.job("job-1", 0)
        await rig.changes.job("job-1", 4)
        events, others = await told(with_jobs), await told(without)
        await with_jobs.close()
        await without.close()
        assert others == []
        assert kinds_of(events) == ["job", "job"]
        assert [event.data["done"] for event in events] == [0, 4]
        assert {event.data["job_id"] for event in events} == {"job-1"}

    async def test_nothing_is_told_of_what_was_before(self, rig: StreamRig) -> None:
        await rig.changes.store("dana", "m-1")
        feed = await rig.open()
        assert await told(feed) == []
        await feed.close()

    async def test_a_follower_goes_on_after_what_it_heard_last(self, rig: StreamRig) -> None:
        """Every place between two events is one to go on from; the gap is filled, nothing twice."""
        feed = await rig.open()
        for number in range(4):
            await rig.changes.store("dana", f"m-{number}")
        events = await told(feed, 4)
        await feed.close()
        await rig.changes.store("dana", "m-4")
        for heard, event in enumerate(events, start=1):
            again = await rig.open(after=event.position)
            ids = [one.data["memory_id"] for one in await told(again)]
            await again.close()
            assert ids == [f"m-{number}" for number in range(heard, 5)]

    async def test_a_feed_that_heard_nothing_can_be_gone_on_from(self, rig: StreamRig) -> None:
        feed = await rig.open()
        first = feed.position
        assert first
        await feed.close()
        await rig.changes.store("dana", "m-1")
        again = await rig.open(after=first)
        assert [event.data["memory_id"] for event in await told(again)] == ["m-1"]
        await again.close()

    async def test_the_position_passes_what_others_do(self, rig: StreamRig) -> None:
        """A follower that hears nothing for long must not have to look through all of it again."""
        feed = await rig.open()
        before = feed.position
        await rig.changes.store("noa", "m-1")
        async with asyncio.timeout(PATIENCE_S):
            while feed.position == before:
                assert await feed.next() is None
        again = await rig.open(after=feed.position)
        await rig.changes.store("dana", "m-2")
        assert [event.data["memory_id"] for event in await told(again)] == ["m-2"]
        await feed.close()
        await again.close()

    async def test_a_position_serves_whatever_kinds_are_asked_then(self, rig: StreamRig) -> None:
        feed = await rig.open(kinds={StreamKind.STORED})
        await rig.changes.store("dana", "m-1")
        (event,) = await told(feed)
        await feed.close()
        await rig.changes.judge("dana", "m-1")
        again = await rig.open(after=event.position, kinds={StreamKind.OUTCOME})
        assert kinds_of(await told(again)) == ["outcome"]
        await again.close()

    async def test_a_foreign_position_shows_nothing_foreign(self, rig: StreamRig) -> None:
        """Positions are no secrets: one of another user is a place in time and no more."""
        feed = await rig.open(NOA)
        await rig.changes.store("noa", "m-1")
        (event,) = await told(feed)
        await feed.close()
        await rig.changes.store("noa", "m-2")
        await rig.changes.store("dana", "m-3")
        again = await rig.open(DANA, after=event.position)
        assert [one.data["memory_id"] for one in await told(again)] == ["m-3"]
        await again.close()

    @pytest.mark.parametrize(
        "after", ["", "x", "zz" * 20, "ABCD" * 8, "82" + "00" * 30, "א", "82", "0" * 4_000]
    )
    async def test_a_position_that_is_none_of_ours_is_said(
        self, rig: StreamRig, after: str
    ) -> None:
        with pytest.raises(NotFound) as caught:
            await rig.open(after=after)
        assert caught.value.code == "position_lost"

    async def test_closing_twice_is_no_harm(self, rig: StreamRig) -> None:
        feed = await rig.open()
        await feed.close()
        await feed.close()
