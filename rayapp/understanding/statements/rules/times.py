"""When a thing was, by the phrases of time in its sentence. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rayapp.understanding.statements.rules.matcher import Phrases, compiled
from rayapp.understanding.statements.rules.parts import Found, Read, Thing
from rayapp.understanding.statements.rules.tables import Tables, TimeRow
from rayapp.understanding.statements.rules.words import Word

_FIRST_YEAR, _LAST_YEAR = 1900, 2100
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Period:
    """Half open, at places of a sentence."""

    start: int
    end: int
    begins: datetime
    ends: datetime


class TimeReader:
    """Finds what says when."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.readers: dict[str, Read] = {
            "n": self._number,
            "year": self._year,
            "day": self._listed(tables.days),
            "month": self._listed(frozenset(tables.months)),
        }
        rows = [
            (compiled(text, {}, tuple(self.readers)), row)
            for row in tables.times.phrases
            for text in (*row.en, *row.he)
        ]
        # The longest first: "the day before yesterday" is not yesterday.
        rows.sort(key=lambda one: -len(one[0].elements))
        self.phrases = Phrases(rows, lambda one: one[0])

    def period(
        self, row: TimeRow, words: Sequence[Word], said_at: datetime
    ) -> tuple[datetime, datetime] | None:
        """From when to when, of a phrase that is these words."""
        day = said_at.replace(hour=0, minute=0, second=0, microsecond=0)
        lows = [word.low for word in words]
        if row.year:
            year = next((found for one in lows if (found := year_of(one)) is not None), None)
            if year is None:
                return None
            begins = day.replace(year=year, month=1, day=1)
            return begins, begins.replace(year=year + 1)
        if row.month:
            numbers = (self._month(one) for one in lows)
            month = next((one for one in numbers if one is not None), None)
            if month is None:
                return None
            year = day.year if month <= day.month else day.year - 1
            begins = day.replace(year=year, month=month, day=1)
            return begins, (begins + 32 * _DAY).replace(day=1)
        back = row.back
        if row.each:
            counts = [found for one in lows if (found := self._count(one)) is not None]
            back *= counts[0] if counts else 1
        if abs(back) > 365 * 120:
            return None
        begins = day - back * _DAY
        return begins, begins + row.long * _DAY

    def _count(self, low: str) -> int | None:
        return int(low) if low.isdecimal() else self._tables.times.numbers.get(low)

    def _month(self, low: str) -> int | None:
        months = self._tables.months
        return months.get(low) or months.get(low[1:])

    def _number(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        if at < len(words) and self._count(words[at].low) is not None:
            yield at + 1, Thing(words[at].text)

    def _year(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        if at < len(words) and year_of(words[at].low) is not None:
            yield at + 1, Thing(words[at].text)

    def _listed(self, known: frozenset[str]) -> Read:
        def read(words: Sequence[Word], at: int) -> Iterator[Found]:
            if at < len(words) and words[at].low in known:
                yield at + 1, Thing(words[at].text)

        return read


def year_of(low: str) -> int | None:
    """The year that a word is, alone or behind a joined letter."""
    bare = low.lstrip("במ-")
    if len(bare) != 4 or not bare.isdecimal():
        return None
    year = int(bare)
    return year if _FIRST_YEAR <= year < _LAST_YEAR else None
