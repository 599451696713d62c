"""Who may call what: the table of scopes, the guard in front of every handler, the rate per key."""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Flag, auto
from ipaddress import ip_address, ip_network
from typing import Literal
from urllib.parse import urlsplit

from starlette.types import Scope

from rayapp.admin.api_keys import KEY_PREFIX, usable_user
from rayapp.admin.ports import ApiKey, id_of_key
from rayapp.admin.ports import Scope as KeyScope
from rayapp.admin.session_tokens import SessionToken
from rayapp.api.services import Services
from rayapp.core.errors import Forbidden, InvalidInput, RateLimited, Unauthorized
from rayapp.core.ids import SYSTEM_USER, owner_id
from rayapp.core.settings.access import RateLimitSettings
from rayapp.core.token_bucket import TokenBucket

# Full buckets carry no information, so they are forgotten when this many are kept.
BUCKETS = 10_000


class RateLimiter:
    """Grants `per_second` requests with bursts of `burst` to each key."""

    def __init__(
        self,
        settings: RateLimitSettings,
        refusal: str = "Too many requests from this key; slow down.",
    ) -> None:
        self._settings = settings
        self._refusal = refusal
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, key: str, now: float) -> None:
        """Count one request at `now` (monotonic seconds).

        Raises RateLimited: with the seconds until the next request is granted.
        """
        wait_s = self._bucket(key, now).take(now)
        if wait_s > 0:
            raise RateLimited(self._refusal, retry_after_s=wait_s)

    def check(self, key: str, now: float) -> None:
        """The same, counting nothing."""
        wait_s = self._bucket(key, now).wait_s(now) if key in self._buckets else 0.0
        if wait_s > 0:
            raise RateLimited(self._refusal, retry_after_s=wait_s)

    def _bucket(self, key: str, now: float) -> TokenBucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            self._forget(now)
            bucket = TokenBucket(self._settings.per_second, float(self._settings.burst))
            self._buckets[key] = bucket
        return bucket

    def _forget(self, now: float) -> None:
        """Those that are idle; where none is, the oldest: memory is bounded whoever asks."""
        if len(self._buckets) >= BUCKETS:
            self._buckets = {k: b for k, b in self._buckets.items() if not b.idle(now)}
        while len(self._buckets) >= BUCKETS:
            del self._buckets[next(iter(self._buckets))]


logger = logging.getLogger(__name__)

# Keys and tokens that are none, of one source: a program of many workers that was given a wrong key
# is told so, and whoever guesses gets an answer every other second.
WRONG_KEYS = RateLimitSettings(per_second=0.5, burst=30)
# Of an answer whose caller sent a key that nobody looked at.
NOTICE_HEADER = "X-Auth-Notice"
RouteScope = Literal["public", "read", "write", "admin"]
Headers = Mapping[bytes, bytes]

ITEM = "/api/memory/items/{memory_id}"
RAW_DATA = "/api/memory/raw-data"
EPISODES, THOUGHTS = "/api/memory/episodes", "/api/memory/thoughts"
REVIEW = "/api/review"
SUMMARIES = ("/api/memory/summary", "/memory/summary")
BANK = "/api/memory/memory-bank"
BANK_ITEM = "/api/memory/memory-bank/{memory_id}"
JOB = "/api/memory/jobs/{job_id}"
DATA_CLEAR = "/api/data/clear/{target}"
DAILY, INTEGRITY = "/api/memory/ops/daily", "/api/memory/ops/integrity"
HOLDS, RETENTION = "/api/memory/ops/holds", "/api/memory/ops/retention"
BOOKS, DOCUMENTS = "/api/memory/books", "/api/documents"
UPLOAD = "/api/book-upload"
BACKUP = "/api/memory/backup"
USER = "/api/memory/user"
USER_PART = f"{USER}/part"
WEBHOOKS = "/api/webhooks"
WEBHOOK = f"{WEBHOOKS}/{{webhook_id}}"
SESSION = "/api/auth/session"
CONSOLE_SESSION = "/api/auth/console"
# Holds the session token of a browser that is signed in; it counts only beside a header that no
# page of another origin can send (decision 0099).
COOKIE, CONSOLE_HEADER = "rayapp_console", b"x-rayapp-console"
TENANTS = "/api/memory/ops/tenants"
KEYS, AUDIT = "/api/admin/keys", "/api/admin/audit"
CONVERSATIONS = "/api/memory/conversations"
CONVERSATION = f"{CONVERSATIONS}/{{conversation_id}}"
KNOWLEDGE = "/api/knowledge"
CONCEPT = "/api/memory/kg/concept/{concept_id}/definition"
TOOL = "/api/memory/tools/{tool_name}"
MCP = "/mcp"

