"""What a held view owes: after every write it answers as one made anew and as the index."""

import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import cycle
from typing import Any

import pytest

from rayapp.container.services import Container
from rayapp.core.errors import RayappError
from rayapp.inference.ports import opened
from rayapp.learning.records import OutcomeRequest
from rayapp.memory.item import IndexState, MemoryItem, Outcome, Source
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search import resident
from rayapp.search.newest import NewestMemories
from rayapp.search.requests import SearchQuery
from tests.support.jobs import FakeLauncher
from tests.support.lifecycle_contract import a_promotion

ME, MINE = WriteScope("dana"), ReadScope("dana")
SUBJECTS = ("the boiler", "Noa", "the car", "הדוד", "נועה", "המכונית", "build ERR_4711", "tea")
FACTS = ("is in the cellar", "likes green", "was sold in May", "נמצא במרתף", "אוהבת ירוק")
QUESTIONS = (
    "where is the boiler?",
    "איפה הדוד?",
    "what does Noa like",
    "ERR_4711",
    "what was sold",
)
TIERS = (Tier.WORKING, Tier.HISTORY, Tier.PATTERNS, Tier.MEMORY_BANK)
STEPS = 60
# Every fifth text is cut into passages, no two of which are equal.
LONG = " ".join(f"On day {n} they spoke of garden {n * n}." for n in range(60))

# What stands before a question, by what it is.
STANDING = (
    ItemFilter(always_inject=True),
    ItemFilter(tiers=(Tier.MEMORY_BANK,), tags_any=("home",)),
    ItemFilter(instruction=True),
    ItemFilter(tiers=(Tier.PATTERNS,)),
)
MOST_STANDING = 5

Hits = list[tuple[MemoryItem, float]]
# Claims and tries of the indexer are not what a search shows.
INDEX = IndexState()
Write = Callable[[Container, random.Random, list[str]], Awaitable[Any]]


async def beside(container: Container, **search: Any) -> Container:
    """Another process over the same stores, which has seen nothing yet; `search` are settings."""
    settings = container.settings
    changed = settings.model_copy(update={"search": settings.search.model_copy(update=search)})
    return Container(
        replace(container.runtime, settings=changed),
        container.stores,
        index=container.index,
        embedder=await opened(container.embedder),
        launcher=FakeLauncher(),
        reranker=container.reranker,
        encoder=None if container.encoder is None else await opened(container.encoder),
    )


async def asked(container: Container) -> list[Hits]:
    """The hits of each question, in no conversation and in one with documents: memory, score."""
    found = []
    for question, conversation in zip(QUESTIONS, cycle((None, "c1")), strict=False):
        query = SearchQuery(query=question, limit=50, conversation_id=conversation)
        answer = await container.search.search(MINE, query)
        assert answer.degraded == ()
        found.append(
            [(replace(hit.item, index=INDEX), hit.summary.final_score) for hit in answer.hits]
        )
    return found


def same_hits(some: Sequence[Hits], others: Sequence[Hits]) -> None:
    """Rank for rank; sums of floats in another order differ in the seventh digit."""
    for one, other in zip(some, others, strict=True):
        assert [item for item, _ in one] == [item for item, _ in other]
        scores = [score for _, score in other]
        assert [score for _, score in one] == pytest.approx(scores, abs=1e-6)


async def standing(container: Container, views: resident.ResidentViews | None) -> list[Any]:
    """What stands before a question, of the held view or, where that is None, of the store."""
    newest = NewestMemories(container.stores.items, views)
    now = container.clock.now()
    wheres = [replace(where, now=now, valid_at=now) for where in STANDING]
    found = await newest.of(MINE, wheres, MOST_STANDING)
    return [[replace(item, index=INDEX) for item in items] for items in found]


def counted(container: Container, kind: str) -> float:
    """Searches that a view, or the `index`, has answered."""
    metrics: Any = container.metrics
    found: float = metrics.counters["views", (("kind", kind),)]
    return found


async def tried(write: Write, container: Container, rnd: random.Random, ids: list[str]) -> None:
    """What may not be done to this memory just now is refused, and changes nothing."""
    with suppress(RayappError):
        await write(container, rnd, ids)


async def drained(container: Container) -> None:
    while await container.indexing.run_once():
        pass


