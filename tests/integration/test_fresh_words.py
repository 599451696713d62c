"""A memory is found the moment it is stored: the promise of the README, with random identifiers.

The real engine, a real MongoDB, the bundled model and the default reranker; the neighbours are the
same sentence with other identifiers, the older ones indexed.
"""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rayapp.container.services import Container
from rayapp.memory.requests import NewMemory
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.search.requests import SearchQuery
from tests.support.engine_container import engine_container

pytestmark = pytest.mark.engine
ME, READ = WriteScope("dana"), ReadScope("dana")
IDENTIFIERS = 300  # with the indexer stopped, and as many with it running
NEIGHBOURS = 40
SENTENCES = (
    "Marker {} for the fault run",
    "הסימון {} של ריצת התקלות",
    "The build {} failed in the night run and was started again",
)
# A name of letters alone is a word like any other, so it is asked for alone.
QUESTIONS = ("{}", "what is {}?", "מה זה {}?", "מתי נרשם {} בריצה?")


def identifiers(count: int, rng: random.Random) -> list[str]:
    """Random names as tickets, builds, keys and addresses have them."""
    makers = (
        lambda: f"zqsearch0x{rng.randrange(16**4):04x}{rng.randrange(16**4):04x}",
        lambda: str(uuid.UUID(int=rng.getrandbits(128))),
        lambda: f"ERR_{rng.randrange(10**5):05d}{rng.choice('abcdef')}",
        lambda: f"build-{rng.randrange(10**6)}.{rng.randrange(100)}",
        lambda: f"INV-{rng.randrange(10**6):06d}",
        lambda: f"מזהה{rng.randrange(10**6):06d}",
        lambda: f"זיהוי-{rng.randrange(100)}-{rng.getrandbits(24):06x}",
        lambda: "".join(rng.choice("bcdfghjklmnpqrstvwxz") for _ in range(12)),
    )
    found: dict[str, None] = {}
    while len(found) < count:
        found[rng.choice(makers)()] = None
    return list(found)


@asynccontextmanager
async def indexer(parts: Container, running: bool) -> AsyncIterator[None]:
    """Index what is there; then, if `running`, go on with it."""
    indexing = parts.indexing
    while await indexing.run_once():
        pass
    await parts.watch.look(parts.index, parts.stores.items)

    ended = asyncio.Event()
    waiting = asyncio.ensure_future(ended.wait())

    async def loop() -> None:
        while not ended.is_set():
            if not await indexing.run_once():
                await asyncio.wait([waiting], timeout=0.01)

    task = asyncio.ensure_future(loop()) if running else None
    try:
        yield
    finally:
        ended.set()
        await waiting
        if task is not None:
            await task


@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
async def test_a_word_that_was_just_stored_finds_its_memory(tmp_path: Path, running: bool) -> None:
    rng = random.Random(12)
    names = identifiers(IDENTIFIERS + NEIGHBOURS, rng)
    async with engine_container(tmp_path) as parts:

        async def store(name: str) -> str:
            text = rng.choice(SENTENCES).format(name)
            return str((await parts.memories.store(ME, NewMemory(text=text))).memory_id)

        async def found(name: str) -> list[str]:
            question = "{}" if name.isalpha() else rng.choice(QUESTIONS)
            query = SearchQuery(query=question.format(name), limit=3)
            answer = await parts.search.search(READ, query)
            assert {"embedder", "index", "pending", "text"}.isdisjoint(answer.degraded)
            return [hit.item.memory_id for hit in answer.hits]

        for name in names[:NEIGHBOURS]:
            await store(name)
        stored: dict[str, str] = {}
        async with indexer(parts, running):
            missed = []
            for name in names[NEIGHBOURS:]:
                stored[name] = await store(name)
                if stored[name] not in await found(name):
                    missed.append(name)
        # Again, below many newer ones: indexed, or pending beyond those that are read.
        later = rng.sample(sorted(stored), 100)
        missed += [name for name in later if stored[name] not in await found(name)]
    assert missed == []
