"""One user's searchable memories as columns, and the lists that a search takes from them. Pure.

The rows are passages; those of a memory stand side by side. The statistics of words are the user's
own (decision 0055).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rayapp.core.vectors import SparseVector, Vector
from rayapp.memory.item import MemoryItem
from rayapp.memory.rules.filtering import kept
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import SURVIVES_EXPIRY_SCORE, Tier
from rayapp.search.rules.candidates import (
    NO_HITS,
    Bools,
    Candidates,
    Floats,
    HitLists,
    Hits,
    Ints,
    Reach,
    Unencoded,
    joined,
)

Scores = npt.NDArray[Any]  # float32 or float64

# Of a memory beside its text and its columns: the objects of a `MemoryItem` (measured).
ITEM_BYTES = 1_500
# The same of what a document or open data says of it.
BOOK_BYTES = 2_000
# Parts of a view; one more joins them all. Each costs a search a few microseconds.
MOST_PARTS = 6
# Memories that changed are few beside a part that is this many times as large.
FEW = 4
# The encoder's vectors are held as int8, a quarter of float32, and multiplied as float32: so many
# rows at once stay in the processor's cache.
CODED_ROWS = 1_024
LARGEST_CODE = 127.0
# The gap of the encoder is that to this memory.
TENTH = 10
# HitLists of memories that the index does not hold yet: the best of them by words.
MOST_PENDING = 200
TIERS = {tier: code for code, tier in enumerate(Tier)}
# Conditions that columns answer; a filter with others is asked of the memories themselves.
COLUMNS = frozenset(
    {
        *("tiers", "statuses", "now", "valid_at", "include_superseded"),
        *("attached_to", "include_attached", "always_inject", "instruction"),
    }
)


@dataclass(frozen=True, slots=True)
class Row:
    """A memory with what the index holds of its text.

    Attributes:
        dense: float32 `[passages, dims]`, normalised; None: not embedded yet.
        sparse: document side of each passage.
        encoder: the encoder's vectors as `dense`; None: it read nothing of it yet.
    """

    item: MemoryItem
    dense: Vector | None
    sparse: Sequence[SparseVector]
    encoder: Vector | None = None


class Question(NamedTuple):
    """What is asked of a view: the vectors of the question, normalised, and its words. None: that
    retriever takes no part."""

    words: SparseVector
    dense: Vector | None = None
    encoder: Vector | None = None


class Held(NamedTuple):
    """A memory as it is held, and which vectors there are of it."""

    item: MemoryItem
    embedded: bool
    encoded: bool


class Postings(NamedTuple):
    """Words by passage: `rows[begins[n]:begins[n + 1]]` hold `slots[n]`, with their `values`."""

    slots: Ints
    begins: Ints
    rows: Ints
    values: Floats


class Found(NamedTuple):
    """Places of words in passages, word by word: which of the words, its passage, its value."""

    word: Ints
    rows: Ints
    values: Floats


class _Held(NamedTuple):
    """The words of a query: what each weighs, how many memories hold it, and where."""

    slots: Ints
    weights: Floats
    counts: Ints
    found: Sequence[Found]


class _Vectors(NamedTuple):
    """Of the passages of a part: `codes` of the encoder, each row to be multiplied by its scale.
    `embedded`, `encoded`: which memories have them."""

    dense: Vector
    embedded: Bools
    codes: npt.NDArray[np.int8]
    scales: Vector
    encoded: Bools

    def only(self, rows: Bools, items: Bools) -> "_Vectors":
        return _Vectors(
            self.dense[rows],
            self.embedded[items],
            self.codes[rows],
            self.scales[rows],
            self.encoded[items],
        )

    def read(self, vector: Vector) -> Vector:
        """The encoder's nearness of each passage; 0 where there is no vector."""
        near = np.empty(len(self.codes), np.float32)
        for begin in range(0, len(near), CODED_ROWS):
            rows = slice(begin, begin + CODED_ROWS)
            np.dot(self.codes[rows].astype(np.float32), vector, out=near[rows])
        near *= self.scales
        return near


