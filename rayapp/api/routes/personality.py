"""Who the assistant is for the user: templates, the one in use, and its prompt."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.assistant.personality.rules import DEFAULT_TEMPLATE, Template
from rayapp.assistant.ports import Personality, SavedPersonality
from rayapp.core.errors import Conflict, NotFound, TooLarge
from rayapp.wire import personality as shapes

PERSONALITY = "/api/memory/personality"


async def current(call: Call) -> Response:
    found = await call.services.personality.current(call.reads)
    template, name = found.template, found.checked.name
    is_default = template.preset and template.template_id == DEFAULT_TEMPLATE
    return answer(
        {
            "success": True,
            "personality": {
                "name": template.name,
                "content": template.content,
                "isDefault": is_default,
                "description": template.description,
                "assistant_name": name,
            },
            "template_id": template.template_id,
            "name": template.name,
            "content": template.content,
            "assistant_name": name,
            "isDefault": is_default,
            "preset": template.preset,
            "warnings": found.checked.warnings,
            "degraded": [],
        }
    )


async def save(call: Call) -> Response:
    body = call.body_as(shapes.PersonalityBody, shapes.PERSONALITY_ALIASES)
    personalities = call.services.personality
    if body.content is None:
        wanted = body.template_id or body.name or DEFAULT_TEMPLATE
        chosen = await personalities.activate(call.writes, wanted)
        return _saved(
            SavedPersonality(personality=chosen, overwritten=False, activated=True),
            "In use from the next request on.",
        )
    saved = await personalities.save(
        call.writes,
        body.content,
        name=body.name or body.template_id,
        description=body.description,
        activate=body.activate,
    )
    message = "Saved; in use from the next request on." if saved.activated else "Saved."
    return _saved(saved, message)


def _saved(saved: SavedPersonality, message: str) -> Response:
    found: Personality = saved.personality
    return answer(
        {
            "success": True,
            "message": message,
            "template_id": found.template.template_id,
            "name": found.template.name,
            "assistant_name": found.checked.name,
            "preset": found.template.preset,
            "overwrite": saved.overwritten,
            "activated": saved.activated,
            "warnings": found.checked.warnings,
            "degraded": [],
        }
    )


async def presets(call: Call) -> Response:
    query = call.query_as(shapes.PresetQuery, shapes.PRESET_ALIASES)
    templates, active = await call.services.personality.listed(call.reads)
    if query.id is not None:
        one = await call.services.personality.template(call.reads, query.id)
        view = _template_view(one, active) | {"content": one.content}
        return answer({"success": True, **view, "degraded": []})
    rows = [_template_view(one, active) for one in templates]
    return answer({"success": True, "presets": rows, "active": active, "degraded": []})


def _template_view(template: Template, active: str) -> dict[str, Any]:
    return {
        "id": template.template_id,
        "name": template.name,
        "description": template.description,
        "type": "preset" if template.preset else "custom",
        "active": template.template_id == active,
        "updated_at": template.updated_at,
    }


async def delete(call: Call) -> Response:
    query = call.query_as(shapes.DeleteQuery, shapes.PRESET_ALIASES)
    await call.services.personality.delete(call.writes, query.id)
    return answer(
        {
            "success": True,
            "message": "Template deleted.",
            "template_id": query.id,
            "degraded": [],
        }
    )


async def prompt(call: Call) -> Response:
    query = call.query_as(shapes.PromptQuery)
    found, text = await call.services.personality.prompt(call.reads, query.lang)
    return answer(
        {
            "success": True,
            "prompt": text,
            "template_id": found.template.template_id,
            "assistant_name": found.checked.name,
            "lang": query.lang,
            "chars": len(text),
            "warnings": found.checked.warnings,
            "degraded": [],
        }
    )


_TAG = "personality"
_YAML = """identity:
  name: Noa
  role: a helper for the kitchen
communication:
  tone: warm
  verbosity: concise
custom_instructions: |
  Answer in the language of the question.
  ענה בשפת השאלה.
"""
_SAVED_EXAMPLE: dict[str, Any] = {
    "success": True,
    "message": "Saved; in use from the next request on.",
    "template_id": "kitchen",
    "name": "Kitchen",
    "assistant_name": "Noa",
    "preset": False,
    "overwrite": False,
    "activated": True,
    "warnings": ["The section memory_usage is missing; the assistant chooses for itself."],
    "degraded": [],
}
_PRESET_EXAMPLE = {
    "id": "default",
    "name": "Default",
    "description": "A balanced assistant that remembers.",
    "type": "preset",
    "active": True,
    "updated_at": None,
}

OPERATIONS = (
    Operation(
        method="GET",
        path=PERSONALITY,
        tag=_TAG,
        summary="The personality in use",
        handler=current,
        answer=shapes.PersonalityAnswer,
        example={
            "success": True,
            "personality": {
                "name": "Kitchen",
                "content": _YAML,
                "isDefault": False,
                "description": "",
                "assistant_name": "Noa",
            },
            "template_id": "kitchen",
            "name": "Kitchen",
            "content": _YAML,
            "assistant_name": "Noa",
            "isDefault": False,
            "preset": False,
            "warnings": [],
            "degraded": [],
        },
    ),
    Operation(
        method="POST",
        path=PERSONALITY,
        tag=_TAG,
        summary="Save a personality, or use one",
        description="With `content` the template is checked, saved under its name and used; "
        "without it the named preset or template is used. Sections: identity, communication (both "
        "needed), response_behavior, memory_usage, formatting, personality_traits, "
        "custom_instructions.",
        handler=save,
        body=shapes.PersonalityBody,
        example_body={"name": "Kitchen", "content": _YAML},
        aliases=shapes.PERSONALITY_ALIASES,
        answer=shapes.SavedAnswer,
        example=_SAVED_EXAMPLE,
        errors=(NotFound, Conflict, TooLarge),
        writes=True,
    ),
    Operation(
        method="DELETE",
        path=PERSONALITY,
        tag=_TAG,
        summary="Delete a template",
        description="A preset, and the template in use, cannot be deleted.",
        handler=delete,
        query=shapes.DeleteQuery,
        example_query={"id": "mine"},
        aliases=shapes.PRESET_ALIASES,
        answer=shapes.DeletedAnswer,
        example={
            "success": True,
            "message": "Template deleted.",
            "template_id": "mine",
            "degraded": [],
        },
        errors=(NotFound, Conflict),
        writes=True,
    ),
    Operation(
        method="GET",
        path=f"{PERSONALITY}/presets",
        tag=_TAG,
        summary="All templates, or one",
        description="Presets first, then the user's own. With `id` the answer is that template "
        "with its `content`.",
        handler=presets,
        query=shapes.PresetQuery,
        aliases=shapes.PRESET_ALIASES,
        answer=shapes.PresetsAnswer,
        example={
            "success": True,
            "presets": [_PRESET_EXAMPLE],
            "active": "default",
            "degraded": [],
        },
        errors=(NotFound,),
    ),
    Operation(
        method="GET",
        path=f"{PERSONALITY}/prompt",
        tag=_TAG,
        summary="The prompt of the personality in use",
        description="The first section of a system prompt. The line that tells the user and the "
        "assistant apart is always there, in both languages.",
        handler=prompt,
        query=shapes.PromptQuery,
        example_query={"lang": "he"},
        answer=shapes.PromptAnswer,
        example={
            "success": True,
            "prompt": "אתה Noa.",
            "template_id": "kitchen",
            "assistant_name": "Noa",
            "lang": "he",
            "chars": 8,
            "warnings": [],
            "degraded": [],
        },
    ),
)
