"""Typed async client of the HTTP API."""

from rayapp.client.http import MemoryClient
from rayapp.client.models import (
    Backlog,
    Memory,
    Ready,
    SearchHit,
    SearchReply,
    StoreReply,
)
from rayapp.client.retry import RetryPolicy

__all__ = [
    "Backlog",
    "Memory",
    "MemoryClient",
    "Ready",
    "RetryPolicy",
    "SearchHit",
    "SearchReply",
    "StoreReply",
]
