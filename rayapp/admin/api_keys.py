"""API keys: random, shown once, stored as SHA-256, looked up through a short cache."""

import hashlib
import re
import secrets
from collections.abc import Iterable

from rayapp.admin.ports import ApiKey, ApiKeyStore, Scope
from rayapp.core.errors import InvalidInput, NotFound, Unauthorized
from rayapp.core.ids import ORG_ID_PATTERN, SYSTEM_USER, USER_ID_PATTERN
from rayapp.core.runtime import Clock

KEY_PREFIX = "rk_"
# 256 random bits: nothing to guess, so a fast hash is enough and no salt is needed.
KEY_BYTES = 32
_KEY = re.compile(r"rk_[A-Za-z0-9_-]{43}")
# Bounds memory when very many keys are in use; far above what one service has.
CACHE_KEYS = 10_000


class ApiKeyService:
    """Makes, checks and revokes keys.

    `cache_s`: seconds a found key is trusted; a revoked key works for at most that long.
    """

    def __init__(self, store: ApiKeyStore, *, clock: Clock, cache_s: float) -> None:
        self._store = store
        self._clock = clock
        self._cache_s = cache_s
        self._found: dict[str, tuple[float, ApiKey]] = {}

    async def create(
        self,
        principal: str,
        *,
        user_id: str | None,
        scopes: Iterable[Scope],
        org_id: str | None = None,
    ) -> tuple[str, ApiKey]:
        """The key itself, which is never shown again, and its row.

        Raises InvalidInput: no scope, an unusable tenant or user, or no user without the admin
        scope.
        """
        wanted = frozenset(scopes)
        if not principal.strip():
            raise InvalidInput("Name the principal of the key.")
        if not wanted or not wanted <= {"read", "write", "admin"}:
            raise InvalidInput("Give the key scopes out of read, write and admin.")
        if user_id is None and "admin" not in wanted:
            raise InvalidInput("A key without the admin scope needs a user; name one.")
        if user_id is not None and not usable_user(user_id):
            raise InvalidInput(
                "The user of a key is 1 to 128 letters, digits and . _ : @ -, and not 'system'.",
                code="bad_user_id",
            )
        if org_id is not None and not ORG_ID_PATTERN.fullmatch(org_id):
            raise InvalidInput("The tenant of a key is 1 to 64 letters, digits and . _ -.")
        secret = KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)
        row = ApiKey(
            key_hash=hash_of(secret),
            principal=principal,
            user_id=user_id,
            scopes=wanted,
            created_at=self._clock.now(),
            org_id=org_id,
        )
        await self._store.add(row)
        return secret, row

    async def authenticate(self, secret: str) -> ApiKey:
        """The living key behind `secret`.

        Raises:
            Unauthorized: unknown, revoked or not of our form.
            StoreDown: the key is not in the cache and MongoDB is away.
        """
        if not _KEY.fullmatch(secret):
            raise _unknown()
        key = await self.living(hash_of(secret))
        if key is None:
            raise _unknown()
        return key

    def is_cached(self, secret: str) -> bool:
        """Whether `authenticate` would ask no store."""
        cached = self._found.get(hash_of(secret))
        return cached is not None and cached[0] > self._clock.monotonic()

    async def living(self, key_hash: str) -> ApiKey | None:
        """None: unknown or revoked. Raises StoreDown."""
        now = self._clock.monotonic()
        cached = self._found.get(key_hash)
        if cached and cached[0] > now:
            return cached[1]
        key = await self._store.find(key_hash)
        if key is None or key.revoked_at is not None:
            self._found.pop(key_hash, None)
            return None
        if len(self._found) >= CACHE_KEYS:
            self._found.clear()
        self._found[key_hash] = (now + self._cache_s, key)
        return key

    async def revoke(self, principal: str, *, org_id: str | None = None) -> int:
        """End all keys of `principal` in the tenant; how many there were. Raises NotFound when
        there is none."""
        count = await self._store.revoke(principal, self._clock.now(), org_id=org_id)
        self._found.clear()
        if not count:
            raise NotFound(f"No living key of {principal}; list the keys to see their names.")
        return count

    async def all(self) -> list[ApiKey]:
        """Every row; none of them holds a key."""
        return await self._store.all()


def hash_of(secret: str) -> str:
    """SHA-256 of a key, 64 hex digits."""
    return hashlib.sha256(secret.encode("utf-8")).hexdigest()


def usable_user(user_id: str) -> bool:
    """True for a user that a key or a header may name."""
    return user_id != SYSTEM_USER and USER_ID_PATTERN.fullmatch(user_id) is not None


def _unknown() -> Unauthorized:
    return Unauthorized("The API key is not known; send Authorization: Bearer rk_…")
