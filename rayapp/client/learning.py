"""Client calls about outcomes, promotion, insights and graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote, urlencode

from rayapp.client.calls import Calls
from rayapp.client.models import (
    ConceptReply,
    GraphReply,
    InsightsReply,
    OutcomeReply,
    PathReply,
    PromotionReply,
    ResponseReply,
)

OutcomeName = Literal["worked", "partial", "unknown", "failed"]


class LearningCalls(Calls):
    """The calls."""

    async def record_outcome(
        self,
        outcome: OutcomeName,
        *,
        receipt_id: str | None = None,
        positions: Sequence[int] | None = None,
        memory_ids: Sequence[str] | None = None,
        conversation_id: str | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> OutcomeReply:
        """Say how memories did; `options` are further body fields (signal, action).

        Raises:
            InvalidInput, NotFound, Conflict: as the server says.
        """
        body = {
            "outcome": outcome,
            "receipt_id": receipt_id,
            "positions": positions,
            "memory_ids": memory_ids,
            "conversation_id": conversation_id,
            **options,
        }
        return await self.write(
            OutcomeReply,
            "/api/memory/outcomes",
            _given(body),
            user_id=user_id,
            idempotency_key=idempotency_key,
        )

    async def record_response(
        self,
        key_takeaway: str,
        outcome: OutcomeName = "unknown",
        *,
        related: Sequence[int | str] | None = None,
        receipt_id: str | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> ResponseReply:
        """Keep what an answer taught and score what it used (all that was shown by default)."""
        body = {
            "key_takeaway": key_takeaway,
            "outcome": outcome,
            "related": related,
            "receipt_id": receipt_id,
            **options,
        }
        return await self.write(
            ResponseReply,
            "/api/memory/record_response",
            _given(body),
            user_id=user_id,
            idempotency_key=idempotency_key,
        )

    async def score(
        self,
        scores: Mapping[str, OutcomeName],
        *,
        receipt_id: str | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> OutcomeReply:
        """Each memory with its own outcome, by id or (with a receipt) by position."""
        body = {"scores": dict(scores), "receipt_id": receipt_id, **options}
        return await self.write(
            OutcomeReply,
            "/api/memory/score",
            _given(body),
            user_id=user_id,
            idempotency_key=idempotency_key,
        )

    async def promote(
        self, *, all_users: bool = False, user_id: str | None = None
    ) -> PromotionReply:
        """Run a promotion cycle; needs the scope `admin`."""
        return await self.write(
            PromotionReply, "/api/memory/ops/promote", {"all_users": all_users}, user_id=user_id
        )

    async def insights(
        self,
        query: str,
        *,
        conversation_id: str | None = None,
        recent_messages: Sequence[str] = (),
        user_id: str | None = None,
    ) -> InsightsReply:
        """What the graphs say of a question, before any search."""
        body = {
            "query": query,
            "conversation_id": conversation_id,
            "recent_messages": list(recent_messages) or None,
        }
        return await self.read(
            InsightsReply, "POST", "/api/memory/context/insights", _given(body), user_id=user_id
        )

    async def graph(
        self,
        mode: Literal["routing", "content", "both"] = "both",
        *,
        include_datagov: bool = False,
        user_id: str | None = None,
    ) -> GraphReply:
        """The picture of the graphs; `include_datagov`: with the catalogue of open data."""
        path = f"/api/memory/graph?mode={mode}"
        if include_datagov:
            path += "&include_datagov=true"
        return await self.read(GraphReply, "GET", path, user_id=user_id)

    async def concept(self, concept_id: str, *, user_id: str | None = None) -> ConceptReply:
        """Everything known of a concept: a node's id, or a name in any script.

        Raises:
            NotFound: no graph knows it.
        """
        path = f"/api/memory/kg/concept/{quote(concept_id, safe='')}/definition"
        return await self.read(ConceptReply, "GET", path, user_id=user_id)

    async def concept_path(
        self, source: str, target: str, *, user_id: str | None = None
    ) -> PathReply:
        """The shortest way between two concepts; `found` False when there is none."""
        query = urlencode({"source": source, "target": target})
        return await self.read(PathReply, "GET", f"/api/memory/kg/path?{query}", user_id=user_id)


def _given(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set; sequences as lists."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in body.items()
        if value is not None
    }