class _Part:
    """Memories that came together. Nothing of it changes but who is still there."""

    def __init__(
        self,
        items: Sequence[MemoryItem],
        counts: Ints,
        vectors: _Vectors,
        words: tuple[Ints, Ints, Floats],
    ) -> None:
        """`counts`: passages of each. `words`: slot, passage and value of each, in any order."""
        self.items, self.counts, self.vectors = list(items), counts, vectors
        self.begins: Ints = np.cumsum(counts) - counts
        self.owner: Ints = np.repeat(np.arange(len(items)), counts)
        self.alive: Bools = np.ones(len(items), np.bool_)
        self.tiers = np.array([TIERS[item.tier] for item in items], np.int8)
        self.expires = np.array([_expires(item) for item in items])
        self.valid_from = np.array([_seconds(item.valid_from, -np.inf) for item in items])
        self.valid_to = np.array([_seconds(item.valid_to, np.inf) for item in items])
        self.superseded = np.array([item.superseded_by is not None for item in items], np.bool_)
        self.attached = np.array([item.attached_to is not None for item in items], np.bool_)
        self.pinned = np.array([item.always_inject for item in items], np.bool_)
        self.instructs = np.array([item.instruction is not None for item in items], np.bool_)
        self.postings = _postings(*words)
        self.text_bytes = sum(map(_bytes_of, items))

    @property
    def nbytes(self) -> int:
        arrays = (*self.vectors, *self.postings)
        return self.text_bytes + sum(array.nbytes for array in arrays)

    @property
    def words(self) -> tuple[Ints, Ints, Floats]:
        found = self.postings
        return np.repeat(found.slots, np.diff(found.begins)), found.rows, found.values

    def fitting(self, where: ItemFilter) -> Bools:
        """Which memories the filter keeps."""
        ok = self.alive.copy()
        if where.tiers is not None:
            asked = np.zeros(len(TIERS), np.bool_)
            asked[[TIERS[tier] for tier in where.tiers]] = True
            ok &= asked[self.tiers]
        if where.now is not None:
            ok &= self.expires > where.now.timestamp()
        if where.valid_at is not None:
            at = where.valid_at.timestamp()
            ok &= (self.valid_from <= at) & (self.valid_to > at)
        if not where.include_superseded:
            ok &= ~self.superseded
        if not where.include_attached and self.attached.any():
            ok &= ~self.attached | self._attached_to(where.attached_to)
        if where.always_inject is not None:
            ok &= self.pinned == where.always_inject
        if where.instruction is not None:
            ok &= self.instructs == where.instruction
        if not _by_columns(where):
            there = np.flatnonzero(ok)
            wanted = {id(item) for item in kept((self.items[at] for at in there), where)}
            ok[there] = [id(self.items[at]) in wanted for at in there]
        return ok

    def _attached_to(self, conversation: str | None) -> Bools:
        mine = np.zeros(len(self.items), np.bool_)
        if conversation is not None:
            there = np.flatnonzero(self.attached)
            mine[there] = [self.items[at].attached_to == conversation for at in there]
        return mine

    def found(self, slots: Ints) -> Found:
        """What the passages hold of the words."""
        postings = self.postings
        if not len(postings.slots):
            return Found(slots[:0], slots[:0], np.zeros(0))
        at = np.minimum(np.searchsorted(postings.slots, slots), len(postings.slots) - 1)
        spans = [
            slice(begin, end)
            for begin, end in zip(
                postings.begins[at].tolist(), postings.begins[at + 1].tolist(), strict=True
            )
        ]
        lengths = np.where(
            postings.slots[at] == slots, postings.begins[at + 1] - postings.begins[at], 0
        )
        there = [span for span, length in zip(spans, lengths.tolist(), strict=True) if length]
        if not there:
            return Found(slots[:0], slots[:0], np.zeros(0))
        return Found(
            np.repeat(np.arange(len(slots)), lengths),
            np.concatenate([postings.rows[span] for span in there]),
            np.concatenate([postings.values[span] for span in there]),
        )

    def holders(self, found: Found, words: int) -> Ints:
        """How many memories hold each of the words: a long text counts once."""
        owners = self.owner[found.rows]
        alive = self.alive[owners]
        word, owners = found.word[alive], owners[alive]
        # The passages of a word are in their order, so those of one memory follow each other.
        other = np.ones(len(word), np.bool_)
        other[1:] = (word[1:] != word[:-1]) | (owners[1:] != owners[:-1])
        return np.bincount(word[other], minlength=words)

    def of_item(self, scores: Scores) -> Scores:
        """The best passage's score of each memory."""
        if len(self.items) == len(scores):
            return scores
        best: Scores = np.maximum.reduceat(scores, self.begins)
        return best

    def passages(self, scores: Scores, at: Ints) -> Ints:
        """Numbers of the passages that score best of the memories at `at`, the first of equals."""
        if len(self.items) == len(scores):
            return np.zeros(len(at), np.int64)
        spans = zip(self.begins[at].tolist(), self.counts[at].tolist(), strict=True)
        return np.array([np.argmax(scores[begin : begin + n]) for begin, n in spans], np.int64)


