"""Asks a model for a short form of a long answer of a tool."""

from __future__ import annotations

from rayapp.assistant.tool_results.rules.summary import accepted_summary
from rayapp.assistant.tool_results.service import Summarise
from rayapp.inference.chat.question import ModelQuestion, prompt_language
from rayapp.inference.ports import Asking
from rayapp.memory.scope import WriteScope


def summarising(models: Asking) -> Summarise | None:
    """What `ToolResultService` calls after it answered; None: no model may be asked."""
    if not models.enabled("tool_result_summary"):
        return None

    async def summarise(scope: WriteScope, text: str) -> str | None:
        question = ModelQuestion(
            helper="tool_result_summary",
            variables={"text": text},
            answer=str,
            language=prompt_language(text),
        )
        reply = await models.ask(scope.user_id, question)
        return accepted_summary(reply.value, text) if reply.value is not None else None

    return summarise
