"""The lexical score of items that the index does not hold yet, on the index's own scale.

The same analyser, the same BM25 and the engine's IDF as far as its answer shows it: the score of a
hit is the sum of query weight x document value x IDF over the words that it shares with the
question, and all but the IDF is known. A word that no hit holds is rare: its IDF is counted over
the pending items, as if they were in the collection.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rayapp.core.vectors import SparseVector
from rayapp.text.analyser import score

# Indexed hits that are read for their IDF, the best ones: about 2 ms of analysis.
HITS_READ = 32
# Below this share of the largest, a combination of words is not told apart by the hits: the engine
# computes with 7 digits.
RANK_SHARE = 1e-3


@dataclass(frozen=True, slots=True)
class IndexedHit:
    """A hit of the index: its document side, made again from its text, and the engine's score."""

    document: SparseVector
    score: float


def pending_scores(
    query: SparseVector,
    pending: Mapping[str, SparseVector],
    hits: Sequence[IndexedHit],
    indexed: int,
) -> dict[str, float]:
    """BM25 by point id of `pending`, those above 0.

    Args:
        pending: document sides by point id.
        indexed: points of the whole collection, 0 when not known.
    """
    known = engine_idf(query, hits)
    # Of a word as rare as the rarest of the hits there is one in so many texts at least.
    least = math.ceil(math.exp(max(known.values(), default=0.0)))
    idf = rarity(query, tuple(pending.values()), max(indexed, least) + len(pending)) | known
    found = {point: score(query, document, idf) for point, document in pending.items()}
    return {point: value for point, value in found.items() if value > 0.0}


def rarity(query: SparseVector, documents: Sequence[SparseVector], total: int) -> dict[int, float]:
    """IDF of the question's words, counted in `documents` out of `total`."""
    asked = frozenset(query.indices)
    counts = Counter(slot for one in documents for slot in asked.intersection(one.indices))
    return {slot: math.log1p((total - counts[slot] + 0.5) / (counts[slot] + 0.5)) for slot in asked}


def engine_idf(query: SparseVector, hits: Sequence[IndexedHit]) -> dict[int, float]:
    """The IDF that the engine multiplied by, of the question's words that its hits hold.

    Least squares of the least length: words that always come together share what is known of them
    together, so that a text with the same words gets the same score.
    """
    weights = dict(zip(query.indices, query.values, strict=True))
    rows = [
        {slot: value * weights[slot] for slot, value in _pairs(hit.document) if slot in weights}
        for hit in hits
    ]
    slots = sorted({slot for row in rows for slot in row})
    if not slots:
        return {}
    table = np.array([[row.get(slot, 0.0) for slot in slots] for row in rows])
    scores = np.array([hit.score for hit in hits])
    solved = np.linalg.lstsq(table, scores, rcond=RANK_SHARE)[0]
    return {slot: max(0.0, float(idf)) for slot, idf in zip(slots, solved, strict=True)}


def _pairs(document: SparseVector) -> zip[tuple[int, float]]:
    return zip(document.indices, document.values, strict=True)
