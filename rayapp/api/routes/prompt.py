"""The whole prompt of a turn, and the windows of models that limit it."""

from rayapp.api.route import CurrentCall, InQuery, router
from rayapp.api.routes.context import request_of
from rayapp.assistant.prompt.rules import FALLBACK_WINDOW
from rayapp.wire import prompt as wire

routes = router("context")


@routes.post("/api/memory/prompt", summary="The whole prompt of a turn")
async def prompt(call: CurrentCall, body: wire.PromptBody) -> wire.TurnPromptAnswer:
    """Time, tool rules, personality, how far memory can be trusted, the context of the question,
    the conversation and the question, always in this order, in at most half of the model's window.
    Where there is no room the oldest messages give way, then the weaker memories; personality,
    rules and question never do (`window_too_small`)."""
    model = body.model or call.services.settings.models.model
    made = await call.services.prompt.build(
        call.reads, request_of(call, body), model=model, window=body.window
    )
    return wire.TurnPromptAnswer.from_prompt(made, latency_ms=call.built_ms)


@routes.get("/api/model/contexts", summary="Context windows of models")
async def contexts(call: CurrentCall) -> wire.WindowsAnswer:
    """`configs/model_windows.yaml`, by the beginning of a model's name."""
    return wire.WindowsAnswer.from_table(call.services.prompt.windows, FALLBACK_WINDOW)


@routes.get("/api/model/context", summary="The context window of a model")
async def context(call: CurrentCall, query: InQuery[wire.ModelQuery]) -> wire.WindowAnswer:
    """The longest prefix of the table that its name begins with; a name may hold slashes."""
    return wire.WindowAnswer.from_window(call.services.prompt.window(query.model))
