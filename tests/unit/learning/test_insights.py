"""get_context_insights over rows, items, outcomes and receipts that a test writes down."""

from datetime import timedelta
from typing import Any

import pytest

from rayapp.container import bootstrap
from rayapp.core.errors import StoreDown
from rayapp.graphs.records import ContextInsights, InsightsRequest
from rayapp.graphs.rules.problem import problem_hash
from rayapp.graphs.rules.question import read_question
from rayapp.learning.insights import InsightsService
from rayapp.learning.records import OutcomeEvent
from rayapp.memory.item import MemoryItem, Outcome, Stats
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt
from tests.support.builders import an_item
from tests.support.clock import FakeClock
from tests.support.harness import Harness
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.stores import InMemoryReceiptStore
from tests.unit.graphs.fake_graphs import Counting, GraphRows, runtime
from tests.unit.graphs.rules import rows

ENGLISH = "Docker build fails on Jenkins"
HEBREW = "הבנייה של דוקר נכשלת בשרת ג'נקינס"
BOTH = pytest.mark.parametrize("query", [ENGLISH, HEBREW])
TEXTS = bootstrap.load_texts()


class Failures:
    """`OutcomeStore.failures` over a list."""

    def __init__(self) -> None:
        self.events: list[OutcomeEvent] = []

    async def failures(self, scope: ReadScope, point_ids: Any) -> list[OutcomeEvent]:
        return [e for e in self.events if {a.point_id for a in e.applied} & set(point_ids)]


PRIORITY = {"web_search": 50, "perplexity_ask": 55}


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.rows, self.failed = GraphRows(), Failures()
        self.graphs: Any = Counting(self.rows)
        self.items: Any = Counting(InMemoryMemoryStore(self.clock))
        self.outcomes: Any = Counting(self.failed)
        self.receipts: Any = Counting(InMemoryReceiptStore(self.clock))
        self.service = InsightsService(
            self.graphs,
            self.items,
            self.outcomes,
            self.receipts,
            texts=TEXTS,
            runtime=runtime(self.clock),
            priority=lambda tool: PRIORITY.get(tool, 0),
        )

    async def ask(self, query: str, *, user: str = "dana", **fields: Any) -> ContextInsights:
        request = InsightsRequest(query=query, **fields)
        return await self.service.insights(ReadScope(user), request)

    async def store(self, text: str, **fields: Any) -> MemoryItem:
        item = an_item(text=text, **fields)
        assert (await self.items.inner.insert(item)).inserted
        return item

    async def searched(
        self, query: str, conversation: str, concepts: tuple[str, ...], turn: str | None = None
    ) -> None:
        now = self.clock.now()
        number = len(self.receipts.inner._receipts)
        await self.receipts.inner.put_many(
            [
                Receipt(
                    receipt_id=f"r-{number}",
                    user_id="dana",
                    query=query,
                    recipe="default",
                    shown=(),
                    at=now,
                    expires_at=now + timedelta(days=1),
                    conversation_id=conversation,
                    turn_id=turn,
                    concepts=concepts,
                )
            ]
        )

    @property
    def calls(self) -> list[str]:
        parts = (self.graphs, self.items, self.outcomes, self.receipts)
        return [name for part in parts for name in part.calls]


@pytest.fixture
def world() -> World:
    return World()


def key_of(query: str) -> str:
    return read_question(InsightsRequest(query=query), TEXTS.expansions).concepts[0].key


async def learned(world: World, query: str) -> tuple[MemoryItem, MemoryItem]:
    """A memory that solved the question before, and one that failed with its concept."""
    stats = Stats(uses=4, worked_count=1, failed_count=3, last_outcome=Outcome.FAILED)
    solved = await world.store("prune the build cache", tier=Tier.PATTERNS)
    failed = await world.store("restart the agent", tier=Tier.HISTORY, stats=stats)
    key = key_of(query)
    problem = problem_hash(query, TEXTS.expansions)
    assert problem is not None
    world.rows.routing = [
        rows.routing(
            key,
            {Tier.PATTERNS: rows.counted(9, 1)},
            examples=(rows.example(failed, Outcome.FAILED), rows.example(solved, Outcome.WORKED)),
        )
    ]
    world.rows.content = [rows.node(key, memory_ids=(solved.memory_id,))]
    world.rows.used = [rows.action("docker", "run_tests", rows.counted(9, 1))]
    world.rows.solutions = [rows.solution(solved, problem)]
    world.failed.events = [rows.failure(failed, rows.later(0), query="the earlier question")]
    return solved, failed


