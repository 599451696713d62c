"""Where long texts are cut."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.text.passages import LONGEST, MAX_PASSAGES, WHOLE_CHARS, passage_at, passages_of
from tests.support.examples import examples

WORD = st.text("abc אבג.,\n!", min_size=1, max_size=40)
LONG = st.lists(WORD, min_size=1, max_size=12).map(lambda words: " ".join(words) * 60)


def test_a_short_text_is_one_passage() -> None:
    assert passages_of("") == ((0, 0),)
    assert passages_of("א" * WHOLE_CHARS) == ((0, WHOLE_CHARS),)


def test_paragraphs_stay_whole() -> None:
    paragraphs = [f"{word} " * 70 for word in ("alpha", "beta", "gamma", "delta")]
    text = "\n\n".join(paragraphs)
    assert [passage.of(text).strip() for passage in passages_of(text)] == [
        p.strip() for p in paragraphs
    ]


@given(LONG)
@settings(max_examples=examples(200), deadline=None)
def test_passages_hold_every_word_once_and_in_order(text: str) -> None:
    passages = passages_of(text)
    assert 1 <= len(passages) <= MAX_PASSAGES
    at = 0
    for start, end in passages:
        assert at <= start <= end
        assert not text[at:start].strip()
        at = end
    assert not text[at:].strip()


def test_an_endless_text_has_longer_passages() -> None:
    text = "".join(f"sentence number {n}. " for n in range(6_000))
    passages = passages_of(text)
    assert MAX_PASSAGES // 2 < len(passages) <= MAX_PASSAGES
    unbroken = passages_of("x" * 60_000)
    assert len(unbroken) <= MAX_PASSAGES
    assert max(end - start for start, end in unbroken) > LONGEST


def test_a_passage_that_is_gone_is_the_first() -> None:
    assert passage_at("short", 7) == (0, 5)
