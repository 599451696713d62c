"""What recorded outcomes add to the graphs."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.graphs.records import Counters, OutcomeChanges
from rayapp.graphs.rules.problem import problem_hash
from rayapp.graphs.rules.routing import added
from rayapp.learning.records import AppliedOutcome, OutcomeEvent
from rayapp.learning.rules.graph_effects import MAX_EXAMPLES, outcome_changes
from rayapp.memory.item import Outcome
from rayapp.memory.tiers import Tier
from rayapp.text.concept import Concept
from tests.unit.graphs.rules.rows import AT


def applied(memory_id: str = "m1", tier: Tier = Tier.HISTORY) -> AppliedOutcome:
    return AppliedOutcome(
        memory_id=memory_id,
        point_id=f"p-{memory_id}",
        tier=tier,
        uses=1,
        success_count=1.0,
        score=0.7,
        wilson_score=0.2,
    )


def event(**changes: Any) -> OutcomeEvent:
    values: dict[str, Any] = {
        "user_id": "u1",
        "idempotency_key": "k",
        "principal": "local",
        "outcome": Outcome.WORKED,
        "at": AT,
        "memory_ids": ("m1",),
        "query": "Docker builds fail",
        "concepts": ("docker", "build"),
        "context_type": "docker",
        "applied": (applied(),),
        **changes,
    }
    return OutcomeEvent(**values)


def routes(changes: OutcomeChanges) -> dict[tuple[str, Tier], Counters]:
    return {(one.concept.key, one.tier): one.counters for one in changes.routing}


def test_no_events_change_nothing() -> None:
    assert outcome_changes([]) == OutcomeChanges()


def test_one_outcome_counts_in_every_graph() -> None:
    changes = outcome_changes([event()])
    one = Counters(uses=1, worked=1)
    assert routes(changes) == {("docker", Tier.HISTORY): one, ("build", Tier.HISTORY): one}
    assert [(a.context_type, a.action, a.tier, a.counters) for a in changes.actions] == [
        ("docker", "search_memory", Tier.HISTORY, one)
    ]
    assert [(s.problem_hash, s.memory_id, s.point_id, s.count) for s in changes.solutions] == [
        (problem_hash("docker build fails"), "m1", "p-m1", 1)
    ]
    assert changes.documents == ()
    (example,) = changes.routing[0].examples
    assert (example.memory_id, example.point_id, example.tier, example.outcome, example.at) == (
        "m1",
        "p-m1",
        Tier.HISTORY,
        Outcome.WORKED,
        AT,
    )


def test_labels_and_types_come_from_the_query() -> None:
    found = {one.concept for one in outcome_changes([event()]).routing}
    assert found == {Concept("docker", "Docker", "concept"), Concept("build", "builds", "concept")}
    bare = {one.concept for one in outcome_changes([event(query="")]).routing}
    assert bare == {Concept("docker", "docker"), Concept("build", "build")}


@pytest.mark.parametrize("query", ["Docker builds fail", "שגיאה בבניית תמונה"])
@pytest.mark.parametrize("outcome", [Outcome.PARTIAL, Outcome.UNKNOWN, Outcome.FAILED])
def test_only_what_worked_is_a_solution(outcome: Outcome, query: str) -> None:
    assert outcome_changes([event(query=query)]).solutions != ()
    assert outcome_changes([event(query=query, outcome=outcome)]).solutions == ()


def test_a_question_of_one_topic_has_no_solution() -> None:
    assert outcome_changes([event(query="docker?")]).solutions == ()
    assert outcome_changes([event(query="מה זה רכב")]).solutions == ()


@pytest.mark.parametrize("tier", [Tier.WORKING, Tier.HISTORY, Tier.PATTERNS, Tier.MEMORY_BANK])
def test_every_scored_tier_learns(tier: Tier) -> None:
    changes = outcome_changes([event(applied=(applied(tier=tier),))])
    assert ("docker", tier) in routes(changes)
    assert [one.tier for one in changes.actions] == [tier]
    assert len(changes.solutions) == 1


def test_a_book_counts_for_its_row_and_for_the_books_tier() -> None:
    changes = outcome_changes(
        [event(applied=(), documents=("d1",), outcome=Outcome.FAILED), event(documents=("d1",))]
    )
    assert [(one.doc_id, one.counters) for one in changes.documents] == [
        ("d1", Counters(uses=2, worked=1, failed=1))
    ]
    assert routes(changes)["docker", Tier.BOOKS] == Counters(uses=2, worked=1, failed=1)
    assert {one.tier for one in changes.actions} == {Tier.BOOKS, Tier.HISTORY}
    assert all(not one.examples for one in changes.routing if one.tier is Tier.BOOKS)


def test_an_event_counts_once_for_each_tier_however_many_items_it_judged() -> None:
    shown = (*(applied(f"m{n}", Tier.WORKING) for n in range(3)), applied("h", Tier.HISTORY))
    changes = outcome_changes([event(applied=shown, documents=("d1", "d2"))])
    once = Counters(uses=1, worked=1)
    tiers = (Tier.WORKING, Tier.HISTORY, Tier.BOOKS)
    assert routes(changes) == {(key, tier): once for key in ("docker", "build") for tier in tiers}
    assert {one.tier: one.counters for one in changes.actions} == dict.fromkeys(tiers, once)
    working = next(one for one in changes.actions if one.tier is Tier.WORKING)
    assert [one.memory_id for one in working.examples] == ["m0", "m1", "m2"]


def test_a_guest_feeds_no_graph() -> None:
    assert outcome_changes([event(owner=False, documents=("d1",))]) == OutcomeChanges()


def test_an_event_without_concepts_still_counts_for_its_action() -> None:
    changes = outcome_changes([event(concepts=(), action="answer")])
    assert changes.routing == ()
    assert [(one.action, one.counters.uses) for one in changes.actions] == [("answer", 1)]


def test_an_event_that_moved_nothing_changes_nothing() -> None:
    assert outcome_changes([event(applied=())]) == OutcomeChanges()


def test_rows_of_several_events_are_one_with_the_newest_examples() -> None:
    events = [
        event(
            at=AT + timedelta(minutes=at),
            outcome=Outcome.FAILED if at % 2 else Outcome.WORKED,
            applied=(applied(f"m{at}"),),
        )
        for at in (3, 0, 6, 1, 5, 2, 4)
    ]
    changes = outcome_changes(events)
    (row,) = changes.actions
    assert row.counters == Counters(uses=7, worked=4, failed=3)
    assert row.at == AT + timedelta(minutes=6)
    assert [one.memory_id for one in row.examples] == ["m6", "m5", "m4", "m3", "m2"]
    assert len(changes.routing) == 2
    assert len(changes.solutions) == 4


def test_a_solution_that_worked_again_counts_twice() -> None:
    later = AT + timedelta(hours=1)
    changes = outcome_changes(
        [event(at=later), event(query="build docker: failing"), event(query="other thing broken")]
    )
    (row,) = [one for one in changes.solutions if one.count == 2]
    assert row.at == later


_OUTCOMES = st.sampled_from(list(Outcome))
_TIERS = st.sampled_from([Tier.WORKING, Tier.HISTORY, Tier.PATTERNS, Tier.MEMORY_BANK])
_EVENTS = st.builds(
    event,
    owner=st.booleans(),
    outcome=_OUTCOMES,
    at=st.integers(0, 500).map(lambda minutes: AT + timedelta(minutes=minutes)),
    query=st.sampled_from(["docker build fails", "שגיאה בשרת", "docker", ""]),
    concepts=st.lists(st.sampled_from(["docker", "build", "רכב"]), max_size=3).map(tuple),
    context_type=st.sampled_from(["docker", "general"]),
    documents=st.lists(st.sampled_from(["d1", "d2"]), max_size=2).map(tuple),
    applied=st.lists(
        st.builds(applied, st.sampled_from(["m1", "m2", "m3"]), _TIERS), max_size=4
    ).map(tuple),
)


@given(st.lists(_EVENTS, max_size=6), st.integers(0, 6))
def test_a_group_adds_what_its_parts_add(events: list[OutcomeEvent], cut: int) -> None:
    whole = routes(outcome_changes(events))
    parts = routes(outcome_changes(events[:cut])), routes(outcome_changes(events[cut:]))
    assert whole == {
        key: added(parts[0].get(key, Counters()), parts[1].get(key, Counters())) for key in whole
    }
    assert set(whole) == set(parts[0]) | set(parts[1])


@given(st.lists(_EVENTS, max_size=8))
def test_the_graphs_are_as_if_guests_had_said_nothing(events: list[OutcomeEvent]) -> None:
    owners = [one for one in events if one.owner]
    assert outcome_changes(events) == outcome_changes(owners)


@given(st.lists(_EVENTS, max_size=8))
def test_a_row_occurs_once_with_few_examples(events: list[OutcomeEvent]) -> None:
    changes = outcome_changes(events)
    keys = [
        *((one.concept.key, one.tier) for one in changes.routing),
        *((one.context_type, one.action, one.tier) for one in changes.actions),
        *((one.problem_hash, one.memory_id) for one in changes.solutions),
        *((one.doc_id,) for one in changes.documents),
    ]
    assert len(keys) == len(set(keys))
    for row in (*changes.routing, *changes.actions):
        times = [one.at for one in row.examples]
        assert times == sorted(times, reverse=True)
        assert len(times) <= MAX_EXAMPLES
        assert row.counters.uses > 0
