"""Hits that give one thing different values: the newer first, the older marked; and the newest that
speak of a thing, for who asks how it stands now. Pure.

"My phone number is …" said twice is two memories, both true of their day. Nothing replaces the
older one until somebody says so; whoever reads both must see which one holds.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

from rayapp.memory.item import MemoryItem, SourceType
from rayapp.memory.tiers import DATAGOV_TIERS, Tier
from rayapp.search.requests import Hit
from rayapp.search.rules.confidence import QUESTION_WORDS, TEXT_CHARS, content_words, held_words
from rayapp.search.rules.latest_words import LatestWords
from rayapp.search.rules.ranking import Ranked
from rayapp.search.rules.recipes import Recipe
from rayapp.text.slots import Slot, slot_of, takes_place_of

# What is not told of somebody's life has no newer word that changes it.
_IMPORTED = frozenset({SourceType.DOCUMENT, SourceType.DATAGOV})
_NO_FACTS = frozenset({Tier.BOOKS, *DATAGOV_TIERS})


# Places that the newest memories take of who asks for the latest: all that a glance sees.
LATEST_PLACES = 3
# What a word weighs that every candidate holds, beside its rarity: where all of them are of one
# thing, its name is still what says so. Our choice: from 0.15 to 0.4 it changes little (0006).
COMMON_WORD = 0.25


def latest_first(
    ranked: Sequence[Ranked], question: str, words: LatestWords, recipe: Recipe
) -> list[Ranked]:
    """The same candidates; the newest `LATEST_PLACES` that speak of what is asked come first.

    A state is told again and again, and the last word of it is seldom in the words of the question:
    "Falcon is over" shares less with "the latest status of the move" than each older report does.
    A memory speaks of it when it holds `latest_share` of the question's words by rarity among the
    candidates, those of `words` left out, which ask for the state and do not name the thing.
    Documents and open data are no word of that kind: their time is that of the upload.

    Source: leave one set out over sets of questions in both languages (`tests/unit/search/latest`,
    decision 0006).
    """
    asked = [word for word in content_words(question) if not words.marks_state(word.text)]
    asked = list(dict.fromkeys(asked))[:QUESTION_WORDS]
    if not recipe.latest_share or not asked:
        return list(ranked)
    held = [held_words(asked, content_words(one.passage_text[:TEXT_CHARS])) for one in ranked]
    weights = [_rarity(sum(column), len(held)) for column in zip(*held, strict=True)]
    least = recipe.latest_share * sum(weights)
    speaking = [
        one
        for one, row in zip(ranked, held, strict=True)
        if any(row) and sum(compress(weights, row)) >= least and _changes(one.item)
    ]
    speaking.sort(key=lambda one: one.item.created_at, reverse=True)  # of one moment: as they stood
    newest = [replace(one, latest=True) for one in speaking[:LATEST_PLACES]]
    first = {one.item.point_id for one in newest}
    return [*newest, *(one for one in ranked if one.item.point_id not in first)]


def _rarity(holders: int, among: int) -> float:
    """What a word of the question weighs; nothing where nobody says it."""
    if not holders:
        return 0.0
    return COMMON_WORD + math.log1p((among - holders + 0.5) / (holders + 0.5))


def newest_first(hits: Sequence[Hit], *, reorder: bool) -> tuple[Hit, ...]:
    """The same hits; of those that give a slot different values the newest takes the best place,
    and the others name it (`outdated_by`).

    reorder: False marks alone, for an order that the caller chose.
    """
    groups: dict[tuple[str | None, str, str], list[tuple[int, Slot]]] = defaultdict(list)
    for index, hit in enumerate(hits):
        slot = _slot(hit)
        if slot is not None:
            groups[hit.item.subject_id, slot.subject, slot.name].append((index, slot))
    shown = list(hits)
    for group in groups.values():
        if len(group) > 1:
            _mark(shown, group, reorder=reorder)
    return tuple(shown)


def _slot(hit: Hit) -> Slot | None:
    told = _changes(hit.item) and hit.item.source.type is not SourceType.TOOL
    return slot_of(hit.text) if told else None


def _changes(item: MemoryItem) -> bool:
    """Whether a newer word can change it."""
    return item.tier not in _NO_FACTS and item.source.type not in _IMPORTED


def _mark(shown: list[Hit], group: Sequence[tuple[int, Slot]], *, reorder: bool) -> None:
    at, newest = max(group, key=lambda one: shown[one[0]].item.created_at)
    by = shown[at].item
    older = {
        index
        for index, slot in group
        if shown[index].item.created_at < by.created_at and takes_place_of(newest, slot)
    }
    places = sorted((*older, at))
    rows = [
        replace(shown[place], outdated_by=by.memory_id if place in older else None)
        for place in places
    ]
    if reorder:
        rows.sort(key=lambda hit: hit.item.created_at, reverse=True)
    for place, hit in zip(places, rows, strict=True):
        shown[place] = replace(hit, position=shown[place].position)
