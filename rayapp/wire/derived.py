"""Episodes, thoughts, the review and hints over HTTP."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field

from rayapp.text.normalize import label_form
from rayapp.understanding.derived.records import Derived, Evidence, Revision, State, SubjectType
from rayapp.understanding.derived.requests import (
    Decided,
    Decision,
    Hint,
    HintKind,
    Hints,
    HintsRequest,
    NewEpisode,
    ReviewItem,
    Weighed,
)
from rayapp.wire import bases

MAX_NARRATIVE, MAX_TITLE, MAX_EMOTIONS = 20_000, 200, 20
FOUND = "At most so many."
OF_SUBJECT = "Whom it is about; default anybody."
OF_VIEW = "Who told it; default anybody."
OF_NODE = "Only what names this node of the typed graph, or what is one with it."
OF_RECAP = "With a line that sums it up."
KINDS = ", ".join(HintKind)

Emotion = Annotated[str, Field(min_length=1, max_length=40)]
Limit = Annotated[int, Field(ge=1, le=bases.MAX_PAGE)]


def _named(name: str | None) -> str | None:
    """A subject as memories keep it."""
    return None if name is None else label_form(name)


class OfSomebody(bases.Lenient):
    """Whose."""

    aliases: ClassVar = bases.camel(
        *("subject_id", "perspective_owner_id", "subject_type", "node_id")
    )
    subject_id: bases.Name | None = bases.optional(OF_SUBJECT)
    perspective_owner_id: bases.Name | None = bases.optional(OF_VIEW)
    node_id: bases.Name | None = bases.optional(OF_NODE)
    limit: Limit = Field(50, description=FOUND)

    def whose(self) -> dict[str, str | None]:
        return {
            "subject_id": _named(self.subject_id),
            "perspective_owner_id": self.perspective_owner_id,
            "node_id": self.node_id,
        }


class ThoughtsQuery(OfSomebody):
    """Which thoughts."""

    state: Literal["pending", "accepted", "declined", "in_doubt"] | None = bases.optional(
        "Only these; all that are shown when absent."
    )
    subject_type: SubjectType | None = bases.optional("Only of this kind.")


class EpisodesQuery(OfSomebody):
    """Which episodes."""

    aliases: ClassVar = {
        **bases.camel("subject_id", "perspective_owner_id", "node_id"),
        "from": "since",
        "to": "until",
    }
    since: bases.UtcTime | None = bases.optional("Only what reaches after this time.")
    until: bases.UtcTime | None = bases.optional("Only what reaches before this time.")


class EpisodeBody(bases.Strict, bases.Keyed):
    """A scene that is told by hand: of a memory, or as a text that becomes one."""

    aliases: ClassVar = {"content": "narrative"} | bases.camel(
        *("raw_data_id", "occurred_at", "emotion_tags", "subject_id", "perspective_owner_id"),
        "topic_key",
    )
    narrative: str | None = bases.optional(
        "The scene; `content` is another name. Default the text of the memory.",
        max_length=MAX_NARRATIVE,
    )
    raw_data_id: bases.MemoryId | None = bases.optional("The memory that tells it.")
    title: str | None = bases.optional("Default its first words.", max_length=MAX_TITLE)
    occurred_at: bases.UtcTime | None = bases.optional("When it was; default when it was stored.")
    emotion_tags: tuple[Emotion, ...] = Field(
        (), max_length=MAX_EMOTIONS, description="What was felt, in either language."
    )
    topic_key: bases.Label | None = bases.optional("What it is about.")
    subject_id: bases.Name | None = bases.optional("Whom it is about; default the user.")
    perspective_owner_id: bases.Name | None = bases.optional("Who told it; default the user.")

    def new(self) -> NewEpisode:
        return NewEpisode(
            narrative=self.narrative,
            raw_data_id=self.raw_data_id,
            title=self.title,
            occurred_at=self.occurred_at,
            emotions=self.emotion_tags,
            topics=() if self.topic_key is None else (self.topic_key,),
            subject_id=self.subject_id,
            perspective_owner_id=self.perspective_owner_id,
        )


class EvidenceView(bases.Answer):
    """What one memory says for it. `denies`: that it is not so any more."""

    memory_id: str
    said_at: datetime
    conversation_id: str | None
    quote: str
    denies: bool

    @classmethod
    def from_evidence(cls, one: Evidence) -> Self:
        return cls.of(one, memory_id=one.source_id)


class DerivedVersionView(bases.Answer):
    """How it stood before; `by` null: the rules changed it."""

    version: int
    title: str
    text: str
    state: State
    at: datetime
    by: str | None

    @classmethod
    def from_revision(cls, one: Revision) -> Self:
        return cls.of(one)


class EpisodeView(bases.Answer):
    """One scene. `doc_id`: the memory that it began with; `made_by` null: the rules found it."""

    id: str
    title: str
    narrative: str
    occurred_at: datetime
    ended_at: datetime
    emotion_tags: tuple[str, ...]
    topics: tuple[str, ...]
    people: tuple[str, ...]
    node_ids: tuple[str, ...]
    memory_ids: tuple[str, ...]
    doc_id: str | None
    subject_id: str | None
    perspective_owner_id: str | None
    made_by: str | None
    version: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def from_row(cls, row: Derived) -> Self:
        first = min(row.sources, key=lambda one: (one.happened_at, one.said_at), default=None)
        return cls.of(
            row,
            id=row.derived_id,
            narrative=row.text,
            occurred_at=row.first_at,
            ended_at=row.last_at,
            emotion_tags=row.emotions,
            memory_ids=tuple(each.source_id for each in row.sources),
            doc_id=None if first is None else first.source_id,
        )


class ThoughtView(bases.Answer):
    """What several memories say together.

    `level`: `explicit` was said outright, `inductive` was seen by the rules. `state`: only what is
    `accepted` is told to anybody. `opposes`: thoughts that feel the opposite about the same.
    """

    id: str
    title: str
    text: str
    state: State
    level: str
    subject_type: SubjectType
    subject_name: str
    confidence: float
    support: int
    days: int
    trend: str
    first_at: datetime
    last_at: datetime
    topics: tuple[str, ...]
    node_ids: tuple[str, ...]
    memory_ids: tuple[str, ...]
    opposes: tuple[str, ...]
    subject_id: str | None
    perspective_owner_id: str | None
    version: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def from_weighed(cls, one: Weighed) -> Self:
        row, pattern = one.row, one.row.pattern
        return cls.of(
            row,
            id=row.derived_id,
            state=one.state,
            level=row.level.value,
            subject_type=SubjectType.OTHER if pattern is None else pattern.type,
            subject_name="" if pattern is None else pattern.name,
            confidence=one.confidence,
            trend=one.trend.value,
            memory_ids=tuple(each.source_id for each in row.sources),
            opposes=one.opposes,
        )


class EpisodesAnswer(bases.Success):
    """The newest first."""

    episodes: tuple[EpisodeView, ...]

    @classmethod
    def from_rows(cls, rows: list[Derived]) -> Self:
        return cls(episodes=tuple(map(EpisodeView.from_row, rows)))


class EpisodeAnswer(bases.Written):
    """One scene, with what it rests on."""

    episode: EpisodeView
    sources: tuple[EvidenceView, ...]
    versions: tuple[DerivedVersionView, ...]

    @classmethod
    def from_row(cls, row: Derived) -> Self:
        return cls(episode=EpisodeView.from_row(row), **_rest(row))


class ThoughtsAnswer(bases.Success):
    """In the order of time: of a change of mind, what was said first comes first."""

    thoughts: tuple[ThoughtView, ...]

    @classmethod
    def from_weighed(cls, found: list[Weighed]) -> Self:
        return cls(thoughts=tuple(map(ThoughtView.from_weighed, found)))


class ThoughtAnswer(bases.Success):
    """One thought, with what it rests on."""

    thought: ThoughtView
    sources: tuple[EvidenceView, ...]
    versions: tuple[DerivedVersionView, ...]

    @classmethod
    def from_weighed(cls, one: Weighed) -> Self:
        return cls(thought=ThoughtView.from_weighed(one), **_rest(one.row))


def _rest(row: Derived) -> dict[str, Any]:
    return {
        "sources": tuple(map(EvidenceView.from_evidence, row.sources)),
        "versions": tuple(map(DerivedVersionView.from_revision, row.revisions)),
    }


# --- review


class ReviewQuery(bases.Strict):
    """What of what waits."""

    kind: bases.Name | None = bases.optional("Only of this kind, such as `thought`; default all.")
    state: Literal["pending", "accepted", "declined", "in_doubt"] = Field(
        "pending", description="What waits, or what became of it."
    )
    limit: Limit = Field(50, description=FOUND)


class DecisionBody(bases.Strict, bases.Keyed):
    """What a person decides."""

    decision: Decision = Field(
        description="`edit` accepts it in these words; `undo` takes the last decision back."
    )
    title: str | None = bases.optional("Of an edit.", min_length=1, max_length=MAX_TITLE)
    text: str | None = bases.optional(
        "Of an edit; of a name for the registry: other words for it, joined by commas.",
        min_length=1,
        max_length=MAX_NARRATIVE,
    )

    def decided(self, *, operator: bool) -> Decided:
        return Decided(decision=self.decision, title=self.title, text=self.text, operator=operator)


class ReviewItemView(bases.Answer):
    """Something that a person may decide on. `can_undo`: there is a decision to take back."""

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

    @classmethod
    def from_item(cls, item: ReviewItem) -> Self:
        return cls.of(item)


class ReviewAnswer(bases.Success):
    """Those said last first. `waiting`: how much waits, by kind, whatever was asked for."""

    waiting: dict[str, int]
    items: tuple[ReviewItemView, ...]


class DecisionAnswer(bases.Written):
    """As it stands now."""

    item: ReviewItemView


# --- hints


class SummaryBody(bases.Strict):
    """Which hints, for which question."""

    aliases: ClassVar = {"conversationId": "conversation_id"} | bases.camel(
        "subject_id", "perspective_owner_id"
    )
    query: str = Field("", max_length=4_000, description="The question.")
    conversation_id: bases.Name | None = bases.optional("Where it is asked; for your log.")
    kinds: tuple[HintKind, ...] = Field(tuple(HintKind), description=f"Which kinds help: {KINDS}.")
    subject_id: bases.Name | None = bases.optional("About whom; default the user alone.")
    perspective_owner_id: bases.Name | None = bases.optional(OF_VIEW)
    detail: Literal["full", "names"] = Field(
        "full", description="`names`: lists of names alone, as a prompt needs them."
    )
    recap: bases.Flag = Field(False, description=OF_RECAP)
    language: Literal["en", "he"] | None = bases.optional("Default that of the question.")
    limit: Limit | None = bases.optional("At most so many of each kind.")

    def request(self) -> HintsRequest:
        return HintsRequest(
            query=self.query,
            kinds=self.kinds,
            subject_id=_named(self.subject_id),
            perspective_owner_id=self.perspective_owner_id,
            language=self.language,
            limit=self.limit,
        )


class SummaryQuery(SummaryBody):
    """The same in a URL."""

    kinds: Annotated[tuple[HintKind, ...], BeforeValidator(bases.comma_list)] = Field(
        tuple(HintKind), description=f"Which kinds help, joined by commas: {KINDS}."
    )
    recap: bool = Field(False, description=OF_RECAP)


class HintView(bases.Answer):
    """One thing that is known. `said`: outright; other things are for tact alone."""

    id: str
    name: str
    title: str
    text: str
    said: bool
    confidence: float
    trend: str
    when: str
    support: int
    examples: tuple[str, ...]
    emotions: tuple[str, ...]
    memory_ids: tuple[str, ...]

    @classmethod
    def from_hint(cls, hint: Hint) -> Self:
        return cls.of(hint, trend=hint.trend.value, memory_ids=hint.source_ids)


class SummaryAnswer(bases.Success):
    """What is known that helps, by kind, the most helpful first.

    With `detail` `names` there are lists of names: `traits`, `recentGoals`, `topicsOfInterest` and
    `emotionalPatterns` in `memoryHints`. `waiting`: thoughts that a person has not looked at.
    """

    traits: tuple[HintView, ...] | None = bases.Absent
    recent_goals: tuple[HintView, ...] | None = bases.Absent
    topics_of_interest: tuple[HintView, ...] | None = bases.Absent
    emotional_patterns: tuple[HintView, ...] | None = bases.Absent
    relevant_episodes: tuple[HintView, ...] | None = bases.Absent
    memory_hints: dict[str, tuple[str, ...]] | None = bases.Absent
    recap: str | None = bases.Absent
    waiting: int
    built_ms: float

    @classmethod
    def from_hints(cls, found: Hints, asked: SummaryBody) -> Self:
        rest: dict[str, Any] = {"waiting": found.waiting, "built_ms": found.built_ms}
        if asked.recap:
            rest["recap"] = found.recap
        if asked.detail == "names":
            names = {
                PROMPT_NAMES[kind]: tuple(one.name for one in hints)
                for kind, hints in found.found.items()
            }
            return cls(memory_hints=names, **rest)
        parts: dict[str, Any] = {
            FIELDS[kind]: tuple(map(HintView.from_hint, hints))
            for kind, hints in found.found.items()
        }
        return cls(**parts, **rest)


FIELDS: Mapping[HintKind, str] = {
    HintKind.TRAITS: "traits",
    HintKind.GOALS: "recent_goals",
    HintKind.TOPICS: "topics_of_interest",
    HintKind.PATTERNS: "emotional_patterns",
    HintKind.EPISODES: "relevant_episodes",
}
# In the shape that prompts have.
PROMPT_NAMES: Mapping[HintKind, str] = {
    HintKind.TRAITS: "traits",
    HintKind.GOALS: "recentGoals",
    HintKind.TOPICS: "topicsOfInterest",
    HintKind.PATTERNS: "emotionalPatterns",
    HintKind.EPISODES: "relevantEpisodes",
}
