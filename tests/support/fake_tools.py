"""The tools over the services of a test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rayapp.assistant.ports import SessionStore
from rayapp.assistant.tools.service import ToolParts, ToolsService
from rayapp.core.runtime import Runtime


def fake_tools(chosen: Mapping[str, Any], sessions: SessionStore, runtime: Runtime) -> ToolsService:
    """Over the very services that the world has."""
    parts = ToolParts(
        memories=chosen["memories"],
        bank=chosen["bank"],
        search=chosen["search"],
        outcomes=chosen["outcomes"],
        insights=chosen["insights"],
        sessions=sessions,
    )
    return ToolsService(parts, runtime=runtime)
