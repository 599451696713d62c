"""Record what helped and what did not."""

from __future__ import annotations

from rayapp.learning_protocols import OutcomeStore
from rayapp.protocols import ReceiptStore
from rayapp.service_protocols import Memories, Outcomes
from rayapp.services.runtime import Runtime


class OutcomesService(Outcomes):
    """Implements `service_protocols.Outcomes`."""

    def __init__(
        self,
        store: OutcomeStore,
        receipts: ReceiptStore,
        memories: Memories,
        *,
        runtime: Runtime,
    ) -> None:
        self._store = store
        self._receipts = receipts
        self._memories = memories
        self._runtime = runtime
