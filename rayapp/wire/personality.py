"""Who the assistant is for the user, over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from rayapp.wire.bases import Absent, Answer, Flag, Keyed, Lenient, Success, Written, optional, path

if TYPE_CHECKING:
    from rayapp.assistant.personality.rules import Template
    from rayapp.assistant.ports import Personality, SavedPersonality

MAX_TITLE_CHARS = 120
MAX_DESCRIPTION_CHARS = 500

Title = Annotated[str, Field(min_length=1, max_length=MAX_TITLE_CHARS)]


class PersonalityBody(Lenient, Keyed):
    """A template to save and use, or the name of one to use."""

    aliases: ClassVar = {
        "yaml_content": "content",
        "preset_name": "name",
        "preset_description": "description",
        "preset_id": "template_id",
        "id": "template_id",
    }
    content: str | None = optional("The template as YAML.")
    name: Title | None = optional("Name of the template; without content, the one to use.")
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION_CHARS)] | None = optional(
        "For the list of templates."
    )
    template_id: Title | None = optional("Use this preset or template.")
    activate: Flag = Field(True, description="Use the saved template from the next request on.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.content is None and self.template_id is None and self.name is None:
            raise ValueError("content is missing; send a template, or template_id to use one")
        if self.content is None and not self.activate:
            raise ValueError("changes nothing; send content, or leave activate out")
        return self


class PresetQuery(Lenient):
    """One template, or all of them."""

    aliases: ClassVar = {"template_id": "id"}
    id: Title | None = optional("Only this template, with its content.")


class DeleteQuery(Lenient):
    """The template to delete."""

    aliases: ClassVar = {"template_id": "id"}
    id: Title = Field(description="Id of a template of the user.")


class PromptQuery(Lenient):
    """How the prompt is worded."""

    lang: Literal["en", "he"] = Field("en", description="Language of the sentences around it.")


class PersonalityView(Answer):
    """The template in use. `assistant_name`: what the assistant is called."""

    name: str
    content: str
    is_default: bool = Field(alias="isDefault")
    description: str
    assistant_name: str


class PersonalityAnswer(Success):
    """The template in use, nested and flat."""

    personality: PersonalityView
    template_id: str
    name: str
    content: str
    assistant_name: str
    is_default: bool = Field(alias="isDefault")
    preset: bool
    warnings: tuple[str, ...]

    @classmethod
    def from_personality(cls, found: Personality, *, is_default: bool) -> Self:
        shown = PersonalityView.of(
            found.template, is_default=is_default, assistant_name=found.checked.name
        )
        return cls.of(
            found.template,
            personality=shown,
            is_default=is_default,
            assistant_name=shown.assistant_name,
            warnings=found.checked.warnings,
        )


class SavedAnswer(Written):
    """What was saved or chosen; `overwrite`: a template of that name was replaced."""

    message: str
    template_id: str
    name: str
    assistant_name: str
    preset: bool
    overwrite: bool
    activated: bool
    warnings: tuple[str, ...]

    @classmethod
    def from_saved(cls, saved: SavedPersonality, message: str) -> Self:
        checked = saved.personality.checked
        return cls.of(
            saved.personality.template,
            message=message,
            assistant_name=checked.name,
            overwrite=saved.overwritten,
            activated=saved.activated,
            warnings=checked.warnings,
        )


class PresetView(Answer):
    """A template of the list."""

    id: str = path("template_id")
    name: str
    description: str
    type: Literal["preset", "custom"]
    active: bool
    updated_at: datetime | None

    @classmethod
    def from_template(cls, template: Template, active: str) -> Self:
        kind = "preset" if template.preset else "custom"
        return cls.of(template, type=kind, active=template.template_id == active)


class PresetAnswer(PresetView, Success):
    """One template with its content."""

    content: str


class PresetsAnswer(Success):
    """All templates; or, when one was asked for, that one with its content."""

    presets: tuple[PresetView, ...] | None = Absent
    active: str | bool | None = Absent
    id: str | None = Absent
    name: str | None = Absent
    description: str | None = Absent
    type: Literal["preset", "custom"] | None = Absent
    updated_at: datetime | None = Absent
    content: str | None = Absent


class DeletedAnswer(Written):
    """The template is gone."""

    message: str
    template_id: str


class PromptAnswer(Success):
    """The first section of a system prompt."""

    prompt: str
    template_id: str
    assistant_name: str
    lang: Literal["en", "he"]
    chars: int
    warnings: tuple[str, ...]
