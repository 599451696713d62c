"""Outcomes that also pay what a conversation owes: a score given by any way ends the waiting."""

from __future__ import annotations

import logging

from rayapp.assistant.ports import ScoreGiven, Session, SessionStore
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Runtime
from rayapp.learning.ports import Outcomes
from rayapp.learning.records import (
    FeedbackRequest,
    OutcomeAnswer,
    OutcomeRequest,
    ResponseAnswer,
    ResponseRequest,
)
from rayapp.memory.scope import WriteScope
from rayapp.search.ports import Receipt

log = logging.getLogger("rayapp.hooks")

EXPLICIT = "explicit"


class ScoredOutcomes:
    """Implements `learning.ports.Outcomes` around another one.

    The outcome is recorded when the session is told, so a session that cannot be reached never
    fails the call: a repeated call without a key would count twice.
    """

    def __init__(self, inner: Outcomes, sessions: SessionStore, *, runtime: Runtime) -> None:
        self._inner = inner
        self._sessions = sessions
        self._runtime = runtime

    async def record(self, scope: WriteScope, request: OutcomeRequest) -> OutcomeAnswer:
        answer = await self._inner.record(scope, request)
        if request.signal.source == EXPLICIT:
            await self._given(scope, request.conversation_id, answer.receipt_id)
        return answer

    async def shown(self, scope: WriteScope, request: OutcomeRequest) -> Receipt | None:
        return await self._inner.shown(scope, request)

    async def record_response(self, scope: WriteScope, request: ResponseRequest) -> ResponseAnswer:
        answer = await self._inner.record_response(scope, request)
        await self._given(scope, request.conversation_id, answer.scored.receipt_id)
        return answer

    async def feedback(self, scope: WriteScope, request: FeedbackRequest) -> OutcomeAnswer:
        answer = await self._inner.feedback(scope, request)
        await self._tell(
            scope,
            ScoreGiven(
                at=self._runtime.clock.now(),
                conversation_id=request.conversation_id,
                message_id=request.message_id,
                score=request.score,
            ),
        )
        return answer

    async def _given(
        self, scope: WriteScope, conversation_id: str | None, receipt_id: str | None
    ) -> None:
        if conversation_id is None and receipt_id is None:
            return
        now = self._runtime.clock.now()
        given = ScoreGiven(at=now, conversation_id=conversation_id, receipt_id=receipt_id)
        await self._tell(scope, given)

    async def _tell(self, scope: WriteScope, given: ScoreGiven) -> None:
        try:
            await self._sessions.scored(scope, given)
        except RayappError as error:
            self._runtime.metrics.count("degraded", reason="session")
            log.warning("a score is not noted in its session: %s", error.message)


def owed_before(session: Session | None, receipt: Receipt | None) -> bool:
    """Whether a score was owed when the turn began, which is when its context was read.

    The newest turn that needed a score tells: it waits still, or something else than a thumb paid
    for it since. Without a receipt the time is unknown, and a tool may have paid just now.
    """
    turns = session.turns if session else ()
    last = next((turn for turn in reversed(turns) if turn.required), None)
    if last is None:
        return False
    if last.scored_at is None:
        return True
    return last.score is None and (receipt is None or last.scored_at >= receipt.at)
