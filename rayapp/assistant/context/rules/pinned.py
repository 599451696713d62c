"""Which memories stand in the stable part of the context, and in which order. Pure.

The order follows values that change only when the memory itself changes: an outcome moves neither
its place nor that of another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rayapp.assistant.context.records import ContextLine, Section
from rayapp.assistant.context.rules.prompt_block import STABLE_SECTIONS, Placed
from rayapp.memory.item import MemoryItem
from rayapp.memory.tiers import Tier
from rayapp.search.requests import Hit, SearchAnswer

# Place among the hits from which a standing memory is there because of the question as well. A
# search by meaning always returns something, so farther hits say nothing.
FOUND_PLACE = 3
# Share of the best hit's score that a line needs to be cited. In the tests' store of ten unrelated
# patterns, in both languages, those have at most 0.15 of it.
CITED_SHARE = 0.5
# Tags of memory_bank (client contract), and the same words in Hebrew.
IDENTITY_TAGS = ("identity", "זהות")
PREFERENCE_TAGS = ("preference", "preferences", "העדפה", "העדפות")


def section_of(item: MemoryItem) -> Section | None:
    """Where the memory stands; None when it is only told when a question asks for it."""
    tags = {tag.casefold() for tag in item.tags}
    own = item.always_inject or item.tier is Tier.MEMORY_BANK
    if own and tags.intersection(IDENTITY_TAGS):
        return "identity"
    if own and tags.intersection(PREFERENCE_TAGS):
        return "preference"
    if item.always_inject:
        return "always"
    return "pattern" if item.tier is Tier.PATTERNS else None


def standing_of(items: Iterable[MemoryItem], most: Mapping[Section, int]) -> tuple[Placed, ...]:
    """At most `most` of each section, in the order of the sections; each memory once.

    Best kept first (importance x confidence), then the oldest, so that a new memory of the same
    worth comes behind the text that prompt caches hold already.
    """
    unique = {item.point_id: item for item in items}
    by_section: dict[Section, list[MemoryItem]] = {section: [] for section in STABLE_SECTIONS}
    for item in unique.values():
        section = section_of(item)
        if section is not None:
            by_section[section].append(item)
    return tuple(
        Placed(section, item)
        for section, found in by_section.items()
        for item in _ordered(found)[: most.get(section, 0)]
    )


def cited_ids(lines: Sequence[ContextLine], search: SearchAnswer | None) -> frozenset[str]:
    """Ids of the lines that an answer can rest on, because the question brought them.

    Those are past successes with it, and hits that come near the best one; of what always stands
    only the first hits. Of a search that trusts nothing it found, no hit is cited: "hello" finds
    something, too. The rest is in the block beside the question: no verdict is about it.
    """
    trusted = search is not None and search.confidence != "low"
    hits = {hit.item.memory_id: hit for hit in search.hits} if search and trusted else {}
    best = max((hit.summary.final_score for hit in hits.values()), default=0.0)
    return frozenset(
        line.memory_id for line in lines if _is_cited(line.section, hits.get(line.memory_id), best)
    )


def _is_cited(section: Section, hit: Hit | None, best: float) -> bool:
    if hit is None:
        return section == "past"
    near = hit.summary.final_score >= CITED_SHARE * best
    return near and (section not in STABLE_SECTIONS or hit.position <= FOUND_PLACE)


def _ordered(items: Sequence[MemoryItem]) -> list[MemoryItem]:
    """What is pinned comes first: it was asked for."""
    return sorted(
        items,
        key=lambda item: (
            not item.always_inject,
            -item.quality.quality_score,
            item.created_at,
            item.memory_id,
        ),
    )
