"""A service whose background work a test runs by hand, and what was derived so far."""

from collections.abc import AsyncIterator, Sequence
from functools import cache

import httpx
import pytest

from rayapp.core.claims import Queued
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.understanding.ports import SourceText
from rayapp.understanding.records import Understanding
from tests.support.harness import AT_ONCE, Harness
from tests.unit.api.serving import client_of


class Heard:
    """Implements `Understander`: keeps what it is given, by user and source."""

    def __init__(self) -> None:
        self.sources: dict[tuple[str, str], SourceText] = {}
        self.calls: list[tuple[str, str]] = []
        self.error: Exception | None = None
        # In whose texts alone it is met; empty: in all.
        self.bad = ""

    async def understand(self, sources: Sequence[SourceText]) -> None:
        if self.error is not None and any(self.bad in one.text for one in sources):
            raise self.error
        for source in sources:
            self.calls.append(("understand", source.source_id))
            self.sources[source.user_id, source.source_id] = source

    async def take_back(self, user_id: str, source_ids: Sequence[str]) -> None:
        for source_id in source_ids:
            self.calls.append(("take_back", source_id))
            self.sources.pop((user_id, source_id), None)

    def texts(self) -> list[str]:
        return sorted(one.text for one in self.sources.values())


class Understood:
    """A harness, and the worker over it."""

    def __init__(self, world: Harness) -> None:
        self.world = world
        self.heard = Heard()
        world.container.understanding.understander = self.heard

    @property
    def settles_s(self) -> float:
        return self.world.settings.understanding.settle_s

    async def work(self) -> int:
        """Until nothing is due; how much was done."""
        self.world.clock.advance(self.settles_s)
        total = 0
        while worked := await self.world.container.understanding.run_once():
            total += worked
        return total

    def state(self, memory_id: str, user: str = "dana") -> Queued[Understanding] | None:
        return self.world.understandings.queued((user, memory_id))


@cache
def on() -> Settings:
    return load_settings(env={}, overrides={"search": AT_ONCE, "understanding": {"enabled": True}})


@pytest.fixture
def world() -> Understood:
    return Understood(Harness.ready(on()))


@pytest.fixture
async def api(world: Understood) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(world.world.services, {"X-User-Id": "dana"}) as client:
        yield client
