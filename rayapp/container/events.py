"""Builds what tells followers about changes, and what remembers the answers of tools."""

from __future__ import annotations

from rayapp.admin.event_stream import EventStreamService
from rayapp.assistant.tool_results.service import ToolResultService
from rayapp.assistant.tool_results.summaries import summarising
from rayapp.container.parts import Parts
from rayapp.core.settings.model import Settings
from rayapp.inference.ports import Models
from rayapp.memory.ports import Memories
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.event_stream import MongoEventStream

# A stream that just ended may still hold its connection when the next one opens.
SPARE_CONNECTIONS = 4


def mongo_event_stream(settings: Settings) -> MongoEventStream:
    """On a client of its own, which connects with the first stream."""
    size = settings.events.max_streams + SPARE_CONNECTIONS
    own = settings.mongo.model_copy(update={"pool_size": size})
    return MongoEventStream(MongoDatabase(own))


def build_events(parts: Parts) -> EventStreamService:
    return EventStreamService(parts.stores.stream, runtime=parts.runtime)


def build_tool_results(parts: Parts, memories: Memories, models: Models) -> ToolResultService:
    return ToolResultService(
        memories, parts.stores.items, runtime=parts.runtime, summarise=summarising(models)
    )
