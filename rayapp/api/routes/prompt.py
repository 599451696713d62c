"""The whole prompt of a turn, and the windows of models that limit it."""

from rayapp.api.paths import ModelPart
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.api.routes.context import request_of
from rayapp.assistant.prompt.rules import FALLBACK_WINDOW
from rayapp.core.errors import Conflict, Forbidden, NotFound
from rayapp.wire import prompt as wire

routes = router("context")
MODEL = "/api/model/context/{model_name}"


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
    """`configs/model_windows.yaml`, by the beginning of a model's name, and what the user or an
    operator set instead."""
    prompts = call.services.prompt
    own = await prompts.own.windows(call.reads)
    return wire.WindowsAnswer(models=prompts.windows, own=own, fallback=FALLBACK_WINDOW)


@routes.get("/api/model/context", summary="The context window of a model")
async def context(call: CurrentCall, query: InQuery[wire.ModelQuery]) -> wire.WindowAnswer:
    """What the user set, else an operator, else the longest prefix of the table that its name
    begins with; a name may hold slashes."""
    return await one(call, query.model)


@routes.get(MODEL, summary="The context window of a model, by its path")
async def one(call: CurrentCall, model_name: ModelPart) -> wire.WindowAnswer:
    found = await call.services.prompt.window(call.reads, model_name)
    return wire.WindowAnswer(window=found)


@routes.post(MODEL, summary="Set the context window of a model", **writes(Conflict, Forbidden))
async def set_window(
    call: CurrentCall, model_name: ModelPart, body: wire.WindowBody
) -> wire.WindowAnswer:
    """Of one's own, or with `everybody`, for operators, of all users who have none. It is never
    above the maximum of the table."""
    _check_operator(call, body.everybody)
    found = await call.services.prompt.set_window(
        call.writes, model_name, body.tokens, everybody=body.everybody
    )
    return wire.WindowAnswer(window=found)


@routes.delete(MODEL, summary="Use the table's window again", **writes(NotFound, Forbidden))
async def unset_window(
    call: CurrentCall, model_name: ModelPart, query: InQuery[wire.UnsetQuery]
) -> wire.WindowAnswer:
    _check_operator(call, query.everybody)
    found = await call.services.prompt.unset_window(
        call.writes, model_name, everybody=query.everybody
    )
    return wire.WindowAnswer(window=found)


def _check_operator(call: CurrentCall, everybody: bool) -> None:
    if everybody and not call.who.admin:
        raise Forbidden("Only a key with the scope admin sets a window for everybody.")
