"""Settings of who may ask, from where and how much; and what every section of settings is."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rayapp.core.settings import rules as settings_rules

UserId = Annotated[str, AfterValidator(settings_rules.default_user)]
Origin = Annotated[str, AfterValidator(settings_rules.origin)]
Share = Annotated[float, Field(ge=0, le=1)]
T = TypeVar("T")


class SettingsSection(BaseModel):
    """Frozen, and an unknown name is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def setting(default: T, description: str, **bounds: Any) -> T:
    """A field of a section; `bounds` as of `pydantic.Field`."""
    made: T = Field(default, description=description, **bounds)
    return made


class HttpSettings(SettingsSection):
    host: str = setting("127.0.0.1", "Address to bind; anything but loopback needs keys.")
    port: int = setting(8000, "HTTP port.", ge=0, le=65535)
    allowed_hosts: list[str] = setting(
        ["127.0.0.1", "localhost", "[::1]", "testserver"],
        "`Host` values served in keyless local mode.",
    )
    allowed_origins: list[Origin] = setting(
        [],
        "Web pages (`https://app.example`) whose scripts may call; empty: those of the "
        "service alone.",
    )
    body_limit_bytes: int = setting(1 << 20, "Largest request body.", ge=1024)
    batch_body_limit_bytes: int = setting(16 << 20, "Largest batch body.", ge=1024)
    query_limit_chars: int = setting(4_000, "Longest search query.", ge=1)
    text_limit_chars: int = setting(100_000, "Longest memory text.", ge=1)
    batch_limit_items: int = setting(1_000, "Most items in one batch.", ge=1, le=10_000)
    max_in_flight: int = setting(100, "Requests in work per replica before a 429.", ge=1)


class AuthSettings(SettingsSection):
    mode: Literal["auto", "keys", "open"] = setting(
        "auto", "auto: open on loopback, keys elsewhere; open refuses other binds."
    )
    default_user: UserId = setting("admin", "User served in keyless local mode.")
    cache_s: float = setting(30.0, "Seconds a looked-up key is trusted.", ge=0, le=300)
    sessions: bool = setting(False, "Give session tokens for browsers (`POST /api/auth/session`).")
    session_s: int = setting(
        86_400, "What a session token lasts at most, seconds.", ge=60, le=30 * 86_400
    )
    # Plain text, because settings travel to other processes as JSON; never shown, never logged.
    session_secret: Annotated[str, AfterValidator(settings_rules.session_secret)] = setting(
        "",
        "Signs session tokens, 32 characters or more; empty: one is made at first use, "
        "in the data directory, for one machine.",
        repr=False,
    )


class AuditSettings(SettingsSection):
    writes: bool = setting(
        False, "Also log requests that store or change memories, whose versions say who did it."
    )
    keep_days: int = setting(400, "How long an entry is kept.", ge=1, le=3_650)


class RateLimitSettings(SettingsSection):
    per_second: float = setting(600.0, "Refill per key, requests per second.", gt=0)
    burst: int = setting(1_200, "Bucket size per key, requests.", ge=1)
