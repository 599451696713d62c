"""Puts the prompt of a turn together: rules, what memory knows, what was said, the question."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from rayapp.assistant.context.service import ContextService
from rayapp.assistant.gating.rules.decision import read_task
from rayapp.assistant.gating.rules.intents import tool_needs
from rayapp.assistant.history.service import RESTORED
from rayapp.assistant.personality.service import PersonalityService
from rayapp.assistant.ports import ConversationStore, OwnWindow, WindowStore
from rayapp.assistant.prompt import rules
from rayapp.assistant.prompt.rules import History, ModelWindow, Part, Window
from rayapp.assistant.records import AssistantContext, ContextRequest
from rayapp.assistant.tools.rules.table import ToolRow, first_to_try
from rayapp.core.errors import NotFound
from rayapp.core.runtime import Clock
from rayapp.graphs.rules.directives import Side, side_of
from rayapp.inference.ports import Message
from rayapp.memory.rules import creation
from rayapp.memory.scope import ReadScope, WriteScope


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
        return (Message("system", system), *self.history.messages, Message("user", question))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is known of a prompt before memory is asked: what must stand, and what is left for it.

    request: with the messages that are kept when none were sent, and the budget of the block.
    told: what a model said of the conversation so far.
    """

    request: ContextRequest
    window: Window
    limit: int
    side: Side
    fixed: tuple[Part, ...]
    told: tuple[str, ...] = ()


@dataclass(eq=False)
class PromptService:
    """Raises InvalidInput, code `window_too_small`; what is merely away is named in `degraded`.

    `table`: of tools, which says the one to try first.
    """

    context: ContextService
    personality: PersonalityService
    conversations: ConversationStore
    own: WindowStore
    windows: Sequence[ModelWindow]
    clock: Clock
    _: KW_ONLY
    table: Mapping[str, ToolRow]

    # --- windows

    async def window(self, scope: ReadScope, model: str, asked: int | None = None) -> Window:
        own = () if asked is not None else await self.own.windows(scope)
        return rules.window_of(model, self.windows, asked, own)

    async def set_window(
        self, scope: WriteScope, model: str, tokens: int, *, everybody: bool
    ) -> Window:
        """Raises Conflict, code `windows_full`."""
        creation.check_user(scope.user_id)
        window = OwnWindow(
            model=rules.plain_name(model),
            name=model,
            tokens=tokens,
            at=self.clock.now(),
            everybody=everybody,
        )
        await self.own.put(scope, window)
        return await self.window(ReadScope(scope.user_id), model)

    async def unset_window(self, scope: WriteScope, model: str, *, everybody: bool) -> Window:
        """What it has without; NotFound when there was no window of one's own."""
        creation.check_user(scope.user_id)
        if not await self.own.delete(scope, rules.plain_name(model), everybody=everybody):
            raise NotFound(f"No window was set for {model[:80]}; list /api/model/contexts.")
        return await self.window(ReadScope(scope.user_id), model)

    # --- prompts

    async def build(
        self, scope: ReadScope, request: ContextRequest, *, model: str, window: int | None
    ) -> Prompt:
        """The order of the parts is fixed, and nothing that anybody wrote changes it. Over the
        limit the history gives way first, then weaker memories; what must stand never does."""
        plan = await self.plan(scope, request, model=model, window=window)
        return self.assemble(plan, await self.context.prefetch(scope, plan.request))

    async def plan(
        self, scope: ReadScope, request: ContextRequest, *, model: str, window: int | None
    ) -> Plan:
        task = read_task(request, tool_needs(request.query, request.tools))
        side = side_of(task.language)
        (_, personality), given, (recent, told) = await asyncio.gather(
            self.personality.prompt(scope, side),
            self.window(scope, model, window),
            self._said(scope, request),
        )
        limit = rules.limit_of(given)
        # The tools are counted as if all stayed: the gate decides only when memory was read.
        fixed = (
            rules.time_part(self.clock.now(), side),
            self._tools_part(request.tools, side),
            Part("personality", personality),
            rules.rules_part(side),
            Part("question", request.query),
        )
        budget = rules.block_budget(limit, fixed, task.complexity)
        if request.token_budget is not None:
            budget = min(budget, request.token_budget)
        return Plan(
            request=replace(request, recent=recent, token_budget=budget),
            window=given,
            limit=limit,
            side=side,
            fixed=fixed,
            told=told,
        )

    def assemble(self, plan: Plan, found: AssistantContext) -> Prompt:
        """`found`: the context of the request of the plan."""
        time, _, persona, trust, question = plan.fixed
        tools = self._tools_part(found.gating.allowed, plan.side)
        block = Part("context", found.block.text.strip("\n"))
        room = plan.limit - sum(part.tokens for part in (*plan.fixed, block))
        history = rules.history_of(plan.request.recent, room, plan.side, plan.told)
        told = Part("history", history.text)
        parts = (time, tools, persona, trust, block, told, question)
        return Prompt(
            parts=tuple(part for part in parts if part.text),
            history=history,
            context=found,
            window=plan.window,
            limit=plan.limit,
        )

    def _tools_part(self, tools: Sequence[str], side: Side) -> Part:
        return rules.tools_part(first_to_try(tools, self.table), side)

    async def _said(
        self, scope: ReadScope, request: ContextRequest
    ) -> tuple[tuple[Message, ...], tuple[str, ...]]:
        """The messages before the question, those that are kept when the caller sent none, and what
        a model said of the conversation."""
        name = request.conversation_id
        if name is None:
            return request.recent, ()
        row = await self.conversations.get(scope.own, name)
        if row is None or request.recent:
            return request.recent, row.bullets if row else ()
        turns = await self.conversations.turns(scope.own, name, limit=RESTORED // 2)
        before = [one for one in turns if one.message_id != request.message_id and not one.erased]
        said = tuple(
            message
            for one in reversed(before)
            for message in (Message("user", one.question), Message("assistant", one.answer))
        )
        return said, row.bullets
