"""The short cut to the engine: it answers, and nothing is lost when it does not."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest

from rayapp.adapters.serve.engine_door import (
    SOCKET_NAME,
    DoorTransport,
    EngineDoor,
    door_path,
)
from rayapp.errors import BadVector, IndexDown


class Actor:
    """Answers as the actor would, and counts what came past the door."""

    def __init__(self) -> None:
        self.called: list[str] = []

    async def call(self, method: str, *args: Any, timeout_s: float) -> Any:
        self.called.append(method)
        return ("actor", *args)

    async def close(self) -> None:
        self.called.append("close")


async def engine(method: str, args: tuple[Any, ...]) -> Any:
    match args[0]:
        case "wrong":
            raise BadVector("The vector is wrong.", details={"dims": 3})
        case "broken":
            raise ValueError("a bug")
        case "slow":
            await asyncio.sleep(0.2)
    return ("door", method, *args)


async def test_a_query_goes_through_the_door_and_all_else_to_the_actor(tmp_path: Path) -> None:
    actor, door = Actor(), EngineDoor(tmp_path, engine)
    await door.open()
    transport = DoorTransport(actor, tmp_path)
    assert await transport.call("query", "שלום", timeout_s=5) == ("door", "query", "שלום")
    assert await transport.call("upsert", 1, timeout_s=5) == ("actor", 1)
    assert actor.called == ["upsert"]
    await transport.close()
    await door.close()


async def test_calls_at_the_same_time_each_get_their_own_answer(tmp_path: Path) -> None:
    door = EngineDoor(tmp_path, engine)
    await door.open()
    transport = DoorTransport(Actor(), tmp_path)
    answers = await asyncio.gather(
        *(transport.call("query", number, timeout_s=5) for number in range(40))
    )
    assert answers == [("door", "query", number) for number in range(40)]
    await transport.close()
    await door.close()


async def test_without_a_door_the_actor_answers(tmp_path: Path) -> None:
    actor = Actor()
    transport = DoorTransport(actor, tmp_path)
    assert await transport.call("query", 1, timeout_s=5) == ("actor", 1)
    assert actor.called == ["query"]


async def test_a_door_that_closed_is_left_for_the_actor(tmp_path: Path) -> None:
    actor, door = Actor(), EngineDoor(tmp_path, engine)
    await door.open()
    transport = DoorTransport(actor, tmp_path)
    await transport.call("query", 1, timeout_s=5)
    await door.close()
    for _, writer in transport._idle:
        writer.close()
    assert await transport.call("query", 2, timeout_s=5) == ("actor", 2)


async def test_the_file_of_a_killed_actor_is_replaced(tmp_path: Path) -> None:
    (tmp_path / SOCKET_NAME).write_bytes(b"left over")
    actor = Actor()
    assert await DoorTransport(actor, tmp_path).call("query", 1, timeout_s=5) == ("actor", 1)
    door = EngineDoor(tmp_path, engine)
    await door.open()
    transport = DoorTransport(actor, tmp_path)
    assert await transport.call("query", 1, timeout_s=5) == ("door", "query", 1)
    await transport.close()
    await door.close()


async def test_errors_of_the_engine_arrive_as_they_are(tmp_path: Path) -> None:
    door = EngineDoor(tmp_path, engine)
    await door.open()
    transport = DoorTransport(Actor(), tmp_path)
    with pytest.raises(BadVector) as wrong:
        await transport.call("query", "wrong", timeout_s=5)
    assert wrong.value.details == {"dims": 3}
    with pytest.raises(IndexDown):
        await transport.call("query", "broken", timeout_s=5)
    await transport.close()
    await door.close()


async def test_a_late_answer_is_never_that_of_the_next_question(tmp_path: Path) -> None:
    door = EngineDoor(tmp_path, engine)
    await door.open()
    transport = DoorTransport(Actor(), tmp_path)
    with pytest.raises(IndexDown, match="no answer within"):
        await transport.call("query", "slow", timeout_s=0.02)
    assert await transport.call("query", "next", timeout_s=5) == ("door", "query", "next")
    await transport.close()
    await door.close()


async def test_only_the_owner_may_open_the_door(tmp_path: Path) -> None:
    door = EngineDoor(tmp_path, engine)
    await door.open()
    assert stat.S_IMODE((tmp_path / SOCKET_NAME).stat().st_mode) == 0o600
    await door.close()


async def test_a_path_too_long_for_a_socket_has_no_door(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    assert door_path(deep) is None
    await EngineDoor(deep, engine).open()
    assert await DoorTransport(Actor(), deep).call("query", 1, timeout_s=5) == ("actor", 1)
