"""Who the assistant is for the user: templates, the one in use, and its prompt."""

from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.assistant.personality.rules import DEFAULT_TEMPLATE
from rayapp.assistant.ports import SavedPersonality
from rayapp.core.errors import Conflict, NotFound, TooLarge
from rayapp.wire import personality as wire

routes = router("personality")
PERSONALITY = "/api/memory/personality"


@routes.get(PERSONALITY, summary="The personality in use")
async def current(call: CurrentCall) -> wire.PersonalityAnswer:
    found = await call.services.personality.current(call.reads)
    is_default = found.template.preset and found.template.template_id == DEFAULT_TEMPLATE
    return wire.PersonalityAnswer.from_personality(found, is_default=is_default)


@routes.post(
    PERSONALITY, summary="Save a personality, or use one", **writes(NotFound, Conflict, TooLarge)
)
async def save(call: CurrentCall, body: wire.PersonalityBody) -> wire.SavedAnswer:
    """With `content` the template is checked, saved under its name and used; without it the named
    preset or template is used. Sections: identity, communication (both needed), response_behavior,
    memory_usage, formatting, personality_traits, custom_instructions."""
    personalities = call.services.personality
    if body.content is None:
        wanted = body.template_id or body.name or DEFAULT_TEMPLATE
        chosen = await personalities.activate(call.writes, wanted)
        used = SavedPersonality(personality=chosen, overwritten=False, activated=True)
        return wire.SavedAnswer.from_saved(used, "In use from the next request on.")
    saved = await personalities.save(
        call.writes,
        body.content,
        name=body.name or body.template_id,
        description=body.description,
        activate=body.activate,
    )
    message = "Saved; in use from the next request on." if saved.activated else "Saved."
    return wire.SavedAnswer.from_saved(saved, message)


@routes.delete(PERSONALITY, summary="Delete a template", **writes(NotFound, Conflict))
async def delete(call: CurrentCall, query: InQuery[wire.DeleteQuery]) -> wire.DeletedAnswer:
    """A preset, and the template in use, cannot be deleted."""
    await call.services.personality.delete(call.writes, query.id)
    return wire.DeletedAnswer(message="Template deleted.", template_id=query.id)


@routes.get(
    f"{PERSONALITY}/presets",
    summary="All templates, or one",
    response_model=wire.PresetsAnswer,
    responses=raises(NotFound),
)
async def presets(
    call: CurrentCall, query: InQuery[wire.PresetQuery]
) -> wire.PresetsAnswer | wire.PresetAnswer:
    """Presets first, then the user's own. With `id` the answer is that template with its
    `content`."""
    templates, active = await call.services.personality.listed(call.reads)
    if query.id is not None:
        return wire.PresetAnswer.from_template(
            await call.services.personality.template(call.reads, query.id), active
        )
    rows = tuple(wire.PresetView.from_template(one, active) for one in templates)
    return wire.PresetsAnswer(presets=rows, active=active)


@routes.get(f"{PERSONALITY}/prompt", summary="The prompt of the personality in use")
async def prompt(call: CurrentCall, query: InQuery[wire.PromptQuery]) -> wire.PromptAnswer:
    """The first section of a system prompt. The line that tells the user and the assistant apart is
    always there, in both languages."""
    found, text = await call.services.personality.prompt(call.reads, query.lang)
    return wire.PromptAnswer.of(
        found.checked,
        prompt=text,
        template_id=found.template.template_id,
        assistant_name=found.checked.name,
        lang=query.lang,
        chars=len(text),
    )
