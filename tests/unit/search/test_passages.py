"""Long memories: found, named and shown by the passage that answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import WriteScope
from rayapp.search.rules.fusion import LEAST_FACTOR, length_factors
from rayapp.search.rules.recipes import TurnShares
from rayapp.search.rules.turns import with_turns
from rayapp.text.passages import WHOLE_CHARS
from tests.support.builders import an_item
from tests.support.harness import Harness
from tests.unit.api.serving import client_of

FILLER = "\n\n".join(
    f"Chapter {n}. The weather of the valley was mild, and people walked along the river for "
    f"hours, talking about bread, wool and the price of timber in the year {1800 + n}. "
    f"Nothing else of note is told about these days in the records of the town."
    for n in range(12)
)
FACT = "Dana's locker in the gym has the code 7714."
HALF = len(FILLER) // 2
LONG = f"{FILLER[:HALF]}\n\n{FACT}\n\n{FILLER[HALF:]}"


@pytest.mark.parametrize("indexed", [True, False])
async def test_a_long_memory_is_found_once_and_names_what_answers(
    service: Harness, indexed: bool
) -> None:
    kept = await service.store(LONG)
    await service.store("The gym opens at seven.")
    if indexed:
        await service.drain()
    answer = await service.search("What is the code of the locker?")
    hits = [hit for hit in answer.hits if hit.item.memory_id == kept]
    assert len(hits) == 1
    assert hits[0].passage is not None
    assert FACT in hits[0].text
    assert len(hits[0].text) < WHOLE_CHARS
    assert LONG[slice(*hits[0].passage)] == hits[0].text
    assert hits[0].summary.length_factor < 1.0


async def test_a_short_memory_is_its_own_passage(service: Harness) -> None:
    await service.store(FACT)
    await service.drain()
    (hit,) = (await service.search("locker code")).hits
    assert (hit.passage, hit.text, hit.summary.length_factor) == (None, FACT, 1.0)


async def test_what_an_edit_took_out_is_not_found(service: Harness) -> None:
    kept = await service.store(LONG)
    await service.drain()
    me = WriteScope("dana")
    await service.services.memories.edit(me, kept, MemoryEdit(text=FILLER))
    for _ in range(2):
        hits = (await service.search("What is the code of the locker?")).hits
        assert all("7714" not in hit.text for hit in hits)
        await service.drain()
    assert await service.index.count() == 1


async def test_the_block_shows_the_passage(service: Harness) -> None:
    await service.store(LONG)
    await service.drain()
    async with client_of(service.services, {"X-User-Id": "dana"}) as http:
        body = {"query": "What is the code of the locker?", "include_context": True}
        answer = (await http.post("/api/memory/context", json=body)).json()
        text = answer["volatile_text"]
    assert FACT in text
    assert "Chapter 11." not in text


@given(st.integers(1, 400), st.integers(1, 400), st.floats(0.0, 0.2))
def test_a_longer_text_keeps_no_more(one: int, other: int, share: float) -> None:
    short, long = sorted((one, other))
    kept = length_factors([250 * short, 250 * long], share).tolist()
    assert 1.0 >= kept[0] >= kept[1] >= LEAST_FACTOR
    assert length_factors([WHOLE_CHARS], share).tolist() == [1.0]


def test_a_long_answer_gives_nothing_to_its_neighbours() -> None:
    turns = [an_item(memory_id=f"m{n}", text="short turn", sequence=n) for n in (1, 2)]
    long = an_item(memory_id="m2", text=LONG, sequence=2)
    shares = TurnShares(speaker=0.0)
    relevance = np.array([0.2, 0.8])
    assert with_turns(turns, relevance, "", shares)[0] > 0.2
    assert with_turns([turns[0], long], relevance, "", shares).tolist() == [0.2, 0.8]
