"""What is asked of episodes, thoughts, the review and hints, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.derived.records import Derived, State, Trend
from rayapp.understanding.derived.rules.wording import TongueName


class Decision(StrEnum):
    """What a person says of what waits. EDIT: it is true in these words. UNDO: as it was before
    the last decision."""

    ACCEPT = "accept"
    EDIT = "edit"
    DECLINE = "decline"
    UNDO = "undo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision; `title` and `text` of an edit, None: as it stands. `operator`: who decides may
    decide for all users of the tenant."""

    decision: Decision
    title: str | None = None
    text: str | None = None
    operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A row as it stands now."""

    row: Derived
    state: State
    confidence: float
    trend: Trend
    opposes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewItem:
    """One thing that a person may decide on, whatever its kind is."""

    kind: str
    id: str
    state: str
    level: str
    title: str
    text: str
    confidence: float
    support: int
    days: int
    trend: str | None
    first_at: datetime
    last_at: datetime
    source_ids: tuple[str, ...]
    decided_by: str | None
    decided_at: datetime | None
    can_undo: bool


class Reviewed(Protocol):
    """A kind of things that wait for a person."""

    async def waiting(self, scope: ReadScope) -> int: ...

    async def listed(
        self, scope: ReadScope, state: State | None, limit: int
    ) -> Sequence[ReviewItem]:
        """Those said last first; None: what waits."""

    async def decide(self, scope: WriteScope, item_id: str, decided: Decided) -> ReviewItem:
        """Raises NotFound, Conflict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEpisode:
    """A scene that a person or a program tells. `raw_data_id`: the memory that tells it already."""

    narrative: str | None = None
    title: str | None = None
    occurred_at: datetime | None = None
    emotions: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    raw_data_id: str | None = None
    subject_id: str | None = None
    perspective_owner_id: str | None = None


class HintKind(StrEnum):
    TRAITS = "traits"
    GOALS = "goals"
    TOPICS = "topics"
    PATTERNS = "patterns"
    EPISODES = "episodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class HintsRequest:
    """What kinds help, for which question."""

    query: str = ""
    kinds: tuple[HintKind, ...] = tuple(HintKind)
    subject_id: str | None = None
    perspective_owner_id: str | None = None
    language: TongueName | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One thing that is known.

    Attributes:
        name: in a word or two, in the language asked for; `title`, `text`: as it was worded.
        said: outright; otherwise a person accepted what the rules saw.
        when: how long ago it was said last, in words.
        examples: what was said, the newest first.
        source_ids: the memories that it rests on.
    """

    id: str
    kind: HintKind
    name: str
    title: str
    text: str
    said: bool
    confidence: float
    trend: Trend
    when: str
    last_at: datetime
    support: int
    examples: tuple[str, ...]
    emotions: tuple[str, ...]
    source_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """By kind, the most helpful first. `recap`: the best of each in a line. `waiting`: thoughts
    that a person has not looked at."""

    found: Mapping[HintKind, tuple[Hint, ...]]
    recap: str
    waiting: int
    built_ms: float

    def all(self) -> tuple[Hint, ...]:
        return tuple(one for kind in HintKind for one in self.found.get(kind, ()))
