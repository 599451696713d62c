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
    JobStatus,
    Memory,
    OutcomeReply,
    PathReply,
    PromotionReply,
    Ready,
    ResponseReply,
    SearchHit,
    SearchReply,
    StoreReply,
    SweepReply,
)
from rayapp.client.retry import RetryPolicy

shorten()

__all__ = [
    "Backlog",
    "ColdStartReply",
    "ConceptReply",
    "ContextReply",
    "Event",
    "ExchangeReply",
    "Gating",
    "GraphReply",
    "InsightsReply",
    "JobStatus",
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
    "SweepReply",
    "SyncMemoryClient",
    "ToolReply",
    "ToolsReply",
]
