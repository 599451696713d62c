"""API keys: random, shown once, stored as SHA-256, looked up through a short cache (0104)."""

import hashlib
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from rayapp.admin.ports import ApiKey, ApiKeyStore, Scope
from rayapp.core.errors import InvalidInput, NotFound, StoreDown, Unauthorized
from rayapp.core.ids import ORG_ID_PATTERN, SYSTEM_USER, USER_ID_PATTERN
from rayapp.core.runtime import Clock

KEY_PREFIX = "rk_"
# 256 random bits: nothing to guess, so a fast hash is enough and no salt is needed.
KEY_BYTES = 32
_KEY = re.compile(r"rk_[A-Za-z0-9_-]{43}")
# Bounds memory when very many keys are in use; far above what one service has.
CACHE_KEYS = 10_000
# A use is written down when the last one is older than this, seconds: no write per request.
USED_S = 300.0
MAX_NAME_CHARS = 100


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
        name: str = "",
        expires_at: datetime | None = None,
    ) -> tuple[str, ApiKey]:
        """The key itself, which is never shown again, and its row.

        Raises InvalidInput: no scope, an unusable tenant or user, no user without the admin scope,
        or an end that is over.
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
        now = self._clock.now()
        if expires_at is not None and expires_at <= now:
            raise InvalidInput("expires_at: name a moment that is still to come.")
        return await self._added(
            ApiKey(
                key_hash="",
                principal=principal,
                user_id=user_id,
                scopes=wanted,
                created_at=now,
                org_id=org_id,
                name=" ".join(name.split())[:MAX_NAME_CHARS],
                expires_at=expires_at,
            )
        )

    async def _added(self, row: ApiKey) -> tuple[str, ApiKey]:
        secret = KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)
        row = replace(row, key_hash=hash_of(secret))
        await self._store.add(row)
        return secret, row

    async def rotate(self, key_id: str, *, grace: timedelta) -> tuple[str, ApiKey]:
        """Another key that may do the same; the one it follows works for `grace` more.

        Raises NotFound.
        """
        old = await self._living_named(key_id)
        now = self._clock.now()
        lasts = None if old.expires_at is None else now + (old.expires_at - old.created_at)
        made = await self._added(replace(old, created_at=now, expires_at=lasts, last_used_at=None))
        await self._store.expire(old.key_hash, now + grace)
        self._found.clear()
        return made

    async def end(self, key_id: str) -> ApiKey:
        """Revoke one key. Raises NotFound."""
        key = await self._living_named(key_id)
        now = self._clock.now()
        await self._store.end(key.key_hash, now)
        self._found.clear()
        return replace(key, revoked_at=now)

    async def _living_named(self, key_id: str) -> ApiKey:
        now = self._clock.now()
        for key in await self._store.all():
            if key.key_id == key_id and key.living_at(now):
                return key
        raise NotFound("No living key has this id; list the keys to see their ids.")

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
        """None: unknown, revoked or expired. Raises StoreDown."""
        now, at = self._clock.monotonic(), self._clock.now()
        cached = self._found.get(key_hash)
        if cached and cached[0] > now:
            return cached[1] if cached[1].living_at(at) else None
        key = await self._store.find(key_hash)
        if key is None or not key.living_at(at):
            self._found.pop(key_hash, None)
            return None
        if key.last_used_at is None or (at - key.last_used_at).total_seconds() >= USED_S:
            # Who was let in is not sent away because it could not be written down.
            with suppress(StoreDown):
                await self._store.used(key_hash, at)
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
