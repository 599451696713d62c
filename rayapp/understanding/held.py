"""Rows of one kind that a change holds: read once, changed here, written at its end."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

RowT = TypeVar("RowT")


@dataclass(eq=False)
class Held(Generic[RowT]):
    """Rows by their id; None: there is no such row.

    `key`: the id of a row; `marks`: what it is found by beside its id.
    """

    key: Callable[[RowT], str]
    marks: Callable[[RowT], Iterable[Hashable]]
    # What was read as a whole: of each of these marks every row is here.
    whole: set[Hashable] = field(default_factory=set)
    _rows: dict[str, RowT | None] = field(default_factory=dict)
    # Ids by each mark that a row of theirs has or had; who looks tells which still have it.
    _at: dict[Hashable, dict[str, None]] = field(default_factory=dict)
    _changed: dict[str, None] = field(default_factory=dict)

    def unknown(self, ids: Iterable[str]) -> list[str]:
        """Those that nobody has read yet."""
        return [one for one in dict.fromkeys(ids) if one not in self._rows]

    def learn(self, rows: Iterable[RowT], ids: Iterable[str] = ()) -> None:
        """What the store has. `ids`: all that was asked for, there or not. What was changed here
        since stays so."""
        for row in rows:
            key = self.key(row)
            if key not in self._rows:
                self._hold(key, row)
        for one in ids:
            self._rows.setdefault(one, None)

    def put(self, rows: Iterable[RowT]) -> None:
        for row in rows:
            key = self.key(row)
            self._hold(key, row)
            self._changed[key] = None

    def delete(self, ids: Iterable[str]) -> None:
        for one in ids:
            self._rows[one] = None
            self._changed[one] = None

    def by_ids(self, ids: Iterable[str]) -> list[RowT]:
        """In the order in which they are asked for."""
        found = (self._rows.get(one) for one in dict.fromkeys(ids))
        return [one for one in found if one is not None]

    def at(self, marks: Iterable[Hashable]) -> list[RowT]:
        """Rows that have or had one of these marks."""
        return self.by_ids(one for mark in marks for one in self._at.get(mark, ()))

    def all(self) -> list[RowT]:
        """All that are here."""
        return [one for one in self._rows.values() if one is not None]

    def changes(self) -> tuple[list[RowT], list[str]]:
        """Rows to be put and ids to be deleted, each once however often it was changed. After this
        they count as written."""
        put = [row for one in self._changed if (row := self._rows[one]) is not None]
        gone = [one for one in self._changed if self._rows[one] is None]
        self._changed.clear()
        return put, gone

    def _hold(self, key: str, row: RowT) -> None:
        self._rows[key] = row
        for mark in self.marks(row):
            self._at.setdefault(mark, {})[key] = None


def lacking(whole: set[Hashable], marks: Sequence[Hashable]) -> list[Hashable]:
    """Marks whose rows are not all here."""
    return [one for one in dict.fromkeys(marks) if one not in whole]
