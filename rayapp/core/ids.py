"""Forms of ids, the place where a tenant and its user are joined, and whom everybody reads."""

import re

MEMORY_ID_PATTERN = USER_ID_PATTERN = re.compile(r"^[A-Za-z0-9._:@-]{1,128}$")
ORG_ID_PATTERN = re.compile(r"^[A-Za-z0-9._-]{1,64}$")
# Of no user and no tenant.
ORG_MARK = "/"
# Who owns rows and points: `org/user`, or the user alone in the default tenant (decision 0076).
OWNER_ID_PATTERN = re.compile(r"^([A-Za-z0-9._-]{1,64}/)?[A-Za-z0-9._:@-]{1,128}$")
SYSTEM_USER = "system"
# Whom a process asks for before it takes requests.
WARM_UP_USER = "rayapp:warm-up"


def owner_id(org_id: str | None, user_id: str) -> str:
    """What every store knows the user by; `org_id` None is the default tenant."""
    return user_id if org_id is None else f"{org_id}{ORG_MARK}{user_id}"


def org_of(owner: str) -> str | None:
    """The tenant of an owner, None for the default one."""
    org_id, mark, _ = owner.partition(ORG_MARK)
    return org_id if mark else None


def user_of(owner: str) -> str:
    """The user as clients know it, without the tenant."""
    return owner.rpartition(ORG_MARK)[2]


def owners_of(org_id: str) -> tuple[str, str]:
    """The owners of a tenant are the strings from the first up to, without, the second."""
    return org_id + ORG_MARK, org_id + chr(ord(ORG_MARK) + 1)
