"""Bodies, query fields and answers of the personality routes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rayapp.wire.bases import Answer, Flag, IdempotencyKey, Lenient

PERSONALITY_ALIASES = {
    "yaml_content": "content",
    "preset_name": "name",
    "preset_description": "description",
    "preset_id": "template_id",
    "id": "template_id",
}
PRESET_ALIASES = {"template_id": "id"}
MAX_TITLE_CHARS = 120
MAX_DESCRIPTION_CHARS = 500

Title = Annotated[str, Field(min_length=1, max_length=MAX_TITLE_CHARS)]


class PersonalityBody(Lenient):
    """A template to save and use, or the name of one to use."""

    content: str | None = Field(None, description="The template as YAML.")
    name: Title | None = Field(
        None, description="Name of the template; without content, the one to use."
    )
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION_CHARS)] | None = Field(
        None, description="For the list of templates."
    )
    template_id: Title | None = Field(None, description="Use this preset or template.")
    activate: Flag = Field(True, description="Use the saved template from the next request on.")
    idempotency_key: IdempotencyKey = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.content is None and self.template_id is None and self.name is None:
            raise ValueError("content is missing; send a template, or template_id to use one")
        if self.content is None and not self.activate:
            raise ValueError("changes nothing; send content, or leave activate out")
        return self


class PresetQuery(Lenient):
    """One template, or all of them."""

    id: Title | None = Field(None, description="Only this template, with its content.")


class DeleteQuery(Lenient):
    """The template to delete."""

    id: Title = Field(description="Id of a template of the user.")


class PromptQuery(Lenient):
    """How the prompt is worded."""

    lang: Literal["en", "he"] = Field("en", description="Language of the sentences around it.")


class PersonalityView(Answer):
    """The template in use. `assistant_name`: what the assistant is called."""

    name: str
    content: str
    isDefault: bool
    description: str
    assistant_name: str


class PersonalityAnswer(Answer):
    """The template in use, nested and flat."""

    success: Literal[True]
    personality: PersonalityView
    template_id: str
    name: str
    content: str
    assistant_name: str
    isDefault: bool
    preset: bool
    warnings: list[str]
    degraded: list[str]


class SavedAnswer(Answer):
    """What was saved or chosen; `overwrite`: a template of that name was replaced."""

    success: Literal[True]
    message: str
    template_id: str
    name: str
    assistant_name: str
    preset: bool
    overwrite: bool
    activated: bool
    warnings: list[str]
    degraded: list[str]
    duplicate: bool = False


class PresetView(Answer):
    """A template of the list."""

    id: str
    name: str
    description: str
    type: Literal["preset", "custom"]
    active: bool
    updated_at: datetime | None


class PresetsAnswer(Answer):
    """All templates; or, when one was asked for, that one with its content."""

    success: Literal[True]
    presets: list[PresetView] | None = None
    active: str | bool | None = None
    id: str | None = None
    name: str | None = None
    description: str | None = None
    type: Literal["preset", "custom"] | None = None
    updated_at: datetime | None = None
    content: str | None = None
    degraded: list[str]


class DeletedAnswer(Answer):
    """The template is gone."""

    success: Literal[True]
    message: str
    template_id: str
    degraded: list[str]
    duplicate: bool = False


class PromptAnswer(Answer):
    """The first section of a system prompt."""

    success: Literal[True]
    prompt: str
    template_id: str
    assistant_name: str
    lang: Literal["en", "he"]
    chars: int
    warnings: list[str]
    degraded: list[str]
