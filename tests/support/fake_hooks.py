"""The hooks over in-memory stores, and the wrappers that feed them, for tests of the HTTP layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rayapp.assistant.conversations.feedback import ScoredOutcomes
from rayapp.assistant.conversations.service import HooksService, HookStores, RememberedContext
from rayapp.assistant.ports import Context
from rayapp.core.runtime import Runtime
from rayapp.learning.ports import Outcomes
from tests.support.stores.exchanges import InMemoryExchangeQueue
from tests.support.stores.sessions import InMemorySessionStore
from tests.support.stores.stores import InMemoryReceiptStore


@dataclass(frozen=True, slots=True)
class HookParts:
    """What the hooks of a fake world keep."""

    sessions: InMemorySessionStore
    exchanges: InMemoryExchangeQueue
    runtime: Runtime

    def remembered(self, context: Context) -> RememberedContext:
        return RememberedContext(context, self.sessions, runtime=self.runtime)

    def scored(self, outcomes: Outcomes) -> ScoredOutcomes:
        return ScoredOutcomes(outcomes, self.sessions, runtime=self.runtime)


def hook_parts(runtime: Runtime) -> HookParts:
    clock = runtime.clock
    return HookParts(InMemorySessionStore(clock), InMemoryExchangeQueue(clock), runtime)


def fake_hooks(
    parts: HookParts, chosen: Mapping[str, Any], receipts: InMemoryReceiptStore
) -> HooksService:
    """Over the very services that the world has."""
    stores = HookStores(sessions=parts.sessions, receipts=receipts, exchanges=parts.exchanges)
    return HooksService(
        chosen["context"], chosen["memories"], chosen["outcomes"], stores, runtime=parts.runtime
    )
