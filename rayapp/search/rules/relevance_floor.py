"""What of a search is worth being put before an assistant. Pure.

A search gives its best hits however weak they are. A line that does not answer costs tokens,
misleads, and makes tools look unneeded: a hit is shown when it comes near to the best one, and none
when not even the best one can be an answer.
"""

from collections.abc import Sequence

from rayapp.search.requests import Floor, Hit, ScoreSummary


def above_floor(
    hits: Sequence[Hit], floor: Floor, *, relevance: float, least: float
) -> tuple[Hit, ...]:
    """The hits that are worth showing, in their order; none when the best one answers nothing.

    Args:
        relevance: probability that the best hit answers.
        least: what that must be at least, where the floor names nothing.
    """
    if not hits or relevance < (least if floor.relevance is None else floor.relevance):
        return ()
    best = max(strength_of(hit.summary) for hit in hits)
    return tuple(hit for hit in hits if strength_of(hit.summary) >= floor.share * best)


def strength_of(summary: ScoreSummary) -> float:
    """How well an item answers by itself: what it is worth for other reasons (quality, graphs)
    raises its place, and must not push out what answers."""
    own = summary.fused
    if summary.ce_score is not None:
        own = (own + summary.ce_score) / 2
    return own * summary.evidence
