"""Which of what is known helps with a question. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rayapp.text.concepts import extract_concepts
from rayapp.text.hebrew import is_hebrew, without_prefixes
from rayapp.text.normalize import normalize
from rayapp.text.tokens import tokens
from rayapp.understanding.derived.records import Derived, DerivedKind, SubjectType
from rayapp.understanding.derived.requests import HintKind, HintsRequest
from rayapp.understanding.derived.rules.support import confidence_of
from rayapp.understanding.statements.rules.tables import Tables

HIGH, MEDIUM, LOW = 1.0, 0.6, 0.3
# What counts for each kind: how recent it is, how sure, how near to the question's feeling.
WEIGHTS: Mapping[HintKind, tuple[float, float, float]] = {
    HintKind.GOALS: (HIGH, MEDIUM, HIGH),
    HintKind.EPISODES: (MEDIUM, HIGH, HIGH),
    HintKind.TRAITS: (LOW, HIGH, MEDIUM),
    HintKind.PATTERNS: (MEDIUM, MEDIUM, HIGH),
    HintKind.TOPICS: (MEDIUM, MEDIUM, LOW),
}
# The most of each kind.
CAPS: Mapping[HintKind, int] = {
    HintKind.TRAITS: 3,
    HintKind.GOALS: 3,
    HintKind.TOPICS: 5,
    HintKind.PATTERNS: 3,
    HintKind.EPISODES: 3,
}
KINDS: Mapping[SubjectType, HintKind] = {
    SubjectType.TRAIT: HintKind.TRAITS,
    SubjectType.VALUE: HintKind.TRAITS,
    SubjectType.GOAL: HintKind.GOALS,
    SubjectType.INTEREST: HintKind.TOPICS,
    SubjectType.EMOTION: HintKind.PATTERNS,
    SubjectType.RELATIONSHIP: HintKind.PATTERNS,
}
# After so long a time something counts for a third.
FADES = timedelta(days=30)
# Letters of a word that is looked for behind Hebrew prefixes.
LETTERS = 2


@dataclass(frozen=True, slots=True)
class Question:
    """What a question is about; nothing where there is none."""

    emotions: frozenset[str] = frozenset()
    concepts: frozenset[str] = frozenset()
    asked: bool = False


class QuestionReader:
    """Reads questions by the tables; built once."""

    def __init__(self, tables: Tables) -> None:
        self._emotions = tables.every_emotion

    def read(self, query: str) -> Question:
        if not query.strip():
            return Question()
        words = [token.text for token in tokens(normalize(query).casefold())]
        found = set()
        for at, word in enumerate(words):
            rest = tuple(words[at + 1 :])
            bare = without_prefixes(word, LETTERS) if is_hebrew(word) else ()
            for form in (word, *bare):
                known = self._emotions.at((form, *rest))
                if known is not None:
                    found.add(known[1])
        return Question(frozenset(found), _concepts(query), asked=True)


def hint_kind(row: Derived) -> HintKind | None:
    if row.kind is DerivedKind.EPISODE:
        return HintKind.EPISODES
    return None if row.pattern is None else KINDS.get(row.pattern.type)


def chosen(
    rows: Sequence[Derived], question: Question, asked: HintsRequest, now: datetime
) -> dict[HintKind, list[Derived]]:
    """The rows of each kind that is asked for, the most helpful first, twice as many as may be
    shown: some may have fallen."""
    found: dict[HintKind, list[tuple[float, Derived]]] = {kind: [] for kind in asked.kinds}
    for row in rows:
        kind = hint_kind(row)
        if kind is None or kind not in found or row.ended:
            continue
        near = _nearness(row, question)
        about_other = row.pattern is not None and bool(row.pattern.name)
        if about_other and asked.subject_id is None and not near:
            continue
        if kind is HintKind.EPISODES and question.asked and not near:
            continue
        found[kind].append((_score(row, kind, near, now), row))
    return {
        kind: [row for _, row in sorted(scored, key=_best_first)[: 2 * CAPS[kind]]]
        for kind, scored in found.items()
    }


def _best_first(scored: tuple[float, Derived]) -> tuple[float, str]:
    return -scored[0], scored[1].derived_id


def _score(row: Derived, kind: HintKind, near: float, now: datetime) -> float:
    recency, confidence, feeling = WEIGHTS[kind]
    age = max(timedelta(0), now - row.last_at)
    fresh = math.exp(-(age / FADES))
    return recency * fresh + confidence * confidence_of(row) + feeling * near


def _nearness(row: Derived, question: Question) -> float:
    """1 where the question feels the same or names the same."""
    if not question.asked:
        return 0.0
    felt = {*row.emotions, *((row.pattern.what,) if row.pattern else ())}
    if not question.emotions.isdisjoint(felt):
        return 1.0
    named = (row.pattern.what, row.pattern.name, row.pattern.theme) if row.pattern else ()
    words = " ".join((row.title, *named, *row.people, *row.topics))
    return float(not question.concepts.isdisjoint(_concepts(words)))


def _concepts(text: str) -> frozenset[str]:
    return frozenset(one.key for one in extract_concepts(text))