class UserView:
    """What a search of one user reads; `put`, `set_items`, `drop` change it between searches.

    `encoder_dims`: 0 where the encoder is off.
    """

    def __init__(self, rows: Sequence[Row], dims: int, encoder_dims: int = 0) -> None:
        self._dims, self._encoder_dims = dims, encoder_dims
        self._parts: list[_Part] = []
        self._places: dict[str, tuple[_Part, int]] = {}
        # How often it was changed.
        self.changed = 0
        self.put(rows)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts)

    def held(self, point_id: str) -> Held | None:
        place = self._places.get(point_id)
        if place is None:
            return None
        part, at = place
        vectors = part.vectors
        return Held(part.items[at], bool(vectors.embedded[at]), bool(vectors.encoded[at]))

    def put(self, rows: Sequence[Row]) -> None:
        """Add memories, or replace what is held under their ids."""
        if not rows:
            return
        self.changed += 1
        self.drop([row.item.point_id for row in rows])
        self._add(_part_of(rows, self._dims, self._encoder_dims))
        if len(self._parts) > MOST_PARTS:
            self._join()

    def _join(self) -> None:
        """All parts, or those beside the first while they are few: a large one takes long."""
        first, rest = self._parts[0], self._parts[1:]
        changed = sum(len(part.items) for part in rest) + np.count_nonzero(~first.alive)
        left = [first] if changed * FEW < len(first.items) else []
        joined = _joined(self._parts[len(left) :])
        self._parts = left
        self._add(joined)

    def set_items(self, items: Iterable[MemoryItem]) -> None:
        """Memories whose words are as they were: their columns alone are made anew."""
        self.changed += 1
        for item in items:
            part, at = self._places[item.point_id]
            part.items[at] = item
            part.tiers[at] = TIERS[item.tier]
            part.expires[at] = _expires(item)
            part.valid_from[at] = _seconds(item.valid_from, -np.inf)
            part.valid_to[at] = _seconds(item.valid_to, np.inf)
            part.superseded[at] = item.superseded_by is not None
            part.attached[at] = item.attached_to is not None
            part.pinned[at] = item.always_inject
            part.instructs[at] = item.instruction is not None

    def drop(self, point_ids: Iterable[str]) -> None:
        self.changed += 1
        for point_id in point_ids:
            place = self._places.pop(point_id, None)
            if place is not None:
                place[0].alive[place[1]] = False

    def items(self, point_ids: Iterable[str]) -> list[MemoryItem]:
        """Those of them that are held."""
        places = (self._places.get(point_id) for point_id in point_ids)
        return [place[0].items[place[1]] for place in places if place is not None]

    def kept(self, where: ItemFilter) -> list[MemoryItem]:
        """Those that the filter keeps, in no order."""
        return [
            part.items[at]
            for part in self._parts
            for at in np.flatnonzero(part.fitting(where)).tolist()
        ]

    def candidates(
        self,
        question: Question,
        where: ItemFilter,
        depths: Mapping[Tier, int],
        wanted: Iterable[str] = (),
        own: Collection[int] | None = None,
    ) -> Candidates:
        """The nearest and the best by words of each tier, `depths` of them. `wanted`: points that
        are candidates anyway. `own`: of the query those words that the user wrote; None: all.

        What is not embedded yet is found by its words alone, what the encoder did not read yet
        without it.
        """
        fits = [part.fitting(where) for part in self._parts]
        words, held = self._sparse(question.words)
        pairs = list(zip(self._parts, fits, strict=True))
        embedded = [part.vectors.embedded & fit for part, fit in pairs]
        waiting = [~part.vectors.embedded & fit for part, fit in pairs]
        dense = pending = encoder = NO_HITS
        if question.dense is not None:
            near = [part.vectors.dense @ question.dense for part in self._parts]
            dense = self._best(near, embedded, depths, floor=-np.inf)
        if question.encoder is not None:
            read = [part.vectors.read(question.encoder) for part in self._parts]
            encoded = [part.vectors.encoded & fit for part, fit in pairs]
            encoder = self._best(read, encoded, depths, floor=-np.inf)
        sparse = self._best(words, embedded, depths, floor=0.0)
        if any(one.any() for one in waiting):
            late = dict.fromkeys(depths, MOST_PENDING)
            pending = self._best(words, waiting, late, floor=0.0)
        also = np.array([self._place(one) for one in wanted if one in self._places], np.int64)
        lists = HitLists(dense, sparse, pending, encoder)
        found, places = joined(lists, also, self._items_at)
        if question.encoder is not None:
            found = replace(
                found,
                encoded=np.concatenate([part.vectors.encoded for part in self._parts])[places]
                if self._parts
                else found.encoded,
                unencoded=_unencoded(encoded, embedded),
            )
        if question.dense is None:
            return found
        return replace(found, reach=self._reach(held, own, fits, lists))

    def _reach(
        self, held: _Held, own: Collection[int] | None, fits: Sequence[Bools], lists: HitLists
    ) -> Reach:
        """How far the user's own words reach into what fits."""
        slots, weights, counts, found = held
        mine = np.ones(len(slots), np.bool_) if own is None else np.isin(slots, list(own))
        covered = 0.0
        for part, words, fit in zip(self._parts, found, fits, strict=True):
            rows = mine[words.word]
            scores = np.bincount(
                words.rows[rows], (words.values * weights[words.word])[rows], len(part.owner)
            )
            covered = max(covered, float(part.of_item(scores)[fit].max(initial=0.0)))
        read, gap = _encoder_reach(lists.encoder)
        return Reach(
            memories=sum(int(np.count_nonzero(fit)) for fit in fits),
            nearest=float(lists.dense.scores.max(initial=0.0)),
            covered=covered,
            mass=float(weights[mine].sum()),
            unknown=float(weights[mine & (counts == 0)].sum()),
            holders=dict(zip(slots[mine].tolist(), counts[mine].tolist(), strict=True)),
            encoder_nearest=read,
            encoder_gap=gap,
        )

    def _best(
        self,
        scores: Sequence[Scores],
        fits: Sequence[Bools],
        depths: Mapping[Tier, int],
        floor: float,
    ) -> Hits:
        """Of those that fit, the memories of each tier whose scores are highest and above `floor`,
        best first over all tiers; ties by id."""
        if not self._parts or not depths:
            return NO_HITS
        pairs = list(zip(self._parts, scores, strict=True))
        best = np.concatenate([part.of_item(values) for part, values in pairs])
        tiers = np.concatenate([part.tiers for part in self._parts])
        may = np.concatenate(fits) & (best > floor)
        chosen = [
            _highest(best, np.flatnonzero(may & (tiers == TIERS[tier])), depth)
            for tier, depth in depths.items()
        ]
        places = np.sort(np.concatenate(chosen))
        by_part = [
            part.passages(values, at)
            for (part, values), at in zip(pairs, self._by_part(places), strict=True)
        ]
        passages = np.concatenate(by_part)
        ids = (item.point_id for item in self._items_at(places))
        rows = zip((-best[places]).tolist(), ids, range(len(places)), strict=True)
        order = np.array([at for _, _, at in sorted(rows)], np.int64)
        hits = Hits(places[order], best[places[order]], passages[order])
        return hits.only(_within(tiers[hits.places], depths))

    def _by_part(self, places: Ints) -> list[Ints]:
        """Sorted places of the view as those of each part."""
        begins = np.cumsum([0, *(len(part.items) for part in self._parts)])
        cuts = np.searchsorted(places, begins).tolist()
        return [
            places[low:high] - begin
            for begin, (low, high) in zip(begins[:-1].tolist(), pairwise(cuts), strict=True)
        ]

    def _items_at(self, places: Ints) -> list[MemoryItem]:
        """The memories at sorted places of the view."""
        parts = zip(self._parts, self._by_part(places), strict=True)
        return [part.items[at] for part, mine in parts for at in mine.tolist()]

    def _place(self, point_id: str) -> int:
        part, at = self._places[point_id]
        before = self._parts[: self._parts.index(part)]
        return sum(len(one.items) for one in before) + at

    def _sparse(self, query: SparseVector) -> tuple[list[Scores], _Held]:
        """BM25 of the passages, by ln(1 + (N - n + 0.5) / (n + 0.5)) over the user's memories; and
        what it is made of."""
        slots = np.array(query.indices, np.int64)
        found = [part.found(slots) for part in self._parts]
        total, counts = 0, np.zeros(len(slots), np.int64)
        for part, words in zip(self._parts, found, strict=True):
            total += int(np.count_nonzero(part.alive))
            counts += part.holders(words, len(slots))
        weights = np.array(query.values) * np.log1p((total - counts + 0.5) / (counts + 0.5))
        scores: list[Scores] = [
            np.bincount(words.rows, words.values * weights[words.word], len(part.owner))
            for part, words in zip(self._parts, found, strict=True)
        ]
        return scores, _Held(slots, weights, counts, found)

    def _add(self, part: _Part) -> None:
        self._parts.append(part)
        self._places |= {item.point_id: (part, at) for at, item in enumerate(part.items)}


