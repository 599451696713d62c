"""The order in which candidates are shown when a reranker has read only the best of them.

After a rerank the score of what was read is `0.4 x before + 0.6 x probability`; what was not read
keeps its score of before, which is on another scale and often higher. The band of a guessed recency
compares scores, so it looks only at what was read. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from rayapp.domain.requests import SortMode
from rayapp.domain.retrieval.ranking import Ranked, in_order
from rayapp.domain.retrieval.recipes import Recipe


def shown_order(
    ranked: Sequence[Ranked], sort_by: SortMode, recipe: Recipe, *, asked: bool
) -> list[Ranked]:
    """`in_order`, with a guessed recency kept to what the reranker has read.

    `ranked` is best first, what was read before what was not. `asked` False: the sort mode came
    from a word in the question. Without a rerank all scores are on one scale, and all take part.
    """
    if asked or sort_by != "recency":
        return in_order(ranked, sort_by, recipe, asked=asked)
    read = sum(one.summary.ce_rank is not None for one in ranked)
    compared = read or len(ranked)
    recent = in_order(ranked[:compared], sort_by, recipe, asked=False)
    return recent + list(ranked[compared:])
