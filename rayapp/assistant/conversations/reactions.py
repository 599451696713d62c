"""What a person's next words say of the answer before them, heard before the next answer begins.

Otherwise "that did not work" would be understood when the next turn is stored, while the context of
the answer to it was read long before. A model judges, within its time; without one, or when it is
late, the turn is judged in the background as ever, and never twice.
"""

import asyncio
import logging
from dataclasses import KW_ONLY, dataclass

from rayapp.assistant.extraction.executor import ExtractionExecutor
from rayapp.assistant.extraction.policies import ExtractionPolicies
from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.assistant.extraction.rules.history import has_reaction
from rayapp.assistant.ports import ExchangeQueue
from rayapp.assistant.records import ContextRequest
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Runtime
from rayapp.memory.scope import ReadScope

log = logging.getLogger("rayapp.reactions")
# Turns among which the answer is looked for: the newest, or the one before it when that is the one
# that is answered anew.
LOOKED_AT = 2


@dataclass(eq=False)
class Reactions:
    """Judges the answer before a question. Never raises: a context is given in any case."""

    policies: ExtractionPolicies
    executor: ExtractionExecutor
    queue: ExchangeQueue
    _: KW_ONLY
    runtime: Runtime

    async def judge(self, scope: ReadScope, request: ContextRequest) -> str:
        """What came of it, in one word; empty when there was nothing to ask."""
        if not self._may_ask(request):
            return ""
        try:
            async with asyncio.timeout(self.runtime.settings.hooks.reaction_timeout_s):
                result = await self._judged(scope, request)
        except TimeoutError:
            result = "late"
        except RayappError as error:
            log.warning("a reaction waits: %s", error.message)
            result = "away"
        if result:
            self.runtime.metrics.count("reactions", result=result)
        return result

    def _may_ask(self, request: ContextRequest) -> bool:
        """A caller who may not write judges nothing."""
        named = request.conversation_id is not None and request.recorder is not None
        return named and has_reaction(request.query) and self.policies.enabled_for("outcome")

    async def _judged(self, scope: ReadScope, request: ContextRequest) -> str:
        said = self._as_exchange(scope, request)
        before = await self.queue.earlier(said.own, said, LOOKED_AT)
        judged = next((one for one in before if not _is_answered_anew(one, request)), None)
        if judged is None or judged.erased:
            return ""
        decided = await self.policies.judgement(said, judged)
        if decided.part is None:
            return decided.note
        return await self.executor.do(said, "outcome", decided.part)

    def _as_exchange(self, scope: ReadScope, request: ContextRequest) -> LearnedExchange:
        recorder = request.recorder
        return LearnedExchange(
            user_id=scope.user_id,
            conversation_id=request.conversation_id or "",
            message_id=request.message_id or "",
            user_text=request.query,
            answer="",
            memory_id=None,
            at=self.runtime.clock.now(),
            principal=recorder.principal if recorder else "",
            owner=recorder.owner if recorder else False,
        )


def _is_answered_anew(turn: LearnedExchange, request: ContextRequest) -> bool:
    """The turn of this very question: its words are no reaction to it."""
    return turn.message_id == request.message_id or turn.user_text == request.query.strip()