# Served as files: script and style of the interactive reference, and the console.
DOCS_FILES = "/static-offline-docs"
CONSOLE, CONSOLE_FILE = "/console", "/console/{path:path}"


class Mark(Flag):
    """What else holds of a route.

    MAY_WRITE: of the scope `read`, but some calls need `write`: the handler looks at
        `Call.may_write`, and what was begun is finished though the caller goes away.
    ONE_USER: of the scope `admin`, but it reaches the caller's user alone: an admin key of a tenant
        may call it, and none of those about the whole service.
    STREAM: its answer, or its file, may take as long as `events.stream_s`.
    LASTING: its answer may take any time, as long as it goes on.
    DESTROYS: it deletes something of the caller's user: refused while an operator holds it. Others
        look themselves: an import, or an upload, that replaces what is there.
    FREES: it keeps less, as every DELETE, or stops what would keep more.
    BULK: it takes much room, and nobody waits for it in a conversation.
    NOTHING_KEPT: nothing of it reaches the disk.
    AUDITED: the audit log has it, as it has all that deletes or operates.
    """

    NONE = 0
    MAY_WRITE = auto()
    ONE_USER = auto()
    STREAM = auto()
    LASTING = auto()
    DESTROYS = auto()
    FREES = auto()
    BULK = auto()
    NOTHING_KEPT = auto()
    AUDITED = auto()


