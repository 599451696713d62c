"""Candidates, the lexical score of those not indexed yet, and the fusion of all (decision 0003)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rayapp.core.vectors import SparseVector
from rayapp.index.records import ScoredPoint
from rayapp.memory.item import IndexOp, MemoryItem, SyncState
from rayapp.search.rules.recipes import DenseWeights, Recipe
from rayapp.text.analyser import score
from rayapp.text.identifiers import identifiers_in
from rayapp.text.language import crosses
from rayapp.text.normalize import normalize
from rayapp.text.passages import LONGEST, is_whole
from rayapp.text.tokens import Token, tokens

# A candidate: an item with what each retriever said about it, before scoring.


@dataclass(slots=True)
class Evidence:
    """Scores and ranks (from 1) of one item; None = the retriever did not return it.
    `…_passage`: which passage of its text scored."""

    dense: float | None = None
    dense_rank: int | None = None
    dense_passage: int = 0
    sparse: float | None = None
    sparse_rank: int | None = None
    sparse_passage: int = 0


class Worded(NamedTuple):
    """The lexical score of a text that is not indexed yet, by its best passage."""

    score: float
    passage: int = 0


@dataclass(slots=True, kw_only=True)
class Candidate:
    """`pending` is the score of `sparse`, on its scale, of an item that the index does not hold in
    its current state: see `pending_scores`. `near_passage` is the one that is nearest in meaning,
    `word_passage` the one whose words agree best."""

    item: MemoryItem
    dense: float | None = None
    dense_rank: int | None = None
    sparse: float | None = None
    sparse_rank: int | None = None
    pending: float | None = None
    pending_rank: int | None = None
    near_passage: int = 0
    word_passage: int = 0


def gather_evidence(
    dense: Iterable[Sequence[ScoredPoint]], sparse: Iterable[Sequence[ScoredPoint]]
) -> dict[str, Evidence]:
    """Merge the per-tier lists of both retrievers by point id; ranks are over all tiers."""
    found: dict[str, Evidence] = {}
    for rank, point in enumerate(_merged(dense), start=1):
        found[point.point_id] = Evidence(
            dense=max(0.0, point.score), dense_rank=rank, dense_passage=point.passage
        )
    for rank, point in enumerate(_merged(sparse), start=1):
        evidence = found.setdefault(point.point_id, Evidence())
        evidence.sparse, evidence.sparse_rank = point.score, rank
        evidence.sparse_passage = point.passage
    return found


def _merged(lists: Iterable[Sequence[ScoredPoint]]) -> list[ScoredPoint]:
    points = [point for one in lists for point in one]
    # The id breaks ties, so that equal scores rank the same in every run and on every engine.
    points.sort(key=lambda point: (-point.score, point.point_id))
    return points


def to_candidates(
    items: Iterable[MemoryItem],
    evidence: Mapping[str, Evidence],
    pending: Mapping[str, Worded],
    vector_hashes: Mapping[str, str],
    wanted: Collection[str] = (),
) -> list[Candidate]:
    """Join hydrated items with their evidence.

    An item whose text changed since it was indexed is judged by its pending score alone: what the
    index says of it is about words that are gone. `vector_hashes` maps point_id to the hash that
    the current text would have.
    `wanted` names points that are candidates even if no retriever returned them.
    """
    ranked = sorted(pending, key=lambda point_id: (-pending[point_id].score, point_id))
    pending_rank = {point_id: rank for rank, point_id in enumerate(ranked, start=1)}
    candidates = []
    for item in items:
        worded = pending.get(item.point_id)
        said = evidence.get(item.point_id)
        if said is None or is_stale(item, vector_hashes):
            said = Evidence()
            if worded is None and item.point_id not in wanted:
                continue
        fresh = worded is not None and said.sparse is None
        candidates.append(
            Candidate(
                item=item,
                dense=said.dense,
                dense_rank=said.dense_rank,
                sparse=said.sparse,
                sparse_rank=said.sparse_rank,
                pending=worded.score if worded is not None and fresh else None,
                pending_rank=pending_rank.get(item.point_id),
                near_passage=said.dense_passage,
                word_passage=worded.passage if worded and fresh else said.sparse_passage,
            )
        )
    return candidates


def is_stale(item: MemoryItem, vector_hashes: Mapping[str, str]) -> bool:
    """Whether the index speaks of other words than `item` holds now."""
    state = item.index
    if state.sync_state is SyncState.SYNCED or state.op is not IndexOp.VECTOR:
        return False
    indexed = state.vector_hash
    return indexed is not None and indexed != vector_hashes.get(item.point_id)


# The lexical score of items that the index does not hold yet, on the index's own scale.
#
# The same analyser, the same BM25 and the engine's IDF as far as its answer shows it: the score of
# a hit is the sum of query weight x document value x IDF over the words that it shares with the
# question, and all but the IDF is known. A word that no hit holds is rare: its IDF is counted over
# the pending items, as if they were in the collection.

# What the longest texts keep of their relevance, our choice.
LEAST_FACTOR = 0.2
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
    pending: Mapping[str, Sequence[SparseVector]],
    hits: Sequence[IndexedHit],
    indexed: int,
) -> dict[str, Worded]:
    """BM25 by point id of `pending`, those above 0.

    Args:
        pending: document sides of the passages of each item, by point id.
        indexed: points of the whole collection, 0 when not known.
    """
    known = engine_idf(query, hits)
    # Of a word as rare as the rarest of the hits there is one in so many texts at least.
    least = math.ceil(math.exp(max(known.values(), default=0.0)))
    documents = [one for passages in pending.values() for one in passages]
    idf = rarity(query, documents, max(indexed, least) + len(documents)) | known
    found = {
        point_id: max(
            (Worded(score(query, one, idf), number) for number, one in enumerate(passages)),
            # The first of equals, as the engine has it.
            key=lambda worded: (worded.score, -worded.passage),
        )
        for point_id, passages in pending.items()
    }
    return {point_id: worded for point_id, worded in found.items() if worded.score > 0.0}


def rarity(query: SparseVector, documents: Sequence[SparseVector], total: int) -> dict[int, float]:
    """IDF of the question's words, counted in `documents` out of `total`."""
    asked = frozenset(query.indices)
    counts = Counter(slot for one in documents for slot in asked.intersection(one.indices))
    return {slot: math.log1p((total - counts[slot] + 0.5) / (counts[slot] + 0.5)) for slot in asked}


