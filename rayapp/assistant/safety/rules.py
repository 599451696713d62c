"""Which answers are no advice of a physician, an adviser or a lawyer, and what says so. Pure.

A word of the trade alone is not enough: "when is my doctor's appointment?" asks memory. A sentence
counts that names the subject and asks what to do, or an answer that says what to do.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rayapp.graphs.rules.directives import Side, side_of
from rayapp.text.language import detect_language
from rayapp.text.normalize import normalize
from rayapp.text.phrases import phrases_in
from rayapp.text.utterance import beginning

Topic = Literal["medical", "financial", "legal"]

# Characters that are looked through, of a question and of an answer.
LOOKED_AT = 8_000


@dataclass(frozen=True, slots=True)
class Disclaimer:
    """`text`: one sentence for the person, in their language."""

    topic: Topic
    text: str


_TOPICS: tuple[Topic, ...] = ("medical", "financial", "legal")
_SENTENCE = re.compile(r"[^.!?\n]+")
_TEXTS: Mapping[Topic, Mapping[Side, str]] = {
    "medical": {
        "en": "This is general information and no medical advice; ask a doctor or a pharmacist.",
        "he": "זהו מידע כללי ולא ייעוץ רפואי; יש לפנות לרופא או לרוקח.",
    },
    "financial": {
        "en": "This is general information and no financial advice; ask a licensed adviser.",
        "he": "זהו מידע כללי ולא ייעוץ פיננסי; יש לפנות ליועץ מורשה.",
    },
    "legal": {
        "en": "This is general information and no legal advice; ask a lawyer.",
        "he": "זהו מידע כללי ולא ייעוץ משפטי; יש לפנות לעורך דין.",
    },
}


def disclaimers_of(question: str, answer: str = "") -> tuple[Disclaimer, ...]:
    """What the answer to a question must say of itself, in the language of the question, or of the
    answer where there is none."""
    asked = _topics(question, "advice.asks", whole=True)
    said = asked | _topics(answer, "advice.advises", whole=False)
    side = side_of(detect_language(normalize(question or answer)))
    return tuple(Disclaimer(topic, _TEXTS[topic][side]) for topic in _TOPICS if topic in said)


def _topics(text: str, label: str, *, whole: bool) -> set[Topic]:
    """`whole`: a person tells in one sentence and asks in the next."""
    plain = normalize(beginning(text, LOOKED_AT))
    said = phrases_in(plain)
    if label not in said:
        return set()
    pieces = [(0, len(plain))]
    if not whole:
        spans = (one.span() for one in _SENTENCE.finditer(plain))
        pieces = [span for span in spans if said.within(label, *span)]
    return {
        topic for topic in _TOPICS if any(said.within(f"advice.{topic}", *one) for one in pieces)
    }