def _unencoded(encoded: Sequence[Bools], embedded: Sequence[Bools]) -> Unencoded:
    total = sum(int(np.count_nonzero(one)) for one in embedded)
    read = sum(int(np.count_nonzero(one)) for one in encoded)
    return Unencoded(total - read, total)


def _encoder_reach(hits: Hits) -> tuple[float | None, float | None]:
    """How near the nearest is and how much nearer than the tenth, of hits that are best first."""
    if not len(hits.scores):
        return None, None
    best, tenth = hits.scores[0], hits.scores[:TENTH][-1]
    return float(best), float(best - tenth)


def _highest(scores: Scores, at: Ints, depth: int) -> Ints:
    """Which of `at` have the highest scores: `depth` of them, and all that are as good as the last
    one."""
    if len(at) <= depth:
        return at
    mine = scores[at]
    among: Ints = at[mine >= np.partition(mine, len(mine) - depth)[len(mine) - depth]]
    return among


def _within(tiers: Ints, depths: Mapping[Tier, int]) -> Bools:
    """Which of the rows are among the first `depths` of their tier."""
    ok = np.ones(len(tiers), np.bool_)
    for tier, depth in depths.items():
        ok[np.flatnonzero(tiers == TIERS[tier])[depth:]] = False
    return ok


