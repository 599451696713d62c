"""How long a stream goes on, what it says meanwhile, and that its place comes back."""

import asyncio
from typing import Any

import pytest

from rayapp.admin.event_stream import EventStreamService, Following
from rayapp.admin.ports import Frame, StreamKind, StreamRequest
from rayapp.container import bootstrap
from rayapp.core.errors import Overloaded, StoreDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.memory.scope import ReadScope
from tests.support.clock import FakeClock
from tests.support.stores.event_stream import InMemoryEventStream
from tests.unit.api.serving import settings_with

DANA = ReadScope("dana")


class World:
    def __init__(self, **events: Any) -> None:
        self.clock = FakeClock()
        self.stream = InMemoryEventStream(self.clock)
        self.metrics = InMemoryMetrics()
        settings = settings_with(events={"heartbeat_s": 0.01, **events})
        runtime = bootstrap.runtime_of(settings, self.metrics, self.clock)
        self.service = EventStreamService(self.stream, runtime=runtime)

    async def follow(self, **request: Any) -> Following:
        return await self.service.follow(DANA, StreamRequest(**request))

    async def tell(self, memory_id: str, user_id: str = "dana") -> None:
        await self.stream.tell(user_id, StreamKind.STORED, {"memory_id": memory_id})


async def all_of(following: Following) -> list[Frame]:
    try:
        return [frame async for frame in following.frames]
    finally:
        await following.close()


def names(frames: list[Frame]) -> list[str]:
    return [frame.kind.value for frame in frames]


async def test_a_look_without_waiting_tells_what_is_there_and_ends() -> None:
    world = World()
    first = await all_of(await world.follow(follow=False))
    assert names(first) == ["ready", "alive"]
    await world.tell("m-1")
    await world.tell("m-2", "noa")
    again = await all_of(await world.follow(after=first[0].position, follow=False))
    assert names(again) == ["ready", "stored", "alive"]


async def test_a_quiet_look_without_waiting_moves_past_what_others_did() -> None:
    world = World()
    first = await all_of(await world.follow(follow=False))
    await world.tell("m-1", "noa")
    after = first[-1].position
    again = await all_of(await world.follow(after=after, follow=False))
    assert names(again) == ["ready", "alive"]
    assert (again[0].position, again[-1].position > after) == (after, True)


async def test_a_stream_says_that_it_lives_and_ends_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(stream_s=55.0, heartbeat_s=15.0)
    following = await world.follow()

    async def quiet() -> None:
        world.clock.advance(10)

    monkeypatch.setattr(following._feed, "next", quiet)
    frames = await all_of(following)
    # Signs of life at 20, 40 and 60 s, and a last word.
    assert names(frames) == ["ready", "alive", "alive", "alive", "alive"]
    assert world.clock.monotonic() >= 55


async def test_the_last_word_moves_the_position_past_what_others_did() -> None:
    world = World(stream_s=1.0)
    following = await world.follow()
    frames = [await anext(following.frames)]
    await world.tell("m-1", "noa")
    waiting = asyncio.create_task(anext(following.frames))
    await asyncio.sleep(0.05)
    world.clock.advance(2)
    frames.append(await waiting)
    frames += [frame async for frame in following.frames]
    await following.close()
    assert frames[-1].position > frames[0].position
    assert names(frames)[-1] == "alive"


@pytest.mark.parametrize("after", ["junk", "ffffffff"])
async def test_a_lost_position_is_told_and_the_stream_goes_on_from_now(after: str) -> None:
    world = World()
    await world.tell("m-1")
    following = await world.follow(after=after)
    first = await anext(following.frames)
    await world.tell("m-2")
    second = await anext(following.frames)
    await following.close()
    assert names([first, second]) == ["reset", "stored"]


async def test_a_position_that_became_too_old_is_lost() -> None:
    world = World()
    await world.tell("m-1")
    world.stream.oldest = 1
    following = await world.follow(after="00000000", follow=False)
    assert names(await all_of(following)) == ["reset", "alive"]


async def test_streams_are_bounded_and_a_place_comes_back_once() -> None:
    world = World(max_streams=2)
    one, two = await world.follow(), await world.follow()
    with pytest.raises(Overloaded) as caught:
        await world.follow()
    assert caught.value.retry_after_s
    await one.close()
    await one.close()
    three = await world.follow()
    with pytest.raises(Overloaded):
        await world.follow()
    for following in (two, three):
        await following.close()
    assert world.stream.open_feeds == 0
    assert world.metrics.gauges["event_streams", ()] == 0


async def test_a_place_is_not_lost_when_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(max_streams=1)

    async def away(*_: Any, **__: Any) -> Any:
        raise StoreDown("MongoDB is away.")

    with monkeypatch.context() as patched:
        patched.setattr(world.stream, "open", away)
        for _ in range(3):
            with pytest.raises(StoreDown):
                await world.follow()
    await (await world.follow()).close()


async def test_a_failure_ends_the_stream_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The follower comes back and is told then."""
    world = World()
    following = await world.follow()
    frames = [await anext(following.frames)]

    async def away() -> Any:
        raise StoreDown("MongoDB is away.")

    monkeypatch.setattr(following._feed, "next", away)
    frames += [frame async for frame in following.frames]
    await following.close()
    assert names(frames) == ["ready"]
    assert world.stream.open_feeds == 0
