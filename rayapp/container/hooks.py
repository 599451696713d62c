"""Builds the hooks of chat programs, and what remembers for them."""

from __future__ import annotations

from rayapp.assistant.conversations.feedback import ScoredOutcomes
from rayapp.assistant.conversations.injection_log import RememberedContext
from rayapp.assistant.conversations.service import HooksService, HookStores
from rayapp.assistant.ports import Context
from rayapp.container.parts import Parts
from rayapp.learning.ports import Outcomes
from rayapp.memory.ports import Memories


def remembered(context: Context, parts: Parts) -> RememberedContext:
    """The context, which from now on knows what it put before whom."""
    return RememberedContext(context, parts.stores.sessions, runtime=parts.runtime)


def scored(outcomes: Outcomes, parts: Parts) -> ScoredOutcomes:
    """The outcomes, which from now on end the waiting for a score."""
    return ScoredOutcomes(outcomes, parts.stores.sessions, runtime=parts.runtime)


def build_hooks(
    parts: Parts, context: RememberedContext, memories: Memories, outcomes: Outcomes
) -> HooksService:
    """`context` and `outcomes` are those that everybody else asks."""
    stores = HookStores(
        sessions=parts.stores.sessions,
        receipts=parts.stores.receipts,
        exchanges=parts.stores.exchanges,
    )
    return HooksService(context, memories, outcomes, stores, runtime=parts.runtime)
