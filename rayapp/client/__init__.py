"""Typed client of the HTTP API, async and sync over one core."""

from rayapp.client.core import shorten
from rayapp.client.events import Event
from rayapp.client.http import MemoryClient, SyncMemoryClient
from rayapp.client.memories import SearchReply
from rayapp.client.retry import RetryPolicy
from rayapp.wire.context import ColdStartAnswer, ContextAnswer, GatingView, InsightsAnswer
from rayapp.wire.graphs import DefinitionAnswer, GraphAnswer, PathAnswer
from rayapp.wire.hooks import ExchangeAnswerView
from rayapp.wire.insights import BacklogView
from rayapp.wire.jobs import JobView
from rayapp.wire.learning import OutcomeAnswerView, PromoteAnswer, ResponseAnswerView
from rayapp.wire.memories import BatchResult, MemoryView, StoreAnswer
from rayapp.wire.memories import StoreItem as Memory
from rayapp.wire.ops import ConsistencyResult
from rayapp.wire.raw_data import RawDataAnswer
from rayapp.wire.raw_data import RawDataItem as RawData
from rayapp.wire.search import HitView, RecentView
from rayapp.wire.system import ReadyAnswer
from rayapp.wire.tools import ToolAnswerView, ToolsAnswer

shorten()

__all__ = [
    "BacklogView",
    "BatchResult",
    "ColdStartAnswer",
    "ConsistencyResult",
    "ContextAnswer",
    "DefinitionAnswer",
    "Event",
    "ExchangeAnswerView",
    "GatingView",
    "GraphAnswer",
    "HitView",
    "InsightsAnswer",
    "JobView",
    "Memory",
    "MemoryClient",
    "MemoryView",
    "OutcomeAnswerView",
    "PathAnswer",
    "PromoteAnswer",
    "RawData",
    "RawDataAnswer",
    "ReadyAnswer",
    "RecentView",
    "ResponseAnswerView",
    "RetryPolicy",
    "SearchReply",
    "StoreAnswer",
    "SyncMemoryClient",
    "ToolAnswerView",
    "ToolsAnswer",
]
