"""Candidates: the memories that retrievers returned, with what each of them said, before scoring.

They are ranked as columns, whichever way they came: of the view of a user or of the index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rayapp.index.records import ScoredPoint
from rayapp.memory.item import IndexOp, MemoryItem, SyncState

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Evidence:
    """Scores and ranks (from 1) of one item; None = the retriever did not return it.
    `…_passage`: which passage of its text scored."""

    dense: float | None = None
    dense_rank: int | None = None
    sparse: float | None = None
    sparse_rank: int | None = None
    dense_passage: int = 0
    sparse_passage: int = 0
    encoder: float | None = None
    encoder_rank: int | None = None
    encoder_passage: int = 0


class Worded(NamedTuple):
    """The lexical score of a text that is not indexed yet, by its best passage."""

    score: float
    passage: int = 0


@dataclass(slots=True, kw_only=True)
class Candidate:
    """`pending` is the score of `sparse`, on its scale, of an item that the index does not hold in
    its current state: see `pending_scores`. `near_passage` is the one that is nearest in meaning,
    `word_passage` the one whose words agree best, `encoder_passage` the encoder's nearest.
    `encoded`: it has the encoder's vector, as far as is known."""

    item: MemoryItem
    dense: float | None = None
    dense_rank: int | None = None
    near_passage: int = 0
    sparse: float | None = None
    sparse_rank: int | None = None
    word_passage: int = 0
    pending: float | None = None
    pending_rank: int | None = None
    encoder: float | None = None
    encoder_rank: int | None = None
    encoder_passage: int = 0
    encoded: bool = True


class Reach(NamedTuple):
    """How far a question reaches into all memories of a user that the search may show.

    memories: how many there are. nearest: cosine of the nearest one. covered: BM25 of the best one.
    mass: what the question's own words weigh, each by how rare it is there; unknown: of those in
    none. holders: how many memories hold each of them. encoder_nearest: as `nearest`, by the
    encoder; encoder_gap: how much nearer it is than the tenth. None: it took no part. kinds: what
    kind of sentence the question is, by the heads over the encoder, shares of one.
    """

    memories: int
    nearest: float
    covered: float
    mass: float
    unknown: float
    holders: Mapping[int, int]
    encoder_nearest: float | None = None
    encoder_gap: float | None = None
    kinds: Mapping[str, float] | None = None


class Unencoded(NamedTuple):
    """How many of `total` embedded memories the encoder has not read yet."""

    lacking: int
    total: int

    @property
    def share(self) -> float:
        return self.lacking / self.total if self.total else 0.0


NONE_UNENCODED = Unencoded(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """A row per candidate, in no order. What is None in a `Candidate` is nan here, and 0 as a
    rank. `reach`: None where not all memories were looked at, or without a question's vector.
    `unencoded`: of the memories looked at, where the encoder took part."""

    items: Sequence[MemoryItem]
    dense: Floats
    dense_rank: Ints
    sparse: Floats
    sparse_rank: Ints
    pending: Floats
    pending_rank: Ints
    near_passage: Ints
    word_passage: Ints
    encoder: Floats
    encoder_rank: Ints
    encoder_passage: Ints
    encoded: Bools
    reach: Reach | None = None
    unencoded: Unencoded = NONE_UNENCODED

    @classmethod
    def empty(cls, items: Sequence[MemoryItem] = ()) -> Candidates:
        """Of which no retriever said anything."""
        size = len(items)
        return cls(
            items=items,
            dense=np.full(size, np.nan),
            dense_rank=np.zeros(size, np.int64),
            sparse=np.full(size, np.nan),
            sparse_rank=np.zeros(size, np.int64),
            pending=np.full(size, np.nan),
            pending_rank=np.zeros(size, np.int64),
            near_passage=np.zeros(size, np.int64),
            word_passage=np.zeros(size, np.int64),
            encoder=np.full(size, np.nan),
            encoder_rank=np.zeros(size, np.int64),
            encoder_passage=np.zeros(size, np.int64),
            encoded=np.ones(size, np.bool_),
        )

    @classmethod
    def of(cls, rows: Sequence[Candidate]) -> Candidates:
        made = cls.empty([row.item for row in rows])
        for name in _COLUMNS:
            column: npt.NDArray[Any] = getattr(made, name)
            nothing = np.nan if column.dtype == np.float64 else 0
            values = [getattr(row, name) for row in rows]
            column[:] = [nothing if value is None else value for value in values]
        return made

    @property
    def words(self) -> Floats:
        """BM25 of the engine, or of what it does not hold yet; one scale."""
        return np.where(np.isnan(self.sparse), self.pending, self.sparse)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Candidate]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, at: int) -> Candidate:
        return Candidate(
            item=self.items[at],
            dense=said(self.dense[at]),
            dense_rank=int(self.dense_rank[at]) or None,
            sparse=said(self.sparse[at]),
            sparse_rank=int(self.sparse_rank[at]) or None,
            pending=said(self.pending[at]),
            pending_rank=int(self.pending_rank[at]) or None,
            near_passage=int(self.near_passage[at]),
            word_passage=int(self.word_passage[at]),
            encoder=said(self.encoder[at]),
            encoder_rank=int(self.encoder_rank[at]) or None,
            encoder_passage=int(self.encoder_passage[at]),
            encoded=bool(self.encoded[at]),
        )


