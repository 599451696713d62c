"""Where a sweep is in the space of point ids, so that it can stop anywhere and go on. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

Range = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyspaceCursor:
    """Where a sweep is: it goes through its ranges in order, over `limit` ids at most.

    Attributes:
        at: number of the range it is in; past the last one, the walk is over.
        after: the last id looked at in it.
        seen: ids looked at so far.
        suspects: ids that are to be looked at again.
        events: events written so far.
    """

    ranges: tuple[Range, ...]
    limit: int | None = None
    at: int = 0
    after: str | None = None
    seen: int = 0
    suspects: tuple[str, ...] = ()
    events: int = 0

    @property
    def over(self) -> bool:
        full = self.limit is not None and self.seen >= self.limit
        return full or self.at >= len(self.ranges)

    @property
    def position(self) -> Range:
        """(after, until) of what comes next."""
        start, until = self.ranges[self.at]
        return self.after if self.after is not None else start, until

    def page_size(self, batch: int) -> int:
        return batch if self.limit is None else max(1, min(batch, self.limit - self.seen))

    def moved(self, after: str | None, seen: int, suspects: Sequence[str]) -> Self:
        """After a page; `after` None means that its range has ended."""
        return replace(
            self,
            at=self.at + (after is None),
            after=after,
            seen=self.seen + seen,
            suspects=(*self.suspects, *suspects),
        )

    def cursor(self) -> dict[str, Any]:
        """As plain JSON, without what the partition says."""
        names = ("at", "after", "seen", "events")
        return {name: getattr(self, name) for name in names} | {"suspects": list(self.suspects)}

    @classmethod
    def of(cls, payload: Mapping[str, Any], cursor: Mapping[str, Any] | None) -> Self:
        """The walk of a partition, at its cursor."""
        ranges = tuple((after, until) for after, until in payload["ranges"])
        walk = cls(ranges=ranges, limit=payload.get("limit"))
        if cursor is None:
            return walk
        return replace(walk, **{**cursor, "suspects": tuple(cursor["suspects"])})


def round_from(start: str | None) -> tuple[Range, ...]:
    """The whole space once, beginning after `start`."""
    return ((None, None),) if start is None else ((start, None), (None, start))
