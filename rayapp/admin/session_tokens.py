"""Session tokens: signed, short, for one user, and never more than the key that made them.

A token holds what it opens; nothing is kept of it but that it was ended before its time. What is
signed wrongly is refused without a look at any store (decision 0077).
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import jwt

from rayapp.admin.api_keys import CACHE_KEYS
from rayapp.admin.ports import ApiKey, ApiKeyStore, Scope
from rayapp.core.errors import Forbidden, InvalidInput, Unauthorized
from rayapp.core.runtime import Runtime

ALGORITHM, ISSUER = "HS256", "rayapp"
CLAIMS = ("jti", "sub", "key", "scope", "exp", "iss")
# What a token may cover at all: a page in a browser runs no service.
COVERED: frozenset[Scope] = frozenset({"read", "write"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionToken:
    """What a token says. `user_id`: as clients know it; its tenant is that of the key."""

    token_id: str
    key_hash: str
    user_id: str
    scopes: frozenset[Scope]
    expires_at: datetime


class SessionTokenService:
    """`secret` answers what signs; it is asked once, when the first token is made or shown."""

    def __init__(self, store: ApiKeyStore, secret: Callable[[], str], *, runtime: Runtime) -> None:
        settings = runtime.settings
        self.on = settings.auth.sessions and settings.keys_required
        self._most_s = settings.auth.session_s
        self._cache_s = settings.auth.cache_s
        self._store = store
        self._load = secret
        self._runtime = runtime
        # Whether a token was ended, by its id, until a monotonic second.
        self._ended: dict[str, tuple[float, bool]] = {}

    def make(
        self, key: ApiKey, user_id: str, wanted: frozenset[Scope], seconds: int | None
    ) -> tuple[str, SessionToken]:
        """The token, which is not kept, and what it says.

        Raises:
            Forbidden: the key lacks a scope that is wanted, or none is left.
            InvalidInput: it would last longer than `auth.session_s`.
        """
        held = COVERED if "admin" in key.scopes else key.scopes & COVERED
        if not wanted <= held:
            raise Forbidden("The token would cover more than this key; leave out scopes.")
        seconds = self._most_s if seconds is None else seconds
        if seconds > self._most_s:
            raise InvalidInput(
                f"seconds: a session token lasts {self._most_s} at most (auth.session_s).",
                details={"field": "seconds"},
            )
        # Whole seconds, as the token says it.
        expires_at = self._now().replace(microsecond=0) + timedelta(seconds=seconds)
        found = SessionToken(
            token_id=self._runtime.new_id(),
            key_hash=key.key_hash,
            user_id=user_id,
            scopes=wanted or held,
            expires_at=expires_at,
        )
        return self._signed(found), found

    def read(self, token: str) -> SessionToken:
        """What a token of this service says. Raises Unauthorized: it is none, or has expired."""
        try:
            made_here = jwt.get_unverified_header(token).get("kid") == self._key_id
        except jwt.PyJWTError:
            raise _refused("is not one that a service gave") from None
        if not made_here:
            raise _refused("is of another service, or its secret was changed")
        try:
            claims = jwt.decode(
                token,
                self._secret,
                algorithms=[ALGORITHM],
                issuer=ISSUER,
                # The time is compared by our own clock.
                options={"require": list(CLAIMS), "verify_exp": False, "verify_iat": False},
            )
        except jwt.PyJWTError:
            raise _refused("was changed") from None
        found = _of_claims(claims)
        if found.expires_at <= self._now():
            raise _refused("has expired")
        return found

    async def check_living(self, token: SessionToken) -> None:
        """Raises Unauthorized: it was ended, up to `auth.cache_s` ago or longer; StoreDown."""
        now = self._runtime.clock.monotonic()
        until, ended = self._ended.get(token.token_id, (0.0, False))
        if until <= now:
            ended = await self._store.token_ended(token.token_id)
            self._remember(token.token_id, ended)
        if ended:
            raise _refused("was revoked")

    async def end(self, token: SessionToken) -> None:
        """Revoke it: here at once, in other replicas within `auth.cache_s`. Harmless to repeat."""
        await self._store.end_token(token.token_id, token.expires_at)
        self._remember(token.token_id, True)

    def _remember(self, token_id: str, ended: bool) -> None:
        if len(self._ended) >= CACHE_KEYS:
            self._ended.clear()
        self._ended[token_id] = (self._runtime.clock.monotonic() + self._cache_s, ended)

    def _now(self) -> datetime:
        return self._runtime.clock.now()

    @cached_property
    def _secret(self) -> str:
        return self._load()

    @cached_property
    def _key_id(self) -> str:
        """Tells our tokens from those of other services."""
        return hashlib.sha256(self._secret.encode()).hexdigest()[:16]

    def _signed(self, token: SessionToken) -> str:
        claims = {
            "iss": ISSUER,
            "jti": token.token_id,
            "sub": token.user_id,
            "key": token.key_hash,
            "scope": " ".join(sorted(token.scopes)),
            "exp": int(token.expires_at.timestamp()),
        }
        return jwt.encode(claims, self._secret, ALGORITHM, headers={"kid": self._key_id})


def _of_claims(claims: dict[str, Any]) -> SessionToken:
    scopes: frozenset[Any] = frozenset(claims["scope"].split())
    return SessionToken(
        token_id=claims["jti"],
        key_hash=claims["key"],
        user_id=claims["sub"],
        scopes=scopes & COVERED,
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
    )


def _refused(why: str) -> Unauthorized:
    return Unauthorized(f"The session token {why}; make a new one.", code="bad_token")
