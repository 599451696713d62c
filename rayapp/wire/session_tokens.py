"""Session tokens over HTTP."""

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from rayapp.wire import bases

# A token is some 400 characters; what is longer is none.
MAX_TOKEN_CHARS = 2_000


class SessionBody(bases.Strict):
    """What the token is for; without fields: all of the user that the key may, for as long as one
    may last."""

    aliases: ClassVar = {"expires_in": "seconds"}
    seconds: Annotated[bases.Whole, Field(ge=60)] | None = bases.optional(
        "How long it lasts; default and most: `auth.session_s`."
    )
    scopes: Annotated[tuple[Literal["read", "write"], ...], Field(max_length=2)] = Field(
        (), description="Default: those of the key, without `admin`."
    )
    shard: Annotated[str, Field(max_length=bases.MAX_ID_CHARS)] | None = bases.optional(
        "The tenant; it must be that of the key, which alone decides it."
    )


class SessionAnswer(bases.Success):
    """The token is shown once and kept nowhere."""

    token: str
    token_type: Literal["Bearer"] = "Bearer"
    expires_at: datetime
    user_id: str
    shard: str | None = Field(description="The tenant of the key; null for the default one.")
    scopes: tuple[str, ...]


class EndSessionBody(bases.Strict):
    """Another token than the one that the request is made with."""

    token: Annotated[str, Field(max_length=MAX_TOKEN_CHARS)] | None = None


class SessionEndedAnswer(bases.Success):
    """Other replicas refuse it within `auth.cache_s`."""

    message: str


class ConsoleSessionAnswer(bases.Success):
    """Who is at the console, and what the pages may offer."""

    user_id: str
    shard: str | None = Field(description="The tenant of the key; null for the default one.")
    scopes: tuple[str, ...]
    keys: bool = Field(description="The service asks for keys; else anybody here is let in.")
    expires_at: datetime | None = Field(description="Of the session token; null where none is.")