class Hits(NamedTuple):
    """What one retriever found of a view, best first: places there, and which passage scored."""

    places: Ints
    scores: Floats
    passages: Ints

    def only(self, rows: Bools) -> Hits:
        return Hits(self.places[rows], self.scores[rows], self.passages[rows])


NO_HITS = Hits(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))


class HitLists(NamedTuple):
    """What each retriever found of one view; `pending`: what waits for the index, by words."""

    dense: Hits = NO_HITS
    sparse: Hits = NO_HITS
    pending: Hits = NO_HITS
    encoder: Hits = NO_HITS


def joined(
    lists: HitLists, wanted: Ints, items_at: Callable[[Ints], Sequence[MemoryItem]]
) -> tuple[Candidates, Ints]:
    """What the retrievers found of one view, a row per memory, and those at the places that are
    `wanted` anyway; with the place of each. What one holds is in no list of another state.
    """
    places = np.unique(np.concatenate([*(hits.places for hits in lists), wanted]))
    made = Candidates.empty(items_at(places))
    for hits, scores, ranks, passages in (
        (lists.dense, made.dense, made.dense_rank, made.near_passage),
        (lists.sparse, made.sparse, made.sparse_rank, made.word_passage),
        (lists.pending, made.pending, made.pending_rank, made.word_passage),
        (lists.encoder, made.encoder, made.encoder_rank, made.encoder_passage),
    ):
        rows = np.searchsorted(places, hits.places)
        scores[rows], passages[rows] = hits.scores, hits.passages
        ranks[rows] = np.arange(1, len(rows) + 1)
    np.maximum(made.dense, 0.0, out=made.dense)  # of a negative cosine nothing is told
    np.maximum(made.encoder, 0.0, out=made.encoder)
    return made, places


_WHOLE = ("items", "reach", "unencoded")
_COLUMNS = tuple(one.name for one in fields(Candidates) if one.name not in _WHOLE)


def said(score: float) -> float | None:
    """What a retriever said of one candidate."""
    return None if math.isnan(score) else float(score)


def gather_evidence(
    dense: Iterable[Sequence[ScoredPoint]],
    sparse: Iterable[Sequence[ScoredPoint]],
    encoder: Iterable[Sequence[ScoredPoint]] = (),
) -> dict[str, Evidence]:
    """Merge the per-tier lists of the retrievers by point id; ranks are over all tiers."""
    found: dict[str, Evidence] = {}
    for rank, point in enumerate(_merged(dense), start=1):
        found[point.point_id] = Evidence(
            dense=max(0.0, point.score), dense_rank=rank, dense_passage=point.passage
        )
    for rank, point in enumerate(_merged(sparse), start=1):
        evidence = found.setdefault(point.point_id, Evidence())
        evidence.sparse, evidence.sparse_rank = point.score, rank
        evidence.sparse_passage = point.passage
    for rank, point in enumerate(_merged(encoder), start=1):
        evidence = found.setdefault(point.point_id, Evidence())
        evidence.encoder, evidence.encoder_rank = max(0.0, point.score), rank
        evidence.encoder_passage = point.passage
    return found


def _merged(lists: Iterable[Sequence[ScoredPoint]]) -> list[ScoredPoint]:
    points = [point for one in lists for point in one]
    # The id breaks ties, so that equal scores rank the same in every run and on every engine.
    points.sort(key=lambda point: (-point.score, point.point_id))
    return points


def to_candidates(
    items: Iterable[MemoryItem],
    evidence: Mapping[str, Evidence],
    pending: Mapping[str, Worded],
    vector_hashes: Mapping[str, str],
    wanted: Collection[str] = (),
) -> Candidates:
    """Join hydrated items with their evidence.

    An item whose text changed since it was indexed is judged by its pending score alone: what the
    index says of it is about words that are gone. `vector_hashes` maps point_id to the hash that
    the current text would have.
    `wanted` names points that are candidates even if no retriever returned them.
    """
    ranked = sorted(pending, key=lambda point_id: (-pending[point_id].score, point_id))
    pending_rank = {point_id: rank for rank, point_id in enumerate(ranked, start=1)}
    candidates = []
    for item in items:
        worded = pending.get(item.point_id)
        evident = evidence.get(item.point_id)
        if evident is None or is_stale(item, vector_hashes):
            evident = Evidence()
            if worded is None and item.point_id not in wanted:
                continue
        fresh = worded is not None and evident.sparse is None
        candidates.append(
            Candidate(
                item=item,
                dense=evident.dense,
                dense_rank=evident.dense_rank,
                sparse=evident.sparse,
                sparse_rank=evident.sparse_rank,
                pending=worded.score if worded is not None and fresh else None,
                pending_rank=pending_rank.get(item.point_id),
                near_passage=evident.dense_passage,
                word_passage=worded.passage if worded and fresh else evident.sparse_passage,
                encoder=evident.encoder,
                encoder_rank=evident.encoder_rank,
                encoder_passage=evident.encoder_passage,
                # A text that waits for the index has no vector of its words there.
                encoded=evident.encoder is not None or not fresh,
            )
        )
    return Candidates.of(candidates)


def is_stale(item: MemoryItem, vector_hashes: Mapping[str, str]) -> bool:
    """Whether the index speaks of other words than `item` holds now."""
    state = item.index
    if state.sync_state is SyncState.SYNCED or state.op is not IndexOp.VECTOR:
        return False
    indexed = state.vector_hash
    return indexed is not None and indexed != vector_hashes.get(item.point_id)
