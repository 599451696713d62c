"""What was just stored is found by the identifier in it, whatever else the question says.

In-memory stores, the bundled model and the default reranker; the neighbours differ by identifier
alone and are indexed.
"""

import random
from collections.abc import Callable

import pytest

from rayapp.container import bootstrap
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.load import load_settings
from tests.support.examples import examples
from tests.support.harness import Harness

NEIGHBOURS, IDENTIFIERS = 120, examples(100)
Maker = Callable[[random.Random], str]


async def opened() -> Harness:
    world = Harness(load_settings("local", env={}), SystemClock())
    world.reranker.inner = bootstrap.rerank_service(world.settings, world.metrics)
    return await world.opened()


@pytest.mark.parametrize(
    ("text", "make", "question"),
    [
        ("Marker {} for the fault run", lambda r: f"מזהה{r.randrange(10**6):06d}", "{}"),
        (
            "Marker {} for the fault run",
            lambda r: f"זיהוי-{r.randrange(100)}-{r.randrange(10**6):06d}",
            "{}",
        ),
        (
            "Invoice {} was paid late",
            lambda r: f"INV-{r.randrange(10**6):06d}",
            "מתי שולמה חשבונית {}?",
        ),
        (
            "החשבונית {} שולמה באיחור",
            lambda r: f"INV-{r.randrange(10**6):06d}",
            "when was invoice {} paid?",
        ),
        ("Marker {} for the fault run", lambda r: f"{r.getrandbits(32):08x}", "מה זה {}?"),
    ],
    ids=["hebrew-and-digits", "hebrew-groups", "hebrew-question", "english-question", "key"],
)
async def test_an_identifier_finds_its_memory(text: str, make: Maker, question: str) -> None:
    rng = random.Random(11)
    names = list(dict.fromkeys(make(rng) for _ in range(NEIGHBOURS + IDENTIFIERS)))
    world = await opened()
    for name in names[:-IDENTIFIERS]:
        await world.store(text.format(name))
    await world.drain()
    stored, missed = {}, []
    for name in names[-IDENTIFIERS:]:
        stored[name] = await world.store(text.format(name))
        if stored[name] not in await world.found(question.format(name), limit=3):
            missed.append(name)
    await world.drain()
    for name, memory_id in stored.items():
        if memory_id not in await world.found(question.format(name), limit=3):
            missed.append(f"{name} indexed")
    assert missed == []
