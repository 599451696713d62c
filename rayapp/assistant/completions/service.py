"""Chat completions with memory around them: prefetch, gate, forward, stream, keep.

For whoever has a client of the completions protocol and nothing else: what is remembered reaches
the model, and what was said is learned from, without a call of ours.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from rayapp.assistant.completions import rules
from rayapp.assistant.completions.repairs import AnswerStream, mend
from rayapp.assistant.completions.rules import Asked
from rayapp.assistant.conversations.rules import tool_rounds, tools_called
from rayapp.assistant.conversations.service import HooksService
from rayapp.assistant.records import ExchangeRequest, Intents
from rayapp.assistant.tools.rules.limits import limited_results
from rayapp.assistant.tools.rules.table import ToolRow
from rayapp.core.errors import InvalidInput, ModelDown, RateLimited, RayappError
from rayapp.core.runtime import Runtime
from rayapp.graphs.rules.directives import side_of
from rayapp.inference.backends.chat_model import ChatEndpoint, usage_of
from rayapp.inference.chat.rules.answers import Spent
from rayapp.inference.chat.service import ModelCalls
from rayapp.inference.ports import Message, UsageRow
from rayapp.learning.records import Recorder
from rayapp.memory.scope import WriteScope
from rayapp.text.language import detect_language
from rayapp.text.normalize import without_forbidden

logger = logging.getLogger(__name__)

# The name of these calls in the ledger, beside those of the helpers.
LEDGER = "chat"
OFF = (
    "No language model is configured, so there is nobody to answer: set models.base_url and "
    "models.model."
)
# A request that the model refuses is put right and sent again: nothing of it is a turn.
WRONG_REQUEST = (InvalidInput, RateLimited)
# Memories put before the model, as the exchange hook takes when it is not told.
LIMIT = 10


@dataclass(frozen=True, slots=True)
class Begun:
    """A call whose context is read. `memory`: `on`, or the code of what kept memory out of it."""

    asked: Asked
    body: dict[str, Any]
    memory: str
    receipt_id: str | None = None
    intents: Intents = field(default_factory=Intents)


@dataclass(eq=False)
class CompletionsService:
    """`chat_endpoint` None: there is no model, and every call says so.

    `table`: of tools, which says how much of their results the model reads.
    """

    hooks: HooksService
    chat_endpoint: ChatEndpoint | None
    model_calls: ModelCalls
    _: KW_ONLY
    table: Mapping[str, ToolRow]
    runtime: Runtime
    # What goes on when nobody waits for it: a task without a reference may vanish.
    _unfinished: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    @property
    def endpoint(self) -> ChatEndpoint:
        if self.chat_endpoint is None:
            raise ModelDown(OFF)
        return self.chat_endpoint

    async def begin(self, scope: WriteScope, asked: Asked, recorder: Recorder) -> Begun:
        """Memory for the question; where memory is away the model is asked without it.

        Raises ModelDown: there is no model; RateLimited: the day's budget of the user is used up.
        """
        model = self.endpoint.model
        refusal = await self.model_calls.refusal(scope.user_id, Spent(calls=1))
        if refusal is not None:
            raise RateLimited(refusal)
        told, allowed, memory, receipt = asked.told, None, "on", None
        intents = Intents()
        if asked.question is None:
            memory = "no_question"
        else:
            try:
                found = await self.hooks.exchange(scope, _request(asked, asked.told, recorder))
            except RayappError as error:
                memory = error.code
                logger.warning("a chat goes on without memory: %s", error.code)
            else:
                told, receipt = found.messages, found.context.receipt_id
                gating, intents = found.context.gating, found.context.intents
                # In the middle of a turn the model needs the tools that it was offered.
                answering = len(asked.messages) > len(asked.told)
                allowed = gating.allowed if gating.reduced and not answering else None
        self.runtime.metrics.count("chats", memory=memory)
        depth = self.runtime.settings.models.chain_depth
        if depth and tool_rounds(asked.by_role) >= depth:
            allowed = ()
        body = rules.forwarded(asked, told, model=model, allowed=allowed)
        side = side_of(detect_language(asked.asks))
        body["messages"] = limited_results(body["messages"], self.table, side)
        return Begun(asked, body, memory, receipt, intents)

    async def complete(self, scope: WriteScope, begun: Begun, recorder: Recorder) -> dict[str, Any]:
        """The answer of the model, kept as a turn; without one the question is, and of one that was
        cut the question teaches alone. Raises as `ChatEndpoint.ask`."""
        try:
            body = await self.endpoint.ask(begun.body)
        except WRONG_REQUEST:
            raise
        except (RayappError, asyncio.CancelledError):
            await self._finish(self._keep_interrupted(scope, begun, "", recorder))
            raise
        said = rules.answer_of(body)
        asked = begun.asked
        tools = rules.callable_tools(begun.body)
        hijacked = mend(body, asked.asks, json_wanted=asked.wants_json, tools=tools)
        content = said.content if said else ""
        if not rules.calls_tools(body):
            whole = not rules.is_half(body)
            await self._keep_answer(scope, begun, content, hijacked, recorder, whole=whole)
        await self._record(scope, begun, body.get("usage"), content)
        return body

    async def stream(
        self, scope: WriteScope, begun: Begun, recorder: Recorder
    ) -> AsyncGenerator[dict[str, Any]]:
        """The chunks as the model makes them. The turn is kept when they have ended, or when the
        model broke off or the reader left: then the answer is marked as interrupted."""
        asked, tools = begun.asked, rules.callable_tools(begun.body)
        passing = AnswerStream(asked.asks, json_wanted=asked.wants_json, tools=tools)
        usage, answered, wrong = None, False, False
        try:
            async with self.endpoint.stream(begun.body) as chunks:
                async for chunk in chunks:
                    answered = True
                    usage = chunk.get("usage") or usage
                    passing.pass_on(chunk)
                    yield chunk
            if (rest := passing.end()) is not None:
                yield rest
        except WRONG_REQUEST:
            wrong = True
            raise
        finally:
            await self._finish(
                *([] if wrong else [self._keep_stream(scope, begun, passing, recorder)]),
                # What was made is paid, though its reader left before the end, or it broke off.
                *([self._record(scope, begun, usage, passing.first.said)] if answered else []),
            )

    async def _finish(self, *work: Coroutine[Any, Any, None]) -> None:
        """Wait for all of it. All of it goes on when nobody waits any more: the task that waits may
        be cancelled again while it does."""
        tasks = [asyncio.create_task(one) for one in work]
        self._unfinished.update(tasks)
        for task in tasks:
            task.add_done_callback(self._unfinished.discard)
        await asyncio.shield(asyncio.gather(*tasks))

    async def _keep_stream(
        self, scope: WriteScope, begun: Begun, passing: AnswerStream, recorder: Recorder
    ) -> None:
        """The turn of a stream that ended, wherever; a call of a tool does not end a turn."""
        if passing.called:
            return
        first = passing.first
        whole = passing.finished and not passing.failed and not passing.cut
        await self._keep_answer(scope, begun, first.said, first.hijacked, recorder, whole=whole)

    async def models(self) -> list[dict[str, Any]]:
        """Those of the endpoint; the one of the settings where it does not say."""
        return await self.endpoint.models()

    async def close(self) -> None:
        """Connections of the endpoint."""
        if self.chat_endpoint is not None:
            await self.chat_endpoint.close()

    async def _keep_answer(
        self,
        scope: WriteScope,
        begun: Begun,
        said: str,
        hijacked: str | None,
        recorder: Recorder,
        *,
        whole: bool,
    ) -> None:
        """The turn; of an answer that is none, or half, or obeys somebody else nothing is learned,
        and what a person said is not lost with it."""
        if hijacked is not None:
            logger.warning("an answer was taken back: %s", hijacked)
            await self._keep_interrupted(scope, begun, "", recorder, reason="hijacked")
        elif whole and said.strip():
            await self._keep(scope, begun, Message("assistant", said), recorder)
        else:
            await self._keep_interrupted(scope, begun, said, recorder)

    async def _keep_interrupted(
        self,
        scope: WriteScope,
        begun: Begun,
        said: str,
        recorder: Recorder,
        *,
        reason: str = "interrupted",
    ) -> None:
        """`said`: what had come of the answer."""
        self.runtime.metrics.count("chats_lost", reason=reason)
        answer = Message("assistant", said)
        await self._keep(scope, begun, answer, recorder, interrupted=True)

    async def _keep(
        self,
        scope: WriteScope,
        begun: Begun,
        said: Message,
        recorder: Recorder,
        *,
        interrupted: bool = False,
    ) -> None:
        """The model has answered, so whatever fails here costs the turn's memory alone."""
        asked = begun.asked
        if asked.question is None:
            return
        answer = replace(said, content=without_forbidden(said.content))
        request = _request(asked, (*asked.messages, answer), recorder)
        model = str(begun.body["model"])
        try:
            await self.hooks.keep(scope, replace(request, model=model, interrupted=interrupted))
        except RayappError as error:
            self.runtime.metrics.count("chats_lost", reason=error.code)
            logger.warning("a turn of a chat was not kept: %s", error.code)

    async def _record(self, scope: WriteScope, begun: Begun, said: Any, text: str) -> None:
        await self.model_calls.charge(
            UsageRow(
                user_id=scope.user_id,
                helper=LEDGER,
                model=str(begun.body["model"]),
                prompt_version="",
                at=self.runtime.clock.now(),
                usage=usage_of(said, begun.asked.messages, text),
            )
        )


def _request(asked: Asked, messages: tuple[Message, ...], recorder: Recorder) -> ExchangeRequest:
    return ExchangeRequest(
        conversation_id=asked.conversation_id,
        message_id=asked.message_id,
        messages=messages,
        limit=LIMIT,
        tools=asked.tools,
        tools_called=tuple(tools_called(asked.by_role)),
        tool_rounds=tool_rounds(asked.by_role),
        recorder=recorder,
    )
