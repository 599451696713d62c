"""Is the new collection as good as the old one? Counts, a sample of points, replayed searches."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rayapp.bulk.model import UUID_SPACE
from rayapp.core.errors import BadVector, InvalidInput
from rayapp.core.vectors import Vector
from rayapp.index.point_builder import OUTAGES
from rayapp.index.records import WHOLE, IndexPoint, ScoredPoint, StoredPoint, SubQuery
from rayapp.index.reindex.parts import ReindexFacts, ReindexParts, belongs, schema_or_none
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.search.ports import Receipt

# Items per place in the id space at which the sample looks: 10 pages for the default sample.
SAMPLE_PAGE = 20
# Two runs of one model on one text differ by rounding alone; half-precision models by 1e-3.
MIN_COSINE = 0.99
# Hits per sub-query that are compared: what a user sees.
TOP = 10
# Scores that differ by less are one rank: equal texts are ordered by chance.
TIE = 1e-4


@dataclass(slots=True)
class Verified:
    """`reason` None: the collection may go behind the alias."""

    reason: str | None = None
    compared: int = 0
    differing: list[str] = field(default_factory=list)
    replayed: int = 0
    overlap: float | None = None
    gated: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "sample": self.compared,
            "sample_differing": self.differing[:20],
            "receipts": self.replayed,
            "overlap": None if self.overlap is None else round(self.overlap, 4),
            "overlap_gated": self.gated,
        }


async def verified(parts: ReindexParts, facts: ReindexFacts) -> Verified:
    """Everything but the counts, which are taken while the indexers are held."""
    found = Verified()
    await _compare_sample(parts, facts, found)
    await _replay(parts, facts, found)
    least = parts.runtime.settings.reindex.min_overlap
    if found.differing:
        found.reason = (
            f"{len(found.differing)} of {found.compared} sampled points differ from what the model "
            "gives now: see the report, then run the job again."
        )
    elif found.gated and found.overlap is not None and found.overlap < least:
        found.reason = (
            f"Replayed searches agree on {found.overlap:.0%} of their hits, less than "
            f"{least:.0%}: see the report, then run the job again or lower reindex.min_overlap."
        )
    return found


async def count_problem(
    parts: ReindexParts, facts: ReindexFacts, missing: int = 0, unreadable: int = 0
) -> str | None:
    """Why the counts do not agree; None when they do.

    Only pending items may make a difference: a new one has no point yet, an archived one still
    has its point. Called while the indexers are held, so nothing leaves the queue meanwhile.
    `missing` could not be embedded; `unreadable` rows are counted by the truth but never read.
    """
    total = await parts.scan.total()
    points = await parts.index.at(facts.collection).count()
    pending = (await parts.items.backlog()).pending
    if total - pending - missing - unreadable <= points <= total + pending:
        return None
    return (
        f"The new collection has {points} points, the truth {total} items of which {pending} "
        "wait for the index: run the job again."
    )


async def _compare_sample(parts: ReindexParts, facts: ReindexFacts, found: Verified) -> None:
    """Points at random places against vectors made just now."""
    items = await _sample(parts)
    stored = {
        point.point_id: point
        for point in await parts.index.at(facts.collection).retrieve(
            [item.point_id for item in items], WHOLE
        )
    }
    settled = [i for i in items if _same_state(stored.get(i.point_id), i)]
    made, failures = await parts.maker().made(settled)
    for failure in failures:
        if isinstance(failure.error, OUTAGES):
            raise failure.error
    for _, point in made:
        found.compared += 1
        if not _same_point(stored[point.point_id], point):
            found.differing.append(point.point_id)


async def _sample(parts: ReindexParts) -> list[MemoryItem]:
    """Pages at random places; everything when it is not more than the sample."""
    wanted = parts.runtime.settings.reindex.sample
    if await parts.scan.total() <= wanted:
        # Rows that do not belong there stand between the others, so there may be more of them.
        page, _ = await parts.scan.page(after=None, until=None, limit=2 * wanted)
        return [item for item in page if belongs(item)][:wanted]
    items: dict[str, MemoryItem] = {}
    for _ in range(-(-wanted // SAMPLE_PAGE)):
        place = str(uuid.UUID(int=int(parts.runtime.random() * (UUID_SPACE - 1))))
        page, _ = await parts.scan.page(after=place, until=None, limit=SAMPLE_PAGE)
        items |= {item.point_id: item for item in page if belongs(item)}
    return list(items.values())[:wanted]


def _same_state(point: StoredPoint | None, item: MemoryItem) -> bool:
    """The point is of the item as it was read; another rev is on its way and is no difference."""
    return point is not None and int(point.payload.get("rev", 0)) == item.index.rev


def _same_point(stored: StoredPoint, made: IndexPoint) -> bool:
    if stored.dense is None or stored.sparse is None:
        return False
    if stored.payload.get("vector_hash") != made.payload["vector_hash"]:
        return False
    if set(stored.sparse.indices) != set(made.sparse.indices):
        return False
    if not _same_vector(stored.dense, made.dense):
        return False
    if stored.encoder is None or not made.encoder:
        return True  # the indexer gives it later
    return _same_vector(stored.encoder, made.encoder[0])


def _same_vector(one: Vector, other: Vector) -> bool:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other))) >= MIN_COSINE


async def _replay(parts: ReindexParts, facts: ReindexFacts, found: Verified) -> None:
    """The last searches on the old and the new collection, sub-query by sub-query. Only those that
    mean the same on both can be compared: dense ones of one model, lexical ones of one analyser.
    The overlap decides when both are equal and the old collection was complete."""
    limit = parts.runtime.settings.reindex.receipts
    old = await schema_or_none(parts.index, facts.previous)
    if limit == 0 or old is None or facts.previous is None:
        return
    dense = (old.model, old.dims) == (facts.schema.model, facts.schema.dims)
    lexical = old.analyser == facts.schema.analyser
    receipts = await parts.receipts.recent(limit)
    shares: list[float] = []
    for receipt in receipts:
        sub_queries = await _sub_queries(parts, receipt, dense=dense, lexical=lexical)
        scope, where = ReadScope(receipt.user_id), ItemFilter(now=parts.runtime.clock.now())
        if not sub_queries:
            continue
        before, after = [
            await parts.index.at(name).query(scope, where, sub_queries)
            for name in (facts.previous, facts.collection)
        ]
        shares += [
            overlap_of(one, other) for one, other in zip(before, after, strict=True) if one or other
        ]
        found.replayed += 1
    if shares:
        found.overlap = sum(shares) / len(shares)
    rebuilding = (await parts.index.health()).needs_rebuild
    found.gated = dense and lexical and not rebuilding


async def _sub_queries(
    parts: ReindexParts, receipt: Receipt, *, dense: bool, lexical: bool
) -> list[SubQuery]:
    sub_queries: list[SubQuery] = []
    if dense:
        try:
            (vector,) = await parts.embedder.embed(
                [receipt.query], "query", timeout_s=parts.runtime.settings.embedding.batch_timeout_s
            )
            sub_queries.append(SubQuery(name="dense", limit=TOP, dense=vector))
        except (BadVector, InvalidInput):
            pass  # a question that has no vector is replayed by its words
    if lexical:
        sparse = parts.analyser.query(receipt.query)
        if sparse.indices:
            sub_queries.append(SubQuery(name="bm25", limit=TOP, sparse=sparse))
    return sub_queries


def overlap_of(one: Sequence[ScoredPoint], other: Sequence[ScoredPoint]) -> float:
    """Share of the longer list that the other one has too; at least one of them has hits.

    A hit that is tied with the last one of the other list, or with several at the end of its own,
    is there by chance or not. (Terms weigh a little differently in a collection that lacks what was
    deleted since, so equal texts are equal within a list only.)
    """
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    ids = {hit.point_id for hit in shorter}
    full = len(shorter) == len(longer)
    lasts = [shorter[-1].score] if shorter else []
    own = longer[-1].score
    if sum(_tied(hit.score, own) for hit in longer) > 1:
        lasts.append(own)
    same = sum(
        hit.point_id in ids or (full and any(_tied(hit.score, last) for last in lasts))
        for hit in longer
    )
    return same / len(longer)


def _tied(score: float, last: float) -> bool:
    return abs(score - last) <= TIE * max(1.0, abs(last))
