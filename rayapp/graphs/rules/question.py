"""A question read once: its concepts, kind of work, problem, and what to ask of it. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Self

from rayapp.graphs import records
from rayapp.graphs.rules.directives import MAX_NAME, Side, side_of
from rayapp.graphs.rules.problem import problem_hash
from rayapp.graphs.rules.views import ACTION_PREFIX, CONTENT_PREFIX, ROUTING_PREFIX
from rayapp.memory.item import point_id_of
from rayapp.text.concept import Concept
from rayapp.text.concepts import MAX_READ_CHARS, extract_concepts
from rayapp.text.expansions import Expansions
from rayapp.text.hebrew import STOP_WORDS
from rayapp.text.language import detect_language
from rayapp.text.lemmas import lemma
from rayapp.text.normalize import normalize
from rayapp.text.phrases import phrases_in
from rayapp.text.signature import turns_of
from rayapp.text.tokens import tokens
from rayapp.text.utterance import beginning, reading

# What no rule claims.
GENERAL = "general"
# Row keys of the action graph (learning design, "Graphs"), the most specific first: a named tool
# before an activity, an activity before a field. Their phrases are in `configs/language/work.yaml`.
CONTEXT_TYPES: tuple[str, ...] = (
    "datagov_query",
    "docker",
    "memory_management",
    "debugging",
    "doc_rag",
    "web_search",
    "coding_help",
    GENERAL,
)
# The kind of a text shows in its beginning; a search must not pay for the rest. Measured: under
# a millisecond for this many.
MAX_CONTEXT_CHARS = 1_000


def context_type_of(text: str) -> str:
    """The first kind of which the text says a phrase; `general` when there is none."""
    said = phrases_in(normalize(beginning(text, MAX_CONTEXT_CHARS)))
    return next((kind for kind in CONTEXT_TYPES if f"work.{kind}" in said), GENERAL)


# A message of the past only adds to the question: its beginning is enough (characters).
RECENT_CHARS = 400
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

    def same(self, other: Self) -> bool:
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
    def of_graphs(self) -> records.GraphQuestion:
        """What the graphs are asked for."""
        keys = tuple(concept.key for concept in self.focus)
        return records.GraphQuestion(
            concepts=keys, context_type=self.context_type, problem=self.problem
        )

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


def read_question(
    request: records.InsightsRequest, expansions: Expansions | None = None
) -> Question:
    text = beginning(request.query, MAX_READ_CHARS)
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
    return _fingerprint(beginning(text, MAX_READ_CHARS), expansions)


@reading
def _fingerprint(text: str, expansions: Expansions | None) -> Fingerprint:
    found = tokens(normalize(text))
    words = frozenset(lemma(token.text) for token in found if token.text not in STOP_WORDS)
    return Fingerprint(problem_hash(text, expansions), words | turns_of(text) if words else words)


def wanted_points(question: Question, priors: records.GraphPriors, user_id: str) -> tuple[str, ...]:
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
        for concept in extract_concepts(beginning(message, RECENT_CHARS), expansions=expansions):
            found.setdefault(concept.key, concept)
    return tuple(found.values())[:RECENT_CONCEPTS]


def rows_of(question: Question, priors: records.GraphPriors) -> list[records.RoutingRow]:
    """Routing rows of the question's concepts, in their order."""
    by_concept = {row.concept: row for row in priors.routing}
    return [by_concept[c.key] for c in question.focus if c.key in by_concept]


def nodes_of(question: Question, priors: records.GraphPriors) -> list[records.ContentNode]:
    by_id = {node.node_id: node for node in priors.nodes}
    return [by_id[c.key] for c in question.focus if c.key in by_id]


def by_success(solutions: Iterable[records.KnownSolution]) -> list[records.KnownSolution]:
    return sorted(
        solutions, key=lambda s: (s.success_count, s.last_used_at, s.memory_id), reverse=True
    )


