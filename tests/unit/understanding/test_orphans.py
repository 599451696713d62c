"""What is derived from memories that are not there is found, and taken back."""

from rayapp.container.understanding import orphans_of
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.statements.ports import KnowledgeRows
from tests.support.harness import Harness
from tests.support.knowledge_contract import a_gift
from tests.unit.api.serving import client_of
from tests.unit.understanding.conftest import on

RAW = "/api/memory/raw-data"


async def test_rows_whose_memory_is_gone_are_taken_back() -> None:
    world = Harness.ready(on())
    orphans = orphans_of(world.container.stores, world.container.runtime)

    async def work() -> None:
        world.clock.advance(world.settings.understanding.settle_s)
        while await world.container.understanding.run_once():
            pass

    async with client_of(world.services, {"X-User-Id": "dana"}) as api:
        for text in ("I value honesty.", "My daughter Sarah lives in Haifa."):
            assert (await api.post(RAW, json={"text": text})).is_success
        await work()
    assert await orphans.look(repair=True) == {"orphans": 0, "taken_back": 0}

    async def lose(rows: KnowledgeRows) -> None:
        await rows.put_given([a_gift("lost")])

    await world.knowledge.change(WriteScope("dana"), lose)
    await world.knowledge.change(WriteScope("noa"), lose)
    assert await orphans.look(repair=False) == {"orphans": 2, "taken_back": 0}
    assert await orphans.look(repair=True) == {"orphans": 2, "taken_back": 2}
    # What waits to be taken back is no news.
    assert await orphans.look(repair=True) == {"orphans": 0, "taken_back": 0}
    await work()
    for user in ("dana", "noa"):
        assert await world.knowledge.reads(ReadScope(user)).given(["lost"]) == []
    assert len(world.knowledge.tables.given) == 2
    assert await orphans.look(repair=False) == {"orphans": 0, "taken_back": 0}