@BOTH
async def test_everything_that_was_learned_is_told(world: World, query: str) -> None:
    solved, failed = await learned(world, query)
    await world.searched(query, "c1", (key_of(query),))
    found = await world.ask(query, conversation_id="c1")
    assert [one.key for one in found.matched] == [key_of(query)]
    assert [one.tier for one in found.tiers] == [Tier.PATTERNS]
    assert found.known_solution is not None
    assert found.known_solution.memory_id == solved.memory_id
    assert [one.item.memory_id for one in found.patterns] == [solved.memory_id]
    assert [one.item.memory_id for one in found.failures] == [failed.memory_id]
    assert "the earlier question" in found.failures[0].reason
    assert [(one.action, one.advice) for one in found.actions] == [("run_tests", "prefer")]
    assert (found.repeated, len(found.continuity)) == (None, 1)  # it is solved: asked for good
    assert len(found.directives) == 5
    assert found.built_ms >= 0


@BOTH
@pytest.mark.parametrize("better", [0, 1])
async def test_of_tools_that_did_as_well_the_one_to_try_first_is_named(
    world: World, query: str, better: int
) -> None:
    world.rows.used = [
        rows.action("docker", "web_search", rows.counted(9 + better)),
        rows.action("docker", "perplexity_ask", rows.counted(9)),
        rows.action("docker", "a_tool", rows.counted(9)),
    ]
    found = await world.ask(query)
    first = "web_search" if better else "perplexity_ask"
    assert found.actions[0].action == first
    assert found.actions[-1].action == "a_tool"
    assert any(f"“{first}”" in one for one in found.directives)


@BOTH
async def test_it_reads_four_times_and_embeds_nothing(world: World, query: str) -> None:
    await learned(world, query)
    await world.ask(query, conversation_id="c1")
    assert sorted(world.calls) == ["by_points", "failures", "priors", "questions"]


@BOTH
async def test_a_user_without_a_graph_gets_an_empty_answer_after_one_read(
    world: World, query: str
) -> None:
    await learned(world, query)
    found = await world.ask(query, user="omer")
    assert (found.patterns, found.failures, found.tiers, found.directives) == ((), (), (), ())
    assert found.concepts
    assert world.calls == ["priors"]


async def test_the_graphs_are_asked_for_the_concepts_and_the_context(world: World) -> None:
    await world.ask(ENGLISH, recent=("we spoke about Kubernetes",))
    assert world.rows.asked.context_type == "docker"
    assert key_of(ENGLISH) in world.rows.asked.concepts
    assert "kubernetes" not in world.rows.asked.concepts
    await world.ask("and now?", recent=("we spoke about Kubernetes",))
    assert "kubernetes" in world.rows.asked.concepts


async def test_an_open_question_of_this_conversation_is_a_repetition(world: World) -> None:
    await world.searched(ENGLISH, "c1", (key_of(ENGLISH),))
    found = await world.ask(ENGLISH, conversation_id="c1")
    assert found.repeated is None  # the search of this very turn
    world.clock.advance(60)
    found = await world.ask(ENGLISH, conversation_id="c1")
    assert found.repeated == ENGLISH


@BOTH
async def test_a_call_that_comes_twice_is_no_repetition(world: World, query: str) -> None:
    await world.searched(query, "c1", (key_of(query),), "m-1")
    world.clock.advance(60)
    again = await world.ask(query, conversation_id="c1", message_id="m-1")
    assert (again.repeated, again.continuity) == (None, ())
    other = await world.ask(query, conversation_id="c1", message_id="m-2")
    assert other.repeated == query


async def test_other_conversations_are_no_repetition(world: World) -> None:
    await world.searched(ENGLISH, "c1", (key_of(ENGLISH),))
    found = await world.ask(ENGLISH, conversation_id="c2")
    assert (found.repeated, found.continuity) == (None, ())
    found = await world.ask(ENGLISH)
    assert (found.repeated, found.continuity) == (None, ())


async def test_a_question_and_its_translation_share_what_was_learned(world: World) -> None:
    hebrew, english = "איפה המכונית שלי", "where is my car"
    assert key_of(hebrew) == key_of(english)
    item = await world.store("in the north lot", tier=Tier.HISTORY)
    world.rows.routing = [
        rows.routing(key_of(english), examples=(rows.example(item, Outcome.WORKED),))
    ]
    for query in (hebrew, english):
        found = await world.ask(query)
        assert [one.item.memory_id for one in found.patterns] == [item.memory_id]


@pytest.mark.parametrize("part", ["graphs", "items", "outcomes", "receipts"])
async def test_an_absent_truth_is_said(world: World, part: str) -> None:
    await learned(world, ENGLISH)
    getattr(world, part).error = StoreDown("away")
    with pytest.raises(StoreDown):
        await world.ask(ENGLISH, conversation_id="c1")


async def test_no_model_is_asked() -> None:
    service = await Harness.open()
    await service.services.insights.insights(ReadScope("dana"), InsightsRequest(query=ENGLISH))
    assert service.embedder.calls == []
    assert service.index.calls.count("query") == 0
