"""Puts the prompt of a turn together: rules, what memory knows, what was said, the question."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rayapp.assistant.context.service import ContextService
from rayapp.assistant.gating.rules.decision import read_task
from rayapp.assistant.gating.rules.intents import tool_needs
from rayapp.assistant.personality.service import PersonalityService
from rayapp.assistant.prompt import rules
from rayapp.assistant.prompt.rules import History, ModelWindow, Part, Window
from rayapp.assistant.records import AssistantContext, ContextRequest
from rayapp.core.runtime import Clock
from rayapp.graphs.rules.directives import side_of
from rayapp.inference.ports import Message
from rayapp.memory.scope import ReadScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """`parts` in their order, those without text left out; `messages` say the same to a model."""

    parts: tuple[Part, ...]
    history: History
    context: AssistantContext
    window: Window
    limit: int

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    @property
    def messages(self) -> tuple[Message, ...]:
        """A system message of what stands before the talk, then the talk, then the question."""
        said = {part.name: part.text for part in self.parts}
        said.pop("history", None)
        question = said.pop("question")
        system = "\n\n".join((*said.values(), *filter(None, (self.history.bullets,))))
        return (
            Message("system", system),
            *self.history.messages,
            Message("user", question),
        )


class PromptService:
    """Raises InvalidInput, code `window_too_small`; what is merely away is named in `degraded`."""

    def __init__(
        self,
        context: ContextService,
        personality: PersonalityService,
        windows: Sequence[ModelWindow],
        clock: Clock,
    ) -> None:
        self._context = context
        self._personality = personality
        self.windows = tuple(windows)
        self._clock = clock

    def window(self, model: str, asked: int | None = None) -> Window:
        return rules.window_of(model, self.windows, asked)

    async def build(
        self, scope: ReadScope, request: ContextRequest, *, model: str, window: int | None
    ) -> Prompt:
        """The order of the parts is fixed, and nothing that anybody wrote changes it. Over the
        limit the history gives way first, then weaker memories; what must stand never does."""
        task = read_task(request, tool_needs(request.query, request.tools))
        side = side_of(task.language)
        _, personality = await self._personality.prompt(scope, side)
        given = self.window(model, window)
        limit = rules.limit_of(given)
        # The tools are counted as if all stayed: the gate decides only when memory was read.
        fixed = (
            rules.time_part(self._clock.now(), side),
            rules.tools_part(request.tools, side),
            Part("personality", personality),
            rules.rules_part(side),
            Part("question", request.query),
        )
        budget = rules.block_budget(limit, fixed, task.complexity)
        if request.token_budget is not None:
            budget = min(budget, request.token_budget)
        found = await self._context.prefetch(scope, replace(request, token_budget=budget))
        time, _, persona, trust, question = fixed
        tools = rules.tools_part(found.gating.allowed, side)
        block = Part("context", found.block.text.strip("\n"))
        room = limit - sum(part.tokens for part in (*fixed, block))
        history = rules.history_of(request.recent, room, side)
        told = Part("history", history.text)
        parts = (time, tools, persona, trust, block, told, question)
        return Prompt(
            parts=tuple(part for part in parts if part.text),
            history=history,
            context=found,
            window=given,
            limit=limit,
        )
