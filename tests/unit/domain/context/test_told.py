"""Which stored turns an assistant still has before it."""

from __future__ import annotations

from typing import Any

import pytest

from rayapp.domain.context.exchange import Turn, stored_text, tags_of
from rayapp.domain.context.fingerprint import fingerprints_of
from rayapp.domain.context.records import Message
from rayapp.domain.context.told import still_before_it
from rayapp.domain.memory import MemoryItem, Source, SourceType
from rayapp.testing.builders import an_item

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
    assert nothing.text.endswith("…")
    assert still_before_it(nothing, "c", talk(question, answer))
    assert not still_before_it(nothing, "c", talk(question))
    long = stored(f"{question} " * 20, answer, limit=300)
    assert still_before_it(long, "c", talk(f"{question} " * 20, answer))
