"""The encoder as a third retriever, on a real MongoDB, a real engine and the bundled model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rayapp.container.services import Container
from rayapp.memory.item import point_id_of
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.search.requests import Explanation, SearchQuery
from rayapp.search.retrievers import MOST_UNENCODED
from tests.support.engine_container import engine_container
from tests.support.resident_contract import beside, drained

pytestmark = [pytest.mark.engine, pytest.mark.takes(15)]

ME, MINE = WriteScope("dana"), ReadScope("dana")
FACTS = (
    "My sister moved to Haifa last spring.",
    "The boiler is in the cellar.",
    "Noa has a peanut allergy.",
    "The car was sold in May.",
)
# No word in common with what answers it.
QUESTION = "which foods must she avoid?"
LONG = " ".join(f"On day {n} they spoke of garden {n * n}." for n in range(60))


@pytest.fixture(scope="module")
async def container(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Container]:
    on = {"encoder": {"enabled": True}}
    folder: Path = tmp_path_factory.mktemp("engine")
    async with engine_container(folder, embedding=on) as made:
        yield made


async def store(container: Container, text: str) -> str:
    done = await container.memories.store(ME, NewMemory(text=text))
    assert done.memory_id is not None
    await drained(container)
    return done.memory_id


async def encoded(container: Container) -> None:
    assert container.encoding is not None
    while await container.encoding.run_once():
        pass


async def explained(container: Container, memory_id: str, question: str) -> Explanation:
    return await container.explainer.explain(MINE, memory_id, SearchQuery(query=question))


def read(found: Explanation) -> dict[str, float]:
    """What the retrievers said."""
    (stage,) = (one for one in found.stages if one.stage == "retrieve")
    return stage.values


async def test_from_a_store_to_a_deletion(container: Container) -> None:
    ids = [await store(container, text) for text in FACTS]
    # At once, by what there is.
    answer = await container.search.search(MINE, SearchQuery(query="boiler cellar"))
    assert answer.hits[0].item.memory_id == ids[1]
    allergy = await explained(container, ids[2], QUESTION)
    assert "encoder" not in read(allergy)
    await encoded(container)
    answer = await container.search.search(MINE, SearchQuery(query=QUESTION))
    assert answer.degraded == ()
    allergy = await explained(container, ids[2], QUESTION)
    assert read(allergy)["encoder_rank"] == 1.0
    assert read(allergy)["encoder"] > 0.75
    knowledge = next(one for one in allergy.stages if one.stage == "knowledge")
    assert knowledge.values["encoder_nearest"] == pytest.approx(read(allergy)["encoder"], abs=1e-6)
    assert knowledge.values["encoder_gap"] > 0.0
    # The held view and one made anew say the same, and so does the index.
    fresh, by_index = await beside(container), await beside(container, resident_bytes=0)
    for other in (fresh, by_index):
        for memory_id in ids:
            mine = read(await explained(container, memory_id, QUESTION))
            theirs = read(await explained(other, memory_id, QUESTION))
            assert mine["encoder"] == pytest.approx(theirs["encoder"], abs=5e-3)
            assert mine["encoder_rank"] == theirs["encoder_rank"]
    # Another text: the vector goes with it and comes back for the new one.
    await container.memories.edit(ME, ids[2], MemoryEdit(text="The tax office closes at noon."))
    await drained(container)
    assert "encoder" not in read(await explained(container, ids[2], "when does the office close"))
    await encoded(container)
    renewed = read(await explained(container, ids[2], "when does the office close"))
    assert renewed["encoder_rank"] == 1.0
    await container.memories.delete(ME, ids[2])
    await drained(container)
    assert await container.index.retrieve([point_id_of("dana", ids[2])]) == []
    answer = await container.search.search(MINE, SearchQuery(query="when does the office close"))
    assert ids[2] not in [hit.item.memory_id for hit in answer.hits]


async def test_what_is_not_read_yet_is_said_and_found(container: Container) -> None:
    await encoded(container)
    ids = [await store(container, f"{LONG} Ticket number {n}.") for n in range(3)]
    few = await container.search.search(MINE, SearchQuery(query="which garden on day 7"))
    assert few.degraded == ()
    for number in range(MOST_UNENCODED):
        await store(container, f"The lamp of room {number} is broken.")
    answer = await container.search.search(MINE, SearchQuery(query="which garden on day 7"))
    assert "encoder_backlog" in answer.degraded
    assert set(ids) <= {hit.item.memory_id for hit in answer.hits} | set(
        answer.hits[0].collapsed_ids
    )
    found = await explained(container, ids[0], "which garden on day 7")
    (stage,) = (one for one in found.stages if one.stage == "retrieve")
    assert "has not read it yet" in stage.detail
    await encoded(container)
    answer = await container.search.search(MINE, SearchQuery(query="which garden on day 7"))
    assert answer.degraded == ()
