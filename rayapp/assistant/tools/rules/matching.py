"""Which fact a few words mean. A wrong guess changes the wrong memory, so doubt is no match."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rayapp.memory.item import MemoryItem
from rayapp.text.normalize import canonical

# Geresh and gershayim stand within Hebrew words, as the apostrophe does within English ones.
_BETWEEN = re.compile(r"[^\w'\"]+")


def the_one(items: Sequence[MemoryItem], words: str) -> MemoryItem | None:
    """The only item that says exactly this, else the only one that holds these words in a row."""
    wanted = _words(words)
    if not wanted:
        return None
    texts = {item.memory_id: _words(item.text) for item in items}
    same = [item for item in items if texts[item.memory_id] == wanted]
    holding = [item for item in items if f" {wanted} " in f" {texts[item.memory_id]} "]
    for found in (same, holding):
        if len(found) == 1:
            return found[0]
    return None


def _words(text: str) -> str:
    """Canonical words without the marks between them, so that `Haifa.` holds `haifa`."""
    return " ".join(_BETWEEN.sub(" ", canonical(text)).split())
