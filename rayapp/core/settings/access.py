"""Settings of who may ask, from where and how much; and what every section of settings is."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rayapp.core.settings import rules as settings_rules

UserId = Annotated[str, AfterValidator(settings_rules.default_user)]
Origin = Annotated[str, AfterValidator(settings_rules.origin)]


class SettingsSection(BaseModel):
    """Frozen, and an unknown name is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class HttpSettings(SettingsSection):
    host: str = Field("127.0.0.1", description="Address to bind; anything but loopback needs keys.")
    port: int = Field(8000, ge=0, le=65535, description="HTTP port.")
    allowed_hosts: list[str] = Field(
        ["127.0.0.1", "localhost", "[::1]", "testserver"],
        description="`Host` values served in keyless local mode.",
    )
    allowed_origins: list[Origin] = Field(
        [],
        description="Web pages (`https://app.example`) whose scripts may call; empty: those of the "
        "service alone.",
    )
    body_limit_bytes: int = Field(1 << 20, ge=1024, description="Largest request body.")
    batch_body_limit_bytes: int = Field(16 << 20, ge=1024, description="Largest batch body.")
    query_limit_chars: int = Field(4_000, ge=1, description="Longest search query.")
    text_limit_chars: int = Field(100_000, ge=1, description="Longest memory text.")
    batch_limit_items: int = Field(1_000, ge=1, le=10_000, description="Most items in one batch.")
    max_in_flight: int = Field(100, ge=1, description="Requests in work per replica before a 429.")


class AuthSettings(SettingsSection):
    mode: Literal["auto", "keys", "open"] = Field(
        "auto", description="auto: open on loopback, keys elsewhere; open refuses other binds."
    )
    default_user: UserId = Field("admin", description="User served in keyless local mode.")
    cache_s: float = Field(30.0, ge=0, le=300, description="Seconds a looked-up key is trusted.")
    sessions: bool = Field(
        False, description="Give session tokens for browsers (`POST /api/auth/session`)."
    )
    session_s: int = Field(
        86_400, ge=60, le=30 * 86_400, description="What a session token lasts at most, seconds."
    )
    # Plain text, because settings travel to other processes as JSON; never shown, never logged.
    session_secret: Annotated[str, AfterValidator(settings_rules.session_secret)] = Field(
        "",
        repr=False,
        description="Signs session tokens, 32 characters or more; empty: one is made at first use, "
        "in the data directory, for one machine.",
    )


class RateLimitSettings(SettingsSection):
    per_second: float = Field(600.0, gt=0, description="Refill per key, requests per second.")
    burst: int = Field(1_200, ge=1, description="Bucket size per key, requests.")
