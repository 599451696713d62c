"""What of a ranked list is shown: near-duplicates once, quotas for open data and for documents, and
of several lists the best of each."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any

from rayapp.memory.item import MemoryItem, subject_of
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import DATAGOV_TIERS, Tier
from rayapp.search.requests import ConfidenceLabel, Hit, SearchAnswer
from rayapp.search.rules.confidence import LEVELS
from rayapp.search.rules.knowledge import KNOWN
from rayapp.text.utterance import reading

# Near-duplicates are shown once: the better-scored one carries the ids of the others.

MayCollapse = Callable[[str, str], bool]
# Of the sketch of a text's words: a passage has about 250.
WORD_BITS = 1_024
# A pair that just reaches the threshold is not left out by an error in the last digit.
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Kept:
    """Index into the input order, with the ids it stands for."""

    index: int
    collapsed_ids: tuple[str, ...]


@dataclass(frozen=True)
class _Words:
    """`bits`: one for each of the `count` words, words may share one. A bit that two texts do not
    share is a word that they do not share, which is counted in a tenth of the time that comparing
    words takes."""

    text: str
    count: int
    bits: int

    @cached_property
    def tokens(self) -> frozenset[str]:
        return _tokens(self.text)


@dataclass(slots=True)
class _Face:
    index: int
    item: MemoryItem
    words: _Words
    collapsed: list[str]


def _words_of(text: str) -> _Words:
    count, bits = _sketch(text)
    return _Words(text, count, bits)


def _tokens(text: str) -> frozenset[str]:
    return frozenset(text.casefold().split())


@reading
def _sketch(text: str) -> tuple[int, int]:
    tokens, bits = _tokens(text), 0
    for token in tokens:
        bits |= 1 << (hash(token) % WORD_BITS)
    return len(tokens), bits


# Faces that an item is compared with, word by word: what says nearly the same ranks nearly alike.
NEAR = 100
# Beyond so many only equal texts collapse: every page makes all the pages before it anew, and a
# hundred comparisons of texts from one template take 5 ms.
FEW = 200


def collapse(
    items: Sequence[MemoryItem],
    *,
    similarity: float,
    wanted: int,
    may_collapse: MayCollapse,
    told: Sequence[MemoryItem] = (),
) -> list[Kept]:
    """Walk best first until `wanted` distinct items are found; what says the same as one of `told`,
    which was shown before them, is none.

    Two items about one person are the same when their normalised text is equal, or when they stand
    near each other, their token sets overlap by `similarity` (Jaccard) and `may_collapse` sees
    equal numbers, entities and polarity.
    """
    faces = [_Face(-1, item, _words_of(item.text), []) for item in told]
    by_text = {_said(face.item): face for face in faces}
    for index, item in enumerate(items):
        words = _words_of(item.text)
        near = faces[-NEAR:] if len(faces) <= FEW else ()
        twin = by_text.get(_said(item)) or next(
            (one for one in near if _same(one, item, words, similarity, may_collapse)), None
        )
        if twin is not None:
            twin.collapsed.append(item.memory_id)
        elif len(faces) - len(told) < wanted:
            faces.append(_Face(index, item, words, []))
            by_text[_said(item)] = faces[-1]
        else:
            break
    return [Kept(face.index, tuple(face.collapsed)) for face in faces[len(told) :]]


def _said(item: MemoryItem) -> tuple[str | None, str]:
    """About whom, and what."""
    return subject_of(item), item.content_hash


def _same(
    face: _Face, item: MemoryItem, words: _Words, similarity: float, may_collapse: MayCollapse
) -> bool:
    together = face.words.count + words.count
    apart = (face.words.bits ^ words.bits).bit_count()  # words of one alone, at least
    if not together or together - apart < similarity * (together + apart) - ROUNDING:
        return False  # the overlap cannot reach the threshold: skip the set work
    fewer, more = sorted((face.words.count, words.count))
    if fewer < similarity * more - ROUNDING:
        return False  # nor here, where so many words share the bits that the sketches say little
    shared = len(face.words.tokens & words.tokens)
    if shared / (together - shared) < similarity:
        return False
    if subject_of(face.item) != subject_of(item):
        return False
    return may_collapse(face.item.text, item.text)


# Places that a reader looks at together; a smaller page is a block of its own.
BLOCK = 10
# Hits of one dataset in a block: the dataset and its best resource.
PER_DATASET = 2
# Passages of one document in a block of a search that asks for more than documents: a book has
# hundreds, and what else is remembered of its subject has one place.
PER_DOCUMENT = 3
# Share of a block that is left to open data which nobody asked for: one in this many.
GUESSED_SHARE = 2


def is_mixed(items: Sequence[MemoryItem], where: ItemFilter) -> bool:
    """Whether documents that nobody named were found beside other memories."""
    documents = sum(1 for item in items if document_of(item))
    return where.doc_ids is None and 0 < documents < len(items)


def with_quotas(items: Sequence[MemoryItem], *, page: int, guessed: bool) -> list[int]:
    """Indices into `items`, best first as they came, in the order in which they are shown."""
    block = min(page, BLOCK)
    waiting = _dataset_first(items)
    shown: list[int] = []
    while waiting:
        taken = _fitting(items, waiting, block, guessed=guessed)
        kept = set(taken)
        waiting = [index for index in waiting if index not in kept]
        broken = {index for index in taken if _facts(items[index]).get("error")}
        shown += [index for index in taken if index not in broken]
        shown += [index for index in taken if index in broken]
    return shown


def _fitting(
    items: Sequence[MemoryItem], waiting: Sequence[int], block: int, *, guessed: bool
) -> list[int]:
    """The indices of the next block, in order."""
    most = block // GUESSED_SHARE if guessed else block
    taken: list[int] = []
    held: list[int] = []
    datasets: Counter[str] = Counter()
    passages: Counter[str] = Counter()
    shared = 0
    for index in waiting:
        if len(taken) == block:
            break
        item = items[index]
        of, open_data = dataset_of(item), item.tier in DATAGOV_TIERS
        document = document_of(item)
        if (
            (of and datasets[of] >= PER_DATASET)
            or (open_data and shared >= most)
            or (document and passages[document] >= PER_DOCUMENT)
        ):
            held.append(index)
            continue
        taken.append(index)
        passages[document] += 1
        shared += open_data
        if of:
            datasets[of] += 1
    return taken + held[: block - len(taken)]


def document_of(item: MemoryItem) -> str:
    """The document that an item is a passage of; empty for every other item."""
    return (item.source.doc_id or "") if item.tier is Tier.BOOKS else ""


def dataset_of(item: MemoryItem) -> str:
    """The dataset that a catalogue item is, or belongs to; empty for every other item."""
    found = _facts(item).get("dataset_id")
    return found if isinstance(found, str) else ""


def _dataset_first(items: Sequence[MemoryItem]) -> list[int]:
    """The item of a dataset moves before the first of its resources."""
    heads: dict[str, int] = {}
    for index, item in enumerate(items):
        if _facts(item).get("kind") == "dataset" and dataset_of(item):
            heads.setdefault(dataset_of(item), index)
    order: dict[int, None] = {}
    for index, item in enumerate(items):
        head = heads.get(dataset_of(item))
        if head is not None:
            order.setdefault(head)
        order.setdefault(index)
    return list(order)


def _facts(item: MemoryItem) -> dict[str, Any]:
    """What the catalogue says of a shared item; memories of a user are left as they are."""
    return (item.source.datagov or {}) if item.tier in DATAGOV_TIERS else {}


# Several questions of one message.


def interleave(whole: SearchAnswer, parts: Sequence[SearchAnswer], limit: int) -> SearchAnswer:
    """The best hit of each, then the second of each, at most `limit`. What one search lacked is
    lacking."""
    answers = (whole, *parts)
    unique: dict[str, Hit] = {}
    for row in zip_longest(*(one.hits for one in answers)):
        for hit in filter(None, row):
            unique.setdefault(hit.item.memory_id, hit)
    hits = list(unique.values())[:limit]
    return replace(
        whole,
        hits=tuple(replace(hit, position=place) for place, hit in enumerate(hits, start=1)),
        total=max(one.total for one in answers),
        weak=sum(one.weak for one in answers),
        knowledge=max((one.knowledge for one in answers), key=lambda one: KNOWN.index(one.known)),
        next_offset=None,
        degraded=tuple(dict.fromkeys(name for one in answers for name in one.degraded)),
        errors=tuple(error for one in answers for error in one.errors),
    )


def least_sure(answers: Sequence[SearchAnswer]) -> ConfidenceLabel:
    """Of several searches; `low` where there is none."""
    return min((one.confidence for one in answers), key=LEVELS.index, default="low")
