"""What is gathered for a decision: heads, names that are known, the policy of a tenant."""

from typing import Any

import pytest

from rayapp.core.errors import EmbedderDown
from rayapp.core.settings.load import load_settings
from rayapp.memory.item import MemoryItem, Source, SourceType
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import new_item
from rayapp.memory.tiers import Tier
from rayapp.understanding.records import Override, Understanding
from rayapp.understanding.rules.sources import row_of
from tests.support.harness import Harness

TEXT = "Everything feels heavy"


class FixedKinds:
    """Reads every sentence as one kind; `error`: it cannot."""

    def __init__(self, kind: str) -> None:
        self.kind, self.error = kind, False
        self.asked: list[str] = []

    async def read(self, sentence: str) -> dict[str, float]:
        self.asked.append(sentence)
        if self.error:
            raise EmbedderDown("It is away: wait.")
        return {self.kind: 0.9}


def memory(text: str, **fields: Any) -> tuple[MemoryItem, Understanding]:
    world = Harness.ready()
    new = NewMemory(text=text, **fields)
    item = new_item(new, user_id="dana", memory_id="m-1", now=world.clock.now())
    return item, row_of(item, "trace")


async def decided(world: Harness, text: str, **fields: Any) -> Any:
    (side,) = await world.container.deciding.decide(*memory(text, **fields))
    return side


async def test_the_heads_are_asked_of_what_a_person_said() -> None:
    world, kinds = Harness.ready(), FixedKinds("emotion")
    world.container.deciding.kinds = kinds
    assert (await decided(world, TEXT)).passed
    assert kinds.asked == [TEXT]
    of_assistant = Source(type=SourceType.ASSISTANT)
    assert not (await decided(world, TEXT, source=of_assistant)).passed
    assert kinds.asked == [TEXT]


async def test_the_heads_are_asked_only_where_they_may_decide() -> None:
    world, kinds = Harness.ready(), FixedKinds("small_talk")
    world.container.deciding.kinds = kinds
    assert (await decided(world, "Dana lives in Haifa. Everything feels heavy.")).passed
    assert kinds.asked == []


async def test_without_the_encoder_the_tables_decide() -> None:
    world, kinds = Harness.ready(), FixedKinds("emotion")
    world.container.deciding.kinds, kinds.error = kinds, True
    found = await decided(world, "I have decided to leave my job.")
    assert found.passed
    assert "heads" not in found.params
    assert not (await decided(world, TEXT)).passed


async def test_names_that_other_memories_hold_make_it_dense() -> None:
    world = Harness.ready()
    text = "Shulamit met Yehonatan in Haifa."
    assert Override.DENSITY not in (await decided(world, text)).overrides
    for number in range(2):
        entities = ("Shulamit", "Yehonatan")
        fact: dict[str, Any] = {
            "tier": Tier.MEMORY_BANK,
            "tags": ("family",),
            "importance": 0.9,
            "confidence": 0.9,
        }
        await world.store(f"A fact about them, {number}.", entities=entities, **fact)
    await world.indexed()
    world.clock.advance(2.0)
    await world.settle()
    assert Override.DENSITY in (await decided(world, text)).overrides


@pytest.mark.parametrize(
    ("org_id", "enabled", "threshold"),
    [(None, True, 0.44), ("acme", False, 0.44), ("beta", True, 0.6)],
)
def test_a_tenant_may_have_it_otherwise(
    org_id: str | None, enabled: bool, threshold: float
) -> None:
    own = {"acme": {"enabled": False}, "beta": {"threshold": 0.6}}
    overrides = {"understanding": {"enabled": True, "tenants": own}}
    policy = load_settings(env={}, overrides=overrides).understanding.of_tenant(org_id)
    assert (policy.enabled, policy.threshold) == (enabled, threshold)


def test_it_is_on_where_one_runs_it_and_off_in_production() -> None:
    assert load_settings("local", env={}).understanding.enabled
    servers = {
        "MONGODB_URI": "mongodb://host/?replicaSet=rs",
        "QDRANT_URL": "http://host:6333",
        "RAYAPP_BACKUP__DIR": "/srv/archives",
        "RAYAPP_AUTH__SESSIONS": "false",
    }
    assert not load_settings("prod", env=servers).understanding.enabled


@pytest.mark.parametrize("text", ["The plumber costs 400.", "האינסטלטור עולה 400"])
async def test_what_stands_in_the_memory_bank_matters_whatever_it_says(text: str) -> None:
    world = Harness.ready()
    told = {"tags": ("family",), "importance": 0.8, "confidence": 0.8}
    found = await decided(world, text, tier=Tier.MEMORY_BANK, **told)
    assert (found.passed, found.overrides) == (True, (Override.FACT,))
    assert not (await decided(world, text, tier=Tier.HISTORY)).passed


@pytest.mark.parametrize("text", ["Dana lives in Haifa.", "דנה גרה בחיפה"])
async def test_a_lasting_fact_of_somebody_matters_wherever_it_stands(text: str) -> None:
    found = await decided(Harness.ready(), text, tier=Tier.HISTORY)
    assert (found.passed, found.overrides) == (True, (Override.FACT,))
