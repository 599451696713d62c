"""The owner of tiers: the only code that moves or archives an item by rule."""

from __future__ import annotations

from collections.abc import Sequence

from rayapp.domain.learning_requests import PromotionReport
from rayapp.learning_protocols import LifecycleStore
from rayapp.protocols import LeaseStore
from rayapp.service_protocols import Promotion
from rayapp.services.runtime import Runtime


class PromotionService(Promotion):
    """Implements `service_protocols.Promotion`."""

    def __init__(self, store: LifecycleStore, leases: LeaseStore, *, runtime: Runtime) -> None:
        self._store = store
        self._leases = leases
        self._runtime = runtime

    async def check(self, user_id: str, memory_ids: Sequence[str]) -> PromotionReport:
        """Apply the rules to these items now: the promotion effect of an outcome."""
        raise NotImplementedError
