"""A question read once: its concepts, its problem, and what to ask the truth about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rayapp.graphs.records import ContentNode, GraphPriors, KnownSolution, RoutingRow
from rayapp.graphs.requests import InsightsRequest
from rayapp.graphs.rules.context_type import context_type_of
from rayapp.graphs.rules.directives import MAX_NAME, Side, side_of
from rayapp.graphs.rules.problem import problem_hash
from rayapp.memory.item import point_id_of
from rayapp.text.concepts import MAX_READ_CHARS, Concept, extract_concepts
from rayapp.text.expansions import Expansions
from rayapp.text.language import detect_language
from rayapp.text.lemmas import lemma
from rayapp.text.normalize import normalize
from rayapp.text.stopwords import STOP_WORDS
from rayapp.text.tokens import tokens

# A message of the past only adds to the question: its beginning is enough (characters).
RECENT_CHARS = 400
# Questions whose fingerprint is kept: every turn meets those of the turns before it again. At
# most 4,000 characters each are read.
CACHE_QUESTIONS = 2_048
# Newest messages looked at, and concepts taken from them.
RECENT_MESSAGES = 6
RECENT_CONCEPTS = 6
# Memories read for one answer, and how many of one node: the newest ones
# stand first and say the most.
MAX_POINTS = 40
NODE_MEMORIES = 5


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What two questions that ask the same share: the problem, or all their content words.

    A question with one content word has no problem; one without any is never the same.
    """

    problem: str | None
    words: frozenset[str]

    def same(self, other: Fingerprint) -> bool:
        if self.problem is not None and self.problem == other.problem:
            return True
        return bool(self.words) and self.words == other.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request, read once. `concepts` are its own, `recent` those of the last messages."""

    text: str
    language: str
    context_type: str
    fingerprint: Fingerprint
    concepts: tuple[Concept, ...] = ()
    recent: tuple[Concept, ...] = ()

    @property
    def problem(self) -> str | None:
        return self.fingerprint.problem

    @property
    def focus(self) -> tuple[Concept, ...]:
        """A question without concepts ("and now?") is about what was said before.

        One with concepts that no graph knows is not: advice about another topic misleads.
        """
        return self.concepts or self.recent

    @property
    def keys(self) -> tuple[str, ...]:
        """What the graphs are asked for."""
        return tuple(concept.key for concept in self.focus)

    @property
    def labels(self) -> dict[str, str]:
        return {concept.key: concept.label for concept in self.focus}

    @property
    def topic(self) -> str:
        """A short name of what it is about."""
        return self.focus[0].label if self.focus else self.text[:MAX_NAME]

    @property
    def side(self) -> Side:
        return side_of(self.language)


def read_question(request: InsightsRequest, expansions: Expansions | None = None) -> Question:
    text = request.query[:MAX_READ_CHARS]
    return Question(
        text=request.query,
        language=detect_language(text),
        context_type=context_type_of(text),
        fingerprint=fingerprint(text, expansions),
        concepts=extract_concepts(text, expansions=expansions),
        recent=_recent_concepts(request.recent, expansions),
    )


def fingerprint(text: str, expansions: Expansions | None = None) -> Fingerprint:
    """Of the beginning of a text; cheap for one that was read before."""
    return _fingerprint(text[:MAX_READ_CHARS], expansions)


@lru_cache(maxsize=CACHE_QUESTIONS)
def _fingerprint(text: str, expansions: Expansions | None) -> Fingerprint:
    found = tokens(normalize(text))
    words = frozenset(lemma(token.text) for token in found if token.text not in STOP_WORDS)
    return Fingerprint(problem_hash(text, expansions), words)


def wanted_points(question: Question, priors: GraphPriors, user_id: str) -> tuple[str, ...]:
    """The items that an answer may show, the most telling ones first."""
    points = [one.point_id for one in by_success(priors.solutions)]
    points += [e.point_id for row in rows_of(question, priors) for e in row.examples]
    for node in nodes_of(question, priors):
        points += [point_id_of(user_id, one) for one in node.memory_ids[:NODE_MEMORIES]]
    return tuple(dict.fromkeys(points))[:MAX_POINTS]


def _recent_concepts(messages: Sequence[str], expansions: Expansions | None) -> tuple[Concept, ...]:
    found: dict[str, Concept] = {}
    for message in reversed(messages[-RECENT_MESSAGES:]):
        if len(found) >= RECENT_CONCEPTS:
            break
        for concept in extract_concepts(message[:RECENT_CHARS], expansions=expansions):
            found.setdefault(concept.key, concept)
    return tuple(found.values())[:RECENT_CONCEPTS]


def rows_of(question: Question, priors: GraphPriors) -> list[RoutingRow]:
    """Routing rows of the question's concepts, in their order."""
    by_concept = {row.concept: row for row in priors.routing}
    return [by_concept[c.key] for c in question.focus if c.key in by_concept]


def nodes_of(question: Question, priors: GraphPriors) -> list[ContentNode]:
    by_id = {node.node_id: node for node in priors.nodes}
    return [by_id[c.key] for c in question.focus if c.key in by_id]


def by_success(solutions: Iterable[KnownSolution]) -> list[KnownSolution]:
    return sorted(
        solutions, key=lambda s: (s.success_count, s.last_used_at, s.memory_id), reverse=True
    )
