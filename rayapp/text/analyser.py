"""The lexical retriever: texts to BM25 sparse vectors, for the engine and for items not in it yet.

A document value is the saturated term frequency, a query value the weight of the term; the
engine (or a table) multiplies by IDF. Kind weights sit in the query, so tuning them needs no
re-indexing. BM25: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009).
"""

import hashlib
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rayapp.core.vectors import SparseVector
from rayapp.text.expansions import Expansion
from rayapp.text.normalize import normalize
from rayapp.text.tokens import Term, TermKind, token_terms, tokens

# Raised with every change of what a text turns into; part of `Analyser.version`.
SCHEMA = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25:
    """Document side. Source: grid over passages of dialogue turns, paragraphs and long chats, one
    choice for all (decision 0054; the optimum is flat).

    Attributes:
        k1: saturation of the term frequency.
        b: how much length counts, 0..1.
        average_tokens: length of an average text, fixed so that a vector depends on its text only.
    """

    k1: float = 0.9
    b: float = 0.5
    average_tokens: float = 80.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TermWeights:
    """Query side, relative to a raw term. Source: the same grid, `lemma` with the open-data
    questions beside it (decision record 0022).

    Attributes:
        lemma: a lemma.
        c4: a character 4-gram of a Hebrew word (a word has several).
        stop: a stop word, in a query that has other words.
        expansion: times the expansion's own weight.
    """

    raw: float = 1.0
    lemma: float = 1.5
    c4: float = 0.3
    stop: float = 0.3
    expansion: float = 0.4


class Analyser:
    """Turns texts into terms and sparse vectors. Immutable and cheap to build.

    Args:
        vocabulary: Hebrew words and acronyms beyond the dictionary that may follow a prefix;
            part of `version`, because it changes terms.
        bm25: document side; part of `version`.
        weights: query side; not part of `version`.
    """

    def __init__(
        self,
        *,
        vocabulary: Iterable[str] = (),
        bm25: Bm25 | None = None,
        weights: TermWeights | None = None,
    ) -> None:
        self._vocabulary = frozenset(normalize(word) for word in vocabulary)
        self._bm25 = bm25 or Bm25()
        self._weights = weights or TermWeights()

    @property
    def version(self) -> str:
        """Differs whenever `document` gives other vectors: the `analyser` of an IndexSchema."""
        basis = "\n".join([repr(self._bm25), *sorted(self._vocabulary)])
        return f"bm25-{SCHEMA}-{hashlib.sha256(basis.encode('utf-8')).hexdigest()[:8]}"

    def terms(self, text: str) -> dict[str, float]:
        """Term (`word`, `lemma:word`, `c4:gram`) to weighted frequency."""
        frequencies: dict[str, float] = {}
        for term in self._terms(text):
            frequencies[term.text] = frequencies.get(term.text, 0.0) + term.weight
        return frequencies

    def document(self, text: str) -> SparseVector:
        """Saturated term frequencies, 0..k1+1, of a stored text; empty when it has no words."""
        frequencies: dict[int, float] = {}
        length = 0
        for token in tokens(normalize(text)):
            length += 1
            for _, slot, _, weight, _ in token_terms(token, self._vocabulary):
                frequencies[slot] = frequencies.get(slot, 0.0) + weight
        k1, b = self._bm25.k1, self._bm25.b
        norm = k1 * (1.0 - b + b * length / self._bm25.average_tokens)
        indices = sorted(frequencies)
        return SparseVector(
            indices,
            [
                (k1 + 1.0) * frequency / (frequency + norm)
                for frequency in map(frequencies.__getitem__, indices)
            ],
        )

    def query(
        self,
        text: str,
        expansions: Iterable[Expansion] = (),
        *,
        expansion_weight: float | None = None,
    ) -> SparseVector:
        """Term weights of a query. An expansion never adds to a word that the user wrote.

        `expansion_weight` replaces `TermWeights.expansion` for this query (a recipe's value).
        """
        factor = self._weights.expansion if expansion_weight is None else expansion_weight
        own = self._weigh(self._terms(text), 1.0)
        added: dict[int, float] = {}
        for expansion in expansions if factor > 0.0 else ():
            scale = expansion.weight * factor
            for slot, weight in self._weigh(self._terms(expansion.text), scale).items():
                added[slot] = max(added.get(slot, 0.0), weight)
        values = {**added, **own}
        indices = sorted(values)
        return SparseVector(indices, [values[slot] for slot in indices])

    def coverage(self, query_text: str, doc_text: str) -> float:
        """Share of the query's content words found in the document in any reading, 0..1.

        0.0 without content words.
        """
        there = {term.slot for term in self._terms(doc_text) if term.kind != "c4"}
        words: set[tuple[int, ...]] = set()
        for token in tokens(normalize(query_text)):
            kept = [t for t in token_terms(token, self._vocabulary) if t.kind != "c4"]
            if not kept[0].stop:
                words.add(tuple(term.slot for term in kept))
        found = sum(not there.isdisjoint(indices) for indices in words)
        return found / len(words) if words else 0.0

    def _terms(self, text: str) -> Iterable[Term]:
        return itertools.chain.from_iterable(
            token_terms(token, self._vocabulary) for token in tokens(normalize(text))
        )

    def _weigh(self, terms: Iterable[Term], scale: float) -> dict[int, float]:
        found = list(terms)
        kinds: dict[TermKind, float] = {
            "raw": self._weights.raw,
            "lemma": self._weights.lemma,
            "c4": self._weights.c4,
        }
        # A query of stop words only ("who am I") keeps them: nothing else is left to match.
        stop = self._weights.stop if any(not term.stop for term in found) else 1.0
        values: dict[int, float] = {}
        for term in found:
            weight = scale * term.weight * (stop if term.stop else kinds[term.kind])
            values[term.slot] = values.get(term.slot, 0.0) + weight
        return values


def score(
    query: SparseVector, document: SparseVector, idf: Mapping[int, float] | None = None
) -> float:
    """The engine's sparse score of one document: sum of query x document x IDF, at least 0.

    Without `idf` every term counts as 1; a term that it lacks counts nothing.
    """
    values = dict(zip(document.indices, document.values, strict=True))
    return sum(
        weight * values[slot] * (1.0 if idf is None else idf.get(slot, 0.0))
        for slot, weight in zip(query.indices, query.values, strict=True)
        if slot in values
    )
