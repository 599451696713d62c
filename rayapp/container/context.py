"""Builds what tells an assistant its context."""

from __future__ import annotations

from rayapp.assistant.context.service import ContextService
from rayapp.container.parts import Parts
from rayapp.learning.insights import InsightsService
from rayapp.learning.ports import Insights
from rayapp.search.ports import Search


def build_insights(parts: Parts) -> InsightsService:
    """What the graphs say before any search."""
    stores = parts.stores
    return InsightsService(
        stores.graphs,
        stores.items,
        stores.outcomes,
        stores.receipts,
        texts=parts.texts,
        runtime=parts.runtime,
    )


def build_context(parts: Parts, search: Search, insights: Insights) -> ContextService:
    """The same search and insights that everybody else asks."""
    return ContextService(
        search,
        insights,
        parts.stores.items,
        parts.stores.receipts,
        texts=parts.texts,
        runtime=parts.runtime,
    )
