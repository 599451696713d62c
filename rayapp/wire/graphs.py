"""Bodies and query fields of the graph routes and of the insights."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rayapp.graphs.requests import InsightsRequest
from rayapp.wire.bases import (
    MAX_CONCEPT_CHARS,
    MAX_PAGE,
    Flag,
    IdempotencyKey,
    Lenient,
    Name,
    Strict,
    TierName,
)
from rayapp.wire.learning import OutcomeName

INSIGHTS_ALIASES = {
    "conversationId": "conversation_id",
    "recentMessages": "recent_messages",
}
GRAPH_ALIASES = {"includeDataGov": "include_datagov"}
# Client contract: rollups and backfill.
MAX_BACKFILL = 2_000
BACKFILL = 250
# Of a conversation, far more than topic continuity looks at.
MAX_RECENT = 50

Mode = Annotated[
    Literal["routing", "content", "both"],
    Field(description="Concepts by where they were answered, by what memories say, or both."),
]
ConceptName = Annotated[str, Field(min_length=1, max_length=MAX_CONCEPT_CHARS)]


class GraphQuery(Lenient):
    """Query fields of the picture."""

    mode: Mode = "both"
    include_datagov: bool = Field(
        False, description="Also the catalogue of open data: root, categories, largest datasets."
    )


class KgQuery(Lenient):
    """Query fields of the concept list."""

    mode: Mode = "both"
    time_filter: Literal["all", "today", "week", "session"] = Field(
        "all", description="Last used: today (UTC), in 7 days, or in 24 hours (`session`)."
    )
    sort_by: Literal["hybrid", "recent", "oldest"] = Field(
        "hybrid", description="Best score, last used, or first seen first."
    )
    limit: int = Field(50, ge=1, le=MAX_PAGE, description="Concepts in the answer.")


class KgBody(Lenient):
    """A concept that the first client saw; graphs learn from memories and outcomes alone."""

    concept: ConceptName = Field(description="The concept.")
    tier: TierName
    outcome: OutcomeName | None = None


class RollupQuery(Lenient):
    """Query fields of the action statistics."""

    limit: int = Field(50, ge=1, le=MAX_PAGE, description="Rows in the answer.")
    context_type: Name | None = Field(None, description="Only this context type.")
    include_tiers: bool = Field(True, description="Also one row per tier.")


class PathQuery(Lenient):
    """Two concepts."""

    source: ConceptName = Field(description="Concept or node id to start from.")
    target: ConceptName = Field(description="Concept or node id to reach.")


class BackfillBody(Strict):
    """How many memories to take up again."""

    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_BACKFILL)] = Field(
        BACKFILL, description="Memories at most."
    )
    dry_run: Flag = Field(False, description="Only count.")
    idempotency_key: IdempotencyKey = None


class MessageBody(Lenient):
    """One message of the conversation."""

    role: Annotated[str, Field(max_length=64)] = Field("user", description="Who said it.")
    content: str = Field(description="What was said.")


class InsightsBody(Strict):
    """A question, and the conversation it comes from."""

    query: str = Field(min_length=1, description="The question, in any language.")
    conversation_id: Name | None = Field(None, description="For continuity and repetition.")
    recent_messages: Annotated[tuple[str | MessageBody, ...], Field(max_length=MAX_RECENT)] = Field(
        (), description="The last messages, oldest first: texts, or objects with `content`."
    )

    def request(self) -> InsightsRequest:
        return InsightsRequest(
            query=self.query,
            conversation_id=self.conversation_id,
            recent=tuple(
                one if isinstance(one, str) else one.content for one in self.recent_messages
            ),
        )


class InsightsQuery(Strict):
    """The same as query fields; `recent_messages` may be repeated."""

    query: str = Field(min_length=1, description="The question, in any language.")
    conversation_id: Name | None = Field(None, description="For continuity and repetition.")
    recent_messages: Annotated[tuple[str, ...], Field(max_length=MAX_RECENT)] = Field(
        (), description="The last messages, oldest first."
    )

    def request(self) -> InsightsRequest:
        return InsightsRequest(
            query=self.query, conversation_id=self.conversation_id, recent=self.recent_messages
        )
