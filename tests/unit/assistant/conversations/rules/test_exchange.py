"""A turn is found, cleaned and put into words; the context block replaces the one before it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.assistant.conversations.rules import (
    Turn,
    cleaned,
    enrich,
    exchange_id,
    fingerprints_of,
    finished_turn,
    last_question,
    recent_before,
    stored_text,
    tags_of,
    without_block,
)
from rayapp.inference.ports import Message, Role
from rayapp.memory.rules.creation import MAX_LABEL_CHARS, MAX_TAGS

QUESTION = "Where does Dana live?"
ANSWER = "She lives in Haifa, near the port, and she likes it there very much."


def said(*pairs: tuple[Role, str]) -> tuple[Message, ...]:
    return tuple(Message(role, content) for role, content in pairs)


def turn(question: str = QUESTION, answer: str = ANSWER, *tools: str) -> Turn:
    return Turn(question=question, answer=answer, tools=tools)


class TestFindingATurn:
    def test_it_ends_with_the_assistants_message(self) -> None:
        found = finished_turn(said(("user", QUESTION), ("assistant", ANSWER)), ["a", "a"])
        assert found == turn(QUESTION, ANSWER, "a", "a")

    def test_what_was_said_between_tool_calls_belongs_to_the_answer(self) -> None:
        messages = said(
            ("user", "old"),
            ("assistant", "old answer"),
            ("user", QUESTION),
            ("assistant", "Let me look."),
            ("tool", "{}"),
            ("assistant", ANSWER),
        )
        found = finished_turn(messages, [])
        assert found is not None
        assert found.answer == f"Let me look.\n{ANSWER}"

    @pytest.mark.parametrize(
        "messages",
        [
            said(("user", QUESTION)),
            said(("assistant", ANSWER)),
            said(("user", "  "), ("assistant", ANSWER)),
            said(("user", "\u200b\u200f"), ("assistant", ANSWER)),
            said(("user", QUESTION), ("assistant", "\u2066 \u2069")),
            said(("user", QUESTION), ("assistant", "<think>only a thought</think>")),
            said(("user", QUESTION), ("assistant", "<!-- MEM: 1👍 -->")),
            said(("user", QUESTION), ("assistant", ANSWER), ("tool", "late")),
            said(("user", QUESTION), ("assistant", ANSWER), ("user", ""), ("assistant", "A cat.")),
            (
                *said(("user", QUESTION), ("assistant", ANSWER), ("system", "It is noon.")),
                *said(("user", ""), ("assistant", "A cat.")),
            ),
        ],
    )
    def test_otherwise_there_is_none(self, messages: tuple[Message, ...]) -> None:
        assert finished_turn(messages, []) is None

    @pytest.mark.parametrize(
        "between",
        [said(("user", "")), said(("assistant", "I look."), ("tool", "see below"), ("user", ""))],
    )
    def test_a_picture_may_belong_to_the_question(self, between: tuple[Message, ...]) -> None:
        messages = (*said(("user", QUESTION)), *between, *said(("assistant", ANSWER)))
        found = finished_turn(messages, [])
        assert found is not None
        assert found.question == QUESTION

    def test_the_last_question_has_text(self) -> None:
        assert last_question(said(("user", "a"), ("assistant", "b"), ("user", " "))) == 0
        assert last_question(said(("user", "א"), ("assistant", "b"), ("user", "\u05b7"))) == 0
        assert last_question(said(("system", "a"))) is None

    def test_recent_messages_come_without_systems_tools_and_marks(self) -> None:
        messages = said(
            ("system", "s"),
            ("user", "a"),
            ("tool", "t"),
            ("assistant", "b <!-- MEM: 1👍 -->"),
            ("user", "c"),
        )
        assert recent_before(messages, 4) == said(("user", "a"), ("assistant", "b"))

    def test_at_most_ten_are_recent(self) -> None:
        messages = said(*[("user", f"m{n}") for n in range(15)])
        found = recent_before(messages, 14)
        assert [one.content for one in found] == [f"m{n}" for n in range(4, 14)]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("<think>secret</think>The answer", "The answer"),
        ("reasoning\n</think>\nThe answer", "The answer"),
        ("<think>\ncut off before the answer", ""),
        ("<think>a</think>\n<think>b</think>The answer", "The answer"),
        ("<think>write `</think>` here</think>The answer", "The answer"),
        ("<think>\n```py\nnever closed\n</think>\nThe answer", "The answer"),
        ("The answer <think>stays", "The answer <think>stays"),
        ("Use <think> and </think> as tags.", "Use <think> and </think> as tags."),
        ("<think> is a tag; `</think>` closes it.", "<think> is a tag; `</think>` closes it."),
        ("סגור ב-`</think>` את המחשבה", "סגור ב-`</think>` את המחשבה"),
        ("Write </think> at its end.", "Write </think> at its end."),
        (
            "כך:\n```\n<think>\nסוד\n</think>\n```\nסוף",
            "כך:\n```\n<think>\nסוד\n</think>\n```\nסוף",
        ),
        ("<THINKING>סוד</THINKING>תשובה", "תשובה"),
        ("a\n\n<memory_context>\n[1] [working:x] t\n</memory_context>", "a"),
        ("תשובה <!-- MEM: 1👍 -->", "תשובה"),
        ("I think </b> so", "I think </b> so"),
    ],
)
def test_a_message_is_cleaned(text: str, clean: str) -> None:
    assert cleaned(text, "assistant") == clean


@pytest.mark.parametrize(
    "text",
    [
        "<think>what is this tag?</think> מה זה?",
        "reasoning\n</think>\nWhy do models write this?",
        "<think>\nnever closed",
    ],
)
def test_users_do_not_think_in_tags(text: str) -> None:
    assert cleaned(text, "user") == text
    found = finished_turn(said(("user", text), ("assistant", ANSWER)), [])
    assert found is not None
    assert found.question == text
    assert recent_before(said(("user", text), ("user", "b")), 1) == said(("user", text))


class TestEnriching:
    def test_the_block_ends_the_first_system_message(self) -> None:
        messages = said(("system", "Be kind."), ("user", "שאלה"), ("system", "Later."))
        found = enrich(messages, "[1] [working:a] t\n")
        assert found == said(
            ("system", "Be kind.\n\n<memory_context>\n[1] [working:a] t\n</memory_context>"),
            ("user", "שאלה"),
            ("system", "Later."),
        )

    def test_a_new_system_message_comes_first(self) -> None:
        found = enrich(said(("user", "a")), "t")
        assert found == said(("system", "<memory_context>\nt\n</memory_context>"), ("user", "a"))

    def test_twice_replaces(self) -> None:
        once = enrich(said(("system", "Be kind."), ("user", "a")), "old\n\nblock")
        assert enrich(once, "new") == enrich(said(("system", "Be kind."), ("user", "a")), "new")

    def test_an_empty_block_takes_the_old_one_out(self) -> None:
        for given_ in (said(("user", "a")), said(("system", "Be kind."), ("user", "a"))):
            assert enrich(enrich(given_, "old"), "") == given_
            assert enrich(given_, "") == given_

    def test_a_prompt_that_speaks_of_the_block_keeps_its_words(self) -> None:
        prompt = "Prefer <memory_context> to tools.\n<memory_context>\nis a block, and more."
        once = enrich(said(("system", prompt), ("user", "a")), "new")
        assert once[0].content.startswith(prompt)
        assert without_block(once[0].content) == prompt

    def test_a_message_that_was_empty_before_stays(self) -> None:
        messages = said(("system", ""), ("user", "a"))
        assert enrich(messages, "") == messages

    def test_what_users_say_is_never_changed(self) -> None:
        text = "<memory_context>\nmine\n</memory_context>"
        assert enrich(said(("user", text)), "new")[1].content == text


LINES = st.text(alphabet="ab אב<>/_memory_context\n", max_size=80)


@given(
    LINES, st.text(alphabet="ab אב\n[]", min_size=1).filter(lambda t: t.strip("\n") != ""), LINES
)
def test_enriching_is_repeatable(prompt: str, block: str, user: str) -> None:
    once = enrich(said(("system", prompt), ("user", user)), block)
    assert enrich(once, block) == once
    assert once[-1].content == user


class TestStoredText:
    def test_a_turn_is_one_text(self) -> None:
        assert stored_text(turn(), (), 1_000) == (f"User: {QUESTION}\nAssistant: {ANSWER}", False)

    def test_an_echo_of_the_context_is_left_out(self) -> None:
        known = fingerprints_of([ANSWER])
        assert stored_text(turn(), known, 1_000) == (f"User: {QUESTION}", False)
        text, _ = stored_text(turn(answer=f"{ANSWER} היא קנתה סירה."), known, 1_000)
        assert text == f"User: {QUESTION}\nAssistant: היא קנתה סירה."

    def test_what_lies_beyond_the_limit_is_cut_even_after_an_echo(self) -> None:
        answer = f"{ANSWER} {'היא קנתה סירה. ' * 200}"
        text, cut = stored_text(turn(answer=answer), fingerprints_of([ANSWER]), 300)
        assert (cut, len(text) <= 300) == (True, True)
        assert ANSWER not in text

    @given(st.integers(0, 400), st.integers(0, 400), st.integers(60, 300))
    def test_it_never_exceeds_its_limit(self, question: int, answer: int, limit: int) -> None:
        made = turn("ש" * question, "x" * answer)
        text, cut = stored_text(made, (), limit)
        assert len(text) <= limit
        labels = "User: \nAssistant: " if answer else "User: "
        assert cut is (len(labels) + question + answer > limit)
        assert text.startswith("User: ")
        assert ("\nAssistant: " in text) is (answer > 0)


def test_the_tags_of_a_turn() -> None:
    assert tags_of(turn(), with_memory=False) == ("exchange",)
    made = turn(QUESTION, ANSWER, "web_search", " ", "כלי", "x" * 500)
    found = tags_of(made, with_memory=True)
    assert found[:5] == (
        "exchange", "memory_assisted", "tool_assisted", "tool:web_search", "tool:כלי",
    )  # fmt: skip
    assert all(len(tag) <= MAX_LABEL_CHARS for tag in found)
    many = turn(QUESTION, ANSWER, *(f"t{n}" for n in range(200)))
    assert len(tags_of(many, with_memory=True)) == MAX_TAGS


@pytest.mark.parametrize(
    ("question", "answer", "trivial"),
    [
        ("x" * 11, "y" * 51, False),
        ("x" * 10, "y" * 51, True),
        ("x" * 11, "y" * 50, True),
        ("ש" * 11, "ת" * 51, False),
    ],
)
def test_what_is_trivial(question: str, answer: str, trivial: bool) -> None:
    assert turn(question, answer).trivial is trivial


@pytest.mark.parametrize(
    ("tool", "scored"),
    [
        ("record_response", True),
        ("mcp__memory__record_response", True),
        ("score_memories", True),
        ("search_memory", False),
        ("record_response_later", False),
    ],
)
def test_which_tools_score(tool: str, scored: bool) -> None:
    assert turn(QUESTION, ANSWER, tool).scored_itself(owed_before=False) is scored


def test_the_first_call_pays_for_an_earlier_turn() -> None:
    once = turn(QUESTION, ANSWER, "record_response", "web_search")
    assert not once.scored_itself(owed_before=True)
    twice = turn(QUESTION, ANSWER, "record_response", "mcp__m__record_response")
    assert twice.scored_itself(owed_before=True)


def test_a_turn_has_one_id_for_ever() -> None:
    assert exchange_id("a", "c", "m") == exchange_id("a", "c", "m")
    ids = {exchange_id(*names) for names in (("a", "c", "m"), ("b", "c", "m"), ("a", "d", "m"))}
    assert len(ids) == 3
