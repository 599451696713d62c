"""Leaves out what does not answer: by calibrated relevance, or by the names that a question says.

Both are asked for. Without them a search returns its best hits, however weak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rayapp.domain.retrieval.answering import features_of
from rayapp.domain.retrieval.confidence import relevance
from rayapp.domain.retrieval.ranking import Ranked
from rayapp.domain.retrieval.recipes import ConfidenceModel
from rayapp.domain.text.names import names_in

# Ranked items that are read for their relevance, per hit that the page may need: reading a text
# costs about 0.1 ms, and near-duplicates and weak ones fall out.
READ_PER_HIT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """What a hit must be. `wanted`: hits up to the end of the page, and one more."""

    question: str
    relevance: float | None
    named_only: bool
    wanted: int

    @property
    def asks(self) -> bool:
        return self.named_only or self.relevance is not None


def judged(question: str, one: Ranked, model: ConfidenceModel) -> float:
    """Probability that `one` answers `question`, 0..1."""
    features = features_of(question, one.item.text, one.summary.dense_similarity)
    return relevance(features, model)


def precise(ranked: Sequence[Ranked], least: Least, model: ConfidenceModel) -> list[Ranked]:
    """Those of `ranked` that reach `least`, in order, with what was found out in their summary."""
    kept = with_names(ranked, least.question)
    if least.named_only:
        kept = [one for one in kept if one.summary.named]
    if least.relevance is None:
        return kept
    read = []
    for one in kept[: READ_PER_HIT * least.wanted]:
        value = judged(least.question, one, model)
        if value >= least.relevance:
            read.append(Ranked(one.item, replace(one.summary, relevance=value)))
    return read


def with_names(ranked: Sequence[Ranked], question: str) -> list[Ranked]:
    """`ranked`, each with those of its entities that the question names."""
    found = []
    for one in ranked:
        named = names_in(question, one.item.entities) if one.item.entities else ()
        found.append(Ranked(one.item, replace(one.summary, named=named)) if named else one)
    return found
