"""Leaves out what does not answer: by calibrated relevance, or by the names that a question says.

Both are asked for. Without them a search returns its best hits, however weak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rayapp.search.rules.answering import features_of
from rayapp.search.rules.confidence import relevance
from rayapp.search.rules.ranking import Ranked
from rayapp.search.rules.recipes import ConfidenceModel
from rayapp.text.names import names_in

# Items that are read for their relevance, the best by score: reading one costs 0.1 to 0.8 ms. The
# same for every page of a list, so that pages agree on what reaches it.
READ_MOST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """What a hit must be."""

    question: str
    relevance: float | None
    named_only: bool

    @property
    def asks(self) -> bool:
        return self.named_only or self.relevance is not None


def judged(question: str, one: Ranked, model: ConfidenceModel) -> float:
    """Probability that `one` answers `question`, 0..1."""
    features = features_of(question, one.item.text, one.dense_similarity)
    return relevance(features, model)


def precise(ranked: Sequence[Ranked], least: Least, model: ConfidenceModel) -> list[Ranked]:
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