async def store(container: Container, rnd: random.Random, ids: list[str]) -> None:
    text = f"{rnd.choice(SUBJECTS)} {rnd.choice(FACTS)}, said {rnd.randrange(50)}"
    if rnd.random() < 0.2:
        text = f"{LONG} {text}."
    if rnd.random() < 0.1:
        text = f"Always answer in Hebrew when {text}."
    new = NewMemory(
        text=text,
        always_inject=rnd.random() < 0.2,
        tags=("home",),
        importance=0.5,
        confidence=rnd.random(),
        tier=rnd.choice(TIERS),
        source=Source(conversation_id=rnd.choice(("c1", "c2"))),
        supersedes=rnd.choice(ids) if ids and rnd.random() < 0.2 else None,
    )
    done = await container.memories.store(ME, new)
    if done.memory_id is not None and done.memory_id not in ids:
        ids.append(done.memory_id)


async def again(container: Container, rnd: random.Random, ids: list[str]) -> None:
    """What is known is said once more."""
    item = await container.memories.get(MINE, rnd.choice(ids))
    await container.memories.store(
        ME,
        NewMemory(text=item.text, tier=item.tier, tags=("home",), importance=0.5, confidence=0.5),
    )


async def batch(container: Container, rnd: random.Random, ids: list[str]) -> None:
    texts = [f"{rnd.choice(SUBJECTS)} {rnd.choice(FACTS)} {n}" for n in range(rnd.randrange(1, 6))]
    done = await container.memories.store_batch(
        ME, [NewMemory(text=text, tier=Tier.HISTORY) for text in texts]
    )
    ids += [one.memory_id for one in done if one.memory_id is not None and one.memory_id not in ids]


async def edit(container: Container, rnd: random.Random, ids: list[str]) -> None:
    change: dict[str, Any] = rnd.choice(
        (
            {"text": f"{rnd.choice(SUBJECTS)} {rnd.choice(FACTS)} since {rnd.randrange(99)}"},
            {"tags": ("home",)},
            {"importance": rnd.random()},
            {"always_inject": rnd.random() < 0.5},
        )
    )
    await container.memories.edit(ME, rnd.choice(ids), MemoryEdit(**change))


async def outcome(container: Container, rnd: random.Random, ids: list[str]) -> None:
    said = rnd.choice((Outcome.WORKED, Outcome.FAILED, Outcome.PARTIAL))
    named = tuple(rnd.sample(ids, min(3, len(ids))))
    await container.outcomes.record(ME, OutcomeRequest(outcome=said, memory_ids=named))


async def archive(container: Container, rnd: random.Random, ids: list[str]) -> None:
    await container.memories.archive(ME, rnd.choice(ids))


async def restore(container: Container, rnd: random.Random, ids: list[str]) -> None:
    await container.memories.restore(ME, rnd.choice(ids))


async def delete(container: Container, rnd: random.Random, ids: list[str]) -> None:
    await container.memories.delete(ME, rnd.choice(ids))


async def hide(container: Container, rnd: random.Random, ids: list[str]) -> None:
    await container.user_data.hide(ME, rnd.choice(ids), "wrong")


async def clear(container: Container, rnd: random.Random, ids: list[str]) -> None:
    await container.user_data.clear_tiers(ME, (Tier.WORKING,), 5.0)


async def attach(container: Container, rnd: random.Random, ids: list[str]) -> None:
    text = f"{rnd.choice(SUBJECTS)} {rnd.choice(FACTS)}, read in {rnd.randrange(50)}"
    new = NewMemory(text=text, tier=Tier.BOOKS, attached_to=rnd.choice(("c1", "c2")))
    done = await container.memories.store(ME, new)
    if done.memory_id is not None:
        ids.append(done.memory_id)


async def move(container: Container, rnd: random.Random, ids: list[str]) -> None:
    """As the rules of promotion do it, whose conditions are not waited for."""
    item = await container.memories.get(MINE, rnd.choice(ids))
    await container.stores.lifecycle.transition([a_promotion(item)], [])


async def promote(container: Container, rnd: random.Random, ids: list[str]) -> None:
    while await container.outbox.run_once():
        pass
    await container.promotion.run(ME.user_id)


async def index(container: Container, rnd: random.Random, ids: list[str]) -> None:
    await container.indexing.run_once()


WRITES: tuple[tuple[Write, int], ...] = (
    (store, 8), (again, 2), (batch, 2), (edit, 4), (outcome, 4), (archive, 2), (restore, 2),
    (delete, 2), (hide, 1), (clear, 1), (move, 3), (promote, 1), (attach, 4), (index, 5),
)  # fmt: skip


# Each process remembers for a while that a user has no graph, which is not what is held here.
NOT_REMEMBERED = {"empty_cache_s": 0.0}