def _coded(vectors: Vector) -> tuple[npt.NDArray[np.int8], Vector]:
    """Rows as int8, each with the scale of its largest number."""
    scales = (np.abs(vectors).max(axis=1, initial=0.0) / LARGEST_CODE).astype(np.float32)
    codes = np.rint(vectors / np.where(scales > 0.0, scales, 1.0)[:, None]).astype(np.int8)
    return codes, scales


def _part_of(rows: Sequence[Row], dims: int, encoder_dims: int) -> _Part:
    counts = np.array([len(row.sparse) for row in rows])
    dense = np.zeros((int(counts.sum()), dims), np.float32)
    codes = np.zeros((len(dense), encoder_dims), np.int8)
    scales = np.zeros(len(dense), np.float32)
    begin = 0
    for row in rows:
        here = slice(begin, begin + len(row.sparse))
        if row.dense is not None:
            dense[here] = row.dense
        if row.encoder is not None and encoder_dims:
            codes[here], scales[here] = _coded(row.encoder)
        begin += len(row.sparse)
    passages = [passage for row in rows for passage in row.sparse]
    return _Part(
        [row.item for row in rows],
        counts,
        _Vectors(
            dense,
            np.array([row.dense is not None for row in rows], np.bool_),
            codes,
            scales,
            np.array([encoder_dims and row.encoder is not None for row in rows], np.bool_),
        ),
        (
            np.array([slot for one in passages for slot in one.indices], np.int64),
            np.repeat(np.arange(len(passages)), [len(one.indices) for one in passages]),
            np.array([value for one in passages for value in one.values]),
        ),
    )


