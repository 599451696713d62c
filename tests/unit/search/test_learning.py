"""The search with outcomes and graphs, over the whole service on fakes."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from rayapp.container import bootstrap
from rayapp.core.deadline import Deadline
from rayapp.core.errors import DeadlineExceeded, StoreDown
from rayapp.graphs.records import ActionRow, GraphPriors, KnownSolution
from rayapp.learning.records import OutcomeRequest, Recorder
from rayapp.memory.item import Outcome
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search.requests import SearchQuery
from rayapp.search.rules.candidates import Candidate
from rayapp.search.rules.recipes import Recipe
from rayapp.search.service import SearchService
from rayapp.search.tracing import Trace
from tests.support.harness import Harness
from tests.unit.graphs.rules.rows import action, counted, routing

ME, READ = WriteScope("dana"), ReadScope("dana")
PAIRS = {
    "en": (
        "How do I cache the slow timeline query in Redis?",
        "Add a composite index for the timeline: forty times faster",
        "Cache every slow timeline query in Redis for five minutes",
    ),
    "he": (
        "איך שומרים במטמון את שאילתת ציר הזמן האיטית?",
        "להוסיף אינדקס מורכב לציר הזמן: מהיר פי ארבעים",
        "לשמור במטמון את שאילתת ציר הזמן האיטית לחמש דקות",
    ),
}


# A topic of which one key judges what it is shown, and another topic of the same kind of work.
TOPICS = {
    "general-en": (
        "banana smoothie with kiwi number {}",
        "banana smoothie",
        "restart nginx gateway billing systemctl",
        ("the nginx gateway of billing restart is systemctl", "Noa restarts the nginx gateway"),
    ),
    "docker-en": (
        "docker volume of the banana shop number {}",
        "docker volume of the banana shop",
        "docker compose for the nginx gateway of billing",
        ("docker compose of billing starts the nginx gateway", "Noa owns the nginx gateway"),
    ),
    "docker-he": (
        "דוקר של חנות הבננות מספר {}",
        "דוקר של חנות הבננות",
        "דוקר קומפוז לשער התשלומים",
        ("דוקר קומפוז מפעיל את שער התשלומים", "נועה אחראית על שער התשלומים"),
    ),
}


async def candidates(service: Harness, query: SearchQuery) -> list[Candidate]:
    """What the search would rank."""
    search = service.services.search
    inner = getattr(search, "_service", search)
    assert isinstance(inner, SearchService)
    deadline = Deadline(5, service.clock.monotonic)
    trace = Trace(service.clock, service.metrics)
    return list((await inner.gather(inner.prepare(READ, query), deadline, trace)).candidates)


async def judge(service: Harness, memory_id: str, outcome: Outcome, times: int = 3) -> None:
    for time in range(times):
        request = OutcomeRequest(
            outcome=outcome, memory_ids=(memory_id,), idempotency_key=f"{memory_id}-{time}"
        )
        await service.services.outcomes.record(ME, request)


async def topic(service: Harness, name: str) -> tuple[str, str]:
    """Store one of TOPICS; the question about what is judged, and the other question."""
    judged_text, judged_query, query, (best, second) = TOPICS[name]
    await service.store(best, tier=Tier.WORKING, memory_id="best")
    await service.store(second, tier=Tier.HISTORY, memory_id="second")
    for number in range(4):
        await service.store(judged_text.format(number), memory_id=f"judged-{number}")
    await service.drain()
    return judged_query, query


def graphs_say(service: Harness, found: GraphPriors) -> None:
    """To every question, of a user who has a graph."""

    async def priors(*_args: object) -> GraphPriors:
        return found

    async def actions(*_args: object, **_named: object) -> list[ActionRow]:
        return [action("general", "search_memory", counted())]

    service.graphs.inner.priors, service.graphs.inner.actions = priors, actions


@pytest.mark.parametrize("name", TOPICS)
async def test_one_verdict_over_a_list_moves_no_memory_that_it_did_not_show(
    service: Harness, name: str
) -> None:
    judged_query, query = await topic(service, name)
    before = await service.search(query, limit=2)
    assert [hit.item.memory_id for hit in before.hits] == ["best", "second"]
    shown = await service.search(judged_query, limit=4)
    await service.services.outcomes.record(
        ME, OutcomeRequest(receipt_id=shown.receipt_id, outcome=Outcome.FAILED)
    )
    await service.settle()
    service.clock.advance(service.settings.graph.empty_cache_s + 0.1)
    after = await service.search(query, limit=2)
    assert [hit.item.memory_id for hit in after.hits] == ["best", "second"]
    assert {hit.summary.action_boost for hit in after.hits} == {1.0}


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.WORKED])
@pytest.mark.parametrize("name", TOPICS)
async def test_a_guest_that_floods_moves_only_what_its_receipts_show(
    service: Harness, name: str, outcome: Outcome
) -> None:
    judged_query, query = await topic(service, name)
    guest = Recorder(principal="plugin", owner=False)
    before = await service.search(query, limit=2)
    shown = await service.search(judged_query, limit=4, principal="plugin")
    ids = [hit.item.memory_id for hit in shown.hits]
    assert all(one.startswith("judged") for one in ids)
    for one in ids:
        verdict = OutcomeRequest(
            memory_ids=(one,), receipt_id=shown.receipt_id, outcome=outcome, recorder=guest
        )
        assert (await service.services.outcomes.record(ME, verdict)).updated
        await service.settle()
        service.clock.advance(service.settings.graph.empty_cache_s + 0.1)
    after = await service.search(query, limit=2)
    assert [hit.item.memory_id for hit in before.hits] == ["best", "second"]
    assert [hit.item.memory_id for hit in after.hits] == ["best", "second"]
    assert [hit.summary.total_boost for hit in after.hits] == [1.0, 1.0]
    assert await service.graphs.actions(READ, context_type=None, limit=9) == []


@pytest.mark.parametrize("lang", PAIRS)
@pytest.mark.parametrize("recipe", ["default", "rrf", "lexical"])
async def test_outcomes_alone_put_good_advice_first(
    service: Harness, lang: str, recipe: str
) -> None:
    query, right, wrong = PAIRS[lang]
    good = await service.store(right, tier=Tier.PATTERNS)
    bad = await service.store(wrong, tier=Tier.PATTERNS)
    await service.drain()
    assert await service.found(query, recipe=recipe) == [bad, good]
    await judge(service, good, Outcome.WORKED)
    await judge(service, bad, Outcome.FAILED)
    assert await service.found(query, recipe=recipe) == [good, bad]


async def test_the_receipt_says_what_was_asked_and_by_whom(service: Harness) -> None:
    await service.store("the docker container restarts every night")
    answer = await service.search("Why does the Docker container restart?", principal="key-7")
    assert answer.receipt_id is not None
    receipt = await service.receipts.get(READ, answer.receipt_id)
    assert "docker" in " ".join(receipt.concepts)
    assert receipt.context_type == "docker"
    assert receipt.principal == "key-7"


async def test_late_graphs_cost_their_boosts_and_nothing_else(service: Harness) -> None:
    one = await service.store("the boiler code is 4711")
    await service.drain()
    service.graphs.error = DeadlineExceeded("The graphs did not answer in time; try again.")
    answer = await service.search("boiler code")
    assert [hit.item.memory_id for hit in answer.hits] == [one]
    assert answer.degraded == ("priors",)


async def test_graphs_that_are_away_are_the_truth_being_away(service: Harness) -> None:
    await service.store("the boiler code is 4711")
    service.graphs.error = StoreDown("MongoDB is away.")
    with pytest.raises(StoreDown):
        await service.search("boiler code")


async def test_a_held_user_without_a_graph_is_asked_about_when_there_is_one(
    service: Harness,
) -> None:
    one = await service.store("the boiler code is 4711")
    for _ in range(2):
        await service.search("boiler code")
    asked = service.graphs.calls.count("priors")
    service.clock.advance(service.settings.graph.empty_cache_s + 0.1)
    await service.search("another question")
    assert service.graphs.calls.count("priors") == asked
    await judge(service, one, Outcome.WORKED)
    await service.settle()
    asked = service.graphs.calls.count("priors")
    await service.search("another question")
    assert service.graphs.calls.count("priors") == asked + 1


async def test_a_user_without_a_graph_is_soon_not_asked_about() -> None:
    service = await Harness.open(search={"resident_bytes": 0})
    await service.store("the boiler code is 4711")
    for _ in range(2):
        await service.search("boiler code")
    asked = len(service.graphs.calls)
    for _ in range(5):
        await service.search("another question")
    assert len(service.graphs.calls) == asked
    await service.search("boiler code", user="omer")
    assert len(service.graphs.calls) > asked
    asked = len(service.graphs.calls)
    service.clock.advance(service.settings.graph.empty_cache_s + 0.1)
    await service.search("boiler code")
    assert len(service.graphs.calls) > asked


async def test_a_question_without_priors_does_not_hide_the_graph_from_the_next(
    service: Harness,
) -> None:
    one = await service.store("restart the docker container after an update", tier=Tier.HISTORY)
    await service.drain()
    query = "How do I update the docker container?"
    answer = await service.search(query)
    await service.services.outcomes.record(
        ME, OutcomeRequest(outcome=Outcome.WORKED, receipt_id=answer.receipt_id)
    )
    await service.settle()
    service.clock.advance(service.settings.graph.empty_cache_s + 0.1)
    before = service.graphs.calls.count("priors")
    for _ in range(3):
        await service.search("where is the violin")
    assert (await service.search(query)).hits[0].item.memory_id == one
    assert service.graphs.calls.count("priors") == before + 4


async def test_a_tier_that_the_graphs_advise_is_asked_for_more(service: Harness) -> None:
    """The index is asked while the graphs are read; what they add to it is not lost."""
    for number in range(90):
        for tier in (Tier.HISTORY, Tier.WORKING):
            await service.store(f"payment gateway {tier} case {number}", tier=tier)
    await service.drain()
    query = SearchQuery(query="payment gateway", tiers=(Tier.HISTORY, Tier.WORKING), limit=10)
    graphs_say(service, GraphPriors())
    plain = Counter(one.item.tier for one in await candidates(service, query))
    advised = routing("payment", {Tier.HISTORY: counted(30)})
    graphs_say(service, GraphPriors(routing=(advised,)))
    deeper = Counter(one.item.tier for one in await candidates(service, query))
    assert deeper[Tier.HISTORY] > plain[Tier.HISTORY] > 0
    assert deeper[Tier.WORKING] == plain[Tier.WORKING]


async def test_a_known_solution_is_shown_though_its_words_are_others(service: Harness) -> None:
    solution = await service.store("set the retry budget to seven", memory_id="s")
    for number in range(40):
        await service.store(f"timeout of the payment gateway, case {number}", tier=Tier.HISTORY)
    await service.drain()
    item = await service.items.get(READ, solution)
    known = KnownSolution(
        problem_hash="p",
        memory_id=solution,
        point_id=item.point_id,
        success_count=2,
        last_used_at=service.clock.now(),
    )
    query = SearchQuery(query="payment gateway timeout", tiers=(Tier.HISTORY,))
    graphs_say(service, GraphPriors(solutions=(known,)))
    filtered = await service.services.search.search(READ, query)
    assert solution not in {hit.item.memory_id for hit in filtered.hits}
    answer = await service.search("payment gateway timeout", recipe="lexical", limit=50)
    hit = next(hit for hit in answer.hits if hit.item.memory_id == solution)
    assert hit.summary.total_boost <= 1.5


async def test_a_new_memory_under_a_solutions_id_is_no_solution(service: Harness) -> None:
    before = service.clock.now()
    service.clock.advance(3_600)
    await service.store("the gateway of the garden is green", memory_id="s", tier=Tier.HISTORY)
    for number in range(40):
        await service.store(f"timeout of the payment gateway, case {number}", tier=Tier.HISTORY)
    await service.drain()
    item = await service.items.get(READ, "s")
    known = KnownSolution(
        problem_hash="p",
        memory_id="s",
        point_id=item.point_id,
        success_count=2,
        last_used_at=before,
    )
    found = []
    for solutions in ((known,), (), (replace(known, last_used_at=item.stored_at),)):
        graphs_say(service, GraphPriors(solutions=solutions))
        answer = await service.search("payment gateway timeout", recipe="lexical", limit=50)
        found.append({hit.item.memory_id: hit.summary.final_score for hit in answer.hits})
    # Sums over arrays may end in another last digit.
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    assert found[2] != pytest.approx(found[0], abs=1e-6)


async def test_a_dead_solution_is_not_shown_and_is_no_drift(service: Harness) -> None:
    await service.store("timeout of the payment gateway")
    await service.drain()
    known = KnownSolution(
        problem_hash="p",
        memory_id="gone",
        point_id="6f1f0c52-6c0e-5b43-9a53-0d2f5f6f2b11",
        success_count=2,
        last_used_at=service.clock.now(),
    )
    graphs_say(service, GraphPriors(solutions=(known,)))
    assert len((await service.search("payment gateway timeout")).hits) == 1
    assert not [key for key in service.metrics.counters if key[0] == "drift"]


@pytest.mark.parametrize("tier", [Tier.HISTORY, Tier.MEMORY_BANK])
async def test_explain_shows_every_part_of_the_score(service: Harness, tier: Tier) -> None:
    one = await service.store(
        "the boiler code is 4711", tier=tier, importance=0.3, confidence=0.3, tags=("boiler",)
    )
    await service.store("the code of the boiler is old")
    await service.drain()
    await service.settle()
    await judge(service, one, Outcome.FAILED, times=3)
    query = SearchQuery(query="boiler code")
    explained = await service.services.explainer.explain(READ, one, query)
    values = explained.stages[-1].values
    assert values["evidence"] < 1.0
    assert values["evidence_shift"] == pytest.approx(values["fused"] * (values["evidence"] - 1))
    assert values["final"] == pytest.approx(
        values["fused"] * values["evidence"] * values["total_boost"]
    )
    assert values["total_boost_cap"] == 1.5
    parts = [
        values[f"{name}_boost"]
        for name in ("distance", "quality", "entity", "document", "action", "solution")
    ]
    assert values["total_boost"] == pytest.approx(min(1.5, math.prod(parts)))
    assert (values["distance_boost"] > 1.0) is (tier is Tier.MEMORY_BANK)


@pytest.mark.parametrize("times", [3, 20])
@pytest.mark.parametrize("tier", [Tier.MEMORY_BANK, Tier.BOOKS])
async def test_what_is_not_scored_stays_in_the_answer_whatever_failed(
    service: Harness, tier: Tier, times: int
) -> None:
    wish: dict[str, Any] = {"tier": tier, "tags": ("דוד",), "importance": 0.6, "confidence": 0.9}
    fact = await service.store("הקוד של הדוד הוא 4711", **wish)
    for number in range(10):
        await service.store(f"הדוד מספר {number} הותקן בדירה", **wish)
    await service.drain()
    await judge(service, fact, Outcome.FAILED, times=times)
    await service.settle()
    answer = await service.search("מה הקוד של הדוד", limit=3)
    assert answer.hits[0].item.memory_id == fact
    assert answer.hits[0].summary.evidence >= 0.8


def test_the_default_recipe_writes_out_the_built_in_values() -> None:
    assert bootstrap.load_texts().recipes["default"] == Recipe(name="default")