# Spellings tried for one name; the first ones are the likeliest.
MAX_KEYS = 8
# A longer name is no concept; the text is cut before it is analysed (characters).
MAX_NAMED = 300


@dataclass(frozen=True, slots=True)
class NamedConcept:
    """What an id of a picture, or a name, may stand for: an action, else one of the keys."""

    action: tuple[str, str] | None
    keys: tuple[str, ...]


def named_concept(name: str, expansions: Expansions | None = None) -> NamedConcept:
    """What an id with its prefix, a key without one, or a label as a person writes it means.

    The keys are ordered: the id without its prefix, the name as it is, then its lemma form.
    """
    name = name.strip()[:MAX_NAMED]
    bare = next(
        (name.removeprefix(p) for p in (ROUTING_PREFIX, CONTENT_PREFIX) if name.startswith(p)), name
    )
    # A tag is one concept as a whole: a phrase gets the key of a phrase, not of its words.
    concepts = extract_concepts(bare, tags=(bare,), expansions=expansions, limit=MAX_KEYS)
    keys = dict.fromkeys([bare, name, *(concept.key for concept in concepts)])
    return NamedConcept(_action_of(name), tuple(key for key in keys if key)[:MAX_KEYS])


def _action_of(name: str) -> tuple[str, str] | None:
    """Context types hold underscores themselves, so they are matched as a whole."""
    if not name.startswith(ACTION_PREFIX):
        return None
    rest = name.removeprefix(ACTION_PREFIX)
    for context_type in sorted(CONTEXT_TYPES, key=len, reverse=True):
        action = rest.removeprefix(context_type + "_")
        if action and action != rest:
            return context_type, action
    return None


# What may have been meant, where a question found nothing: names the user's memories know.

# Letters of a word that is compared, and how alike the two must be (0..1, `difflib`): one letter of
# four may differ. Suggestions of one question.
LEAST_LETTERS, ALIKE, MOST_SUGGESTIONS = 4, 0.7, 3
# Longer words are no names, and of more unknown ones the question is not in what is known: a word
# is compared with 500 labels, 6 ms of the caller's turn.
MOST_LETTERS, MOST_UNKNOWN = 30, 12
_PREFIXES = "בהולמשכ"


def suggestions_of(query: str, labels: Iterable[str]) -> tuple[str, ...]:
    """The question with a word in the spelling that is known, most alike first; empty: all of its
    words are known, or none is like one. `labels`: of the user's concepts, the best known first."""
    known = list(
        dict.fromkeys(
            word
            for label in labels
            for word in _NAME.findall(label.casefold())
            if LEAST_LETTERS <= len(word) <= MOST_LETTERS
        )
    )
    seen = {*known, *STOP_WORDS}
    found: dict[str, None] = {}
    looked = 0
    for match in _NAME.finditer(query[:MAX_CONTEXT_CHARS]):
        word = match[0].casefold()
        if not LEAST_LETTERS <= len(word) <= MOST_LETTERS or word in seen:
            continue
        if looked == MOST_UNKNOWN or len(found) >= MOST_SUGGESTIONS:
            break
        looked += 1
        seen.add(word)
        for meant in _meant(word, known):
            found[f"{query[: match.start()]}{meant}{query[match.end() :]}"] = None
    return tuple(found)[:MOST_SUGGESTIONS]


def _meant(word: str, known: list[str]) -> list[str]:
    """Known words like this one; a Hebrew particle stays before them."""
    rest = word[1:]
    if word[0] in _PREFIXES and len(rest) >= LEAST_LETTERS:
        if rest in known:
            return []
        if near := get_close_matches(rest, known, n=1, cutoff=ALIKE):
            return [f"{word[0]}{one}" for one in near]
    return get_close_matches(word, known, n=2, cutoff=ALIKE)


_NAME = re.compile(r"[^\W\d_]+(?:['\"][^\W\d_]+)*")
