"""A candidate: an item with what each arm said about it, before scoring."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rayapp.index.records import ScoredPoint
from rayapp.memory.item import IndexOp, MemoryItem, SyncState


@dataclass(slots=True)
class Evidence:
    """Scores and ranks (from 1) of one point; None = the arm did not return it."""

    dense: float | None = None
    dense_rank: int | None = None
    sparse: float | None = None
    sparse_rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """`pending` is the score of `sparse`, on its scale, of an item that the index does not hold in
    its current state: see `pending.py`."""

    item: MemoryItem
    dense: float | None = None
    dense_rank: int | None = None
    sparse: float | None = None
    sparse_rank: int | None = None
    pending: float | None = None
    pending_rank: int | None = None


def gather_evidence(
    dense: Iterable[Sequence[ScoredPoint]], sparse: Iterable[Sequence[ScoredPoint]]
) -> dict[str, Evidence]:
    """Merge the per-tier lists of both arms by point id; ranks are over all tiers of an arm."""
    found: dict[str, Evidence] = {}
    for rank, point in enumerate(_merged(dense), start=1):
        found[point.point_id] = Evidence(dense=max(0.0, point.score), dense_rank=rank)
    for rank, point in enumerate(_merged(sparse), start=1):
        evidence = found.setdefault(point.point_id, Evidence())
        evidence.sparse, evidence.sparse_rank = point.score, rank
    return found


def _merged(lists: Iterable[Sequence[ScoredPoint]]) -> list[ScoredPoint]:
    points = [point for one in lists for point in one]
    # The id breaks ties, so that equal scores rank the same in every run and on every engine.
    points.sort(key=lambda point: (-point.score, point.point_id))
    return points


def to_candidates(
    items: Iterable[MemoryItem],
    evidence: Mapping[str, Evidence],
    pending: Mapping[str, float],
    vector_hashes: Mapping[str, str],
    wanted: Collection[str] = (),
) -> list[Candidate]:
    """Join hydrated items with their evidence.

    An item whose text changed since it was indexed is judged by its pending score alone: what the
    index says of it is about words that are gone. `vector_hashes` maps point_id to the hash that
    the current text would have.
    `wanted` names points that are candidates even if no arm returned them.
    """
    ranked = sorted(pending, key=lambda point_id: (-pending[point_id], point_id))
    pending_rank = {point_id: rank for rank, point_id in enumerate(ranked, start=1)}
    candidates = []
    for item in items:
        score = pending.get(item.point_id)
        said = evidence.get(item.point_id)
        if said is None or is_stale(item, vector_hashes):
            said = Evidence()
            if score is None and item.point_id not in wanted:
                continue
        candidates.append(
            Candidate(
                item=item,
                dense=said.dense,
                dense_rank=said.dense_rank,
                sparse=said.sparse,
                sparse_rank=said.sparse_rank,
                pending=score if said.sparse is None else None,
                pending_rank=pending_rank.get(item.point_id),
            )
        )
    return candidates


def is_stale(item: MemoryItem, vector_hashes: Mapping[str, str]) -> bool:
    """Whether the index speaks of other words than `item` holds now."""
    state = item.index
    if state.sync_state is SyncState.SYNCED or state.op is not IndexOp.VECTOR:
        return False
    indexed = state.vector_hash
    return indexed is not None and indexed != vector_hashes.get(item.point_id)
