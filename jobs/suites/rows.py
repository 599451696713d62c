"""What one question got, as it is compared and committed: ids, ranks and measures, never a text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rayapp.search.rules import evaluation

Ranks = tuple[int | None, ...]
# Measures of a ranked question that headlines, pictures, ablations and gates show.
SHOWN = ("R@1", "hit@10", "MRR")
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question in one part of a suite.

    Attributes:
        part: what the question counts under; a question may count under several.
        ranks: 1-based place of each evidence id, None = not answered. Empty when the question is
            not judged by ranks.
        values: its measures, 0..1, higher is better. Those of ranks follow from the ranks.
        floor: the same measures of plain BM25; empty where there is no floor.
    """

    part: str
    question_id: str
    category: str
    lang: str
    ranks: Ranks = ()
    values: Mapping[str, float] = field(default_factory=dict)
    floor: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return (self.part, self.question_id)

    @property
    def shown(self) -> dict[str, float]:
        if not self.ranks:
            return dict(self.values)
        return {name: self.values[name] for name in SHOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """One measure of one part: the service, and the floor where there is one."""

    part: str
    metric: str
    service: evaluation.Estimate
    floor: evaluation.Estimate | None


def measures(ranks: Ranks) -> dict[str, float]:
    """Every retrieval metric of a question whose evidence was answered at these ranks."""
    gold = tuple(f"gold-{number}" for number in range(len(ranks)))
    at = {rank: name for rank, name in zip(ranks, gold, strict=True) if rank is not None}
    ranked = tuple(at.get(place, f"other-{place}") for place in range(1, max(at, default=0) + 1))
    judged = evaluation.Judged(question_id="ranks", gold=gold, ranked=ranked)
    return {name: metric(judged) for name, metric in evaluation.METRICS.items()}


def headlines(rows: Iterable[Row]) -> list[Headline]:
    """Means with their intervals per part and measure, in the order of the rows."""
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(row.part, []).append(row)
    return [
        Headline(
            part=part,
            metric=metric,
            service=evaluation.estimate([row.values[metric] for row in members]),
            floor=_floor(members, metric),
        )
        for part, members in parts.items()
        for metric in members[0].shown
    ]


def by_key(rows: Iterable[Row]) -> dict[Key, Row]:
    return {row.key: row for row in rows}


def _floor(members: Sequence[Row], metric: str) -> evaluation.Estimate | None:
    if not all(metric in row.floor for row in members):
        return None
    return evaluation.estimate([row.floor[metric] for row in members])
