"""Episodes and thoughts as values: what rests on one source or several, and falls with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from rayapp.understanding.statements.records import Level

# Sources that one row keeps, the newest ones, and characters of each one's words.
MOST_SOURCES = 100
MOST_QUOTE = 1_200
# Changes that a row remembers.
MOST_REVISIONS = 20


class DerivedKind(StrEnum):
    """EPISODE: one scene of a life. THOUGHT: what several texts say together."""

    EPISODE = "episode"
    THOUGHT = "thought"


class State(StrEnum):
    """How far a thought is to be trusted.

    FORMING: seen, without enough support; not shown as a thought. PENDING: it waits for a person.
    ACCEPTED: said outright, or accepted by a person. DECLINED: it does not come back. IN_DOUBT:
    accepted, but too little of what it rests on is left.
    """

    FORMING = "forming"
    PENDING = "pending"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    IN_DOUBT = "in_doubt"


class SubjectType(StrEnum):
    """What a thought is about; `subject_name` says whose, where it is not the speaker's."""

    VALUE = "user_value"
    TRAIT = "user_trait"
    GOAL = "user_goal"
    EMOTION = "user_emotion"
    INTEREST = "user_interest"
    RELATIONSHIP = "relationship"
    OTHER = "other"


class Trend(StrEnum):
    """How often it was said in the last 30 days, against the 90 days before."""

    NEW = "new"
    STRENGTHENING = "strengthening"
    STEADY = "steady"
    WEAKENING = "weakening"
    STALE = "stale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one source adds to a row.

    Attributes:
        happened_at: when it was that it tells of.
        denies: it says that it is not so any more.
        people: names of who takes part.
    """

    source_id: str
    said_at: datetime
    happened_at: datetime
    conversation_id: str | None = None
    doc_id: str | None = None
    quote: str = ""
    denies: bool = False
    title: str = ""
    emotions: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    node_ids: tuple[str, ...] = ()
    fact_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """How a row stood before a change; `by` None: the rules changed it."""

    version: int
    title: str
    text: str
    state: State
    worded_by: str | None
    decided_by: str | None
    decided_at: datetime | None
    at: datetime
    by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """What tells a thought from every other one: equal patterns are one thought, whatever their
    words are.

    Attributes:
        holder: key of whose it is; `name`: how they are called, empty for the speaker.
        what: the value, trait, goal, emotion or topic; `key` tells it apart.
        theme: what an emotion is about.
    """

    type: SubjectType
    holder: str
    key: str
    what: str
    name: str = ""
    theme: str = ""
    level: Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """An episode or a thought.

    Attributes:
        pattern: of a thought.
        worded_by: who gave it its words by hand; None: the rules did.
        decided_by: who accepted or declined it.
        revisions: what it was before, the oldest first.
    """

    derived_id: str
    kind: DerivedKind
    state: State
    level: Level
    title: str = ""
    text: str = ""
    sources: tuple[Evidence, ...]
    pattern: Pattern | None = None
    subject_id: str | None = None
    perspective_owner_id: str | None = None
    made_by: str | None = None
    worded_by: str | None = None
    decided_by: str | None = None
    decided_at: datetime | None = None
    revisions: tuple[Revision, ...] = ()
    version: int = 1
    first_at: datetime
    last_at: datetime
    created_at: datetime
    updated_at: datetime

    @property
    def agreeing(self) -> tuple[Evidence, ...]:
        return tuple(one for one in self.sources if not one.denies)

    @property
    def support(self) -> int:
        """Sources that say so."""
        return len({one.source_id for one in self.agreeing})

    @property
    def days(self) -> int:
        """Days on which it was said."""
        return len(days_of(self.agreeing))

    @property
    def ended(self) -> bool:
        """Whether the last word is that it is not so any more."""
        last = max(self.sources, key=lambda one: (one.said_at, one.source_id), default=None)
        return last is not None and last.denies

    @property
    def emotions(self) -> tuple[str, ...]:
        return _once(one.emotions for one in self.sources)

    @property
    def topics(self) -> tuple[str, ...]:
        return _once(one.topics for one in self.sources)

    @property
    def people(self) -> tuple[str, ...]:
        return _once(one.people for one in self.sources)

    @property
    def node_ids(self) -> tuple[str, ...]:
        return _once(one.node_ids for one in self.sources)

    @property
    def fact_ids(self) -> tuple[str, ...]:
        return _once(one.fact_ids for one in self.sources)

    @property
    def is_shown(self) -> bool:
        """Whether a person sees it: what is only forming is nothing yet."""
        return self.state is not State.FORMING


def days_of(sources: Sequence[Evidence]) -> frozenset[date]:
    return frozenset(one.said_at.date() for one in sources)


def _once(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in parts for name in part))
