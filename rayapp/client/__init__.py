"""Typed client of the HTTP API, async and sync over one core."""

from rayapp.client.context_models import (
    ColdStartReply,
    ContextReply,
    ExchangeReply,
    Gating,
    ToolReply,
    ToolsReply,
)
from rayapp.client.core import shorten
from rayapp.client.events import Event
from rayapp.client.http import MemoryClient, SyncMemoryClient
from rayapp.client.models import (
    Backlog,
    ConceptReply,
    GraphReply,
    InsightsReply,
    Memory,
    OutcomeReply,
    PathReply,
    PromotionReply,
    Ready,
    ResponseReply,
    SearchHit,
    SearchReply,
    StoreReply,
)
from rayapp.client.retry import RetryPolicy
from rayapp.wire.jobs import JobView
from rayapp.wire.ops import ConsistencyResult

shorten()

__all__ = [
    "Backlog",
    "ColdStartReply",
    "ConceptReply",
    "ConsistencyResult",
    "ContextReply",
    "Event",
    "ExchangeReply",
    "Gating",
    "GraphReply",
    "InsightsReply",
    "JobView",
    "Memory",
    "MemoryClient",
    "OutcomeReply",
    "PathReply",
    "PromotionReply",
    "Ready",
    "ResponseReply",
    "RetryPolicy",
    "SearchHit",
    "SearchReply",
    "StoreReply",
    "SyncMemoryClient",
    "ToolReply",
    "ToolsReply",
]
