"""Episodes and thoughts of one user as a change of many texts holds them."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import datetime

from rayapp.understanding.derived.ports import MOST_ROWS, DerivedRows, DerivedWanted
from rayapp.understanding.derived.records import Derived
from rayapp.understanding.held import Held, lacking


class HeldDerived:
    """Implements `DerivedRows` over those of a change; `write` is called at its end."""

    def __init__(self, rows: DerivedRows) -> None:
        self._rows = rows
        self._held = Held[Derived](lambda one: one.derived_id, _marks)
        # From when to when all rows are here, by what else was asked of them.
        self._times: dict[DerivedWanted, list[tuple[datetime, datetime]]] = {}
        self._told: list[Derived] = []

    async def write(self) -> None:
        """Everything that was changed, in a few writes."""
        put, gone = self._held.changes()
        await self._rows.put(put)
        await self._rows.delete(gone)
        told, self._told = self._told, []
        await self._rows.tell(told)

    async def by_ids(self, ids: Sequence[str]) -> list[Derived]:
        unknown = self._held.unknown(ids)
        if unknown:
            self._held.learn(await self._rows.by_ids(unknown), unknown)
        return self._held.by_ids(ids)

    async def of_sources(self, source_ids: Sequence[str]) -> list[Derived]:
        missing = lacking(self._held.whole, source_ids)
        if missing:
            asked = [one for one in source_ids if one in set(missing)]
            self._held.learn(await self._rows.of_sources(asked))
            self._held.whole.update(missing)
        wanted = set(source_ids)
        found = [
            one
            for one in self._held.at(source_ids)
            if any(each.source_id in wanted for each in one.sources)
        ]
        return sorted(found, key=lambda one: one.derived_id)

    async def wanted(self, wanted: DerivedWanted, limit: int = MOST_ROWS) -> list[Derived]:
        if wanted.since is None or wanted.until is None or not await self._load(wanted):
            # A question that is asked seldom, or more rows than are read at once.
            await self.write()
            return await self._rows.wanted(wanted, limit)
        found = [one for one in self._held.all() if wanted.has(one)]
        found.sort(key=lambda one: one.derived_id)
        found.sort(key=lambda one: one.last_at, reverse=True)
        return found[: max(0, limit)]

    async def _load(self, wanted: DerivedWanted) -> bool:
        """Read what is not here yet. False: there is more of it than is read at once."""
        since, until = wanted.since, wanted.until
        assert since is not None
        assert until is not None
        times = self._times.setdefault(replace(wanted, since=None, until=None), [])
        if any(begin <= since and until <= end for begin, end in times):
            return True
        found = await self._rows.wanted(wanted, MOST_ROWS)
        if len(found) >= MOST_ROWS:
            return False
        self._held.learn(found)
        times.append((since, until))
        return True

    async def put(self, rows: Sequence[Derived]) -> None:
        self._held.put(rows)

    async def delete(self, ids: Sequence[str]) -> None:
        self._held.delete(ids)

    async def tell(self, rows: Sequence[Derived]) -> None:
        self._told += rows


def _marks(one: Derived) -> list[Hashable]:
    return [each.source_id for each in one.sources]
