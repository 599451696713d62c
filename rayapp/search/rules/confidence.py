"""How sure an answer is: features on an absolute scale, calibrated; and what is left out for it."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pydantic import Field

from rayapp.core.settings.access import SettingsSection
from rayapp.search.requests import ConfidenceLabel
from rayapp.search.rules.ranking import Ranked
from rayapp.search.rules.recipes import ConfidenceModel, Recipe, parsed
from rayapp.text.names import names_in
from rayapp.text.normalize import normalize
from rayapp.text.tokens import Token, TokenKind, token_terms, tokens
from rayapp.text.utterance import beginning, reading, word_reading

# What makes a relevance a probability: the confidence of each recipe for one embedder.

DEFAULT = "default"
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class Calibration(SettingsSection):
    """One file: recipes by name, and how the fit was judged (for readers, not for the service)."""

    recipes: dict[str, ConfidenceModel] = Field(min_length=1)
    measured: dict[str, dict[str, float]] = Field({})


@dataclass(frozen=True, slots=True)
class Calibrated:
    """`notice` says what is missing and what to run; None = every recipe has its calibration."""

    recipes: dict[str, Recipe]
    notice: str | None = None


def parse_calibration(name: str, tree: Mapping[str, Any]) -> Calibration:
    return parsed(Calibration, f"Calibration {name}", tree)


def file_name(model: str) -> str:
    """Name of the file for an embedder; a model may be named by a path or an address."""
    return f"{_ODD.sub('_', model).strip('_')}.yaml"


def calibrated(
    recipes: Mapping[str, Recipe], calibration: Calibration | None, model: str
) -> Calibrated:
    """`recipes` with the confidence of their calibration.

    A recipe that sets its own keeps it. One that was not calibrated takes that of `default`, and
    without any file the built-in one: its levels are a guess, and it says so.
    """
    if calibration is None:
        return Calibrated(
            dict(recipes),
            f"No calibration for embedder {model}: confidence is a guess. {_advice()}",
        )
    made, missing = {}, []
    for name, recipe in recipes.items():
        found = calibration.recipes.get(name, calibration.recipes.get(DEFAULT))
        if "confidence" in recipe.model_fields_set:
            found = recipe.confidence
        elif name not in calibration.recipes:
            missing.append(name)
        made[name] = recipe.model_copy(update={"confidence": found}) if found else recipe
    if not missing:
        return Calibrated(made)
    return Calibrated(
        made,
        f"No calibration of {', '.join(sorted(missing))} for embedder {model}: confidence is a "
        f"guess. {_advice(missing)}",
    )


def _advice(recipes: Sequence[str] = ()) -> str:
    """One command for every kind of embedder: the job reads the settings that the service read."""
    named = "".join(f" --recipe {name}" for name in sorted(recipes))
    return (
        f"With this service's settings run `python -m jobs.calibrate --data DIR{named}`, where DIR "
        "holds the evaluation sets, and restart it."
    )


# What speaks for a text as the answer to a question, on a scale that every corpus shares.

# Share of its character 4-grams from which a Hebrew word is held to be another form of one in the
# passage. Source: HeQ questions, by cross-validation (decision record 0023).
SAME_WORD = 0.5
# Characters of the shortest sentence that stands alone: below it a full stop is an abbreviation.
SENTENCE_CHARS = 10
# What is read of a text and of a question: features are read on the event loop (0.8 ms for 700
# characters), and beyond that a text is a document and a question one, too.
TEXT_CHARS, QUESTION_CHARS, QUESTION_WORDS = 4_000, 1_000, 40

_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n")
_ASKS_NUMBER = re.compile(
    r"""\b(?:how\ (?:many|much|old|long|far|often|tall|big|high)|when
    |what\ (?:year|date|time|day|age)|which\ (?:year|date|day|month))\b
    | (?<!\w)(?:[ובל]?כמה|[ומ]?מתי|עד\ מתי|ב?איז[הו]\ (?:שנה|תאריך|יום|חודש|שעה|גיל))(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)
