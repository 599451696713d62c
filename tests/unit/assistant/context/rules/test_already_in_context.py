"""Which stored turns an assistant still has before it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rayapp.assistant.context.rules.already_in_context import AlreadyInContext
from rayapp.assistant.conversations.rules import Turn, fingerprints_of, stored_text, tags_of
from rayapp.inference.ports import Message
from rayapp.memory.item import MemoryItem, Source, SourceType
from tests.support.builders import an_item

TALKS = [
    ("Where is the boiler code?", "It is on the door. The code is 4711, said Dana."),
    ("איפה הקוד של הדוד?", "הוא כתוב על הדלת. הקוד הוא 4711, אמרה דנה."),
]


def stored(
    question: str, answer: str, *, known: tuple[str, ...] = (), limit: int = 10_000, **changes: Any
) -> MemoryItem:
    turn = Turn(question=question, answer=answer, tools=())
    text, _ = stored_text(turn, fingerprints_of(known), limit)
    values: dict[str, Any] = {
        "text": text,
        "tags": tags_of(turn, with_memory=False),
        "source": Source(type=SourceType.ASSISTANT, conversation_id="c", message_id="m"),
    }
    return an_item(**(values | changes))


def still_before_it(item: MemoryItem, conversation_id: str | None, said: Sequence[Message]) -> bool:
    return AlreadyInContext(conversation_id, said).holds(item)


def talk(*said: str) -> tuple[Message, ...]:
    """User and assistant in turn."""
    return tuple(
        Message("assistant" if number % 2 else "user", text) for number, text in enumerate(said)
    )


@pytest.mark.parametrize(("question", "answer"), TALKS)
def test_a_turn_that_stands_in_the_messages_is_still_there(question: str, answer: str) -> None:
    item = stored(question, answer)
    assert still_before_it(item, "c", talk("hi", "hello", question, answer, "ok", "fine"))
    # Programs keep the marks of an answer, and break lines as they like.
    assert still_before_it(item, "c", talk(f" {question}\n", f"{answer}\n<!-- MEM: 1👍 -->"))


@pytest.mark.parametrize(("question", "answer"), TALKS)
def test_what_the_messages_do_not_hold_is_told(question: str, answer: str) -> None:
    item = stored(question, answer)
    assert not still_before_it(item, "c", ())
    assert not still_before_it(item, "c", talk("hi", "hello"))
    assert not still_before_it(item, "c", talk(question))  # the answer is not among them
    assert not still_before_it(item, "c", talk(question, "I do not know, sorry."))
    assert not still_before_it(item, "c", talk("hi", answer, question, "Let me look."))


def test_a_short_question_asked_again_and_again_hides_no_other_answer() -> None:
    for yes, first, later in (
        ("yes", "Then take the train at nine.", "Then I shall book the hotel."),
        ("כן", "אז סע ברכבת של תשע.", "אז אזמין את המלון."),
    ):
        assert not still_before_it(stored(yes, first), "c", talk(yes, later))
        assert still_before_it(stored(yes, first), "c", talk(yes, first, yes, later))


@pytest.mark.parametrize(("question", "answer"), TALKS)
def test_only_turns_of_this_conversation_count(question: str, answer: str) -> None:
    said = talk(question, answer)
    item = stored(question, answer)
    assert not still_before_it(item, None, said)
    assert not still_before_it(item, "other", said)
    assert not still_before_it(stored(question, answer, source=Source()), None, said)
    fact = stored(question, answer, tags=(), text=f"{question} {answer}")
    assert not still_before_it(fact, "c", said)
    assert not still_before_it(stored(question, answer, tags=()), "c", said)


@pytest.mark.parametrize(("question", "answer"), TALKS)
def test_a_turn_that_was_stored_shorter_is_known_again(question: str, answer: str) -> None:
    first, second = answer.split(". ", 1)
    shorter = stored(question, answer, known=(first,))
    assert first not in shorter.text
    assert second in shorter.text
    assert still_before_it(shorter, "c", talk(question, answer))
    nothing = stored(question, answer, known=(first, second))
    assert nothing.text == f"User: {question}"
    marked = replace(nothing, text=f"{nothing.text}\nAssistant: …")  # as its rows were before
    for item in (nothing, marked):
        assert still_before_it(item, "c", talk(question, answer))
        assert not still_before_it(item, "c", talk(question))
    long = stored(f"{question} " * 20, answer, limit=300)
    assert still_before_it(long, "c", talk(f"{question} " * 20, answer))


def test_an_answer_that_only_repeated_is_not_told_by_a_short_question() -> None:
    for yes, fact, later in (
        ("yes", "Dana lives in Haifa", "Booking the hotel now, room 12."),
        ("כן", "דנה גרה בחיפה", "מזמין את המלון, חדר 12."),
    ):
        item = stored(yes, f"{fact}.", known=(fact,))
        assert item.text == f"User: {yes}"
        assert not still_before_it(item, "c", talk(yes, later))


def test_a_short_question_that_ends_in_dots_was_not_cut() -> None:
    for asked, other, answer in (
        ("ok…", "ok, and what about the trip to Rome?", "Done, I saved it."),
        ("כן…", "כן, ומה עם הטיול לרומא?", "בוצע, שמרתי."),
        ("…", "a completely other question", "Done, I saved it."),
    ):
        item = stored(asked, answer)
        assert not still_before_it(item, "c", talk(other, f"{answer} More."))
        assert still_before_it(item, "c", talk(asked, answer))


def test_only_the_last_ten_messages_count() -> None:
    for question, answer in TALKS:
        item, more = stored(question, answer), [f"word {number}" for number in range(10)]
        assert still_before_it(item, "c", talk(question, answer, *more[:8]))
        assert not still_before_it(item, "c", talk(question, answer, *more))


def test_a_message_is_read_once_for_all_memories(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def reading(texts: Iterable[str]) -> tuple[str, ...]:
        read.extend(texts)
        return fingerprints_of(texts)

    monkeypatch.setattr("rayapp.assistant.conversations.rules.fingerprints_of", reading)
    for yes in ("yes", "כן"):
        read.clear()
        before = AlreadyInContext("c", talk(*(f"{yes}", "Dana lives in Haifa.") * 5))
        for number in range(20):
            assert not before.holds(stored(yes, f"Train number {number} leaves at nine."))
        assert len(read) == 5
