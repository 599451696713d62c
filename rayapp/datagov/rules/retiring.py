"""Which items left the catalogue, and when a source is not to be believed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rayapp.datagov.rules.items import kind_of
from rayapp.memory.item import Status

# A catalogue that lost half of a kind at once was cut short rather than cleaned up (our choice).
MIN_SHARE = 0.5
# What says that the source did not give all it has.
CUT_SHORT = ("rows_short", "row_unreadable")
# After which a run is not complete. A table that did not answer is still in the catalogue: it says
# nothing about what left it.
INCOMPLETE = (*CUT_SHORT, "fields_unread")


@dataclass(frozen=True, slots=True)
class Retiring:
    """Ids to archive, or why none are; `kept` items would have gone."""

    memory_ids: tuple[str, ...] = ()
    refused: str = ""
    kept: int = 0


def retiring(
    stored: Mapping[str, tuple[str, Status]],
    wanted: Collection[str],
    oddities: Mapping[str, int],
) -> Retiring:
    """What is active and not `wanted`; nothing when the source looks cut short."""
    active = [memory_id for memory_id, (_, status) in stored.items() if status is Status.ACTIVE]
    kept = set(wanted)
    gone = tuple(sorted(memory_id for memory_id in active if memory_id not in kept))
    if not gone:
        return Retiring()
    short = sum(oddities.get(kind, 0) for kind in CUT_SHORT)
    if short:
        return Retiring(refused=f"{short} rows of the source are missing.", kept=len(gone))
    had, has = Counter(map(kind_of, active)), Counter(map(kind_of, kept))
    for kind, count in had.items():
        if has[kind] < MIN_SHARE * count:
            return Retiring(
                refused=f"The source has {has[kind]} of {count} {kind} records: check it.",
                kept=len(gone),
            )
    return Retiring(memory_ids=gone)
