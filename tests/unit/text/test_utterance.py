"""A text carries what was read of it."""

import pickle
import re
from pathlib import Path

import orjson
import pytest
from bson import decode, encode

import rayapp
from rayapp.text.normalize import normalize
from rayapp.text.tokens import tokens
from rayapp.text.utterance import KEPT_CHARS, LONGEST_WORD, Utterance, beginning, reading
from rayapp.text.utterance import word_reading as of_word

LONG = "שלום־לך " * 400


@pytest.mark.parametrize("text", ["hello", LONG, "x" * (KEPT_CHARS + 1)])
def test_an_utterance_is_read_once(text: str) -> None:
    read: list[str] = []

    @reading
    def size(text: str) -> int:
        read.append(text)
        return len(text)

    said = Utterance(text)
    assert [size(said) for _ in range(3)] == [len(text)] * 3
    assert len(read) == 1


def test_further_arguments_ask_for_something_else() -> None:
    @reading
    def share(text: str, of: int = 2, *, more: int = 0) -> int:
        return len(text) // of + more

    said = Utterance("12345678")
    assert (share(said), share(said, 4), share(said, 4, more=1), share(said, 4)) == (4, 2, 3, 2)


def test_two_readers_of_one_text_do_not_meet() -> None:
    @reading
    def upper(text: str) -> str:
        return text.upper()

    @of_word
    def twice(text: str) -> str:
        return text * 2

    assert (upper("ab"), twice("ab"), upper("ab"), twice("ab")) == ("AB", "abab", "AB", "abab")
    assert twice("a" * LONGEST_WORD + "a") == "a" * (2 * LONGEST_WORD + 2)


@pytest.mark.parametrize("text", ["plain words", " ה־יוֹם  ", LONG])
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    said = Utterance(text)
    plain = normalize(said)
    assert plain == normalize(str(text))
    assert normalize(said) is plain
    assert normalize(plain) is plain
    assert tokens(plain) is tokens(plain)


def test_it_is_a_string_to_everybody_else() -> None:
    said = Utterance("שלום")
    assert said == "שלום"
    assert hash(said) == hash("שלום")
    assert Utterance(said) is said
    assert type(pickle.loads(pickle.dumps(said))) is str
    assert orjson.dumps({"text": said}) == orjson.dumps({"text": "שלום"})
    assert decode(encode({"text": said})) == {"text": "שלום"}


def test_a_text_that_is_not_cut_keeps_its_readings() -> None:
    said = Utterance("abc")
    assert beginning(said, 3) is said
    assert beginning(said, 2) == "ab"


def test_no_reader_of_a_text_has_a_cache_of_its_own() -> None:
    """Of texts, of words, and of the places where a long text is cut. A personality is a file that
    is checked, and no text."""
    root = Path(rayapp.__file__).parent
    readers = ("text", "graphs", "search", "assistant", "understanding", "documents", "datagov")
    kept = [
        found
        for folder in readers
        for path in sorted((root / folder).rglob("*.py"))
        if path.parent.name != "personality"
        for found in re.findall(r"lru_cache\(maxsize=(\w+)\)", path.read_text(encoding="utf-8"))
    ]
    assert kept == ["REMEMBERED", "KEPT_TEXTS", "KEPT_WORDS"]
