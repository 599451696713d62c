"""Kept conversations: titles, the words by which they are found, places in their lists. Pure."""

from datetime import UTC, datetime, timedelta

from rayapp.assistant.extraction.rules import facts
from rayapp.assistant.extraction.rules.facts import Turn
from rayapp.assistant.ports import Place
from rayapp.core.errors import InvalidInput
from rayapp.memory.requests import pack_cursor, unpack_cursor
from rayapp.text.hebrew import unify_finals, without_prefixes
from rayapp.text.hostile import hostile
from rayapp.text.normalize import normalize
from rayapp.text.tokens import Token, term_index, token_terms, tokens

# --- titles

MAX_TITLE_CHARS = 80
# First words of a question that make a title; eight are read at a glance. Our choice.
TITLE_WORDS = 8
MIN_TITLE_CHARS = 3
CUT = "…"


def first_words(question: str) -> str:
    """The title of a conversation that begins with this question."""
    words = question.split()
    text = " ".join(words[:TITLE_WORDS])
    if len(text) > MAX_TITLE_CHARS:
        return text[: MAX_TITLE_CHARS - 1].rstrip() + CUT
    return text + CUT if len(words) > TITLE_WORDS else text


def title_left(question: str | None) -> str:
    """The title after what made it was deleted; `question`: the first one that is left."""
    return first_words(question) if question else CUT


def model_title(reply: str, turn: Turn) -> str | None:
    """The title in the reply of a model; None when it is not one line about what was said."""
    line, _ = facts.line_of(reply)
    text = " ".join((line or "").split()).rstrip(" .")
    if not MIN_TITLE_CHARS <= len(text) <= MAX_TITLE_CHARS or hostile(text):
        return None
    return text if facts.unsaid(text, turn.text) in (None, "polarity") else None


# --- words

# Different terms of one turn that it is found by; a longer text is found by its beginning.
MAX_TERMS = 1_000
# Letters of what is left of a Hebrew word without its prefix.
MIN_STEM_LETTERS = 3
# Words of a search that count: more of them cost time and tell nothing more.
MAX_WORDS = 12


def turn_terms(question: str, answer: str) -> tuple[int, ...]:
    """The terms that a turn is found by: each word and its readings, as the search reads them."""
    found: dict[int, None] = {}
    for token in tokens(normalize(f"{question}\n{answer}")):
        found |= dict.fromkeys(_readings(token))
        if len(found) >= MAX_TERMS:
            break
    return tuple(found)[:MAX_TERMS]


def search_words(query: str) -> tuple[tuple[int, ...], ...]:
    """The words of a search, each as the terms of its readings; stop words only when nothing else
    is asked for."""
    words = list(tokens(normalize(query)))
    telling = [word for word in words if not token_terms(word)[0].stop] or words
    return tuple(dict.fromkeys(map(_readings, telling)))[:MAX_WORDS]


def _readings(token: Token) -> tuple[int, ...]:
    """A word, its lemmas, and what is left of it without Hebrew prefixes: no dictionary knows all
    words, and who reads the list again sees what does not fit."""
    terms = [one.slot for one in token_terms(token) if one.kind != "c4"]
    if token.kind == "hebrew":
        bare = without_prefixes(token.text, MIN_STEM_LETTERS)
        terms += [term_index(unify_finals(one)) for one in bare]
    return tuple(dict.fromkeys(terms))


# --- places

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encode_place(place: Place) -> str:
    """An opaque cursor that goes on behind this place."""
    at, name = place
    return pack_cursor([(at - EPOCH) // timedelta(milliseconds=1), name])


def decode_place(cursor: str) -> Place:
    """Raises InvalidInput: it is no cursor of ours."""
    try:
        at, name = unpack_cursor(cursor)
        if type(at) is not int or not isinstance(name, str):
            raise ValueError
        return EPOCH + timedelta(milliseconds=at), name
    except (ValueError, OverflowError):
        raise InvalidInput(
            "The cursor cannot be read: use `next_cursor` of a page of this list.",
            details={"field": "cursor"},
        ) from None
