"""Sessions that are told of a context when its answer has left.

What a crash may lose is the contexts of its last milliseconds, as with their receipts (decision
0055). Whoever asks for a user's sessions in this process waits for those that are being written.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

from rayapp.assistant.ports import InjectedContext, Session, SessionStore, TurnRecord
from rayapp.core.errors import RayappError
from rayapp.core.pending_writes import PendingWrites
from rayapp.core.runtime import Metrics
from rayapp.learning.ports import ScoreGiven
from rayapp.memory.scope import ReadScope, WriteScope

log = logging.getLogger("rayapp.context")
# What `degraded` says when the session could not be told: an echo may then be learned.
SESSION = "session"


@dataclass(eq=False)
class DeferredSessions:
    """`SessionStore` over a store. `deferring` False: every answer waits for what it writes."""

    store: SessionStore
    deferring: bool
    metrics: Metrics

    def __post_init__(self) -> None:
        self._pending = PendingWrites()

    async def tell(self, scope: WriteScope, context: InjectedContext) -> bool:
        """Log the context; False when the store could not."""
        await self.settle(scope.user_id)  # what was told before is written first
        return await self._told(scope, context)

    async def tell_later(self, scope: WriteScope, context: InjectedContext) -> bool:
        """The same beside the answer, which cannot say then that the store could not."""
        if not self.deferring:
            return await self.tell(scope, context)
        await self.settle(scope.user_id)
        self._pending.begin(self._told(scope, context), [scope.user_id])
        return True

    async def _told(self, scope: WriteScope, context: InjectedContext) -> bool:
        try:
            await self.store.log_injected(scope, context)
        except RayappError as error:
            self.metrics.count("degraded", reason=SESSION)
            log.warning("what was injected is not remembered: %s", error.message)
            return False
        return True

    async def settle(self, user_id: str) -> None:
        """Until what the user's contexts leave is written, or given up and counted."""
        await self._pending.of(user_id)

    async def flush(self) -> None:
        await self._pending.all()

    # --- the store

    async def get(self, scope: ReadScope, conversation_id: str) -> Session | None:
        await self.settle(scope.user_id)
        return await self.store.get(scope, conversation_id)

    async def by_message(self, scope: ReadScope, message_id: str) -> Session | None:
        await self.settle(scope.user_id)
        return await self.store.by_message(scope, message_id)

    async def log_injected(self, scope: WriteScope, context: InjectedContext) -> None:
        await self.settle(scope.user_id)
        await self.store.log_injected(scope, context)

    async def add_turn(self, scope: WriteScope, conversation_id: str, turn: TurnRecord) -> bool:
        await self.settle(scope.user_id)
        return await self.store.add_turn(scope, conversation_id, turn)

    async def replace_turn(self, scope: WriteScope, conversation_id: str, turn: TurnRecord) -> None:
        await self.settle(scope.user_id)
        await self.store.replace_turn(scope, conversation_id, turn)

    async def refine(
        self, scope: WriteScope, conversation_id: str, turn_id: str, at: datetime
    ) -> int:
        await self.settle(scope.user_id)
        return await self.store.refine(scope, conversation_id, turn_id, at)

    async def scored(self, scope: WriteScope, given: ScoreGiven) -> bool:
        await self.settle(scope.user_id)
        return await self.store.scored(scope, given)