_NUMBER = re.compile(
    r"""\d
    | \b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty
    |fifty|sixty|hundred|thousand|million|billion|once|twice|yesterday|today|tomorrow|tonight|ago
    |january|february|march|april|june|july|august|september|october|november|december
    |(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?\b
    | (?<!\w)[ובהלמכש]{0,2}(?:אחת|שני|שתי|שניים|שתיים|שלוש|שלושה|ארבע|ארבעה|חמש|חמישה|שישה|שבעה
    |שמונה|תשע|תשעה|עשר|עשרה|עשרים|שלושים|ארבעים|חמישים|מאה|מאות|אלף|אלפי|אלפים|מיליון|מיליארד
    |פעמיים|אתמול|היום|מחר|ינואר|פברואר|מרץ|אפריל|מאי|יוני|יולי|אוגוסט|ספטמבר|אוקטובר|נובמבר
    |דצמבר|יום\ (?:ראשון|שני|שלישי|רביעי|חמישי|שישי))(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Features:
    """What the logistic model weighs.

    Attributes:
        cosine: of question and text, 0..1.
        coverage: share of the question's words that the text holds.
        passage: the same within its best sentence, where another form of a word counts too.
        words: ln(1 + content words of the question): two of two say less than eight of eight.
        number_missing: 1 when a number or a time is asked for, and the best sentence holds none
            that is not in the question.
    """

    cosine: float
    coverage: float
    passage: float = 0.0
    words: float = 0.0
    number_missing: float = 0.0


class ContentWord(NamedTuple):
    text: str
    readings: frozenset[int]
    grams: frozenset[int]

    def stands_in(self, readings: Set[int], grams: Set[int]) -> bool:
        """Whether a text with these holds the word, or another form of it."""
        if not self.readings.isdisjoint(readings):
            return True
        return bool(self.grams) and len(self.grams & grams) >= SAME_WORD * len(self.grams)


def features_of(question: str, text: str, cosine: float | None) -> Features:
    """`cosine` None = the question has no vector."""
    question = beginning(question, QUESTION_CHARS)
    asked = _asked(question)
    sentences = _sentences(text[:TEXT_CHARS])
    words = [content_words(sentence) for sentence in sentences]
    there = frozenset[int]().union(*(word.readings for some in words for word in some))
    shares = [_covered(asked, some) for some in words]
    best = shares.index(max(shares))
    wants = bool(_ASKS_NUMBER.search(normalize(question)))
    has = wants and _has_number(asked, sentences[best])
    held = sum(not word.readings.isdisjoint(there) for word in asked)
    return Features(
        cosine=cosine or 0.0,
        coverage=held / len(asked) if asked else 0.0,
        passage=shares[best],
        words=math.log1p(len(asked)),
        number_missing=float(wants and not has),
    )


@reading
def _asked(question: str) -> tuple[ContentWord, ...]:
    return tuple(dict.fromkeys(content_words(question)))[:QUESTION_WORDS]


def content_words(text: str) -> list[ContentWord]:
    """Content words; stop words say nothing about whether a text answers."""
    words = (_word(*token) for token in tokens(normalize(text)))
    return [word for word in words if word is not None]


@word_reading
def _word(text: str, kind: TokenKind, parts: tuple[str, ...]) -> ContentWord | None:
    """None: a stop word."""
    terms = token_terms(Token(text, kind, parts))
    if terms[0].stop:
        return None
    readings = frozenset(term.slot for term in terms if term.kind != "c4")
    grams = frozenset(term.slot for term in terms if term.kind == "c4")
    return ContentWord(text, readings, grams)


def _sentences(text: str) -> list[str]:
    return [one for one in _SENTENCES.split(text) if len(one) > SENTENCE_CHARS] or [text]


def _covered(asked: Sequence[ContentWord], words: Iterable[ContentWord]) -> float:
    return sum(held_words(asked, words)) / len(asked) if asked else 0.0


def held_words(asked: Sequence[ContentWord], words: Iterable[ContentWord]) -> list[bool]:
    """Of each word that is asked for, whether a text of these words holds it."""
    readings: set[int] = set()
    grams: set[int] = set()
    for word in words:
        readings |= word.readings
        grams |= word.grams
    return [word.stands_in(readings, grams) for word in asked]


def _has_number(asked: Sequence[ContentWord], sentence: str) -> bool:
    """A number of the question itself is no answer to it."""
    said = {word.text for word in asked}
    kept = (token.text for token in tokens(normalize(sentence)) if token.text not in said)
    return bool(_NUMBER.search(" ".join(kept)))


LEVELS: tuple[ConfidenceLabel, ...] = ("low", "medium", "high")


def relevance(features: Features, model: ConfidenceModel) -> float:
    """Probability that the hit answers the question, 0..1."""
    z = (
        model.bias
        + model.cosine * features.cosine
        + model.coverage * features.coverage
        + model.passage * features.passage
        + model.words * features.words
        + model.number_missing * features.number_missing
    )
    return 1.0 / (1.0 + math.exp(-z))


def label(value: float, model: ConfidenceModel) -> ConfidenceLabel:
    if value >= model.high:
        return "high"
    return "medium" if value >= model.medium else "low"


def reaches(value: ConfidenceLabel, least: ConfidenceLabel) -> bool:
    return LEVELS.index(value) >= LEVELS.index(least)


# Leaves out what does not answer: by calibrated relevance, or by the names that a question says.
#
# Both are asked for. Without them a search returns its best hits, however weak.

# Items that are read for their relevance, the best by score: reading one costs 0.1 to 0.8 ms. The
# same for every page of a list, so that pages agree on what reaches it.
READ_MOST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What a hit must be."""

    question: str
    relevance: float | None
    named_only: bool

    @property
    def asks(self) -> bool:
        return self.named_only or self.relevance is not None


def judged(question: str, one: Ranked, model: ConfidenceModel) -> float:
    """Probability that `one` answers `question`, 0..1."""
    features = features_of(question, one.passage_text, one.dense_similarity)
    return relevance(features, model)


def precise(ranked: Sequence[Ranked], least: Thresholds, model: ConfidenceModel) -> list[Ranked]:
    """Those of `ranked` that reach `least`, in order, with what was found out in their summary.

    Whatever the order of the list, its best items by score are read; what is not read does not
    reach a relevance above 0.
    """
    kept = list(ranked)
    if least.named_only:
        kept = [one for one in with_names(kept, least.question) if one.named]
    if least.relevance is None:
        return kept
    kept = _relevant(kept, least.question, least.relevance, model)
    return kept if least.named_only else with_names(kept, least.question)


def _relevant(
    ranked: Sequence[Ranked], question: str, least: float, model: ConfidenceModel
) -> list[Ranked]:
    best = sorted(range(len(ranked)), key=lambda at: -ranked[at].final_score)[:READ_MOST]
    values = {at: judged(question, ranked[at], model) for at in best}
    return [
        replace(one, relevance=values.get(at))
        for at, one in enumerate(ranked)
        if values.get(at, 0.0) >= least
    ]


def with_names(ranked: Sequence[Ranked], question: str) -> list[Ranked]:
    """`ranked`, each with those of its entities that the question names."""
    names = dict.fromkeys(name for one in ranked for name in one.item.entities)
    said = frozenset(names_in(question, names))
    found = []
    for one in ranked:
        named = tuple(name for name in one.item.entities if name in said)
        found.append(replace(one, named=named) if named else one)
    return found
