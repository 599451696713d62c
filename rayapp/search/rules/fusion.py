"""The lexical score of what is not indexed yet, and the fusion of retrievers (decision 0003)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rayapp.core.vectors import SparseVector
from rayapp.search.rules.candidates import Candidates, Floats, Ints, Worded
from rayapp.search.rules.recipes import DenseWeights, EncoderWeights, Recipe
from rayapp.text.analyser import score
from rayapp.text.identifiers import identifiers_in
from rayapp.text.language import crosses
from rayapp.text.normalize import normalize
from rayapp.text.passages import LONGEST, WHOLE_CHARS
from rayapp.text.tokens import Token, tokens

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fused:
    """0..1, a row per candidate. `text`, `dense`, `encoder` and `held` are the scaled parts, the
    weights the shares used.

    `held`: of the identifiers that the question names, see `held_shares`. `length`: what the score
    was multiplied by for the length of the text. `passage`: the one that speaks for the item.
    """

    score: Floats
    text: Floats
    dense: Floats
    dense_weight: Floats
    encoder: Floats
    encoder_weight: Floats
    rrf: Floats
    held: Floats
    identifier_weight: float
    length: Floats
    passage: Ints

    @property
    def text_weight(self) -> Floats:
        return 1.0 - self.dense_weight - self.encoder_weight - self.identifier_weight


@dataclass(frozen=True, slots=True)
class DenseRetriever:
    """What is known of the dense retriever of one search.

    `used` False: it was skipped, weight 0. `langs`: what the model was made for; empty = anything.
    """

    used: bool = True
    langs: frozenset[str] = frozenset()


def speaks(question: str, candidates: Candidates) -> bool:
    """Whether nearness says anything: it knows no identifier, so one that is asked for alone goes
    by words, as soon as any candidate shares some."""
    asked = list(tokens(normalize(question)))
    if not asked or not all(map(_is_identifier, asked)):
        return True
    return bool(np.isnan(candidates.words).all())


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


def held_shares(question: str, candidates: Candidates) -> Floats | None:
    """How many of the identifiers of `question` each candidate holds exactly, as a share of the
    best; None when none of them tells the candidates apart.

    An identifier is its own rare word: one that most candidates hold, or none, says nothing.
    """
    identifiers = identifiers_in(question)
    if not identifiers or not len(candidates):
        return None
    held = np.array([[one.is_in(item.text) for one in identifiers] for item in candidates.items])
    counts: Floats = held[:, 2 * held.sum(axis=0) <= len(candidates)].sum(axis=1, dtype=np.float64)
    most = float(np.max(counts))
    return counts / most if most else None


def fuse(
    candidates: Candidates,
    query_lang: str,
    recipe: Recipe,
    retriever: DenseRetriever,
    question: str = "",
) -> Fused:
    """`question`: its words, for the identifiers in it."""
    words, unembedded = candidates.words, np.isnan(candidates.dense)
    near = _scaled(candidates.dense, cut=True) if retriever.used else np.zeros(len(candidates))
    said = _scaled(words, cut=False)
    share = _dense_weights(candidates, query_lang, recipe.dense, retriever)
    share[unembedded & ~np.isnan(candidates.pending)] = 0.0  # its words alone speak for it
    read = _above(candidates.encoder, recipe.encoder.unrelated)
    third = _encoder_weights(candidates, query_lang, recipe.encoder, retriever)
    share = (1.0 - third) * share
    by_meaning, by_encoder = share * near, third * read
    by_words = (1.0 - share - third) * said
    rrf = _rrf(candidates, recipe)
    nearer = by_encoder > by_meaning
    meant = np.where(nearer, by_encoder, by_meaning)
    unseen = unembedded & np.isnan(candidates.encoder)
    worded = unseen | (~np.isnan(words) & (by_words >= meant))
    passage = np.where(nearer, candidates.encoder_passage, candidates.near_passage)
    length = length_factors([len(item.text) for item in candidates.items], recipe.length_share)
    score = (rrf if recipe.fusion == "rrf" else by_meaning + by_encoder + by_words) * length
    held = held_shares(question, candidates) if recipe.identifier_weight > 0.0 else None
    weight = 0.0 if held is None else recipe.identifier_weight
    return Fused(
        score=score if held is None else (1.0 - weight) * score + weight * held,
        text=said,
        dense=near,
        dense_weight=(1.0 - weight) * share,
        encoder=read,
        encoder_weight=(1.0 - weight) * third,
        rrf=rrf,
        held=np.zeros(len(candidates)) if held is None else held,
        identifier_weight=weight,
        length=length,
        passage=np.where(worded, candidates.word_passage, passage),
    )


def _dense_weights(
    candidates: Candidates, query_lang: str, weights: DenseWeights, retriever: DenseRetriever
) -> Floats:
    langs = [item.lang for item in candidates.items]
    shares = {lang: dense_weight(weights, query_lang, lang, retriever) for lang in set(langs)}
    return np.array([shares[lang] for lang in langs], np.float64)


def _encoder_weights(
    candidates: Candidates, query_lang: str, weights: EncoderWeights, retriever: DenseRetriever
) -> Floats:
    """0 for what it did not read, and for all of a search that it took no part in."""
    if weights.off or not retriever.used or np.isnan(candidates.encoder).all():
        return np.zeros(len(candidates))
    langs = [item.lang for item in candidates.items]
    shares = {lang: _encoder_weight(weights, query_lang, lang) for lang in set(langs)}
    return np.where(candidates.encoded, [shares[lang] for lang in langs], 0.0)


def _encoder_weight(weights: EncoderWeights, query_lang: str, item_lang: str) -> float:
    langs = {query_lang, item_lang} - {"other"}
    if "mixed" in langs:
        return weights.mixed
    if crosses(query_lang, item_lang):
        return weights.cross
    return weights.hebrew if "he" in langs else weights.english


def length_factors(lengths: Sequence[int], share: float) -> Floats:
    """What is left of the relevance of texts of several passages: `share` less for each doubling
    of its length, in characters.

    It is judged by the best of them, and the best of many is good by chance more often.
    """
    doublings = np.log2(np.maximum(lengths, LONGEST) / LONGEST)
    left = np.maximum(LEAST_FACTOR, 1.0 - share * doublings)
    return np.where(np.greater(lengths, WHOLE_CHARS), left, 1.0)


def _scaled(scores: Floats, *, cut: bool) -> Floats:
    """One retriever's raw scores to 0..1: the share of the query's best.

    `cut`: only the nearest were returned, so what was left out is at best as near as the last one
    listed; a BM25 list leaves out what shares no term. Measured against min-max scaling on the open
    sets: no loss for Hebrew at any dense weight, and two candidates that are equally near stay
    equally near.
    """
    missing = np.isnan(scores)
    known = scores[~missing]
    if not len(known) or (highest := np.max(known)) <= 0.0:
        return np.zeros(len(scores))
    raw = np.where(missing, np.min(known) if cut else 0.0, scores)
    shares: Floats = (raw / highest).clip(0.0, 1.0)
    return shares


def _above(cosines: Floats, unrelated: float) -> Floats:
    """The encoder's cosines to 0..1: as `_scaled`, but from that of unrelated texts on, for all of
    them lie near each other. What is not in the list is at best as near as the last one."""
    missing = np.isnan(cosines)
    known = cosines[~missing]
    if not len(known) or (highest := np.max(known)) <= unrelated:
        return np.zeros(len(cosines))
    raw = np.where(missing, np.min(known), cosines)
    shares: Floats = ((raw - unrelated) / (highest - unrelated)).clip(0.0, 1.0)
    return shares


def _rrf(candidates: Candidates, recipe: Recipe) -> Floats:
    """Of the lists that could hold each candidate."""
    k = recipe.rrf_k
    words = np.where(candidates.sparse_rank, candidates.sparse_rank, candidates.pending_rank)
    two = _share(candidates.dense_rank, k) + _share(words, k)
    if recipe.encoder.off or np.isnan(candidates.encoder).all():
        return two / (2.0 / (k + 1))
    three = (two + _share(candidates.encoder_rank, k)) / (3.0 / (k + 1))
    return np.where(candidates.encoded, three, two / (2.0 / (k + 1)))


def _share(ranks: Ints, k: int) -> Floats:
    return np.where(ranks, 1.0 / (k + ranks), 0.0)