# No application is made with a route that has no entry here: what has no rule never runs.
_ROUTES: Mapping[str, Mapping[str, RouteScope | tuple[RouteScope, Mark]]] = {
    "/": {"GET": "public"},
    "/healthz": {"GET": "public"},
    "/readyz": {"GET": "public"},
    "/openapi.json": {"GET": "public"},
    "/docs": {"GET": "public"},
    DOCS_FILES: {"GET": "public"},
    "/docs/oauth2-redirect": {"GET": "public"},
    CONSOLE: {"GET": "public"},
    CONSOLE_FILE: {"GET": "public"},
    "/api/memory/store": {"POST": "write"},
    "/api/memory/store/batch": {"POST": "write"},
    RAW_DATA: {"POST": "write"},
    f"{RAW_DATA}/batch": {"POST": "write"},
    f"{RAW_DATA}/{{memory_id}}": {"GET": "read"},
    f"{RAW_DATA}/{{memory_id}}/reprocess": {"POST": "write"},
    EPISODES: {"GET": "read", "POST": "write"},
    f"{EPISODES}/{{derived_id}}": {"GET": "read"},
    THOUGHTS: {"GET": "read"},
    f"{THOUGHTS}/{{derived_id}}": {"GET": "read"},
    REVIEW: {"GET": "read"},
    f"{REVIEW}/{{kind}}/{{derived_id}}": {"POST": "write"},
    SUMMARIES[0]: {"GET": "read", "POST": "read"},
    SUMMARIES[1]: {"POST": "read"},
    "/api/memory/items": {"GET": "read"},
    ITEM: {"GET": "read", "PATCH": "write", "DELETE": ("write", Mark.DESTROYS)},
    f"{ITEM}/archive": {"POST": "write"},
    f"{ITEM}/restore": {"POST": "write"},
    f"{ITEM}/versions": {"GET": "read"},
    f"{ITEM}/explain": {"GET": "read"},
    "/api/memory/search": {"POST": "read", "GET": "read"},
    BANK: {"GET": "read", "POST": "write"},
    f"{BANK}/stats": {"GET": "read"},
    f"{BANK}/goals": {"GET": "read", "POST": "write"},
    f"{BANK}/goals/{{memory_id}}": {"DELETE": ("write", Mark.DESTROYS)},
    f"{BANK}/values": {"GET": "read", "POST": "write"},
    f"{BANK}/values/{{memory_id}}": {"DELETE": ("write", Mark.DESTROYS)},
    BANK_ITEM: {"GET": "read", "PUT": "write", "DELETE": ("write", Mark.DESTROYS)},
    "/api/memory/bulk/archive": {"POST": ("write", Mark.FREES)},
    "/api/memory/bulk/delete": {"POST": ("write", Mark.DESTROYS | Mark.FREES)},
    "/api/memory/outcomes": {"POST": "write"},
    "/api/memory/record_response": {"POST": "write"},
    "/api/memory/feedback": {"POST": "write"},
    "/api/memory/score": {"POST": "write"},
    "/api/memory/ops/promote": {"POST": "admin"},
    "/api/memory/ops/reindex": {"GET": "admin", "POST": ("admin", Mark.BULK)},
    "/api/memory/ops/reindex/pause": {"POST": ("admin", Mark.FREES)},
    "/api/memory/ops/reindex/resume": {"POST": ("admin", Mark.BULK)},
    "/api/memory/ops/reindex/cancel": {"POST": ("admin", Mark.FREES)},
    "/api/memory/ops/reindex/rollback": {"POST": "admin"},
    "/api/memory/ops/reindex/deferred": {"GET": "admin", "POST": "admin"},
    "/api/memory/ops/consistency": {"POST": "admin"},
    "/api/memory/ops/datagov": {"GET": "admin", "POST": ("admin", Mark.BULK)},
    "/api/memory/ops/circuit-breaker": {"GET": "admin", "POST": ("admin", Mark.NOTHING_KEPT)},
    "/api/memory/jobs": {"GET": "admin"},
    JOB: {"GET": "admin"},
    f"{JOB}/pause": {"POST": ("admin", Mark.FREES)},
    f"{JOB}/resume": {"POST": ("admin", Mark.BULK)},
    f"{JOB}/cancel": {"POST": ("admin", Mark.FREES)},
    f"{JOB}/events": {"GET": "admin"},
    "/api/memory/decay/schedule": {"GET": "read"},
    "/api/memory/decay/force": {"POST": "write"},
    "/api/memory/graph": {"GET": "read"},
    "/api/memory/kg": {"GET": "read", "POST": "write"},
    "/api/memory/kg/action-rollups": {"GET": "read"},
    "/api/memory/kg/path": {"GET": "read"},
    CONCEPT: {"GET": "read"},
    "/api/memory/content-graph/stats": {"GET": "read"},
    "/api/memory/content-graph/backfill": {"POST": "write"},
    "/api/memory/patterns/performance": {"GET": "read"},
    f"{KNOWLEDGE}/nodes": {"GET": "read"},
    f"{KNOWLEDGE}/nodes/{{node_id}}": {
        "GET": "read",
        "PATCH": "write",
        "DELETE": ("write", Mark.DESTROYS),
    },
    f"{KNOWLEDGE}/merges": {"GET": "read", "POST": "write"},
    f"{KNOWLEDGE}/merges/{{merge_id}}": {"POST": "write"},
    f"{KNOWLEDGE}/splits": {"POST": "write"},
    f"{KNOWLEDGE}/ontology": {"GET": "read"},
    f"{KNOWLEDGE}/ontology/proposals": {"POST": "write"},
    f"{KNOWLEDGE}/pages": {"GET": "read"},
    f"{KNOWLEDGE}/pages/{{node_id}}": {"GET": "read"},
    f"{KNOWLEDGE}/nodes/{{node_id}}/relationships": {"GET": "read"},
    f"{KNOWLEDGE}/entity": {"POST": "write"},
    f"{KNOWLEDGE}/relationships": {"POST": "write"},
    f"{KNOWLEDGE}/query": {"POST": "read"},
    f"{KNOWLEDGE}/snapshot": {"GET": "read"},
    "/api/memory/context/insights": {"GET": "read", "POST": "read"},
    "/api/memory/context": {"POST": "read"},
    "/api/memory/prefetch": {"POST": "read"},
    "/api/memory/prompt": {"POST": "read"},
    "/api/model/contexts": {"GET": "read"},
    "/api/model/context": {"GET": "read"},
    "/api/model/context/{model_name}": {"GET": "read", "POST": "write", "DELETE": "write"},
    CONVERSATIONS: {"GET": "read"},
    f"{CONVERSATIONS}/switch": {"POST": "write"},
    CONVERSATION: {"GET": "read", "PATCH": "write", "DELETE": ("write", Mark.DESTROYS)},
    f"{CONVERSATION}/messages": {"GET": "read"},
    f"{CONVERSATION}/export": {"GET": "read"},
    "/api/hooks/context": {"POST": "read", "GET": "read"},
    "/api/hooks/exchange": {"POST": "write"},
    "/api/hooks/score": {"POST": "write", "GET": "read"},
    "/v1/chat/completions": {"POST": ("write", Mark.STREAM)},
    "/v1/models": {"GET": "read"},
    "/v1/embeddings": {"POST": "read"},
    "/api/memory/context/cold-start": {"GET": "read", "POST": "read"},
    "/api/memory/tools": {"GET": "read"},
    "/api/memory/tools/table": {"GET": "read"},
    TOOL: {"POST": ("read", Mark.MAY_WRITE)},
    MCP: {"POST": ("read", Mark.MAY_WRITE)},
    "/api/memory/tool-results": {"POST": "write"},
    "/api/memory/events": {"GET": ("read", Mark.STREAM)},
    "/api/memory/response/check": {"POST": "read"},
    "/api/memory/models/usage": {"GET": "read"},
    "/api/memory/stats": {"GET": "read"},
    "/api/memory/growth": {"GET": "read"},
    "/api/memory/health": {"GET": "read"},
    "/api/memory/diagnostics": {"GET": "admin"},
    "/api/system/version": {"GET": "read"},
    "/api/system/health": {"GET": "read"},
    "/api/system/disk-space": {"GET": "admin"},
    "/api/system/data-sizes": {"GET": "admin"},
    "/api/memory/ghost": {"POST": "write", "GET": "read", "DELETE": "write"},
    "/api/data/stats": {"GET": "read"},
    DATA_CLEAR: {"POST": ("write", Mark.DESTROYS | Mark.FREES)},
    USER: {"DELETE": ("write", Mark.STREAM | Mark.DESTROYS)},
    USER_PART: {"DELETE": ("write", Mark.STREAM | Mark.DESTROYS)},
    "/api/data/compact-database": {"POST": ("admin", Mark.FREES)},
    "/api/memory/personality": {"GET": "read", "POST": "write", "DELETE": ("write", Mark.DESTROYS)},
    "/api/memory/personality/presets": {"GET": "read"},
    "/api/memory/personality/prompt": {"GET": "read"},
    "/api/memory/cleanup": {"GET": "admin", "POST": ("admin", Mark.FREES)},
    "/api/memory/ops/migrate": {"GET": "admin", "POST": "admin", "PUT": "admin"},
    "/api/memory/ops/sanitize": {"GET": "admin", "POST": "admin"},
    "/api/memory/ops/reset": {"GET": "admin", "POST": "admin"},
    DAILY: {"GET": "admin"},
    INTEGRITY: {"GET": "admin"},
    HOLDS: {"GET": "admin", "POST": "admin", "DELETE": "admin"},
    RETENTION: {"GET": "admin", "POST": "admin"},
    BOOKS: {"GET": "read", "POST": ("write", Mark.STREAM | Mark.BULK)},
    f"{BOOKS}/recognize": {"GET": "read", "POST": "read"},
    f"{BOOKS}/{{book_id}}": {"GET": "read", "DELETE": ("write", Mark.DESTROYS)},
    f"{BOOKS}/{{book_id}}/publish": {"POST": "write"},
    f"{BOOKS}/{{book_id}}/chunks/{{chunk_id}}/surrounding": {"GET": "read"},
    f"{UPLOAD}/upload": {"POST": ("write", Mark.STREAM | Mark.BULK)},
    f"{UPLOAD}/cancel/{{task_id}}": {"POST": ("write", Mark.DESTROYS)},
    f"{UPLOAD}/books": {"GET": "read", "POST": "write"},
    f"{UPLOAD}/search": {"GET": "read"},
    f"{UPLOAD}/ws/progress/{{task_id}}": {"GET": ("read", Mark.STREAM)},
    DOCUMENTS: {"GET": "read", "POST": "write"},
    f"{DOCUMENTS}/{{document_id}}": {"GET": "read"},
    "/api/vectors/search": {"POST": "read"},
    "/api/vectors/nearest/{memory_id}": {"GET": "read"},
    "/api/vectors/compare": {"POST": "read"},
    WEBHOOKS: {"GET": "read", "POST": ("write", Mark.AUDITED)},
    WEBHOOK: {"GET": "read", "PATCH": ("write", Mark.AUDITED), "DELETE": "write"},
    f"{WEBHOOK}/secret": {"POST": ("write", Mark.AUDITED)},
    f"{WEBHOOK}/test": {"POST": ("write", Mark.NOTHING_KEPT)},
    f"{WEBHOOK}/deliveries": {"GET": "read"},
    f"{WEBHOOK}/replay": {"POST": "write"},
    SESSION: {"POST": ("read", Mark.AUDITED), "DELETE": ("read", Mark.MAY_WRITE)},
    CONSOLE_SESSION: {
        "GET": "read",
        "POST": ("read", Mark.AUDITED),
        "DELETE": ("read", Mark.MAY_WRITE),
    },
    TENANTS: {"GET": "admin"},
    f"{TENANTS}/{{org_id}}": {"DELETE": ("admin", Mark.STREAM)},
    f"{TENANTS}/{{org_id}}/users": {"GET": "admin"},
    KEYS: {"GET": "admin", "POST": "admin"},
    f"{KEYS}/{{key_id}}": {"DELETE": "admin"},
    f"{KEYS}/{{key_id}}/rotate": {"POST": "admin"},
    AUDIT: {"GET": ("admin", Mark.AUDITED)},
    f"{BACKUP}/estimate": {"GET": "read"},
    f"{BACKUP}/export": {"GET": ("read", Mark.STREAM | Mark.LASTING | Mark.AUDITED)},
    f"{BACKUP}/list": {"GET": "read"},
    f"{BACKUP}/cleanup": {"DELETE": ("write", Mark.DESTROYS)},
    f"{BACKUP}/upload": {"POST": ("admin", Mark.ONE_USER | Mark.STREAM | Mark.BULK)},
    f"{BACKUP}/import-from": {"POST": ("write", Mark.STREAM | Mark.BULK | Mark.AUDITED)},
    f"{BACKUP}/import": {"POST": ("admin", Mark.ONE_USER | Mark.STREAM | Mark.BULK)},
    f"{BACKUP}/restore": {
        "POST": ("admin", Mark.ONE_USER | Mark.STREAM | Mark.DESTROYS | Mark.BULK)
    },
}