def engine_idf(query: SparseVector, hits: Sequence[IndexedHit]) -> dict[int, float]:
    """The IDF that the engine multiplied by, of the question's words that its hits hold.

    Least squares of the least length: words that always come together share what is known of them
    together, so that a text with the same words gets the same score. A word that would take away
    is left out, and the others are asked again.
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
    known = dict.fromkeys(slots, 0.0)
    left = np.arange(len(slots))
    while len(left):
        solved = np.linalg.lstsq(table[:, left], scores, rcond=RANK_SHARE)[0]
        if (solved >= 0.0).all():
            return known | {slots[at]: float(idf) for at, idf in zip(left, solved, strict=True)}
        left = left[solved > 0.0]
    return known


def _pairs(document: SparseVector) -> zip[tuple[int, float]]:
    return zip(document.indices, document.values, strict=True)


class Fused(NamedTuple):
    """0..1. `text`, `dense` and `held` are the scaled parts, the weights the shares used.

    `held`: of the identifiers that the question names, see `held_shares`. `length`: what the score
    was multiplied by for the length of the text. `passage`: the one that speaks for the item.
    """

    score: float
    text: float
    dense: float
    dense_weight: float
    rrf: float
    held: float = 0.0
    identifier_weight: float = 0.0
    length: float = 1.0
    passage: int = 0

    @property
    def text_weight(self) -> float:
        return 1.0 - self.dense_weight - self.identifier_weight


@dataclass(frozen=True, slots=True)
class Scale:
    """One retriever's raw scores to 0..1: the share of the query's best.

    `missing` is what an item gets that the retriever left out. A dense list is cut at its depth, so
    such an item is at best as near as the last one listed; a BM25 list leaves out what shares no
    term. Measured against min-max scaling on the open sets: no loss for Hebrew at any dense weight,
    and two candidates that are equally near stay equally near.
    """

    high: float
    missing: float

    def of(self, scores: Sequence[float | None]) -> list[float]:
        if self.high <= 0.0:
            return [0.0] * len(scores)
        raw = np.array([self.missing if score is None else score for score in scores])
        shares: list[float] = (raw / self.high).clip(0.0, 1.0).tolist()
        return shares


@dataclass(frozen=True, slots=True)
class DenseRetriever:
    """What is known of the dense retriever of one search.

    `used` False: it was skipped, weight 0. `langs`: what the model was made for; empty = anything.
    """

    used: bool = True
    langs: frozenset[str] = frozenset()


def speaks(question: str, candidates: Sequence[Candidate]) -> bool:
    """Whether nearness says anything: it knows no identifier, so one that is asked for alone goes
    by words, as soon as any candidate shares some."""
    asked = list(tokens(normalize(question)))
    if not asked or not all(map(_is_identifier, asked)):
        return True
    return all(_words(candidate) is None for candidate in candidates)


def _is_identifier(token: Token) -> bool:
    """`ERR_4711`, `build-12.3`, a UUID, an address; not `well-known` or `getUserName`."""
    marked = any(letter.isdigit() or letter in "_@" for letter in token.text)
    return token.kind == "number" or (token.kind == "code" and marked)


def dense_weight(
    weights: DenseWeights, query_lang: str, item_lang: str, retriever: DenseRetriever
) -> float:
    """The dense share for one pair of scripts; `other` (digits, symbols) agrees with anything."""
    if not retriever.used:
        return 0.0
    langs = {query_lang, item_lang} - {"other"}
    if "mixed" in langs:
        return weights.mixed
    if retriever.langs and not langs <= retriever.langs:
        return weights.unknown
    if crosses(query_lang, item_lang):
        return weights.cross
    return weights.hebrew if "he" in langs else weights.english


def held_shares(question: str, candidates: Sequence[Candidate]) -> list[float] | None:
    """How many of the identifiers of `question` each candidate holds exactly, as a share of the
    best; None when none of them tells the candidates apart.

    An identifier is its own rare word: one that most candidates hold, or none, says nothing.
    """
    counts = [0] * len(candidates)
    identifiers = identifiers_in(question)
    held = [[identifier.is_in(one.item.text) for identifier in identifiers] for one in candidates]
    for holding in zip(*held, strict=True):
        if 2 * sum(holding) <= len(candidates):
            counts = [count + held for count, held in zip(counts, holding, strict=True)]
    most = max(counts, default=0)
    return [count / most for count in counts] if most else None


def fuse(
    candidates: Sequence[Candidate],
    query_lang: str,
    recipe: Recipe,
    retriever: DenseRetriever,
    question: str = "",
) -> list[Fused]:
    """One value per candidate, in order. `question`: its words, for the identifiers in it."""
    near = [candidate.dense for candidate in candidates]
    words = [_words(candidate) for candidate in candidates]
    dense = _scale(near, cut=True) if retriever.used else Scale(0.0, 0.0)
    langs = {candidate.item.lang for candidate in candidates}
    shares = {lang: dense_weight(recipe.dense, query_lang, lang, retriever) for lang in langs}
    parts = zip(candidates, dense.of(near), _scale(words, cut=False).of(words), strict=True)
    fused = [
        _fuse_one(one, recipe, share, said, shares[one.item.lang]) for one, share, said in parts
    ]
    held = held_shares(question, candidates) if recipe.identifier_weight > 0.0 else None
    if held is None:
        return fused
    return [_with_held(one, recipe, share) for one, share in zip(fused, held, strict=True)]


def _with_held(fused: Fused, recipe: Recipe, held: float) -> Fused:
    weight = recipe.identifier_weight
    return fused._replace(
        score=(1.0 - weight) * fused.score + weight * held,
        dense_weight=(1.0 - weight) * fused.dense_weight,
        held=held,
        identifier_weight=weight,
    )


def _fuse_one(
    candidate: Candidate, recipe: Recipe, near: float, said: float, share: float
) -> Fused:
    """`near`, `said`: what the retrievers say of it, scaled. `share`: of the dense one, for the
    scripts of the question and of this item."""
    if candidate.dense is None and candidate.pending is not None:
        share = 0.0  # not embedded yet: its words alone speak for it
    rrf = _rrf(candidate, recipe.rrf_k)
    score = rrf if recipe.fusion == "rrf" else share * near + (1.0 - share) * said
    by_words = candidate.dense is None or (
        _words(candidate) is not None and (1.0 - share) * said >= share * near
    )
    passage = candidate.word_passage if by_words else candidate.near_passage
    length = length_factor(candidate.item.text, recipe.length_share)
    return Fused(score * length, said, near, share, rrf, length=length, passage=passage)


def length_factor(text: str, share: float) -> float:
    """What is left of the relevance of a text of several passages: `share` less for each doubling
    of its length.

    It is judged by the best of them, and the best of many is good by chance more often.
    """
    if is_whole(text):
        return 1.0
    return max(LEAST_FACTOR, 1.0 - share * math.log2(len(text) / LONGEST))


def _words(candidate: Candidate) -> float | None:
    """BM25 of the engine, or of what it does not hold yet; one scale."""
    return candidate.sparse if candidate.sparse is not None else candidate.pending


def _scale(scores: Sequence[float | None], *, cut: bool) -> Scale:
    """`cut`: only the nearest were returned, so what was left out is not known to be zero."""
    known = [score for score in scores if score is not None]
    if not known:
        return Scale(0.0, 0.0)
    return Scale(max(known), min(known) if cut else 0.0)


def _rrf(candidate: Candidate, k: int) -> float:
    words = candidate.pending_rank if candidate.sparse_rank is None else candidate.sparse_rank
    total = 0.0
    if candidate.dense_rank is not None:
        total += 1.0 / (k + candidate.dense_rank)
    if words is not None:
        total += 1.0 / (k + words)
    return total / (2.0 / (k + 1))
