"""Retrieval metrics over ranked ids: pure, exact, with bootstrap confidence intervals.

A question is judged by the ids that hold its evidence (`gold`, one or more) and the ids that a
system answered, best first (`ranked`). Every metric is a value in 0..1 per question; a summary is
their mean over questions. Definitions follow Järvelin and Kekäläinen 2002 (nDCG, binary gains)
and Voorhees 1999 (MRR); intervals are percentile bootstrap (Efron 1979).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

TOP = 10  # depth of hit, evidence and nDCG metrics: what one answer shows an assistant
BOOTSTRAP_RESAMPLES = 1_000  # resamples: the 95 % bounds move by less than .002 beyond this
BOOTSTRAP_SEED = 20240229  # fixed, so that the same ranks print the same interval
CONFIDENCE = 0.95  # mass of the interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One answered question. `ranked` is best first, `gold` is not empty."""

    question_id: str
    gold: tuple[str, ...]
    ranked: tuple[str, ...]
    category: str = "all"
    lang: str = "other"

    def __post_init__(self) -> None:
        if not self.gold:
            raise ValueError(f"question {self.question_id} has no evidence: exclude it")

    @property
    def first_rank(self) -> int | None:
        """1-based rank of the first evidence id, None when none was answered."""
        gold = set(self.gold)
        return next((rank for rank, name in enumerate(self.ranked, 1) if name in gold), None)

    @property
    def gold_ranks(self) -> tuple[int | None, ...]:
        """1-based rank of each evidence id in the order of `gold`."""
        place = {name: rank for rank, name in reversed(list(enumerate(self.ranked, 1)))}
        return tuple(place.get(name) for name in self.gold)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean over `n` questions with the bounds of its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int


Metric = Callable[[Judged], float]
Summary = dict[str, Estimate]


def hit_at(judged: Judged, depth: int) -> float:
    """1 when any evidence is among the first `depth` answers."""
    rank = judged.first_rank
    return float(rank is not None and rank <= depth)


def recall_at(judged: Judged, depth: int) -> float:
    """Share of the evidence that is among the first `depth` answers."""
    gold = set(judged.gold)
    return len(gold & set(judged.ranked[:depth])) / len(gold)


def all_evidence_at(judged: Judged, depth: int) -> float:
    """1 when the whole evidence is among the first `depth` answers."""
    return float(set(judged.gold) <= set(judged.ranked[:depth]))


def reciprocal_rank(judged: Judged) -> float:
    """1 / rank of the first evidence, 0 when it was not answered."""
    rank = judged.first_rank
    return 0.0 if rank is None else 1.0 / rank


def ndcg_at(judged: Judged, depth: int) -> float:
    """Normalised discounted cumulative gain with binary gains; a repeated id gains once."""
    gold = set(judged.gold)
    gain = 0.0
    for rank, name in enumerate(judged.ranked[:depth], 1):
        if name in gold:
            gold.discard(name)
            gain += 1.0 / math.log2(rank + 1)
    ideal = sum(1.0 / math.log2(r + 1) for r in range(1, min(len(set(judged.gold)), depth) + 1))
    return gain / ideal


# In the order that tables print them.
METRICS: Mapping[str, Metric] = {
    "R@1": lambda judged: hit_at(judged, 1),
    "hit@5": lambda judged: hit_at(judged, 5),
    "hit@10": lambda judged: hit_at(judged, TOP),
    "all@5": lambda judged: all_evidence_at(judged, 5),
    "all@10": lambda judged: all_evidence_at(judged, TOP),
    "R@10": lambda judged: recall_at(judged, TOP),
    "MRR": reciprocal_rank,
    "nDCG@10": lambda judged: ndcg_at(judged, TOP),
}


def estimate(values: Sequence[float], *, seed: int = BOOTSTRAP_SEED) -> Estimate:
    """Mean and percentile bootstrap interval of per-question values.

    Raises ValueError: no values: an average of nothing is not a number to report.
    """
    if not values:
        raise ValueError("no judged question: nothing to estimate")
    sample = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(seed).integers(
        0, len(sample), size=(BOOTSTRAP_RESAMPLES, len(sample)), dtype=np.int32
    )
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(sample[draws].mean(axis=1), [tail, 1.0 - tail])
    return Estimate(float(sample.mean()), float(low), float(high), len(sample))


def summarise(judged: Sequence[Judged]) -> Summary:
    """Every metric of `METRICS` over the questions."""
    return {name: estimate([metric(one) for one in judged]) for name, metric in METRICS.items()}


def summarise_by(judged: Iterable[Judged], key: Callable[[Judged], str]) -> dict[str, Summary]:
    """Summaries per group (category, language …), groups in sorted order."""
    groups: dict[str, list[Judged]] = {}
    for one in judged:
        groups.setdefault(key(one), []).append(one)
    return {name: summarise(groups[name]) for name in sorted(groups)}


def rank_groups(judged: Judged, group_of: Callable[[str], str]) -> Judged:
    """The same question one level up: a group ranks where its best member ranks.

    For dialogue sessions: `group_of` maps a turn to its session, so a session is the union of
    its turns and is scored by the best of them.
    """
    return replace(
        judged,
        gold=tuple(dict.fromkeys(map(group_of, judged.gold))),
        ranked=tuple(dict.fromkeys(map(group_of, judged.ranked))),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Nearest-rank percentile: an observed value, `share` in 0..1.

    Raises ValueError: no values, or a share outside 0..1.
    """
    if not values or not 0.0 <= share <= 1.0:
        raise ValueError("percentile needs values and a share in 0..1")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
