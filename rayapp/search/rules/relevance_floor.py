"""What of a search is worth being put before an assistant. Pure.

A search gives its best hits however weak they are. A line that does not answer costs tokens,
misleads, and makes tools look unneeded: a hit is shown when it comes near to the best one, and none
when not even the best one can be an answer. What is near enough depends on how many are better: the
first few are cheap to show, and where many are as good as the best, they are shown.
"""

from collections.abc import Sequence

from rayapp.search.requests import Floor, Hit, ScoreSummary


def above_floor(
    hits: Sequence[Hit], floor: Floor, *, relevance: float, least: float
) -> tuple[Hit, ...]:
    """The hits that are worth showing, in their order; none when the best one answers nothing.

    The newest that speak of what is asked are shown to who asks for the latest.

    Args:
        relevance: probability that the best hit answers.
        least: what that must be at least, where the floor names nothing.
    """
    if not hits or relevance < (least if floor.relevance is None else floor.relevance):
        return ()
    if floor.share <= 0.0:
        return tuple(hits[: floor.expected])
    best = max(strength_of(hit.summary) for hit in hits)
    reached = sorted((_reach(hit.summary) for hit in hits), reverse=True)
    shown = [reach for at, reach in enumerate(reached, 1) if reach >= best * _needed(floor, at)]
    return tuple(hit for hit in hits if hit.latest or _reach(hit.summary) >= shown[-1])


def _needed(floor: Floor, rank: int) -> float:
    """By the hit of this rank by strength, from 1; the best one always has it."""
    return min(1.0, floor.share + floor.rise * rank / floor.expected)


def _reach(summary: ScoreSummary) -> float:
    """What an item is worth for other reasons (quality, graphs) helps itself over the floor; it
    does not raise the floor, so it pushes out nothing that answers."""
    return max(summary.final_score, strength_of(summary))


def strength_of(summary: ScoreSummary) -> float:
    """How well an item answers by itself."""
    own = summary.fused
    if summary.ce_score is not None:
        own = (own + summary.ce_score) / 2
    return own * summary.evidence
