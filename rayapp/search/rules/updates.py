"""Hits that give one thing different values: the newer first, the older marked. Pure.

"My phone number is …" said twice is two memories, both true of their day. Nothing replaces the
older one until somebody says so; whoever reads both must see which one holds.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from rayapp.memory.item import SourceType
from rayapp.memory.tiers import DATAGOV_TIERS, Tier
from rayapp.search.requests import Hit
from rayapp.text.slots import Slot, slot_of, takes_place_of

# What is not told by a person about their life has no newer word that changes it.
_NOT_TOLD = frozenset({SourceType.DOCUMENT, SourceType.TOOL, SourceType.DATAGOV})
_NO_FACTS = frozenset({Tier.BOOKS, *DATAGOV_TIERS})


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
    item = hit.item
    told = item.tier not in _NO_FACTS and item.source.type not in _NOT_TOLD
    return slot_of(hit.text) if told else None


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
