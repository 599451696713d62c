"""Tenants over HTTP, for operators."""

from typing import TYPE_CHECKING, Self

from pydantic import Field

from rayapp.wire import bases
from rayapp.wire.data import unfinished_erasure

if TYPE_CHECKING:  # programs that only have the client need not hold what this imports
    from rayapp.admin.tenants import TenantErased


class TenantView(bases.Answer):
    """A tenant that a key was ever made for."""

    org_id: str
    keys: int = Field(description="Those that open something: neither revoked nor expired.")
    users: int = Field(description="With anything kept of them.")
    memories: int


class TenantsAnswer(bases.Success):
    """By name; users without a tenant are in none of them."""

    tenants: tuple[TenantView, ...]


class TenantUserView(bases.Answer):
    """A user of a tenant."""

    user_id: bases.PlainUser
    memories: int
    held: bool = Field(description="An operator keeps the data from being deleted.")


class TenantUsersAnswer(bases.Success):
    """By name: those of whom anything is kept."""

    users: tuple[TenantUserView, ...]


class TenantErasedAnswer(bases.Success):
    """Not `complete`: the time was up, or the index has not let go of everything; the same request
    goes on."""

    org_id: str
    complete: bool
    keys_revoked: int
    users: int = Field(description="Of whom nothing is kept any more.")
    users_left: int
    removed: dict[str, int] = Field(description="By this call, by place.")
    left: dict[str, int] = Field(description="Of the users that this call came to, by place.")
    unseen: tuple[str, ...] = Field(description="Places that could not be looked at.")
    message: str

    @classmethod
    def from_erased(cls, found: "TenantErased") -> Self:
        message = "Everything of the tenant is erased and its keys are revoked."
        if not found.complete:
            message = unfinished_erasure(found.unseen)
        return cls.of(found, message=message)
