"""What models send for arguments: read where it means one thing, refused in one sentence else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.assistant.tools.records import ToolDefinition
from rayapp.assistant.tools.rules.arguments import Arguments, read_arguments
from rayapp.assistant.tools.rules.definitions import (
    ADD,
    ARCHIVE,
    INSIGHTS,
    RESPONSE,
    SCORE,
    SEARCH,
    TOOLS,
    UPDATE,
)
from rayapp.core.errors import InvalidInput
from rayapp.memory.tiers import CORE_TIERS, Tier
from tests.support.examples import examples


def read(tool: ToolDefinition, **sent: Any) -> Arguments:
    return read_arguments(tool, sent)


def refusal(tool: ToolDefinition, sent: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read_arguments(tool, sent)
    return caught.value


@pytest.mark.parametrize(
    "name", ["query", "q", "search", "text", "Query", "searchQuery", "QUESTION"]
)
@pytest.mark.parametrize("words", ["where does Dana live?", "איפה דנה גרה?"])
def test_a_question_has_many_names(name: str, words: str) -> None:
    assert read(SEARCH, **{name: words}).get("query") == words


def test_defaults_stand_in_for_what_is_left_out() -> None:
    found = read(SEARCH, q="tea")
    assert (found.get("limit"), found.get("more"), found.get("tiers")) == (5, False, None)
    assert read(ADD, content="Dana likes tea").get("tags") == ("context",)
    assert read(RESPONSE, key_takeaway="tea").get("outcome") == "unknown"


@pytest.mark.parametrize("value", [7, "7", " 7 ", 7.0, "7.0", "+7"])
def test_a_number_may_come_as_text(value: Any) -> None:
    assert read(SEARCH, q="tea", limit=value).get("limit") == 7


@pytest.mark.parametrize("value", [True, "seven", 2.5, 0, -3, "0", [], {}, float("nan"), 1e400])
def test_a_limit_that_is_none_is_refused_by_name(value: Any) -> None:
    error = refusal(SEARCH, {"q": "tea", "limit": value})
    assert error.details["field"] == "limit"
    assert error.message.startswith("limit: ")


def test_a_limit_above_the_largest_is_the_largest() -> None:
    assert read(SEARCH, q="tea", top_k=500).get("limit") == 20


@pytest.mark.parametrize("name", ["tiers", "collections", "collection", "tier"])
@pytest.mark.parametrize(
    "value",
    [["memory_bank", "books"], "memory_bank, documents", '["Memory Bank", "books"]'],
)
def test_tiers_have_names_and_may_be_a_text(name: str, value: Any) -> None:
    assert read(SEARCH, q="tea", **{name: value}).get("tiers") == (Tier.MEMORY_BANK, Tier.BOOKS)


@pytest.mark.parametrize("value", ["all", ["all"], ["all", "working"]])
def test_all_means_the_core_tiers(value: Any) -> None:
    assert read(SEARCH, q="tea", tiers=value).get("tiers") == CORE_TIERS


@pytest.mark.parametrize("value", [[], "nowhere", ["working", 3], {"tier": "working"}])
def test_a_filter_that_means_nothing_never_widens_a_search(value: Any) -> None:
    assert refusal(SEARCH, {"q": "tea", "tiers": value}).details["field"] == "tiers"


@pytest.mark.parametrize(
    "value", ["taste", ["taste"], '["taste"]', "#taste", "taste, ", "taste,taste"]
)
def test_a_tag_may_be_a_text(value: Any) -> None:
    assert read(ADD, content="Dana likes tea", tags=value).get("tags") == ("taste",)


def test_tags_are_of_any_script() -> None:
    assert read(ADD, content="דנה אוהבת תה", tag="טעם, משפחה").get("tags") == ("טעם", "משפחה")


@pytest.mark.parametrize(("value", "share"), [(0.8, 0.8), ("0.8", 0.8), ("80%", 0.8), (1, 1.0)])
def test_shares_may_be_per_cent(value: Any, share: float) -> None:
    assert read(ADD, content="x", importance=value).get("importance") == share


@pytest.mark.parametrize("value", [8, "high", True, -0.1, "180%"])
def test_a_share_outside_its_range_is_refused(value: Any) -> None:
    assert refusal(ADD, {"content": "x", "importance": value}).details["field"] == "importance"


@pytest.mark.parametrize("value", [True, "true", "Yes", 1, "כן"])
def test_yes_has_many_words(value: Any) -> None:
    assert read(SEARCH, q="tea", more=value).get("more") is True


@pytest.mark.parametrize(
    ("word", "outcome"),
    [("worked", "worked"), ("👍", "worked"), ("עבד", "worked"), ("Failed", "failed"),
     ("נכשל", "failed"), ("partially", "partial"), ("חלקי", "partial"), ("➖", "unknown")],
)  # fmt: skip
def test_outcomes_have_words_in_both_languages(word: str, outcome: str) -> None:
    assert read(RESPONSE, key_takeaway="tea", outcome=word).get("outcome") == outcome


@pytest.mark.parametrize("value", ["working", "not good", 1, ["worked"]])
def test_an_outcome_that_is_none_is_refused(value: Any) -> None:
    """An outcome is never guessed: a wrong one teaches the wrong thing."""
    assert (
        refusal(RESPONSE, {"key_takeaway": "tea", "outcome": value}).details["field"] == "outcome"
    )


@pytest.mark.parametrize(
    ("value", "related"),
    [([1, 3], (1, 3)), ("1, 3", (1, 3)), ("[1, 3]", (1, 3)), (["1", "[3]"], (1, 3)),
     (2, (2,)), ("#2", (2,)), ([1.0, "mem-7"], (1, "mem-7")), ([], ()), ([1, 1], (1,)),
     (["[working:a-1]"], ("working:a-1",))],
)  # fmt: skip
def test_related_holds_numbers_and_ids(value: Any, related: Any) -> None:
    assert read(RESPONSE, key_takeaway="tea", related=value).get("related") == related


def test_no_related_is_not_the_same_as_none_of_them() -> None:
    assert read(RESPONSE, key_takeaway="tea").get("related") is None
    assert read(RESPONSE, key_takeaway="tea", related=None).get("related") is None


@pytest.mark.parametrize("value", [0, -1, True, 1.5, ["the first"], [[1]], [None], 10**30])
def test_a_memory_that_cannot_be_named_is_refused(value: Any) -> None:
    assert refusal(RESPONSE, {"key_takeaway": "x", "related": value}).details["field"] == "related"


@pytest.mark.parametrize(
    "value",
    [
        [{"memory": 1, "outcome": "worked"}, {"memory": "m-2", "outcome": "failed"}],
        {"1": "worked", "m-2": "failed"},
        [{"position": "1", "score": "👍"}, {"memory_id": "m-2", "result": "wrong"}],
        '[{"memory": 1, "outcome": "worked"}, {"memory": "m-2", "outcome": "failed"}]',
    ],
)
def test_scores_have_several_shapes(value: Any) -> None:
    assert read(SCORE, scores=value).get("scores") == ((1, "worked"), ("m-2", "failed"))


def test_one_score_may_come_without_its_list() -> None:
    found = read(SCORE, scores={"positions": [1, 2], "outcome": "worked"}).get("scores")
    assert found == ((1, "worked"), (2, "worked"))


@pytest.mark.parametrize(
    "sent",
    ['{"q": "tea"}', '"{\\"q\\": \\"tea\\"}"', {"arguments": {"q": "tea"}}, "tea",
     {"parameters": '{"query": "tea"}'}],
)  # fmt: skip
def test_arguments_may_be_json_text_or_wrapped(sent: Any) -> None:
    assert read_arguments(SEARCH, sent).get("query") == "tea"


@pytest.mark.parametrize("sent", ['{"q": ', "[1, 2]", '{"q": "tea"', "[" * 5_000])
def test_broken_json_is_no_question(sent: str) -> None:
    assert refusal(SEARCH, sent).details["field"] == "arguments"


def test_null_and_its_words_leave_an_argument_out() -> None:
    found = read(SEARCH, q="tea", tiers=None, sort_by="null", tags="", limit="None")
    assert (found.get("tiers"), found.get("sort_by"), found.get("limit")) == (None, None, 5)


def test_two_names_of_one_argument_must_agree() -> None:
    assert read(SEARCH, q="tea", query="tea").get("query") == "tea"
    assert refusal(SEARCH, {"q": "tea", "query": "coffee"}).details["field"] == "query"


@pytest.mark.parametrize("name", ["mood", "מצב רוח", "a\nb", "x" * 300])
@pytest.mark.parametrize("value", ["good", None])
def test_what_a_tool_does_not_know_is_refused_by_name(name: str, value: Any) -> None:
    """As the schema says, and so that a misspelt filter does not widen a search."""
    error = refusal(INSIGHTS, {"query": "tea", name: value})
    shown = name.replace("\n", "\\n")[:40]
    assert error.details["field"] == shown
    assert error.message == f"{shown}: unknown argument; get_context_insights takes query."


@pytest.mark.parametrize("value", [5, 5.5, 0, True, ["tea"], {"tea": 1}])
def test_what_is_not_text_is_no_text(value: Any) -> None:
    assert refusal(SEARCH, {"query": value}).message == "query: must be text."
    assert refusal(ADD, {"content": value}).message == "content: must be text."


@pytest.mark.parametrize("tool", TOOLS, ids=lambda one: one.name)
def test_what_is_missing_is_named(tool: ToolDefinition) -> None:
    needed = [one.name for one in tool.parameters if one.required]
    if needed:
        assert refusal(tool, {}).details["field"] == needed[0]
    else:
        assert tool is ARCHIVE
        assert read_arguments(tool, {}).values == {}


def test_a_number_too_long_to_spell_is_refused() -> None:
    for name in ("query", "limit", "tags", "more", "tiers"):
        assert refusal(SEARCH, {"query": "tea", name: 10**5_000}).details["field"] == name


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "\x85"])
def test_control_characters_are_refused(text: str) -> None:
    assert refusal(ADD, {"content": text}).details["field"] == "content"


def test_new_content_and_the_words_to_find_are_two_things() -> None:
    found = read(UPDATE, old_content="Dana lives in Haifa", content="Dana lives in Acre")
    assert (found.get("match_query"), found.get("new_content")) == (
        "Dana lives in Haifa",
        "Dana lives in Acre",
    )


def test_no_two_arguments_share_a_name() -> None:
    for tool in TOOLS:
        names = [n.replace("_", "") for one in tool.parameters for n in (one.name, *one.aliases)]
        assert len(names) == len(set(names)), tool.name


MEMORY = "must be the number of a search result (from 1) or a memory id"
OUTCOMES = "must be one of worked, partial, unknown, failed"
MANY = list(range(1, 300))
SENTENCES: list[tuple[ToolDefinition, Any, str]] = [
    (SEARCH, {}, "query: is missing; search_memory needs it"),
    (SEARCH, {"q": "  "}, "query: is blank; say something"),
    (SEARCH, {"q": f" {'x' * 4001}"}, "query: has 4001 characters; send at most 4000"),
    (SEARCH, {"q": "a\x00b"}, "query: holds a control character U+0000 at character 1; remove it"),
    (SEARCH, {"q": "tea", "limit": "x"}, "limit: must be a whole number from 1 to 20"),
    (SEARCH, {"q": "tea", "limit": 0}, "limit: must be at least 1"),
    (SEARCH, {"q": "tea", "tiers": []}, "tiers: is empty; leave it out to search all tiers"),
    (
        SEARCH,
        {"q": "tea", "tiers": "attic"},
        "tiers: names no tier; the tiers are working, history, patterns, books, memory_bank, "
        "datagov_schema, datagov_expansion, documents, all",
    ),
    (SEARCH, {"q": "tea", "tiers": {"a": 1}}, "tiers: must be a list"),
    (SEARCH, {"q": "tea", "sort": "mood"}, "sort_by: must be one of relevance, recency, score"),
    (SEARCH, {"q": "tea", "tags": [1]}, "tags: must be a list of texts"),
    (SEARCH, {"q": "tea", "tag": "x" * 201}, "tags: holds a tag of more than 200 characters"),
    (SEARCH, {"q": "tea", "tags": "a,b," * 99}, "tags: holds 198 tags; send at most 64"),
    (SEARCH, {"q": "tea", "more": "perhaps"}, "more: must be true or false"),
    (SEARCH, {"q": "t", "query": "c"}, "query: is given twice with different values; send one"),
    (SEARCH, [1], "arguments: must be a JSON object"),
    (ADD, {"content": "x", "importance": 8}, "importance: must be a number from 0 to 1"),
    (RESPONSE, {"text": "x", "outcome": "fine"}, f"outcome: {OUTCOMES}"),
    (RESPONSE, {"text": "x", "related": ["the first"]}, f"related: {MEMORY}"),
    (RESPONSE, {"text": "x", "related": MANY}, "related: names 299 memories; send at most 200"),
    (
        SCORE,
        {"scores": []},
        'scores: must be a list such as [{"memory": 1, "outcome": "worked"}]',
    ),
    (
        SCORE,
        {"scores": [1]},
        'scores: must hold objects such as {"memory": 1, "outcome": "worked"}',
    ),
    (SCORE, {"scores": [{"id": 1}]}, "scores: needs a memory and an outcome in each entry"),
    (SCORE, {"scores": {"1": "fine"}}, f"scores: {OUTCOMES}"),
    (SCORE, {"scores": {"no id!": "worked"}}, f"scores: {MEMORY}"),
    (
        SCORE,
        {"scores": {"memory": MANY, "outcome": "worked"}},
        "scores: names 299 memories; send at most 200",
    ),
    (ARCHIVE, {"why": "x" * 200}, "reason: has 200 characters; send at most 100"),
    (UPDATE, {"id": 0, "text": "x"}, f"memory_id: {MEMORY}"),
]


@pytest.mark.parametrize(("tool", "sent", "sentence"), SENTENCES)
def test_a_refusal_says_what_to_send(tool: ToolDefinition, sent: Any, sentence: str) -> None:
    assert refusal(tool, sent).message == f"{sentence}."


WORDS = st.text(max_size=6) | st.sampled_from(
    ["worked", "1", "[1]", "all", "true", '{"q":1}', "\x00"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.just(10**400)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda one: one.name)
def test_any_arguments_are_values_or_one_sentence(tool: ToolDefinition) -> None:
    names = [name for one in tool.parameters for name in (one.name, *one.aliases)]
    refused: list[InvalidInput] = []
    plausible = st.dictionaries(st.sampled_from([*names, "junk"]), VALUES, max_size=4)

    @settings(max_examples=examples(200), deadline=None)
    @given(plausible | VALUES)
    def holds(sent: Any) -> None:
        try:
            found = read_arguments(tool, sent)
        except InvalidInput as error:
            refused.append(error)
            return
        assert found.values.keys() <= {one.name for one in tool.parameters}

    holds()
    assert all(one.details["field"] and one.message.endswith(".") for one in refused)
    assert all(one.details["field"].isprintable() for one in refused)
