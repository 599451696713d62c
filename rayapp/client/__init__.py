"""Typed async client of the HTTP API."""

from rayapp.client.http import MemoryClient
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

__all__ = [
    "Backlog",
    "ConceptReply",
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
]