class ResidentContract:
    """A subclass gives `container`: the services of a process in which nothing was stored."""

    @pytest.fixture(autouse=True)
    def _views_are_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """However busy the machine is; and what is written is read for its own note, not because
        an earlier one is still young."""
        monkeypatch.setattr(resident, "WAIT_S", 30.0)
        monkeypatch.setattr(resident, "SETTLE_S", 0.0)

    @pytest.mark.parametrize("seed", range(3))
    async def test_after_every_write_it_answers_as_one_made_anew(
        self, container: Container, seed: int
    ) -> None:
        rnd, ids, held = random.Random(seed), list[str](), 0
        kinds, weights = zip(*WRITES, strict=True)
        for _ in range(STEPS):
            write = rnd.choices(kinds, weights)[0] if ids else store
            await tried(write, container, rnd, ids)
            same_hits(await asked(container), await asked(await beside(container)))
            held += await container.views.current(MINE.own, STANDING) is not None
            stands = await standing(container, container.views)
            assert stands == await standing(container, None)
        assert counted(container, "index") == 0.0
        assert held > STEPS / 2

    async def test_what_is_stored_is_found_at_once_and_what_is_deleted_is_not(
        self, container: Container
    ) -> None:
        kept = await container.memories.store(ME, NewMemory(text="the boiler is in the cellar"))
        await drained(container)
        await asked(container)
        new = await container.memories.store(ME, NewMemory(text="the boiler was repaired"))
        shown = {item.memory_id for item, _ in (await asked(container))[0]}
        assert shown == {kept.memory_id, new.memory_id}
        await container.memories.delete(ME, str(kept.memory_id))
        assert [item.memory_id for item, _ in (await asked(container))[0]] == [new.memory_id]

    async def test_a_time_that_is_over_needs_no_write(self, container: Container) -> None:
        now = container.clock.now()
        stored = await container.memories.store(
            ME, NewMemory(text="the boiler is off", valid_to=now + timedelta(hours=1))
        )
        await asked(container)
        shown = [
            await container.search.search(
                MINE, SearchQuery(query=QUESTIONS[0], where=ItemFilter(valid_at=now + later))
            )
            for later in (timedelta(minutes=1), timedelta(hours=2))
        ]
        assert [[hit.item.memory_id for hit in one.hits] for one in shown] == [
            [stored.memory_id],
            [],
        ]

    async def test_what_is_cleared_is_gone_at_once(self, container: Container) -> None:
        await container.memories.store(ME, NewMemory(text="the boiler is off", tier=Tier.WORKING))
        assert (await asked(container))[0]
        await container.user_data.clear_tiers(ME, (Tier.WORKING,), 5.0)
        assert (await asked(container))[0] == []

    async def test_an_id_that_is_stored_again_says_what_it_says_now(
        self, container: Container
    ) -> None:
        for text in ("the boiler is off", "the boiler is new"):
            await container.memories.store(ME, NewMemory(text=text, memory_id="m"))
            assert [item.text for item, _ in (await asked(container))[0]] == [text]
            await container.memories.delete(ME, "m")
            assert (await asked(container))[0] == []

    async def test_a_chunk_that_is_stored_again_between_two_searches_waits_for_the_index(
        self, container: Container
    ) -> None:
        """As where it is made anew: until then nothing is shown of it, the old text neither."""
        old = NewMemory(text="the boiler is off", memory_id="m", source=Source(chunk_id="0"))
        await container.memories.store(ME, old)
        await drained(container)
        assert (await asked(container))[0]
        await container.memories.delete(ME, "m")
        await container.memories.store(ME, replace(old, text="the boiler is new"))
        assert (await asked(container))[0] == []
        same_hits(await asked(container), await asked(await beside(container)))

    async def test_another_user_sees_nothing_of_it(self, container: Container) -> None:
        await container.memories.store(ME, NewMemory(text="the boiler is in the cellar"))
        await asked(container)
        query = SearchQuery(query=QUESTIONS[0])
        assert (await container.search.search(ReadScope("noa"), query)).hits == ()

    async def test_a_user_with_too_many_memories_is_searched_in_the_index(
        self, container: Container
    ) -> None:
        await batch(container, random.Random(1), [])
        await drained(container)
        before = counted(container, "index")
        small = await asked(await beside(container, resident_max_items=0))
        assert counted(container, "index") == before + len(QUESTIONS)
        held = await asked(container)
        assert [[item for item, _ in one] for one in small] == [
            [item for item, _ in one] for one in held
        ]
