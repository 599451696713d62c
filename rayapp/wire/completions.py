"""The completions protocol of OpenAI, as far as this service looks at it."""

import base64
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, WithJsonSchema

from rayapp.core.vectors import Vector
from rayapp.wire import bases
from rayapp.wire.context import TurnMessage
from rayapp.wire.hooks import MOST_MESSAGES

# Texts of one request for vectors, and characters of one.
MOST_TEXTS = 256
MOST_TEXT_CHARS = 100_000


class Passed(bases.Body):
    """Fields that are not named here are for the model."""

    model_config = ConfigDict(extra="allow", frozen=True)


class ChatCompletionBody(Passed):
    """A chat; every field goes to the model, and `messages` with memory in the system message."""

    # What a terminal or a file said goes through as it is.
    read_apart = "messages"
    model: str | None = bases.optional(
        "Of the endpoint; `rayapp` or nothing: the one of the settings."
    )
    messages: Annotated[tuple[TurnMessage, ...], Field(min_length=1)] = Field(
        max_length=MOST_MESSAGES,
        description="All so far, the newest last.",
        json_schema_extra={"minItems": 1},
    )
    user: str | None = bases.optional("The conversation, where no `X-Conversation-Id` names it.")
    stream: bases.Flag | None = bases.optional("Server-sent events as the model answers.")
    tools: tuple[dict[str, Any], ...] | None = bases.optional(
        "Functions; those are left out that memory makes needless."
    )


class ProtocolErrorBody(bases.Answer):
    """What went wrong."""

    message: str = Field(description="One sentence that says what to do.")
    type: str = Field(description="The code again.")
    code: str = Field(description="Stable name; the table of codes is in the description.")
    param: str | None = bases.optional("The field that was refused.")


class ProtocolError(bases.Answer):
    """Every error of `/v1`, as clients of OpenAI read it."""

    error: ProtocolErrorBody


class FreeAnswer(bases.Answer):
    """A shape that belongs to somebody else."""

    model_config = ConfigDict(
        extra="allow", frozen=True, json_schema_extra={"additionalProperties": True}
    )


class ChatCompletion(FreeAnswer):
    """The model's answer, without marks about memories."""

    choices: tuple[dict[str, Any], ...] = Field(description="Of the protocol.")


class ModelCard(FreeAnswer):
    """A model that may be named."""

    id: str
    object: Literal["model"] = "model"


class ModelCards(bases.Answer):
    """The models of the endpoint."""

    object: Literal["list"] = "list"
    data: tuple[ModelCard, ...]


Text = Annotated[str, Field(min_length=1, max_length=MOST_TEXT_CHARS)]
_TEXT = {"type": "string", "minLength": 1, "maxLength": MOST_TEXT_CHARS}
_TEXTS = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": MOST_TEXTS}


class EmbeddingsBody(bases.Lenient):
    """Texts to be turned into vectors."""

    input: Annotated[
        tuple[Text, ...],
        bases.OneOrMore,
        Field(min_length=1, max_length=MOST_TEXTS),
        WithJsonSchema({"anyOf": [_TEXT, _TEXTS]}),
    ] = Field(description="A text, or a list of texts.")
    model: str | None = bases.optional("Not read: there is one embedder.")
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="Numbers, or float32 little-endian in base64."
    )
    input_type: Literal["passage", "query"] = Field(
        "passage", description="What is stored, or what is asked."
    )


class EmbeddingRow(bases.Answer):
    """The vector of one text."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: tuple[float, ...] | str = Field(description="As `encoding_format` asks.")

    @classmethod
    def of_vector(cls, index: int, vector: Vector, *, encoded: bool) -> "EmbeddingRow":
        if not encoded:
            return cls(index=index, embedding=tuple(map(float, vector)))
        raw = np.ascontiguousarray(vector, dtype="<f4").tobytes()
        return cls(index=index, embedding=base64.b64encode(raw).decode())


class TokenCount(bases.Answer):
    """Tokens, estimated."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(bases.Answer):
    """A vector per text, in their order."""

    object: Literal["list"] = "list"
    data: tuple[EmbeddingRow, ...]
    model: str
    usage: TokenCount
