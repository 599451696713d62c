"""The seams of episodes and thoughts.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.derived.records import Derived, DerivedKind, State, SubjectType
from rayapp.understanding.ports import SourcePage
from rayapp.understanding.statements.ports import KnowledgeRows

T = TypeVar("T")
# More rows than are read at once.
MOST_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedWanted:
    """Conditions, joined by AND. None = no condition.

    Attributes:
        subject_ids, perspective_ids: whom it is about, who told it; None among them: nobody else.
        node_ids: a source of it names one of these nodes.
        since, until: the row reaches into this time.
    """

    kind: DerivedKind | None = None
    states: tuple[State, ...] | None = None
    types: tuple[SubjectType, ...] | None = None
    subject_ids: tuple[str | None, ...] | None = None
    perspective_ids: tuple[str | None, ...] | None = None
    node_ids: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None

    def has(self, one: Derived) -> bool:
        """Whether it meets all of them."""
        if self.kind not in (None, one.kind):
            return False
        if self.states is not None and one.state not in self.states:
            return False
        if self.types is not None and (one.pattern is None or one.pattern.type not in self.types):
            return False
        for allowed, value in (
            (self.subject_ids, one.subject_id),
            (self.perspective_ids, one.perspective_owner_id),
        ):
            if allowed is not None and value not in allowed:
                return False
        if self.node_ids is not None and not set(one.node_ids).intersection(self.node_ids):
            return False
        if self.since is not None and one.last_at < self.since:
            return False
        return self.until is None or one.first_at <= self.until


class DerivedReads(Protocol):
    """The rows of one user."""

    async def by_ids(self, ids: Sequence[str]) -> list[Derived]: ...

    async def of_sources(self, source_ids: Sequence[str]) -> list[Derived]:
        """What rests on one of them, also beside others, by id."""

    async def wanted(self, wanted: DerivedWanted, limit: int = MOST_ROWS) -> list[Derived]:
        """Those said last first, then by id."""


class DerivedRows(DerivedReads, Protocol):
    """The same within a change: what it reads stays as it is until it ends."""

    async def put(self, rows: Sequence[Derived]) -> None: ...
    async def delete(self, ids: Sequence[str]) -> None: ...
    async def tell(self, rows: Sequence[Derived]) -> None:
        """The event stream tells of them, by their ids, as of their last change."""


class UnderstoodStore(Protocol):
    """The typed graph and what is derived from it, which one text changes together."""

    async def change(
        self, scope: WriteScope, work: Callable[[KnowledgeRows, DerivedRows], Awaitable[T]]
    ) -> T:
        """`work` as one change, as those of the two stores."""


class DerivedStore(Protocol):
    """`derived`."""

    def reads(self, scope: ReadScope) -> DerivedReads: ...

    async def change(self, scope: WriteScope, work: Callable[[DerivedRows], Awaitable[T]]) -> T:
        """`work` as one change: all of it is there, or nothing. It may be run again when another
        change came between."""

    async def pending(self, scope: ReadScope) -> Mapping[DerivedKind, int]:
        """How many wait for the user, by kind."""

    async def pending_of_all(self) -> Mapping[DerivedKind, int]:
        """How many wait for anybody. For operators alone."""

    async def sources_after(self, after: tuple[str, str] | None, limit: int) -> SourcePage:
        """On what the rows of all users rest, by user. For jobs alone."""
