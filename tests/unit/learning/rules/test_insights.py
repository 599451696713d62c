"""What is concluded from rows, items and past turns, in both languages, on values."""

from dataclasses import replace
from typing import Any

import pytest

from rayapp.graphs.records import GraphPriors
from rayapp.graphs.rules.question import MAX_POINTS, NODE_MEMORIES, Question, wanted_points
from rayapp.learning.rules.insights import MEMORY_TOOLS, PastTurn
from rayapp.memory.item import MemoryItem, Outcome, Status, point_id_of
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.unit.graphs.rules.rows import (
    AT,
    ENGLISH,
    HEBREW,
    action,
    asked,
    counted,
    example,
    failure,
    judged,
    later,
    node,
    routing,
    solution,
    told,
)

BOTH = pytest.mark.parametrize("query", [ENGLISH, HEBREW])


def experience(question: Question, item: MemoryItem, outcome: Outcome) -> GraphPriors:
    key = question.concepts[0].key
    return GraphPriors(routing=(routing(key, {}, examples=(example(item, outcome),)),))


# --- the question --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "language", "context"), [(ENGLISH, "en", "docker"), (HEBREW, "he", "docker")]
)
def test_a_question_is_read_in_its_language(query: str, language: str, context: str) -> None:
    found = told(asked(query))
    assert (found.query, found.language, found.context_type) == (query, language, context)
    assert found.concepts


@BOTH
def test_without_a_graph_nothing_is_said(query: str) -> None:
    found = told(asked(query))
    said = (found.matched, found.tiers, found.patterns, found.failures, found.actions)
    assert said == ((), (), (), (), ())
    assert (found.continuity, found.repeated, found.directives) == ((), None, ())
    assert found.known_solution is None


def test_a_question_without_concepts_is_about_the_last_messages() -> None:
    follow_up = asked("and now?", "the Kubernetes cluster is slow")
    assert not follow_up.concepts
    assert "kubernetes" in follow_up.of_graphs.concepts
    own = asked("bake bread", "the Kubernetes cluster is slow")
    assert "kubernetes" not in own.of_graphs.concepts


def test_the_newest_messages_are_looked_at_first() -> None:
    old = [f"Topic{letter} was discussed" for letter in "ABCDEFGHIJ"]
    keys = asked("and now?", *old).of_graphs.concepts
    assert "topicj" in keys
    assert "topica" not in keys
    assert len(keys) <= 6


@pytest.mark.parametrize("query", ["", "   ", "?!", "של את על", "the of and"])
def test_a_question_that_says_nothing_is_no_error(query: str) -> None:
    assert told(asked(query)).directives == ()


def test_solutions_and_examples_are_asked_for_before_facts() -> None:
    question = asked(ENGLISH)
    key = question.concepts[0].key
    solved, tried = an_item(), an_item()
    held = tuple(f"m{at}" for at in range(20))
    priors = GraphPriors(
        routing=(routing(key, examples=(example(tried, Outcome.WORKED),)),),
        nodes=(node(key, memory_ids=held),),
        solutions=(solution(solved, "h"),),
    )
    newest = tuple(point_id_of("dana", one) for one in held[:NODE_MEMORIES])
    assert wanted_points(question, priors, "dana") == (solved.point_id, tried.point_id, *newest)


def test_the_items_read_for_one_answer_are_bounded() -> None:
    question = asked(ENGLISH)
    many = tuple(example(an_item(), Outcome.WORKED) for _ in range(200))
    priors = GraphPriors(routing=(routing(question.concepts[0].key, examples=many),))
    assert len(wanted_points(question, priors, "dana")) == MAX_POINTS


# --- what is known -------------------------------------------------------------------------


@BOTH
def test_concepts_of_either_graph_are_matched(query: str) -> None:
    question = asked(query)
    first, second = question.concepts[:2]
    priors = GraphPriors(routing=(routing(first.key), routing("other")), nodes=(node(second.key),))
    assert told(question, priors=priors).matched == (first, second)


@BOTH
def test_tiers_come_from_the_concepts_of_the_question_only(query: str) -> None:
    question = asked(query)
    priors = GraphPriors(
        routing=(
            routing(question.concepts[0].key, {Tier.PATTERNS: counted(9, 1)}),
            routing("other", {Tier.BOOKS: counted(50)}),
        )
    )
    found = told(question, priors=priors)
    assert [one.tier for one in found.tiers] == [Tier.PATTERNS]
    [line] = found.directives
    assert "patterns" in line
    assert "0.60" in line


