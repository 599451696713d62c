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
    needed = floor.share * max(strength_of(hit.summary) for hit in hits)
    return tuple(hit for hit in hits if _reach(hit.summary) >= needed)


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
