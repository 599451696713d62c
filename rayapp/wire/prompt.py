"""The prompt of a turn and the windows of models, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field

from rayapp.wire import bases
from rayapp.wire.context import GatingView, IntentsView, PrefetchBody

if TYPE_CHECKING:
    from rayapp.assistant.prompt.service import Prompt

# Tokens of a window that a caller may ask for.
LEAST_WINDOW, MOST_WINDOW = 512, 2_000_000
ModelName = Annotated[str, Field(min_length=1, max_length=bases.MAX_MODEL_CHARS)]
Tokens = Annotated[bases.Whole, Field(ge=LEAST_WINDOW, le=MOST_WINDOW)]


class PromptBody(PrefetchBody):
    """A question, its conversation, and the model that will read the prompt."""

    aliases: ClassVar = PrefetchBody.aliases | {"contextWindow": "window"}
    model: ModelName | None = bases.optional(
        "Its window decides how long the prompt is; models.model when absent."
    )
    window: Tokens | None = bases.optional("Tokens of the window, instead of the table's.")


class ModelQuery(bases.Lenient):
    """Which model."""

    model: ModelName = Field(description="Its name, as the server calls it.")


class WindowBody(bases.Lenient, bases.Keyed):
    """A window of one's own."""

    aliases: ClassVar = {"context_window": "tokens", "contextWindow": "tokens", "size": "tokens"}
    tokens: Tokens = Field(description="Tokens; more than the model can hold counts as that.")
    everybody: bases.Flag = Field(False, description="For all users who set none; operators only.")


class UnsetQuery(bases.Lenient):
    """Whose window ends."""

    everybody: bool = Field(False, description="The one that an operator set for all users.")


class WindowView(bases.Answer):
    """Tokens of a window; `maximum` null: not known."""

    model: str
    tokens: int
    maximum: int | None
    source: str = Field(description="asked, own, operator, table or fallback.")


class PartView(bases.Answer):
    """One part of the prompt."""

    name: str
    tokens: int
    text: str


class PromptMessage(bases.Answer):
    """One message for the model."""

    role: str
    content: str


class TurnPromptAnswer(bases.Success):
    """The prompt: `parts` in their order, and the same as messages."""

    messages: tuple[PromptMessage, ...]
    parts: tuple[PartView, ...]
    tokens: int
    limit: int = Field(description="Tokens that the prompt may take: half of the window.")
    window: WindowView
    dropped_messages: int = bases.path(
        "history.dropped", description="Messages that found no room, the oldest."
    )
    receipt_id: str | None = bases.path("context.receipt_id")
    etag: str = bases.path("context.block.etag")
    confidence: str = bases.path("context.confidence")
    gating: GatingView
    intents: IntentsView = bases.path("context.intents")
    latency_ms: float

    @classmethod
    def from_prompt(cls, made: Prompt, **others: Any) -> Self:
        gating = GatingView.from_decision(made.context.gating)
        return cls.of(made, gating=gating, degraded=made.context.degraded, **others)


class ModelWindowView(bases.Answer):
    """Of models whose name begins with `prefix`."""

    prefix: str
    default: int
    maximum: int


class OwnWindowView(bases.Answer):
    """What was set for one model."""

    name: str
    tokens: int
    everybody: bool


class WindowsAnswer(bases.Success):
    """The table, what was set instead, and what a model has that nothing names."""

    models: tuple[ModelWindowView, ...]
    own: tuple[OwnWindowView, ...]
    fallback: int


class WindowAnswer(bases.Written):
    """The window of one model."""

    window: WindowView