@pytest.mark.parametrize("query", [ENGLISH, HEBREW])
def test_each_concept_has_its_own_best_tier(query: str) -> None:
    question = asked(query)
    first, second, *_ = [one.key for one in question.concepts]
    priors = GraphPriors(
        routing=(
            routing(first, {Tier.PATTERNS: counted(4, 0), Tier.HISTORY: counted(1, 3)}),
            routing(second, {Tier.MEMORY_BANK: counted(2, 1)}),
        )
    )
    best = told(question, priors=priors).best_tiers
    assert {key: (one.tier, one.uses) for key, one in best.items()} == {
        first: (Tier.PATTERNS, 4),
        second: (Tier.MEMORY_BANK, 3),
    }
    assert best[first].wilson > best[second].wilson


def test_a_tier_of_which_little_is_known_is_not_praised() -> None:
    question = asked(ENGLISH)
    key = question.concepts[0].key
    for tiers in ({Tier.BOOKS: counted(0, 1)}, {Tier.BOOKS: counted(2)}):
        found = told(question, priors=GraphPriors(routing=(routing(key, tiers),)))
        assert [one.advised for one in found.tiers] == [True]
        assert found.directives == ()


# --- experiences ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "text", "reason"),
    [
        (ENGLISH, "prune the build cache", "worked 3 of 4 times, last with “"),
        (HEBREW, "לנקות את המטמון", "הצליח 3 מתוך 4 פעמים, לאחרונה עם “"),
    ],
)
def test_a_past_success_is_told_in_full_with_its_reason(query: str, text: str, reason: str) -> None:
    question = asked(query)
    item = judged(text * 40, worked=3, failed=1)
    [past] = told(
        question, priors=experience(question, item, Outcome.WORKED), items=(item,)
    ).patterns
    assert (past.item.text, past.outcome, past.at) == (text * 40, Outcome.WORKED, AT)
    assert past.concept == question.concepts[0].label
    assert past.reason.startswith(reason)
    assert past.reason.endswith("2026-02-01")


@pytest.mark.parametrize(
    ("query", "reason", "when_asked", "last"),
    [
        (ENGLISH, "failed 3 of 4 times", "when asked “earlier question”", "last outcome: worked"),
        (HEBREW, "נכשל 3 מתוך 4 פעמים", "כשנשאל “earlier question”", "התוצאה האחרונה: הצליח"),
    ],
)
def test_a_past_failure_says_how_often_and_what_was_asked(
    query: str, reason: str, when_asked: str, last: str
) -> None:
    question = asked(query)
    item = judged("restart it", worked=1, failed=3, last_outcome=Outcome.WORKED)
    found = told(
        question,
        priors=experience(question, item, Outcome.FAILED),
        items=(item,),
        failures=(failure(item, AT, query="earlier question"),),
    )
    [past] = found.failures
    assert found.patterns == ()
    assert past.reason.startswith(reason)
    assert when_asked in past.reason
    assert past.reason.endswith(last)
    [line] = [one for one in found.directives if "restart it" in one]
    assert item.memory_id in line


@BOTH
def test_the_newest_outcome_of_a_memory_decides(query: str) -> None:
    question = asked(query)
    item = judged("one", worked=1, failed=1)
    both = (example(item, Outcome.WORKED, later(2)), example(item, Outcome.FAILED, later(1)))
    for order in (both, both[::-1]):
        priors = GraphPriors(routing=(routing(question.concepts[0].key, examples=order),))
        found = told(question, priors=priors, items=(item,))
        assert (len(found.patterns), len(found.failures)) == (1, 0)


@pytest.mark.parametrize("outcome", [Outcome.PARTIAL, Outcome.UNKNOWN])
def test_half_outcomes_neither_recommend_nor_warn(outcome: Outcome) -> None:
    question, item = asked(ENGLISH), judged("one")
    found = told(question, priors=experience(question, item, outcome), items=(item,))
    assert (found.patterns, found.failures) == ((), ())