@dataclass(frozen=True, slots=True)
class RouteRule:
    """What the middleware knows of a route before its handler runs."""

    template: str
    scope: RouteScope
    marks: Mark = Mark.NONE
    method: str = "GET"

    @property
    def of_one_user(self) -> bool:
        return self.scope != "admin" or Mark.ONE_USER in self.marks

    @property
    def writes(self) -> bool:
        return self.method != "GET" and (self.scope != "read" or Mark.MAY_WRITE in self.marks)

    @property
    def audited(self) -> bool:
        """What deletes, operates, or hands out data or rights. A look at how the service is, which
        pages take every few seconds, is none of these."""
        operates = self.scope == "admin" and self.writes
        deletes = self.method == "DELETE" or Mark.DESTROYS in self.marks
        return operates or deletes or Mark.AUDITED in self.marks


def _rules() -> Iterator[tuple[tuple[str, str], RouteRule]]:
    for path, row in _ROUTES.items():
        for method, said in row.items():
            scope, marks = (said, Mark.NONE) if isinstance(said, str) else said
            yield (method, path), RouteRule(path, scope, marks, method)


# By method and path template.
RULES: Mapping[tuple[str, str], RouteRule] = dict(_rules())


@dataclass(frozen=True, slots=True)
class Identity:
    """`principal` names the key, `user_id` the owner of the memories it may touch, as every store
    knows it: with its tenant (`core.ids.owner_id`), which the key alone decides.

    `owner`: the caller is that user, or stands for all users of the tenant. The outcomes of anybody
    else count only for what their own searches showed. `may_write`: the key covers routes that
    write. `admin`: the caller runs the service: it may see what belongs to no user. `key`: the one
    that was sent, `token`: the session token that was sent in its place, `scopes`: what it covers.
    """

    principal: str
    user_id: str
    owner: bool
    may_write: bool = True
    admin: bool = False
    notice: str = ""
    scopes: frozenset[KeyScope] = frozenset({"read", "write", "admin"})
    key: ApiKey | None = None
    token: SessionToken | None = None

    @property
    def key_id(self) -> str | None:
        """Of the key, or of the one that made the token."""
        if self.key is not None:
            return self.key.key_id
        return None if self.token is None else id_of_key(self.token.key_hash)


