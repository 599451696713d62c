"""A `VectorIndex` in which an item has one point, however many passages its text has.

The engine holds a point per passage. The first one is the item's: whoever writes, walks or counts
sees it alone. The others have ids that say whose they are, carry the same payload and go with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rayapp.index import records
from rayapp.index.ports import VectorIndex
from rayapp.index.records import PAYLOAD, Projection
from rayapp.index.rules.points import PASSAGE, PASSAGES, is_passage, item_point, passage_point
from rayapp.memory.scope import ItemFilter, ReadScope

# A list that few items with many passages fill is asked for again, so many times longer, up to the
# most passages that an item has.
DEEPER = 8
DEEPEST = 64


class PassageIndex:
    """`engine` knows points only. Each operation on items takes their other passages along."""

    def __init__(self, engine: VectorIndex) -> None:
        self._engine = engine
        # What is the same for items as for points.
        self.open, self.close, self.health = engine.open, engine.close, engine.health
        self.create_collection = engine.create_collection
        self.drop_collection = engine.drop_collection
        self.collections, self.schema_of = engine.collections, engine.schema_of
        self.switch_alias, self.rebuilt = engine.switch_alias, engine.rebuilt
        self.retrieve, self.count = engine.retrieve, engine.count
        self.unencoded = engine.unencoded

    def at(self, collection: str | None) -> "PassageIndex":
        return PassageIndex(self._engine.at(collection))

    async def upsert(self, points: Sequence[records.IndexPoint]) -> None:
        """As the engine, once the passages that the text has no more are taken out."""
        if not points:
            return
        held = await _held(self._engine, [point.point_id for point in points])
        firsts = {
            point.point_id: _First(1 + len(point.passages), point.rev)
            for point in points
            if point.rev >= held.get(point.point_id, ALONE).rev
        }
        # Before the first point says how few there are: a repeat would not know of the others.
        await self._cut(firsts, held)
        # Of an older text its first point alone, which the engine refuses.
        texts = [
            one if one.point_id in firsts else replace(one, passages=(), encoder=one.encoder[:1])
            for one in points
        ]
        await self._engine.upsert([row for point in texts for row in _rows(point)])
        await self._settle(firsts)

    async def copy(self, points: Sequence[records.PointCopy], source: str) -> list[str]:
        ids = [point.point_id for point in points]
        counts, held = await _held(self._engine.at(source), ids), await _held(self._engine, ids)
        firsts = {
            point.point_id: _First(counts.get(point.point_id, ALONE).passages, point.rev)
            for point in points
            if point.rev >= held.get(point.point_id, ALONE).rev
        }
        copies = [
            replace(point, point_id=point_id, payload=_payload_of(point.payload, number, count))
            for point in points
            for count in (firsts.get(point.point_id, ALONE).passages,)
            for number, point_id in enumerate(_ids(point.point_id, count))
        ]
        await self._cut(firsts, held)
        left = await self._engine.copy(copies, source)
        await self._settle(firsts)
        return list(dict.fromkeys(item_point(point_id)[0] for point_id in left))

    async def set_payload(self, updates: Sequence[records.PayloadUpdate]) -> None:
        held = await _held(self._engine, [update.point_id for update in updates])
        await self._engine.set_payload(
            [
                replace(update, point_id=point_id)
                for update in updates
                for point_id in _ids(update.point_id, held.get(update.point_id, ALONE).passages)
            ]
        )

    async def set_encoder(self, updates: Sequence[records.EncoderUpdate]) -> None:
        """As the engine, the first passage of each last: an item that has it has all of them."""
        held = await _held(self._engine, [update.point_id for update in updates])
        rows = [
            replace(update, point_id=passage_point(update.point_id, number), vectors=(vector,))
            for update in updates
            if held.get(update.point_id, ALONE).passages == len(update.vectors)
            for number, vector in reversed(list(enumerate(update.vectors)))
        ]
        await self._engine.set_encoder(rows)

    async def delete(self, point_ids: Sequence[str], revs: Mapping[str, int] | None = None) -> None:
        held = await _held(self._engine, point_ids)
        owner = {
            one: point_id
            for point_id in point_ids
            for one in _ids(point_id, held.get(point_id, ALONE).passages)
        }
        known = None if revs is None else {one: revs[whose] for one, whose in owner.items()}
        await self._engine.delete(list(owner), known)

    async def query(
        self, scope: ReadScope, where: ItemFilter, sub_queries: Sequence[records.SubQuery]
    ) -> list[list[records.ScoredPoint]]:
        """One list of items per sub-query, each by its best passage."""
        asked = list(sub_queries)
        found = await self._engine.query(scope, where, asked)
        answers = [_by_item(hits) for hits in found]
        factor = 1
        while factor < DEEPEST:
            factor = min(DEEPEST, factor * DEEPER)
            short = [
                at
                for at, sub_query in enumerate(sub_queries)
                if len(answers[at]) < sub_query.limit and len(found[at]) >= asked[at].limit
            ]
            if not short:
                break
            for at in short:
                asked[at] = replace(sub_queries[at], limit=sub_queries[at].limit * factor)
            again = await self._engine.query(scope, where, [asked[at] for at in short])
            for at, hits in zip(short, again, strict=True):
                found[at], answers[at] = hits, _by_item(hits)
        return [
            hits[: sub_query.limit] for hits, sub_query in zip(answers, sub_queries, strict=True)
        ]

    async def scroll(
        self,
        *,
        after: str | None,
        limit: int,
        until: str | None = None,
        read: Projection = PAYLOAD,
        unencoded: bool = False,
    ) -> records.Page:
        """The points of items; those of their other passages are walked over."""
        kept: list[records.StoredPoint] = []
        following = after
        while True:
            page, following = await self._engine.scroll(
                after=following, limit=limit, until=until, read=read, unencoded=unencoded
            )
            kept += [point for point in page if not is_passage(point.point_id)]
            if len(kept) > limit:
                return kept[:limit], kept[limit - 1].point_id
            if following is None or len(kept) == limit:
                return kept, following

    async def _settle(self, written: Mapping[str, "_First"]) -> None:
        """Take out what was written beside a newer text, or a deletion, of the same moment."""
        several = {point_id: one for point_id, one in written.items() if one.passages > 1}
        held = await _held(self._engine, list(several))
        stays = {
            point_id: held.get(point_id, ALONE._replace(rev=one.rev))
            for point_id, one in several.items()
        }
        await self._cut(stays, several)

    async def _cut(self, wanted: Mapping[str, "_First"], held: Mapping[str, "_First"]) -> None:
        """Take out the passages beyond those that an item has now."""
        surplus = {
            passage_point(point_id, number): one.rev
            for point_id, one in wanted.items()
            for number in range(one.passages, held.get(point_id, ALONE).passages)
        }
        if surplus:
            await self._engine.delete(list(surplus), surplus)


class _First(NamedTuple):
    """What the first point of an item says: its passages, and the revision of all of them."""

    passages: int
    rev: int


ALONE = _First(1, 0)


async def _held(engine: VectorIndex, point_ids: Sequence[str]) -> dict[str, _First]:
    """Of those items that the engine holds."""
    if not point_ids:
        return {}
    stored = await engine.retrieve(point_ids, Projection((PASSAGES, "rev")))
    return {
        point.point_id: _First(point.payload.get(PASSAGES, 1), point.payload.get("rev", 0))
        for point in stored
    }


def _ids(point_id: str, count: int) -> Iterable[str]:
    return (passage_point(point_id, number) for number in range(count))


def _rows(point: records.IndexPoint) -> Iterable[records.IndexPoint]:
    """A point of an item as those of its passages, the item's own first."""
    vectors = ((point.dense, point.sparse), *point.passages)
    for number, (dense, sparse) in enumerate(vectors):
        yield records.IndexPoint(
            point_id=passage_point(point.point_id, number),
            dense=dense,
            sparse=sparse,
            payload=_payload_of(point.payload, number, len(vectors)),
            rev=point.rev,
            encoder=point.encoder[number : number + 1],
        )


def _payload_of(payload: Mapping[str, Any], number: int, count: int) -> dict[str, Any]:
    said = {PASSAGE: number} if number else {PASSAGES: count} if count > 1 else {}
    return {**payload, **said}


def _by_item(hits: Sequence[records.ScoredPoint]) -> list[records.ScoredPoint]:
    """Each item once, in the place of its best passage."""
    best: dict[str, records.ScoredPoint] = {}
    for hit in hits:
        point_id, passage = item_point(hit.point_id)
        best.setdefault(point_id, records.ScoredPoint(point_id, hit.score, passage))
    return list(best.values())
