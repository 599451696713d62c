"""The language model in health: optional, named, and never critical."""

import asyncio
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from rayapp.admin.health import HealthService
from rayapp.admin.ports import Component
from rayapp.container import bootstrap
from rayapp.core.errors import ModelDown, StoreDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.core.vectors import IndexSchema
from rayapp.inference.chat import service as model_calls_module
from rayapp.inference.chat.service import ModelCalls
from rayapp.inference.ports import CallSeen
from tests.support.chat_models import ScriptedChat, model_calls
from tests.support.clock import FakeClock
from tests.support.models import HashEmbedder
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.usage import InMemoryUsageStore
from tests.unit.inference.chat.test_service import JUDGED, judge


async def component_of(models: ModelCalls | None) -> Component | None:
    clock = FakeClock()
    unused: Any = None
    health = HealthService(
        SimpleNamespace(items=InMemoryMemoryStore(clock)),  # type: ignore[arg-type]  # what is asked
        unused,
        schema=IndexSchema(model="hash", dims=32, analyser="1"),
        checks={} if models is None else {"models": models.health},
        breaker_owners={},
        runtime=bootstrap.runtime_of(load_settings("local", env={}), InMemoryMetrics(), clock),
    )
    health._index_state = HashEmbedder().health  # type: ignore[method-assign]  # not looked at
    found = await health.components()
    return next((one for one in found if one.name == "models"), None)


async def test_off_is_well_and_says_how_to_switch_it_on() -> None:
    found = await component_of(model_calls(None))
    assert found is not None
    assert (found.healthy, found.critical) == (True, False)
    assert "models.base_url" in found.message
    assert not any(found.details["helpers"].values())


async def test_what_other_processes_saw_is_told_too() -> None:
    """Every process has a breaker of its own; the ledger is one."""
    clock = FakeClock()
    ledger = InMemoryUsageStore(clock)
    indexer = model_calls(ScriptedChat([ModelDown("gone")]), clock=clock, usage=ledger)
    answering = model_calls(ScriptedChat(), clock=clock, usage=ledger)
    for number in range(3):
        assert (await answering.health())["silent"] == [], number
        await indexer.ask("dana", judge())
        clock.advance(1)
    found = await component_of(answering)
    assert found is not None
    assert (found.healthy, found.details["silent"]) == (False, ["outcome_detection"])
    assert "outcome_detection" in found.message
    assert found.details["breaker"] == "closed"
    await answering.ask("noa", judge())  # "ok" is no JSON, so this one is useless too
    assert (await answering.health())["silent"] == ["outcome_detection"]
    clock.advance(301)
    assert (await answering.health())["healthy"]


async def test_one_good_answer_ends_the_silence_and_an_absent_ledger_says_nothing() -> None:
    class Away(InMemoryUsageStore):
        async def recent(self, since: datetime, limit: int) -> list[CallSeen]:
            raise StoreDown("away")

    clock = FakeClock()
    ledger = InMemoryUsageStore(clock)
    chat = ScriptedChat([*["?"] * 8, JUDGED])
    models = model_calls(chat, clock=clock, usage=ledger)
    for user in ("dana", "dana", "dana", "noa"):  # the text of one user alone proves nothing
        assert (await models.health())["silent"] == []
        await models.ask(user, judge())
        clock.advance(1)
    assert (await models.health())["silent"] == ["outcome_detection"]
    await models.ask("dana", judge())
    assert (await models.health())["healthy"]
    assert (await model_calls(ScriptedChat(), usage=Away(clock)).health())["healthy"]


async def test_a_helper_that_was_switched_off_is_not_missed() -> None:
    clock = FakeClock()
    ledger = InMemoryUsageStore(clock)
    before = model_calls(ScriptedChat([ModelDown("gone")]), clock=clock, usage=ledger)
    for _ in range(3):
        await before.ask("dana", judge())
    on = model_calls(ScriptedChat(), clock=clock, usage=ledger)
    assert (await on.health())["silent"] == ["outcome_detection"]
    off = model_calls(
        ScriptedChat(), clock=clock, usage=ledger, helpers={"outcome_detection": False}
    )
    found = await off.health()
    assert (found["healthy"], found["silent"], found["message"]) == (True, [], "ok")


async def test_a_ledger_that_hangs_holds_up_no_health(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(InMemoryUsageStore):
        async def recent(self, since: datetime, limit: int) -> list[CallSeen]:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(model_calls_module, "LEDGER_S", 0.01)
    models = model_calls(ScriptedChat(), usage=Stuck(FakeClock()))
    async with asyncio.timeout(5):
        found = await models.health()
    assert (found["healthy"], found["silent"]) == (True, [])


async def test_a_model_that_is_away_is_named_and_not_critical() -> None:
    models = model_calls(ScriptedChat([ModelDown("gone")]))
    assert (await component_of(models)).message == "ok"  # type: ignore[union-attr]
    for _ in range(3):
        await models.ask("dana", judge())
    found = await component_of(models)
    assert found is not None
    assert (found.healthy, found.critical) == (False, False)
    assert found.details["breaker"] == "open"