class Guard:
    """Keyless local mode: host allow-list. Keys mode: bearer key, scope, rate limit."""

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self._clock = services.clock
        self._default_user = settings.auth.default_user
        self._keys_required = settings.keys_required
        self._hosts = frozenset(host.lower() for host in settings.http.allowed_hosts)
        self._origins = frozenset(one.encode() for one in settings.http.allowed_origins)
        self._keys = services.keys
        self._tokens = services.session_tokens
        self._limiter = RateLimiter(settings.rate_limit)
        self._wrong = RateLimiter(WRONG_KEYS, "Too many wrong keys from this address; wait.")
        self._key_seen = False

    def check_host(self, method: str, headers: Headers) -> None:
        """Against DNS rebinding and cross-site posts, which reach loopback without a key.

        Raises Forbidden: code `host_not_allowed`.
        """
        if self._keys_required:
            return
        host = _text(headers, b"host").lower()
        if re.sub(r":\d+$", "", host) not in self._hosts:
            raise _host_refused("Host")
        origin = headers.get(b"origin")
        if origin in self._origins:
            return
        if origin is not None and method != "GET" and _origin_host(origin) not in self._hosts:
            raise _host_refused("Origin")

    async def admit(self, rule: RouteRule, headers: Headers, source: str) -> Identity:
        """Who asks, once the key or the token is known to cover the route. `source`: the address
        that asks.

        Raises Unauthorized, Forbidden, RateLimited, InvalidInput, StoreDown.
        """
        if not self._keys_required:
            return self._local(headers)
        shown = _of_cookie(headers) if self._tokens.on else ""
        key, token = await self._authenticate(shown or _bearer(headers), source)
        scopes = key.scopes if token is None else token.scopes
        if rule.scope not in scopes and "admin" not in scopes:
            word = "key" if token is None else "session token"
            raise Forbidden(f"This {word} lacks the scope {rule.scope}; use another key.")
        if key.org_id is not None and not rule.of_one_user:
            raise Forbidden("This route is about the whole service; use a key without a tenant.")
        self._limiter.take(key.key_hash, self._clock.monotonic())
        user_id = self._user_of(key, headers) if token is None else _user_of_token(token, headers)
        return Identity(
            principal=key.principal,
            user_id=owner_id(key.org_id, user_id),
            owner="admin" in key.scopes or key.principal == key.user_id,
            may_write=not scopes.isdisjoint({"write", "admin"}),
            admin="admin" in scopes and key.org_id is None,
            scopes=scopes,
            key=key if token is None else None,
            token=token,
        )

    async def _authenticate(self, secret: str, source: str) -> tuple[ApiKey, SessionToken | None]:
        """The key, or the token with the key that made it. What is wrong counts against the source,
        and above its limit nothing unknown is looked up any more."""
        now = self._clock.monotonic()
        is_key = secret.startswith(KEY_PREFIX) or not self._tokens.on
        try:
            if is_key:
                if not self._keys.is_cached(secret):
                    self._wrong.check(source, now)
                return await self._keys.authenticate(secret), None
            token = self._tokens.read(secret)
            await self._tokens.check_living(token)
            key = await self._keys.living(token.key_hash)
            if key is None:
                raise Unauthorized(
                    "The key that made this session token is revoked; make one with another key.",
                    code="bad_token",
                )
        except Unauthorized:
            self._wrong.take(source, now)
            raise
        return key, token

    def _local(self, headers: Headers) -> Identity:
        """The user that is named. A key that was sent opens nothing and names nobody: say so."""
        user_id = _user(headers) or self._default_user
        notice = ""
        if b"authorization" in headers:
            notice = f"local mode checks no key: yours was ignored, user {user_id} served"
            if not self._key_seen:
                self._key_seen = True
                logger.warning("a key was sent in local mode, which checks none (auth.mode)")
        return Identity("local", user_id, owner=True, admin=True, notice=notice)

    def _user_of(self, key: ApiKey, headers: Headers) -> str:
        wanted = _user(headers)
        if wanted is None or wanted == key.user_id:
            return key.user_id or self._default_user
        if "admin" not in key.scopes:
            raise Forbidden("This key is bound to another user; drop X-User-Id.", code="other_user")
        return wanted