def _joined(parts: Sequence[_Part]) -> _Part:
    """What is still there of all of them."""
    items: list[MemoryItem] = []
    words: list[tuple[Ints, Ints, Floats]] = []
    begin = 0
    for part in parts:
        there = part.alive[part.owner]
        place = np.cumsum(there) - 1 + begin
        slots, rows, values = part.words
        here = there[rows]
        words.append((slots[here], place[rows[here]], values[here]))
        items += [item for item, alive in zip(part.items, part.alive, strict=True) if alive]
        begin += int(there.sum())
    slots, rows, values = (np.concatenate(column) for column in zip(*words, strict=True))
    vectors = [part.vectors.only(part.alive[part.owner], part.alive) for part in parts]
    return _Part(
        items,
        np.concatenate([part.counts[part.alive] for part in parts]),
        _Vectors(*(np.concatenate(column) for column in zip(*vectors, strict=True))),
        (slots, rows, values),
    )


def _postings(slots: Ints, rows: Ints, values: Floats) -> Postings:
    order = np.argsort(slots, kind="stable")
    distinct, begins = np.unique(slots[order], return_index=True)
    return Postings(
        distinct, np.append(begins, len(slots)), rows[order].astype(np.int32), values[order]
    )


def _by_columns(where: ItemFilter) -> bool:
    """Whether `where` asks for nothing but what columns say."""
    return all(
        getattr(where, one.name) == one.default for one in fields(where) if one.name not in COLUMNS
    )


def _bytes_of(item: MemoryItem) -> int:
    detailed = item.source.book is not None or item.source.datagov is not None
    return 2 * len(item.text) + ITEM_BYTES + (BOOK_BYTES if detailed else 0)


def _expires(item: MemoryItem) -> float:
    """When its time is over, epoch seconds; a high score outlives it (decision 0015)."""
    survives = item.stats.score >= SURVIVES_EXPIRY_SCORE
    return np.inf if survives else _seconds(item.expires_at, np.inf)


def _seconds(at: datetime | None, otherwise: float) -> float:
    return otherwise if at is None else at.timestamp()
