"""The hooks over in-memory stores, and the wrappers that feed them, for tests of the HTTP layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rayapp.adapters.in_memory_exchanges import InMemoryExchangeQueue
from rayapp.adapters.in_memory_sessions import InMemorySessionStore
from rayapp.adapters.in_memory_stores import InMemoryReceiptStore
from rayapp.service_protocols import Context, Outcomes
from rayapp.services.hooks import HooksService, HookStores
from rayapp.services.injected import RememberedContext
from rayapp.services.runtime import Runtime
from rayapp.services.scoring import ScoredOutcomes


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
