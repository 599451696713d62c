"""Reads the memories that stand before every question: few reads, each by an index, in parallel."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime

from rayapp.assistant.context.records import Section
from rayapp.assistant.context.rules.pinned import IDENTITY_TAGS, PREFERENCE_TAGS, standing_of
from rayapp.assistant.context.rules.prompt_block import Placed
from rayapp.core.settings.context import ContextSettings
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import MemoryStore
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import Tier

# Newest memories of one kind among which the best are chosen: far more than stand, so that a new
# one evicts none that is worth more. Measured on one mongod: with 300 patterns about 10 ms more
# than reading the places alone; with fewer memories than this, nothing.
CHOSEN_FROM = 100


class StandingMemories:
    """What is pinned, who the user is, what they prefer, and what has proven itself."""

    def __init__(self, items: MemoryStore, settings: ContextSettings) -> None:
        self._items = items
        self._most: dict[Section, int] = {
            "identity": settings.identity,
            "preference": settings.preferences,
            "pattern": settings.patterns,
            "always": settings.always_inject,
        }

    async def read(
        self, scope: ReadScope, now: datetime, *, patterns: bool = True
    ) -> tuple[Placed, ...]:
        """In the order of the block. What was replaced, archived or is over is not among it."""
        most = self._sizes(patterns)
        # A pinned fact may stand among the facts about the user, so its page serves all sections.
        pinned = max(most.values())
        pages = await asyncio.gather(
            self._newest(scope, ItemFilter(always_inject=True, now=now, valid_at=now), pinned),
            self._newest(scope, _tagged(IDENTITY_TAGS, now), most["identity"]),
            self._newest(scope, _tagged(PREFERENCE_TAGS, now), most["preference"]),
            self._newest(
                scope, ItemFilter(tiers=(Tier.PATTERNS,), now=now, valid_at=now), most["pattern"]
            ),
        )
        return standing_of((item for page in pages for item in page), most)

    def _sizes(self, patterns: bool) -> Mapping[Section, int]:
        return self._most if patterns else {**self._most, "pattern": 0}

    async def _newest(
        self, scope: ReadScope, where: ItemFilter, places: int
    ) -> tuple[MemoryItem, ...]:
        """Of the user's own: nobody else's memory stands before their questions.

        What is read does not follow from the places, which are given by worth and not by age.
        """
        if places < 1:
            return ()
        own = ReadScope(scope.user_id, include_shared=False)
        page = await self._items.page(own, where, sort="recent", limit=max(places, CHOSEN_FROM))
        return tuple(page.items)


def _tagged(tags: tuple[str, ...], now: datetime) -> ItemFilter:
    return ItemFilter(tiers=(Tier.MEMORY_BANK,), tags_any=tags, now=now, valid_at=now)