def _user(headers: Headers) -> str | None:
    if b"x-user-id" not in headers:
        return None
    user_id = _text(headers, b"x-user-id")
    if user_id == SYSTEM_USER:
        raise Forbidden("The user 'system' is shared and read-only; name another user.")
    if not usable_user(user_id):
        raise InvalidInput(
            "X-User-Id must be 1 to 128 characters of letters, digits and . _ : @ -.",
            code="bad_user_id",
            details={"field": "X-User-Id"},
        )
    return user_id


def _user_of_token(token: SessionToken, headers: Headers) -> str:
    wanted = _user(headers)
    if wanted not in (None, token.user_id):
        raise Forbidden("This token is bound to another user; drop X-User-Id.", code="other_user")
    return token.user_id


def source_of(scope: Scope) -> str:
    """The address that asks; the network of one of IPv6, whose owner has all of its addresses."""
    host = str((scope.get("client") or ("",))[0])
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return host
    mapped = address.ipv4_mapped
    return str(mapped) if mapped else str(ip_network((host, 64), strict=False))


def _bearer(headers: Headers) -> str:
    kind, _, secret = _text(headers, b"authorization").partition(" ")
    if kind.lower() != "bearer" or not secret:
        raise Unauthorized("This service needs a key; send Authorization: Bearer rk_…")
    return secret.strip()


def _of_cookie(headers: Headers) -> str:
    """The session token of the console, where the caller sends no other; "" else."""
    if CONSOLE_HEADER not in headers or b"authorization" in headers:
        return ""
    pairs = (one.strip().partition("=") for one in _text(headers, b"cookie").split(";"))
    token = next((value for name, _, value in pairs if name == COOKIE), "")
    return "" if token.startswith(KEY_PREFIX) else token


def _origin_host(origin: bytes) -> str:
    try:
        host = urlsplit(origin.decode("latin-1")).hostname or ""
    except ValueError:
        return ""
    return f"[{host}]" if ":" in host else host


def _text(headers: Headers, name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1")


def _host_refused(header: str) -> Forbidden:
    return Forbidden(
        f"This {header} is not served without keys; add it to http.allowed_hosts.",
        code="host_not_allowed",
    )
