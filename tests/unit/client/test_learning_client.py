"""The client's learning calls against the real API on a real socket."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from starlette.applications import Starlette

from rayapp.api.app import create_api
from rayapp.client import Memory, MemoryClient, RetryPolicy
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from tests.support.harness import Harness
from tests.unit.fake_service import FakeService, serving

FAST = RetryPolicy(attempts=3, base_s=0.001)


@dataclass
class RealService(FakeService):
    """The real application in the place of the small one."""

    world: Harness = field(default_factory=Harness.ready)

    def app(self) -> Starlette:
        return create_api(self.world.services)


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving(RealService()) as started:
        yield started


async def test_outcomes_count_once_per_key(service: FakeService) -> None:
    async with MemoryClient(service.url, user_id="dana") as client:
        stored = await client.store(Memory(text="דנה שותה תה"))
        assert stored.memory_id is not None
        ids = [stored.memory_id]
        first = await client.record_outcome("worked", memory_ids=ids, idempotency_key="k")
        again = await client.record_outcome("worked", memory_ids=ids, idempotency_key="k")
        other = await client.record_outcome("failed", memory_ids=ids, action="answer")
        with pytest.raises(Conflict):
            await client.record_outcome("failed", memory_ids=ids, idempotency_key="k")
        with pytest.raises(NotFound):
            await client.record_outcome("worked", memory_ids=ids, user_id="noa")
    assert (first.duplicate, again.duplicate) == (False, True)
    assert again.updated == first.updated
    assert [one.updated[0].uses for one in (first, other)] == [1, 2]


async def test_a_response_is_kept_and_scores_what_it_used(service: FakeService) -> None:
    async with MemoryClient(service.url) as client:
        stored = await client.store(Memory(text="tea"))
        assert stored.memory_id is not None
        reply = await client.record_response(
            "Dana likes tea", "worked", related=(stored.memory_id,)
        )
        scored = await client.score({stored.memory_id: "partial"})
    assert (reply.scored, reply.updated[0].memory_id) == (1, stored.memory_id)
    assert scored.updated[0].uses == 2


async def test_promotion_insights_and_graphs_are_typed(service: FakeService) -> None:
    async with MemoryClient(service.url) as client:
        assert (await client.ops.promote()).stats.errors == 0
        insights = await client.insights("Where is Dana?", recent_messages=["דנה"])
        assert (insights.language, insights.matched_concepts) == ("en", ())
        assert (await client.graph("content")).nodes == ()
        assert (await client.concept_path("דנה", "C/C++")).found is False
        with pytest.raises(NotFound, match="No graph knows"):
            await client.concept("C/C++ ועוד")


async def test_bad_input_is_the_servers_sentence(service: FakeService) -> None:
    async with MemoryClient(service.url, retry=FAST) as client:
        with pytest.raises(InvalidInput, match="name what was judged"):
            await client.record_outcome("worked")
