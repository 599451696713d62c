"""Builds the tools of an assistant."""

from __future__ import annotations

from rayapp.parts import Parts
from rayapp.service_protocols import Insights, Memories, MemoryBank, Outcomes, Search
from rayapp.services.tools import ToolParts, ToolsService


def build_tools(
    parts: Parts,
    *,
    memories: Memories,
    bank: MemoryBank,
    search: Search,
    outcomes: Outcomes,
    insights: Insights,
) -> ToolsService:
    """Over the same services that the other routes ask."""
    used = ToolParts(
        memories=memories,
        bank=bank,
        search=search,
        outcomes=outcomes,
        insights=insights,
        sessions=parts.stores.sessions,
    )
    return ToolsService(used, runtime=parts.runtime)
