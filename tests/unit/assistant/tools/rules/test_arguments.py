"""What models send for arguments: read where it means one thing, refused in one sentence else."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AliasChoices

from rayapp.assistant.tools.rules.arguments import names_of, read_arguments
from rayapp.assistant.tools.rules.definitions import (
    TOOLS,
    AddToMemoryBank,
    ArchiveMemory,
    GetContextInsights,
    RecordResponse,
    ScoreMemories,
    SearchBooks,
    SearchMemory,
    Tool,
    UpdateMemory,
)
from rayapp.core.errors import InvalidInput
from rayapp.memory.tiers import CORE_TIERS, Tier
from tests.support.examples import examples


def read(tool: type[Tool], **sent: Any) -> Any:
    return read_arguments(tool, sent)


def scored(**sent: Any) -> list[tuple[int | str, str]]:
    return [(one.memory, one.outcome) for one in read(ScoreMemories, **sent).scores]


def refusal(tool: type[Tool], sent: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read_arguments(tool, sent)
    return caught.value


@pytest.mark.parametrize(
    "name", ["query", "q", "search", "text", "Query", "searchQuery", "QUESTION"]
)
@pytest.mark.parametrize("words", ["where does Dana live?", "איפה דנה גרה?"])
def test_a_question_has_many_names(name: str, words: str) -> None:
    assert read(SearchMemory, **{name: words}).query == words


def test_defaults_stand_in_for_what_is_left_out() -> None:
    found = read(SearchMemory, q="tea")
    assert (found.limit, found.more, found.tiers) == (5, False, None)
    assert read(AddToMemoryBank, content="Dana likes tea").tags == ("context",)
    assert read(RecordResponse, key_takeaway="tea").outcome == "unknown"


@pytest.mark.parametrize("value", [7, "7", " 7 ", 7.0, "7.0", "+7"])
def test_a_number_may_come_as_text(value: Any) -> None:
    assert read(SearchMemory, q="tea", limit=value).limit == 7


@pytest.mark.parametrize("value", [True, "seven", 2.5, 0, -3, "0", [], {}, float("nan"), 1e400])
def test_a_limit_that_is_none_is_refused_by_name(value: Any) -> None:
    error = refusal(SearchMemory, {"q": "tea", "limit": value})
    assert error.details["field"] == "limit"
    assert error.message.startswith("limit: ")


def test_a_limit_above_the_largest_is_the_largest() -> None:
    assert read(SearchMemory, q="tea", top_k=500).limit == 20


@pytest.mark.parametrize("name", ["tiers", "collections", "collection", "tier"])
@pytest.mark.parametrize(
    "value", [["memory_bank", "books"], "memory_bank, documents", '["Memory Bank", "books"]']
)
def test_tiers_have_names_and_may_be_a_text(name: str, value: Any) -> None:
    assert read(SearchMemory, q="tea", **{name: value}).tiers == (Tier.MEMORY_BANK, Tier.BOOKS)


@pytest.mark.parametrize("value", ["all", ["all"], ["all", "working"]])
def test_all_means_the_core_tiers(value: Any) -> None:
    assert read(SearchMemory, q="tea", tiers=value).tiers == CORE_TIERS


@pytest.mark.parametrize("value", [[], "nowhere", ["working", 3], {"tier": "working"}])
def test_a_filter_that_means_nothing_never_widens_a_search(value: Any) -> None:
    assert refusal(SearchMemory, {"q": "tea", "tiers": value}).details["field"] == "tiers"


@pytest.mark.parametrize(
    "value", ["taste", ["taste"], '["taste"]', "#taste", "taste, ", "taste,taste"]
)
def test_a_tag_may_be_a_text(value: Any) -> None:
    assert read(AddToMemoryBank, content="Dana likes tea", tags=value).tags == ("taste",)


def test_tags_are_of_any_script() -> None:
    assert read(AddToMemoryBank, content="דנה אוהבת תה", tag="טעם, משפחה").tags == ("טעם", "משפחה")


@pytest.mark.parametrize(("value", "share"), [(0.8, 0.8), ("0.8", 0.8), ("80%", 0.8), (1, 1.0)])
def test_shares_may_be_per_cent(value: Any, share: float) -> None:
    assert read(AddToMemoryBank, content="x", importance=value).importance == share


@pytest.mark.parametrize("value", [8, "high", True, -0.1, "180%"])
def test_a_share_outside_its_range_is_refused(value: Any) -> None:
    assert (
        refusal(AddToMemoryBank, {"content": "x", "importance": value}).details["field"]
        == "importance"
    )


@pytest.mark.parametrize("value", [True, "true", "Yes", 1, "כן"])
def test_yes_has_many_words(value: Any) -> None:
    assert read(SearchMemory, q="tea", more=value).more is True


@pytest.mark.parametrize(
    ("word", "outcome"),
    [("worked", "worked"), ("👍", "worked"), ("עבד", "worked"), ("Failed", "failed"),
     ("נכשל", "failed"), ("partially", "partial"), ("חלקי", "partial"), ("➖", "unknown"),
     ("הצליחה", "worked"), ("עבדה", "worked"), ("נכשלה", "failed"), ("לא עבד", "failed"),
     ("חלקית", "partial"), ("\u200fעבד\u200f", "worked")],
)  # fmt: skip
def test_outcomes_have_words_in_both_languages(word: str, outcome: str) -> None:
    assert read(RecordResponse, key_takeaway="tea", outcome=word).outcome == outcome


@pytest.mark.parametrize("page", [10**30, 1e30, 1_000_001, 0, 1.5])
def test_a_page_that_no_store_can_hold_is_refused(page: float) -> None:
    """MongoDB takes no number of more than 8 bytes."""
    assert refusal(SearchBooks, {"query": "tea", "page_from": page}).details["field"] == "page_from"


def test_too_many_titles_are_counted_as_entries() -> None:
    error = refusal(SearchBooks, {"query": "tea", "titles": [f"t{n}" for n in range(99)]})
    assert error.message == "titles: has 99 entries; send at most 64."


@pytest.mark.parametrize("value", ["working", "not good", 1, ["worked"]])
def test_an_outcome_that_is_none_is_refused(value: Any) -> None:
    """An outcome is never guessed: a wrong one teaches the wrong thing."""
    assert (
        refusal(RecordResponse, {"key_takeaway": "tea", "outcome": value}).details["field"]
        == "outcome"
    )


@pytest.mark.parametrize(
    ("value", "related"),
    [([1, 3], (1, 3)), ("1, 3", (1, 3)), ("[1, 3]", (1, 3)), (["1", "[3]"], (1, 3)),
     (2, (2,)), ("#2", (2,)), ([1.0, "mem-7"], (1, "mem-7")), ([], ()), ([1, 1], (1,)),
     (["[working:a-1]"], ("working:a-1",))],
)  # fmt: skip
def test_related_holds_numbers_and_ids(value: Any, related: Any) -> None:
    assert read(RecordResponse, key_takeaway="tea", related=value).related == related


def test_no_related_is_not_the_same_as_none_of_them() -> None:
    assert read(RecordResponse, key_takeaway="tea").related is None
    assert read(RecordResponse, key_takeaway="tea", related=None).related is None


@pytest.mark.parametrize("value", [0, -1, True, 1.5, ["the first"], [[1]], [None], 10**30])
def test_a_memory_that_cannot_be_named_is_refused(value: Any) -> None:
    assert (
        refusal(RecordResponse, {"key_takeaway": "x", "related": value}).details["field"]
        == "related"
    )


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
    assert scored(scores=value) == [(1, "worked"), ("m-2", "failed")]


def test_one_score_may_come_without_its_list() -> None:
    found = scored(scores={"positions": [1, 2], "outcome": "worked"})
    assert found == [(1, "worked"), (2, "worked")]


@pytest.mark.parametrize(
    "sent",
    ['{"q": "tea"}', '"{\\"q\\": \\"tea\\"}"', {"arguments": {"q": "tea"}}, "tea",
     {"parameters": '{"query": "tea"}'}],
)  # fmt: skip
def test_arguments_may_be_json_text_or_wrapped(sent: Any) -> None:
    assert read_arguments(SearchMemory, sent).query == "tea"


@pytest.mark.parametrize("sent", ['{"q": ', "[1, 2]", '{"q": "tea"', "[" * 5_000])
def test_broken_json_is_no_question(sent: str) -> None:
    assert refusal(SearchMemory, sent).details["field"] == "arguments"


def test_null_and_its_words_leave_an_argument_out() -> None:
    found = read(SearchMemory, q="tea", tiers=None, sort_by="null", tags="", limit="None")
    assert (found.tiers, found.sort_by, found.limit) == (None, None, 5)


def test_two_names_of_one_argument_must_agree() -> None:
    assert read(SearchMemory, q="tea", query="tea").query == "tea"
    assert refusal(SearchMemory, {"q": "tea", "query": "coffee"}).details["field"] == "query"


@pytest.mark.parametrize("name", ["mood", "מצב רוח", "a\nb", "x" * 300])
@pytest.mark.parametrize("value", ["good", None])
def test_what_a_tool_does_not_know_is_refused_by_name(name: str, value: Any) -> None:
    """As the schema says, and so that a misspelt filter does not widen a search."""
    error = refusal(GetContextInsights, {"query": "tea", name: value})
    shown = name.replace("\n", "\\n")[:40]
    assert error.details["field"] == shown
    assert error.message == f"{shown}: unknown argument; get_context_insights takes query."


@pytest.mark.parametrize("value", [5, 5.5, 0, True, ["tea"], {"tea": 1}])
def test_what_is_not_text_is_no_text(value: Any) -> None:
    assert refusal(SearchMemory, {"query": value}).message == "query: must be text."
    assert refusal(AddToMemoryBank, {"content": value}).message == "content: must be text."


@pytest.mark.parametrize("tool", TOOLS, ids=lambda one: one.name)
def test_what_is_missing_is_named(tool: type[Tool]) -> None:
    needed = [name for name, field in tool.model_fields.items() if field.is_required()]
    if needed:
        assert refusal(tool, {}).details["field"] == needed[0]
    else:
        assert tool is ArchiveMemory
        assert read_arguments(tool, {}).model_dump(exclude_none=True) == {}


def test_a_number_too_long_to_spell_is_refused() -> None:
    for name in ("query", "limit", "tags", "more", "tiers"):
        assert refusal(SearchMemory, {"query": "tea", name: 10**5_000}).details["field"] == name


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "\x85"])
def test_control_characters_are_refused(text: str) -> None:
    assert refusal(AddToMemoryBank, {"content": text}).details["field"] == "content"


def test_new_content_and_the_words_to_find_are_two_things() -> None:
    found = read(UpdateMemory, old_content="Dana lives in Haifa", content="Dana lives in Acre")
    assert (found.match_query, found.new_content) == ("Dana lives in Haifa", "Dana lives in Acre")


def test_no_two_arguments_share_a_name() -> None:
    for tool in TOOLS:
        aliases = [field.validation_alias for field in tool.model_fields.values()]
        others = [
            one for found in aliases if isinstance(found, AliasChoices) for one in found.choices
        ]
        assert len(names_of(tool)) == len(tool.model_fields) + len(others), tool.name


MEMORY = "must be the number of a search result (from 1) or a memory id"
OUTCOMES = "must be one of worked, partial, unknown, failed"
MANY = list(range(1, 300))
SENTENCES: list[tuple[type[Tool], Any, str]] = [
    (SearchMemory, {}, "query: is missing; search_memory needs it"),
    (SearchMemory, {"q": "  "}, "query: is blank; say something"),
    (SearchMemory, {"q": "\u200b\u200f"}, "query: is blank; say something"),
    (SearchMemory, {"q": f" {'x' * 4001}"}, "query: has 4001 characters; send at most 4000"),
    (
        SearchMemory,
        {"q": "a\x00b"},
        "query: holds a control character U+0000 at character 1; remove it",
    ),
    (SearchMemory, {"q": "tea", "limit": "x"}, "limit: must be a whole number from 1 to 20"),
    (SearchMemory, {"q": "tea", "limit": 0}, "limit: must be at least 1"),
    (SearchMemory, {"q": "tea", "tiers": []}, "tiers: is empty; leave it out to search all tiers"),
    (
        SearchMemory,
        {"q": "tea", "tiers": "attic"},
        "tiers: names no tier; the tiers are working, history, patterns, books, memory_bank, "
        "datagov_schema, datagov_expansion, documents, all",
    ),
    (SearchMemory, {"q": "tea", "tiers": {"a": 1}}, "tiers: must be a list"),
    (
        SearchMemory,
        {"q": "tea", "sort": "mood"},
        "sort_by: must be one of relevance, recency, score",
    ),
    (SearchMemory, {"q": "tea", "tags": [1]}, "tags: must be a list of texts"),
    (SearchMemory, {"q": "tea", "tag": "x" * 201}, "tags: holds a tag of more than 200 characters"),
    (SearchMemory, {"q": "tea", "tags": "a,b," * 99}, "tags: holds 198 tags; send at most 64"),
    (SearchMemory, {"q": "tea", "more": "perhaps"}, "more: must be true or false"),
    (
        SearchMemory,
        {"q": "t", "query": "c"},
        "query: is given twice with different values; send one",
    ),
    (SearchMemory, [1], "arguments: must be a JSON object"),
    (
        AddToMemoryBank,
        {"content": "x", "importance": 8},
        "importance: must be a number from 0 to 1",
    ),
    (RecordResponse, {"text": "x", "outcome": "fine"}, f"outcome: {OUTCOMES}"),
    (RecordResponse, {"text": "x", "related": ["the first"]}, f"related: {MEMORY}"),
    (
        RecordResponse,
        {"text": "x", "related": MANY},
        "related: names 299 memories; send at most 200",
    ),
    (
        ScoreMemories,
        {"scores": []},
        'scores: must be a list such as [{"memory": 1, "outcome": "worked"}]',
    ),
    (
        ScoreMemories,
        {"scores": [1]},
        'scores: must hold objects such as {"memory": 1, "outcome": "worked"}',
    ),
    (ScoreMemories, {"scores": [{"id": 1}]}, "scores: needs a memory and an outcome in each entry"),
    (ScoreMemories, {"scores": {"1": "fine"}}, f"scores: {OUTCOMES}"),
    (ScoreMemories, {"scores": {"no id!": "worked"}}, f"scores: {MEMORY}"),
    (
        ScoreMemories,
        {"scores": {"memory": MANY, "outcome": "worked"}},
        "scores: names 299 memories; send at most 200",
    ),
    (ArchiveMemory, {"why": "x" * 200}, "reason: has 200 characters; send at most 100"),
    (UpdateMemory, {"id": 0, "text": "x"}, f"memory_id: {MEMORY}"),
]


@pytest.mark.parametrize(("tool", "sent", "sentence"), SENTENCES)
def test_a_refusal_says_what_to_send(tool: type[Tool], sent: Any, sentence: str) -> None:
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
def test_any_arguments_are_values_or_one_sentence(tool: type[Tool]) -> None:
    names = list(names_of(tool))
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
        assert isinstance(found, tool)

    holds()
    assert all(one.details["field"] and one.message.endswith(".") for one in refused)
    assert all(one.details["field"].isprintable() for one in refused)
