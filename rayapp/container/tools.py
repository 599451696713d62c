"""Builds the tools of an assistant."""

from __future__ import annotations

from rayapp.assistant.tools.service import ToolParts, ToolsService
from rayapp.container.parts import Parts
from rayapp.learning.ports import Insights, Outcomes
from rayapp.memory.ports import Memories, MemoryBank
from rayapp.search.ports import Search


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
