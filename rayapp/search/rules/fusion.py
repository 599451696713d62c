"""Fusion of the arms, one definition for every engine (decision 0003).

weighted: `w * dense + (1 - w) * text`, w by script agreement; both arms scaled within the query.
rrf: reciprocal rank fusion, sum of 1 / (k + rank) (Cormack et al. 2009), scaled to 0..1.
Where the question names an identifier that few candidates hold, holding it is a part of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rayapp.search.rules.candidates import Candidate
from rayapp.search.rules.recipes import DenseWeights, Recipe
from rayapp.text.identifiers import identifiers_in
from rayapp.text.normalize import normalize
from rayapp.text.tokens import Token, tokens


class Fused(NamedTuple):
    """0..1. `text`, `dense` and `held` are the scaled parts, the weights the shares used.

    `held`: of the identifiers that the question names, see `held_shares`.
    """

    score: float
    text: float
    dense: float
    dense_weight: float
    rrf: float
    held: float = 0.0
    identifier_weight: float = 0.0

    @property
    def text_weight(self) -> float:
        return 1.0 - self.dense_weight - self.identifier_weight


@dataclass(frozen=True, slots=True)
class Scale:
    """One arm's raw scores to 0..1: the share of the query's best.

    `missing` is what an item gets that the arm left out. A dense list is cut at its depth, so such
    an item is at best as near as the last one listed; a BM25 list leaves out what shares no term.
    Measured against min-max scaling on the open sets: no loss for Hebrew at any dense weight, and
    two candidates that are equally near stay equally near.
    """

    high: float
    missing: float

    def of(self, score: float | None) -> float:
        raw = self.missing if score is None else score
        return min(1.0, max(0.0, raw / self.high)) if self.high > 0 else 0.0


@dataclass(frozen=True, slots=True)
class DenseArm:
    """What is known of the dense arm of one search.

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


def dense_weight(weights: DenseWeights, query_lang: str, item_lang: str, arm: DenseArm) -> float:
    """The dense share for one pair of scripts; `other` (digits, symbols) agrees with anything."""
    if not arm.used:
        return 0.0
    langs = {query_lang, item_lang} - {"other"}
    if "mixed" in langs:
        return weights.mixed
    if arm.langs and not langs <= arm.langs:
        return weights.unknown
    if langs == {"he", "en"}:
        return weights.cross
    return weights.hebrew if "he" in langs else weights.english


def held_shares(question: str, candidates: Sequence[Candidate]) -> list[float] | None:
    """How many of the identifiers of `question` each candidate holds exactly, as a share of the
    best; None when none of them tells the candidates apart.

    An identifier is its own rare word: one that most candidates hold, or none, says nothing.
    """
    counts = [0] * len(candidates)
    for identifier in identifiers_in(question):
        holding = [at for at, one in enumerate(candidates) if identifier.is_in(one.item.text)]
        if 2 * len(holding) <= len(candidates):
            for at in holding:
                counts[at] += 1
    most = max(counts, default=0)
    return [count / most for count in counts] if most else None


def fuse(
    candidates: Sequence[Candidate],
    query_lang: str,
    recipe: Recipe,
    arm: DenseArm,
    question: str = "",
) -> list[Fused]:
    """One value per candidate, in order. `question`: its words, for the identifiers in it."""
    dense = _scale([c.dense for c in candidates], cut=True)
    text = _scale([_words(c) for c in candidates], cut=False)
    langs = {candidate.item.lang for candidate in candidates}
    shares = {lang: dense_weight(recipe.dense, query_lang, lang, arm) for lang in langs}
    if not arm.used:
        dense = Scale(0.0, 0.0)
    fused = [_fuse_one(c, recipe, dense, text, shares[c.item.lang]) for c in candidates]
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
    candidate: Candidate, recipe: Recipe, dense: Scale, text: Scale, share: float
) -> Fused:
    """`share`: of the dense arm, for the scripts of the question and of this item."""
    said = text.of(_words(candidate))
    near = dense.of(candidate.dense)
    if candidate.dense is None and candidate.pending is not None:
        share = 0.0  # not embedded yet: its words alone speak for it
    rrf = _rrf(candidate, recipe.rrf_k)
    score = rrf if recipe.fusion == "rrf" else share * near + (1.0 - share) * said
    return Fused(score=score, text=said, dense=near, dense_weight=share, rrf=rrf)


def _words(candidate: Candidate) -> float | None:
    """BM25 of the engine, or of what it does not hold yet; one scale."""
    return candidate.sparse if candidate.sparse is not None else candidate.pending


def _scale(scores: Sequence[float | None], *, cut: bool) -> Scale:
    """`cut`: the arm returned only its nearest, so what it left out is not known to be zero."""
    known = [score for score in scores if score is not None]
    if not known:
        return Scale(0.0, 0.0)
    return Scale(max(known), min(known) if cut else 0.0)


def _rrf(candidate: Candidate, k: int) -> float:
    ranks = (
        candidate.dense_rank,
        candidate.sparse_rank if candidate.sparse_rank is not None else candidate.pending_rank,
    )
    best = 2.0 / (k + 1)
    return sum(1.0 / (k + rank) for rank in ranks if rank is not None) / best
