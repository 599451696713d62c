"""What is known of how much a source matters, and how far it is understood."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from rayapp.core.errors import RayappError

# Topics that a row keeps, how often it was heard again, and rows that are read for a recurrence.
MOST_TOPICS = 16
MOST_HEARD = 32
MOST_MENTIONS = 200
# What is to be taken back goes before all else that waits.
TAKE_BACK_FIRST = -1


class Gate(StrEnum):
    """What the threshold decides. OFF: nothing, all is derived from. DERIVE: what is derived from.
    ARCHIVE: also, of raw data, what is kept active."""

    OFF = "off"
    DERIVE = "derive"
    ARCHIVE = "archive"


class Signal(StrEnum):
    EMOTIONAL = "emotional"
    PERSONAL = "personal"
    TEMPORAL = "temporal"
    DECISION = "decision"


class Override(StrEnum):
    """What makes a text matter whatever its signals are.

    FACT: it stands in the memory bank, so somebody has found that it matters, or it states
    something lasting of a person. TESTED: a topic of the test switch.
    """

    RECURRENCE = "recurrence"
    GOAL = "goal"
    IDENTITY = "identity"
    DENSITY = "density"
    FACT = "fact"
    TESTED = "tested"


class Speaker(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    DOCUMENT = "document"


class Fate(StrEnum):
    """What became of a source. ARCHIVED, PASSED_OVER: at or below the threshold, put away or just
    not derived from. WAITING: it will be derived from. DERIVED: it was."""

    ARCHIVED = "archived"
    PASSED_OVER = "passed_over"
    WAITING = "waiting"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """How much one side of a source matters, with everything that decided it.

    `base`: the weighted sum of the signals; then the overrides, then `factor` of who said it.
    `params`: which weights and tables.
    """

    speaker: Speaker
    score: float
    base: float
    signals: Mapping[str, float]
    overrides: tuple[Override, ...]
    threshold: float
    factor: float
    params: str

    @property
    def passed(self) -> bool:
        return self.score > self.threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """When and where a text with these topics was said."""

    topics: tuple[str, ...]
    at: datetime
    conversation_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Understanding:
    """The row of one source, a memory, from its write on.

    Attributes:
        source_hash: of what is understood: text, whom it is about, whose view it is.
        version: of the memory that was looked at.
        topics: keys of what it is about.
        heard: when the same text came again.
        gone: it is to be taken back.
        sides: one, or those of a turn, each scored apart.
        forced: a person asked that it be derived from whatever its score is.
        stages: milliseconds of each stage.
    """

    user_id: str
    memory_id: str
    source_hash: str
    version: int
    said_at: datetime
    conversation_id: str | None = None
    doc_id: str | None = None
    subject_id: str | None = None
    topics: tuple[str, ...] = ()
    heard: tuple[Mention, ...] = ()
    gone: bool = False
    forced: bool = False
    fate: Fate = Fate.WAITING
    sides: tuple[Importance, ...] = ()
    trace_id: str | None = None
    decided_at: datetime | None = None
    stages: Mapping[str, float] = field(default_factory=dict)

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """When it was said, the first time and again."""
        said = Mention(topics=self.topics, at=self.said_at, conversation_id=self.conversation_id)
        return said, *self.heard


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """When a source was said, the first time and again."""

    memory_id: str
    mentions: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided of a text. `row` None: nobody has looked at it yet.

    `error`: it was refused, and nothing of it is kept.
    """

    memory_id: str | None
    row: Understanding | None = None
    duplicate: bool = False
    error: RayappError | None = None
