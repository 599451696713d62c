"""Client calls about what an assistant is told: before a question, around a turn, by its tools."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from rayapp.client.calls import Reader, Talk, Writer, asked, at, call, given, listed
from rayapp.client.core import Core
from rayapp.wire.context import ColdStartAnswer, ContextAnswer, InsightsAnswer
from rayapp.wire.hooks import ExchangeAnswerView, HookContextAnswer, HookScoreAnswer, HookScoreState
from rayapp.wire.prompt import TurnPromptAnswer, WindowAnswer, WindowsAnswer
from rayapp.wire.tools import (
    ResponseCheckAnswer,
    ToolAnswerView,
    ToolResultsAnswer,
    ToolsAnswer,
    ToolTableAnswer,
    UsageAnswer,
)

MEMORY = "/api/memory"
HOOKS = "/api/hooks"
WINDOW = "/api/model/context"
ChatMessage = Mapping[str, Any]  # role and content


class ContextCalls(Core):
    """The calls."""

    @call
    def context(
        self,
        /,
        query: str,
        *,
        conversation_id: str | None = None,
        recent_messages: Sequence[ChatMessage | str] = (),
        tools: Sequence[str] = (),
        token_budget: int | None = None,
        user_id: str | None = None,
        **options: Any,
    ) -> Talk[ContextAnswer]:
        """Everything about one question, ready for a prompt, and which tools it needs.

        `options` are further body fields (limit, has_documents, message_id …).
        """
        body = {
            "query": query,
            "conversation_id": conversation_id,
            "recent_messages": listed(recent_messages),
            "tools": listed(tools),
            "token_budget": token_budget,
            "include_context": True,
            **options,
        }
        return self.reading(ContextAnswer, f"{MEMORY}/context", given(body), user_id=user_id)

    @call
    def prompt(
        self,
        /,
        query: str,
        *,
        model: str | None = None,
        window: int | None = None,
        conversation_id: str | None = None,
        recent_messages: Sequence[ChatMessage | str] = (),
        tools: Sequence[str] = (),
        user_id: str | None = None,
        **options: Any,
    ) -> Talk[TurnPromptAnswer]:
        """The whole prompt of a turn as messages, within half of the model's window.

        `options` are further body fields (token_budget, limit, message_id …).
        """
        body = {
            "query": query,
            "model": model,
            "window": window,
            "conversation_id": conversation_id,
            "recent_messages": listed(recent_messages),
            "tools": listed(tools),
            **options,
        }
        return self.reading(TurnPromptAnswer, f"{MEMORY}/prompt", given(body), user_id=user_id)

    @call
    def model_windows(self, **who: Unpack[Reader]) -> Talk[WindowsAnswer]:
        """Context windows by the beginning of a model's name."""
        return self.reading(WindowsAnswer, "/api/model/contexts", **who)

    @call
    def model_window(self, model: str, **who: Unpack[Reader]) -> Talk[WindowAnswer]:
        """The context window of one model."""
        return self.reading(WindowAnswer, at(WINDOW, model), **who)

    @call
    def set_model_window(
        self, model: str, tokens: int, *, everybody: bool = False, **who: Unpack[Writer]
    ) -> Talk[WindowAnswer]:
        """A window of one's own, or of all users who set none. Raises Conflict, Forbidden."""
        body = {"tokens": tokens, "everybody": everybody}
        return self.writing(WindowAnswer, at(WINDOW, model), body, **who)

    @call
    def unset_model_window(
        self, model: str, *, everybody: bool = False, **who: Unpack[Writer]
    ) -> Talk[WindowAnswer]:
        """The window of the table again. Raises NotFound."""
        path = asked(at(WINDOW, model), everybody=everybody or None)
        return self.writing(WindowAnswer, path, method="DELETE", **who)

    @call
    def cold_start(
        self, conversation_id: str | None = None, **who: Unpack[Reader]
    ) -> Talk[ColdStartAnswer]:
        """What is known of the user before the first question."""
        body = given({"conversation_id": conversation_id})
        path = f"{MEMORY}/context/cold-start"
        return self.reading(ColdStartAnswer, path, body, **who)

    @call
    def insights(
        self,
        query: str,
        *,
        conversation_id: str | None = None,
        recent_messages: Sequence[str] = (),
        **who: Unpack[Reader],
    ) -> Talk[InsightsAnswer]:
        """What the graphs say of a question, before any search."""
        body = {
            "query": query,
            "conversation_id": conversation_id,
            "recent_messages": listed(recent_messages),
        }
        path = f"{MEMORY}/context/insights"
        return self.reading(InsightsAnswer, path, given(body), **who)

    # --- around a turn, for programs that run the conversation themselves

    @call
    def hook_context(
        self,
        query: str,
        *,
        limit: int | None = None,
        tiers: Sequence[str] | None = None,
        sort_by: str | None = None,
        **who: Unpack[Reader],
    ) -> Talk[HookContextAnswer]:
        """The best memories for a question, as a plain list."""
        body = {"query": query, "limit": limit, "tiers": tiers, "sortBy": sort_by}
        return self.reading(HookContextAnswer, f"{HOOKS}/context", given(body), **who)

    @call
    def exchange(
        self,
        /,
        conversation_id: str,
        message_id: str,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[str] = (),
        tools_called: Sequence[str] = (),
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Talk[ExchangeAnswerView]:
        """The messages with what is known; when the assistant spoke last, the turn is kept.

        `scoring_required` of the answer: one of the conversation still waits for
        `record_response`. `options` are further body fields (limit, token_budget, tool_runs).
        """
        body = {
            "conversationId": conversation_id,
            "messageId": message_id,
            "messages": list(messages),
            "tools": listed(tools),
            "toolsCalled": listed(tools_called),
            **options,
        }
        who = Writer(user_id=user_id, idempotency_key=idempotency_key)
        return self.writing(ExchangeAnswerView, f"{HOOKS}/exchange", given(body), **who)

    @call
    def hook_score(
        self,
        conversation_id: str,
        message_id: str,
        score: Literal[-1, 0, 1],
        *,
        memory_ids: Sequence[str] = (),
        feedback: str | None = None,
        **who: Unpack[Writer],
    ) -> Talk[HookScoreAnswer]:
        """A thumb about an answer; without ids, about all that it was given."""
        body = {
            "conversationId": conversation_id,
            "messageId": message_id,
            "score": score,
            "memoryIds": listed(memory_ids),
            "feedback": feedback,
        }
        return self.writing(HookScoreAnswer, f"{HOOKS}/score", given(body), **who)

    @call
    def hook_score_state(
        self, message_id: str, *, conversation_id: str | None = None, **who: Unpack[Reader]
    ) -> Talk[HookScoreState]:
        """Whether an answer was scored."""
        path = asked(f"{HOOKS}/score", messageId=message_id, conversationId=conversation_id)
        return self.reading(HookScoreState, path, **who)

    # --- the tools of an assistant

    @call
    def tools(self, *, strict: bool | None = None, **who: Unpack[Reader]) -> Talk[ToolsAnswer]:
        """The tools and their schemas."""
        return self.reading(ToolsAnswer, asked(f"{MEMORY}/tools", strict=strict), **who)

    @call
    def tool_table(
        self, names: Sequence[str] | None = None, **who: Unpack[Reader]
    ) -> Talk[ToolTableAnswer]:
        """What to show of these tools, or of all in the table, while they run."""
        path = asked(f"{MEMORY}/tools/table", tools=names)
        return self.reading(ToolTableAnswer, path, **who)

    @call
    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | str,
        *,
        conversation_id: str | None = None,
        turn_id: str | None = None,
        **who: Unpack[Writer],
    ) -> Talk[ToolAnswerView]:
        """Call a tool; `arguments` may be the JSON text that a model wrote.

        Raises NotFound: no such tool.
        """
        body = {
            "arguments": arguments if isinstance(arguments, str) else dict(arguments),
            "conversation_id": conversation_id,
            "turn_id": turn_id,
        }
        return self.writing(ToolAnswerView, at(f"{MEMORY}/tools", name), given(body), **who)

    @call
    def keep_tool_results(
        self, results: Sequence[Mapping[str, Any]], **who: Unpack[Writer]
    ) -> Talk[ToolResultsAnswer]:
        """Remember what other tools answered; each has `tool_name` and `output`."""
        body = {"results": [dict(one) for one in results]}
        return self.writing(ToolResultsAnswer, f"{MEMORY}/tool-results", body, **who)

    @call
    def check_response(
        self, /, text: str, *, user_id: str | None = None, **options: Any
    ) -> Talk[ResponseCheckAnswer]:
        """A model's answer repaired, and what was wrong; `options`: tool_calls,
        expect_json, question."""
        path = f"{MEMORY}/response/check"
        body = given({"text": text, **options})
        return self.reading(ResponseCheckAnswer, path, body, user_id=user_id)

    @call
    def model_usage(self, *, days: int | None = None, **who: Unpack[Reader]) -> Talk[UsageAnswer]:
        """What the helpers asked of the language model."""
        return self.reading(UsageAnswer, asked(f"{MEMORY}/models/usage", days=days), **who)