def test_a_failure_that_the_graph_has_not_learned_yet_counts() -> None:
    question, item = asked(ENGLISH), judged("one", worked=1, failed=1)
    priors, key = experience(question, item, Outcome.WORKED), question.concepts[0].key
    about_it = failure(item, later(1), concepts=(key,))
    found = told(question, priors=priors, items=(item,), failures=(about_it,))
    assert (len(found.patterns), len(found.failures)) == (0, 1)
    elsewhere = failure(item, later(1), concepts=("cake",))
    found = told(question, priors=priors, items=(item,), failures=(elsewhere,))
    assert (len(found.patterns), len(found.failures)) == (1, 0)
    before = failure(item, later(-1), concepts=(key,))
    found = told(question, priors=priors, items=(item,), failures=(before,))
    assert (len(found.patterns), len(found.failures)) == (1, 0)


@BOTH
def test_a_judged_fact_about_a_concept_is_experience_too(query: str) -> None:
    question = asked(query)
    good = judged("a", worked=2, last_outcome=Outcome.WORKED, last_outcome_at=AT)
    bad = judged("b", failed=2, last_outcome=Outcome.FAILED, last_outcome_at=AT)
    fresh = judged("c")
    held = (good.memory_id, bad.memory_id, fresh.memory_id)
    priors = GraphPriors(nodes=(node(question.concepts[0].key, memory_ids=held),))
    found = told(question, priors=priors, items=(good, bad, fresh))
    assert [one.item for one in found.patterns] == [good]
    assert [one.item for one in found.failures] == [bad]


@pytest.mark.parametrize(
    "gone", [{"status": Status.ARCHIVED}, {"status": Status.DELETED}, {"expires_at": later(1)}]
)
def test_only_living_memories_are_shown(gone: dict[str, Any]) -> None:
    question = asked(ENGLISH)
    item = judged("one", worked=3, **gone)
    assert question.problem is not None
    priors = replace(
        experience(question, item, Outcome.WORKED), solutions=(solution(item, question.problem),)
    )
    found = told(question, priors=priors, items=(item,))
    assert (found.patterns, found.known_solution, found.directives) == ((), None, ())


# --- known solutions -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "start", "reason"),
    [
        (ENGLISH, "Known solution", "solved this very question 4 times, last on 2026-02-01"),
        (HEBREW, "פתרון ידוע", "פתר את השאלה הזאת 4 פעמים, לאחרונה ב-2026-02-01"),
    ],
)
def test_a_known_solution_comes_first_everywhere(query: str, start: str, reason: str) -> None:
    question = asked(query)
    solved, better = judged("rebuild it", worked=1), judged("other", worked=9)
    assert question.problem is not None
    priors = replace(
        experience(question, better, Outcome.WORKED),
        solutions=(solution(better, question.problem, 1), solution(solved, question.problem, 4)),
    )
    found = told(question, priors=priors, items=(solved, better))
    assert found.known_solution == solved
    assert [one.item for one in found.patterns] == [solved, better]
    assert found.patterns[0].reason == reason
    assert found.directives[0].startswith(start)
    assert "rebuild it" in found.directives[0]


@BOTH
def test_a_solution_that_failed_since_is_a_failure(query: str) -> None:
    question = asked(query)
    item = judged("rebuild it", worked=1, failed=1)
    assert question.problem is not None
    priors = GraphPriors(solutions=(solution(item, question.problem),))
    failed = failure(item, later(1), query=query)
    found = told(question, priors=priors, items=(item,), failures=(failed,))
    assert found.known_solution is None
    assert [one.item for one in found.failures] == [item]
    older = failure(item, later(-1), query=query)
    found = told(question, priors=priors, items=(item,), failures=(older,))
    assert found.known_solution == item
    assert found.failures == ()


def test_the_next_solution_stands_in_for_one_that_is_gone() -> None:
    question = asked(ENGLISH)
    gone, there = judged("a", status=Status.ARCHIVED), judged("b")
    assert question.problem is not None
    solved = (solution(gone, question.problem, 9), solution(there, question.problem, 1))
    found = told(question, priors=GraphPriors(solutions=solved), items=(gone, there))
    assert found.known_solution == there


# --- actions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counters", "advice"),
    [
        (counted(8, 2), "prefer"),
        (counted(7, 3), "neutral"),
        (counted(4, 6), "neutral"),
        (counted(3, 7), "avoid"),
        (counted(0, 1, partial=5), "neutral"),
    ],
)
def test_actions_are_advised_by_their_rate(counters: Any, advice: str) -> None:
    priors = GraphPriors(actions=(action("docker", "web", counters),))
    [found] = told(asked(ENGLISH), priors=priors).actions
    assert (found.action, found.context_type, found.advice) == ("web", "docker", advice)


