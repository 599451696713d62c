"""Keys and the audit log over HTTP, for operators."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from rayapp.admin.ports import ApiKey, AuditEntry, AuditQuestion
from rayapp.core.ids import ORG_ID_PATTERN, USER_ID_PATTERN, org_of, owner_id
from rayapp.wire import bases

MAX_GRACE_S = 30 * 86_400
KeyScope = Literal["read", "write", "admin"]
UserName = Annotated[str, Field(pattern=USER_ID_PATTERN.pattern)]
OrgName = Annotated[str, Field(pattern=ORG_ID_PATTERN.pattern)]
Word = Annotated[str, Field(min_length=1, max_length=128)]


class KeyBody(bases.Strict):
    """A new key."""

    principal: Word = Field(description="Who uses it; outcomes count by this name.")
    name: Annotated[str, Field(max_length=100)] = Field("", description="What it is for.")
    user_id: UserName | None = bases.optional(
        "Whose memories it opens; a key without the scope admin needs one."
    )
    org_id: OrgName | None = bases.optional("The tenant that it belongs to.")
    scopes: Annotated[tuple[KeyScope, ...], Field(min_length=1, max_length=3)] = Field(
        ("read", "write"), description="What it covers."
    )
    expires_at: bases.UtcTime | None = bases.optional("When it ends; never when absent.")


class RotateBody(bases.Strict):
    """How long the earlier key goes on."""

    grace_s: Annotated[bases.Whole, Field(ge=0, le=MAX_GRACE_S)] = Field(
        86_400, description="Seconds for which the earlier key works beside the new one."
    )


class KeyView(bases.Answer):
    """A key; the key itself is kept nowhere. `last_used_at` is exact to five minutes."""

    key_id: str
    name: str
    principal: str
    user_id: str | None
    org_id: str | None
    scopes: tuple[str, ...]
    state: Literal["living", "expired", "revoked"]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def from_key(cls, key: ApiKey, now: datetime) -> Self:
        ended: Literal["expired", "revoked"] = "expired" if key.revoked_at is None else "revoked"
        state = "living" if key.living_at(now) else ended
        return cls.of(key, scopes=tuple(sorted(key.scopes)), state=state)


class KeysAnswer(bases.Success):
    """Oldest first, with those that open nothing any more."""

    keys: tuple[KeyView, ...]


class KeyMadeAnswer(bases.Success):
    """`key` is shown here alone."""

    key: str
    made: KeyView


class KeyEndedAnswer(bases.Success):
    """Replicas refuse it within `auth.cache_s`."""

    ended: KeyView


class AuditQuery(bases.Strict):
    """Which entries."""

    cursor: Word | None = bases.optional("`next_cursor` of the page before.")
    principal: Word | None = bases.optional("Only what this principal did.")
    user_id: UserName | None = bases.optional("Only in the name of this user.")
    org_id: OrgName | None = bases.optional("The tenant of that user.")
    route: Annotated[str, Field(max_length=200)] | None = bases.optional(
        "Only this route, as the entries write it."
    )
    since: bases.UtcTime | None = bases.optional("From then on.")
    until: bases.UtcTime | None = bases.optional("Before then.")
    limit: int = Field(50, ge=1, le=bases.MAX_PAGE, description="Entries in the answer.")

    def question(self) -> AuditQuestion:
        """One more than asked for, which tells whether there is another page."""
        return AuditQuestion(
            before=self.cursor,
            principal=self.principal,
            user_id=None if self.user_id is None else owner_id(self.org_id, self.user_id),
            route=self.route,
            since=self.since,
            until=self.until,
            limit=self.limit + 1,
        )


class AuditEntryView(bases.Answer):
    """Who did what, when and from where; no text.

    `memory_ids`: the first of those that a request about many named; `ids.memories`: how many they
    were.
    """

    entry_id: str
    at: datetime
    principal: str
    key_id: str | None
    user_id: bases.PlainUser
    org_id: str | None
    source: str = Field(description="The address that asked; of IPv6 its network.")
    method: str
    route: str
    ids: dict[str, str]
    memory_ids: tuple[str, ...]
    status: int
    request_id: str

    @classmethod
    def from_entry(cls, entry: AuditEntry) -> Self:
        return cls.of(entry, org_id=org_of(entry.user_id))


class AuditAnswer(bases.Success):
    """The latest first."""

    entries: tuple[AuditEntryView, ...]
    next_cursor: str | None
