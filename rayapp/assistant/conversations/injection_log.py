"""Context that remembers what it put before an assistant, so that its echo is not learned."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from rayapp.assistant.context.records import AssistantContext, ColdStart, ContextRequest
from rayapp.assistant.conversations.rules.fingerprint import fingerprints_of
from rayapp.assistant.ports import Context, SessionStore
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Runtime
from rayapp.memory.scope import ReadScope, WriteScope

log = logging.getLogger("rayapp.hooks")

# What `degraded` says when the session could not be told: an echo may then be learned.
STAGE = "session"


class RememberedContext:
    """Implements `assistant.ports.Context` around another one.

    The hooks take the two steps of `prefetch` apart: the session is told of a new context when
    the turn before it is kept, so that a repeated call meets the receipt of that turn.
    """

    def __init__(self, inner: Context, sessions: SessionStore, *, runtime: Runtime) -> None:
        self._inner = inner
        self._sessions = sessions
        self._runtime = runtime

    async def prefetch(self, scope: ReadScope, request: ContextRequest) -> AssistantContext:
        return await self.remember(scope, await self.read(scope, request))

    async def read(self, scope: ReadScope, request: ContextRequest) -> AssistantContext:
        """The context; nobody is told of it."""
        return await self._inner.prefetch(scope, request)

    async def remember(self, scope: ReadScope, found: AssistantContext) -> AssistantContext:
        """Tell the session. An empty context too: the receipt of an earlier one is out of date."""
        conversation_id = found.request.conversation_id
        if conversation_id is None:
            return found
        texts = [line.item.text for line in found.block.lines]
        if await self._remember(scope, conversation_id, texts, found.receipt_id):
            return found
        return replace(found, degraded=tuple(dict.fromkeys((*found.degraded, STAGE))))

    async def cold_start(self, scope: ReadScope, conversation_id: str | None) -> ColdStart:
        found = await self._inner.cold_start(scope, conversation_id)
        if conversation_id is None or not found.items:
            return found
        texts = [item.text for item in found.items]
        if await self._remember(scope, conversation_id, texts, found.receipt_id):
            return found
        return replace(found, degraded=tuple(dict.fromkeys((*found.degraded, STAGE))))

    async def _remember(
        self,
        scope: ReadScope,
        conversation_id: str,
        texts: Iterable[str],
        receipt_id: str | None,
    ) -> bool:
        """A session is the user's own, whoever reads for them."""
        own, now = WriteScope(scope.user_id), self._runtime.clock.now()
        try:
            await self._sessions.remember_injected(
                own, conversation_id, fingerprints_of(texts), now, receipt_id
            )
        except RayappError as error:
            self._runtime.metrics.count("degraded", reason=STAGE)
            log.warning("what was injected is not remembered: %s", error.message)
            return False
        return True
