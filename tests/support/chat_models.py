"""A scripted chat model without a server, and model calls on it, for tests."""

from collections.abc import Callable, Sequence
from typing import Any

from rayapp.container import bootstrap
from rayapp.core.breaker import Breaker, BreakerPolicy
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.inference.chat.rules.integrity import split_thinking
from rayapp.inference.chat.service import ModelCalls
from rayapp.inference.ports import (
    ChatAnswer,
    ChatModel,
    ChatRequest,
    ChatUsage,
    Message,
    UsageStore,
)
from rayapp.inference.prompts.loader import load_prompts
from rayapp.inference.rules import estimate_tokens
from tests.support.clock import FakeClock
from tests.support.stores.usage import InMemoryUsageStore

Answer = str | Exception | ChatAnswer
AnswerTo = Callable[[Sequence[Message]], Answer]


class ScriptedChat:
    """`ChatModel`. `answers`: a function of the messages, or answers in turn, the last for ever.

    Attributes:
        requests: the messages of every call.
        schemas: the JSON schema of every call.
    """

    def __init__(self, answers: AnswerTo | Sequence[Answer] = ("ok",)) -> None:
        self._answers = answers
        self.requests: list[tuple[Message, ...]] = []
        self.schemas: list[dict[str, Any] | None] = []

    @property
    def model(self) -> str:
        return "scripted"

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        turn, messages = len(self.requests), request.messages
        self.requests.append(tuple(messages))
        self.schemas.append(request.json_schema)
        if callable(self._answers):
            found = self._answers(messages)
        else:
            found = self._answers[min(turn, len(self._answers) - 1)]
        if isinstance(found, Exception):
            raise found
        if isinstance(found, ChatAnswer):
            return found
        usage = ChatUsage(
            prompt_tokens=sum(estimate_tokens(one.content) for one in messages),
            completion_tokens=estimate_tokens(found),
            estimated=True,
        )
        text, _ = split_thinking(found)
        return ChatAnswer(text=text, finish="stop", usage=usage, model=self.model)


def model_calls(
    chat: ChatModel | None,
    *,
    clock: FakeClock | None = None,
    usage: UsageStore | None = None,
    metrics: InMemoryMetrics | None = None,
    **settings: Any,
) -> ModelCalls:
    """Calls on `chat`; `settings` are those of `models`, `helpers={...}` among them."""
    clock = clock or FakeClock()
    helpers = {"contextual_prefix": True, **settings.pop("helpers", {})}
    chosen = load_settings("local", env={}, overrides={"models": {**settings, "helpers": helpers}})
    runtime = bootstrap.runtime_of(chosen, metrics or InMemoryMetrics(), clock)
    return ModelCalls(
        chat,
        usage or InMemoryUsageStore(clock),
        load_prompts(),
        breaker=Breaker("models", BreakerPolicy(failures=3, open_s=30, successes=2)),
        runtime=runtime,
    )
