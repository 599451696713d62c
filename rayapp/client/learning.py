"""Client calls about outcomes, promotion and the graphs."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from rayapp.client.calls import Reader, Talk, Writer, asked, at, call, given, listed
from rayapp.client.core import Core
from rayapp.wire import graphs, learning

OutcomeName = Literal["worked", "partial", "unknown", "failed"]
MEMORY = "/api/memory"


class LearningCalls(Core):
    """The calls."""

    @call
    def record_outcome(
        self,
        /,
        outcome: OutcomeName,
        *,
        receipt_id: str | None = None,
        positions: Sequence[int] | None = None,
        memory_ids: Sequence[str] | None = None,
        conversation_id: str | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Talk[learning.OutcomeAnswerView]:
        """Say how memories did; `options` are further body fields (signal, action).

        Raises InvalidInput, NotFound, Conflict: as the server says.
        """
        named = {"receipt_id": receipt_id, "positions": positions, "memory_ids": memory_ids}
        body = given({"outcome": outcome, "conversation_id": conversation_id} | named | options)
        path = f"{MEMORY}/outcomes"
        who = Writer(user_id=user_id, idempotency_key=idempotency_key)
        return self.writing(learning.OutcomeAnswerView, path, body, **who)

    @call
    def record_response(
        self,
        /,
        key_takeaway: str,
        outcome: OutcomeName = "unknown",
        *,
        related: Sequence[int | str] | None = None,
        receipt_id: str | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Talk[learning.ResponseAnswerView]:
        """Keep what an answer taught and score what it used (all that was shown by default)."""
        named = {"related": related, "receipt_id": receipt_id}
        body = given({"key_takeaway": key_takeaway, "outcome": outcome} | named | options)
        path = f"{MEMORY}/record_response"
        who = Writer(user_id=user_id, idempotency_key=idempotency_key)
        return self.writing(learning.ResponseAnswerView, path, body, **who)

    @call
    def score(
        self,
        /,
        scores: Mapping[str, OutcomeName],
        *,
        receipt_id: str | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Talk[learning.OutcomeAnswerView]:
        """Each memory with its own outcome, by id or (with a receipt) by position."""
        body = given({"scores": dict(scores), "receipt_id": receipt_id} | options)
        path = f"{MEMORY}/score"
        who = Writer(user_id=user_id, idempotency_key=idempotency_key)
        return self.writing(learning.OutcomeAnswerView, path, body, **who)

    @call
    def feedback(
        self,
        message_id: str,
        score: Literal[-1, 0, 1],
        *,
        citations: Sequence[str] = (),
        conversation_id: str | None = None,
        **who: Unpack[Writer],
    ) -> Talk[learning.FeedbackAnswer]:
        """A thumb of the user about an answer and what it cited; a changed one replaces it."""
        body = {"message_id": message_id, "score": score, "citations": listed(citations)}
        body = given(body | {"conversation_id": conversation_id})
        return self.writing(learning.FeedbackAnswer, f"{MEMORY}/feedback", body, **who)

    @call
    def force_decay(self, **who: Unpack[Writer]) -> Talk[learning.CycleView]:
        """A promotion cycle over the user's own memories."""
        return (
            yield from self.writing(learning.DecayAnswer, f"{MEMORY}/decay/force", **who)
        ).result

    @call
    def decay_schedule(self, **who: Unpack[Reader]) -> Talk[learning.ScheduleView]:
        """When promotion runs by itself."""
        path = f"{MEMORY}/decay/schedule"
        return (yield from self.reading(learning.ScheduleAnswer, path, **who)).schedule

    @call
    def patterns(self, **who: Unpack[Reader]) -> Talk[tuple[graphs.PatternView, ...]]:
        """How the proven memories do."""
        path = f"{MEMORY}/patterns/performance"
        return (yield from self.reading(graphs.PatternsAnswer, path, **who)).patterns

    # --- the graphs

    @call
    def graph(
        self, mode: graphs.Mode = "both", *, include_datagov: bool = False, **who: Unpack[Reader]
    ) -> Talk[graphs.GraphAnswer]:
        """The picture of the graphs; `include_datagov`: with the catalogue of open data."""
        path = asked(f"{MEMORY}/graph", mode=mode, include_datagov=include_datagov or None)
        return self.reading(graphs.GraphAnswer, path, **who)

    @call
    def kg(
        self, /, mode: graphs.Mode = "both", *, user_id: str | None = None, **options: Any
    ) -> Talk[graphs.KgAnswer]:
        """Concepts and actions as lists; `options`: time_filter, sort_by, limit."""
        path = asked(f"{MEMORY}/kg", mode=mode, **options)
        return self.reading(graphs.KgAnswer, path, user_id=user_id)

    @call
    def action_rollups(
        self,
        *,
        limit: int | None = None,
        context_type: str | None = None,
        include_tiers: bool | None = None,
        **who: Unpack[Reader],
    ) -> Talk[tuple[graphs.RollupView, ...]]:
        """How actions did, per kind of context and tier."""
        fields = {"limit": limit, "context_type": context_type, "include_tiers": include_tiers}
        path = asked(f"{MEMORY}/kg/action-rollups", **fields)
        return (yield from self.reading(graphs.RollupsAnswer, path, **who)).rollups

    @call
    def concept(self, concept_id: str, **who: Unpack[Reader]) -> Talk[graphs.DefinitionAnswer]:
        """Everything known of a concept: a node's id, or a name in any script.

        Raises NotFound: no graph knows it.
        """
        path = at(f"{MEMORY}/kg/concept", concept_id, "definition")
        return self.reading(graphs.DefinitionAnswer, path, **who)

    @call
    def concept_path(
        self, source: str, target: str, **who: Unpack[Reader]
    ) -> Talk[graphs.PathAnswer]:
        """The shortest way between two concepts; `found` False when there is none."""
        path = asked(f"{MEMORY}/kg/path", source=source, target=target)
        return self.reading(graphs.PathAnswer, path, **who)

    @call
    def content_graph_stats(self, **who: Unpack[Reader]) -> Talk[graphs.ContentStatsBody]:
        """The size of the content graph."""
        path = f"{MEMORY}/content-graph/stats"
        return (yield from self.reading(graphs.ContentStatsAnswer, path, **who)).stats

    @call
    def content_graph_backfill(
        self, *, limit: int | None = None, dry_run: bool = False, **who: Unpack[Writer]
    ) -> Talk[graphs.BackfillAnswer]:
        """Look again at what the content graph should hold."""
        body = given({"limit": limit, "dry_run": dry_run})
        return self.writing(graphs.BackfillAnswer, f"{MEMORY}/content-graph/backfill", body, **who)