@pytest.mark.parametrize("query", [ENGLISH, HEBREW])
@pytest.mark.parametrize("tool", sorted(MEMORY_TOOLS))
@pytest.mark.parametrize("counters", [counted(0, 9), counted(9, 0)])
def test_memory_tools_are_counted_but_never_advised(query: str, tool: str, counters: Any) -> None:
    question = asked(query)
    rows = (action(question.context_type, tool, counters),)
    found = told(question, priors=GraphPriors(actions=rows))
    assert [(one.uses, one.advice) for one in found.actions] == [(9, "neutral")]
    assert found.directives == ()


@pytest.mark.parametrize(
    ("counters", "uses"),
    [(counted(2), None), (counted(1, unknown=8), None), (counted(2, 1, unknown=5), 3)],
)
def test_an_action_is_advised_from_three_judged_uses(counters: Any, uses: int | None) -> None:
    priors = GraphPriors(actions=(action("docker", "x", counters),))
    found = [one.uses for one in told(asked(ENGLISH), priors=priors).actions]
    assert found == ([] if uses is None else [uses])


def test_one_outcome_over_three_tiers_is_one_outcome() -> None:
    tiers = (Tier.WORKING, Tier.HISTORY, Tier.PATTERNS)
    once = tuple(action("docker", "x", counted(1), tier) for tier in tiers)
    assert told(asked(ENGLISH), priors=GraphPriors(actions=once)).actions == ()


def test_an_action_speaks_for_itself_else_by_the_tier_where_it_was_judged_most() -> None:
    rows = (
        action("docker", "x", counted(1, 2), Tier.HISTORY),
        action("docker", "x", counted(4, unknown=1), Tier.BOOKS),
        action("docker", "x", counted(3, unknown=9), Tier.WORKING),
    )
    [by_tier] = told(asked(ENGLISH), priors=GraphPriors(actions=rows)).actions
    assert (by_tier.uses, by_tier.worked, by_tier.failed) == (4, 4, 0)
    own = action("docker", "x", counted(0, 3), None)
    [found] = told(asked(ENGLISH), priors=GraphPriors(actions=(own, *rows))).actions
    assert (found.uses, found.worked, found.advice) == (3, 0, "avoid")


@pytest.mark.parametrize(
    ("query", "good", "bad"),
    [
        (ENGLISH, "“run_tests” worked 9 of 10 times: prefer it", "“web” failed 9 of 10 times"),
        (HEBREW, "“run_tests” עבד 9 מתוך 10 פעמים, ויש להעדיפו", "“web” נכשל 9 מתוך 10 פעמים"),
    ],
)
def test_one_sentence_says_what_to_prefer_and_what_to_avoid(
    query: str, good: str, bad: str
) -> None:
    rows = (
        action("docker", "web", counted(1, 9)),
        action("docker", "run_tests", counted(9, 1)),
        action("docker", "plain", counted(5, 5)),
    )
    [line] = told(asked(query), priors=GraphPriors(actions=rows)).directives
    assert good in line
    assert bad in line
    assert "plain" not in line


# --- the conversation ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "before", "word"),
    [
        (ENGLISH, "on Jenkins the Docker builds failed", "asked before"),
        ("איפה חונה הרכב החדש", "הרכב החדש, איפה הוא חונה?", "כבר נשאלה"),
    ],
)
def test_the_same_question_in_other_words_is_a_repetition(
    query: str, before: str, word: str
) -> None:
    turns = (PastTurn(query="something else entirely", at=AT), PastTurn(query=before, at=AT))
    found = told(asked(query), turns=turns)
    assert found.repeated == before
    assert word in found.directives[0]
    assert before[:20] in found.directives[0]


@pytest.mark.parametrize("query", ["and now?", "ומה עכשיו?", "", ENGLISH])
def test_another_question_is_no_repetition(query: str) -> None:
    turns = tuple(PastTurn(query=q, at=AT) for q in ("", "Docker compose volumes", "?"))
    assert told(asked(query), turns=turns).repeated is None


@BOTH
def test_continuity_names_what_came_up_before(query: str) -> None:
    question = asked(query)
    first = question.concepts[0]
    found = told(question, turns=(PastTurn(query="x", at=AT, concepts=(first.key, "other")),))
    assert found.continuity == (first.label,)
    assert first.label in found.directives[-1]
    found = told(asked(query, query))
    assert found.continuity == tuple(one.label for one in question.concepts)
