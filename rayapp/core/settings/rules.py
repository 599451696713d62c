"""Rules that one bound of one setting cannot say: forms of addresses, pairs that do not fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rayapp.core.ids import SYSTEM_USER, USER_ID_PATTERN

if TYPE_CHECKING:
    from rayapp.core.settings.model import Settings

# An origin as browsers send it; `*` and `null` would let anybody in.
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:\d{1,5})?")
# The longest key that guessing could find is far shorter.
MIN_SECRET_CHARS = 32
_RAY_ADDRESS = re.compile(r"auto|ray://[^\s/]+|(\[[0-9a-fA-F:]+\]|[^\s/:]+):\d{1,5}")


def mongo_uri(value: str) -> str:
    """Empty, or a connection string. Raises ValueError with the forms to use."""
    return _url(value, ("mongodb", "mongodb+srv"), "mongodb://host:27017/?replicaSet=NAME")


def qdrant_url(value: str) -> str:
    """Empty, or the REST root of a server. Raises ValueError."""
    return _url(value, ("http", "https"), "http://host:6333")


def endpoint(value: str) -> str:
    """Empty, or the root of an OpenAI-compatible API. Raises ValueError."""
    return _url(value, ("http", "https"), "http://host:8080/v1")


def redis_url(value: str) -> str:
    """Empty, or a TCP or unix socket URL. Raises ValueError."""
    return _url(value, ("redis", "rediss", "unix"), "redis://host:6379/0")


def ray_address(value: str) -> str:
    """Empty, `auto`, `host:port` or `ray://host:port`. Raises ValueError."""
    if value and not _RAY_ADDRESS.fullmatch(value):
        raise ValueError("use host:port, ray://host:port or auto")
    return value


def default_user(value: str) -> str:
    """A user that a request may act for. Raises ValueError."""
    if value == SYSTEM_USER or not USER_ID_PATTERN.fullmatch(value):
        raise ValueError(
            f"use 1 to 128 letters, digits and . _ : @ -, and not {SYSTEM_USER!r}, which is shared"
        )
    return value


def origin(value: str) -> str:
    """Scheme, host and port of a web page, as browsers send it. Raises ValueError."""
    if not _ORIGIN.fullmatch(value):
        raise ValueError(
            "name each page as its browser does, scheme://host[:port] in lower case, for example "
            "https://app.example; a wildcard would let every page in"
        )
    return value


def session_secret(value: str) -> str:
    """The value is not repeated in the error. Raises ValueError."""
    if value and len(value) < MIN_SECRET_CHARS:
        raise ValueError(f"use {MIN_SECRET_CHARS} random characters or more")
    return value


def _url(value: str, schemes: tuple[str, ...], example: str) -> str:
    """The value is not repeated in the error: it may hold a password."""
    if not value:
        return value
    names = ", ".join(f"{scheme}://" for scheme in schemes)
    message = f"start it with {names.replace(', ', ' or ')}, for example {example}"
    try:
        parts = urlsplit(value)
    except ValueError:
        raise ValueError(message) from None
    named = parts.path if parts.scheme == "unix" else parts.netloc
    if parts.scheme not in schemes or not named:
        raise ValueError(message)
    return value


def refusal(settings: Settings) -> str | None:
    """Why these settings cannot work together, in one sentence without its full stop."""
    return next((reason for rule in _RULES if (reason := rule(settings))), None)


def _open_bind(settings: Settings) -> str | None:
    if settings.auth.mode == "open" and not settings.on_loopback:
        return (
            f"http.host {settings.http.host} is not loopback: set auth.mode to keys, "
            "or bind 127.0.0.1"
        )
    return None


def _missing_backend(settings: Settings) -> str | None:
    embedding, reranker = settings.embedding, settings.reranker
    if embedding.backend == "http" and not embedding.url:
        return "embedding.backend is http: set embedding.url"
    bundled = type(embedding).model_fields["model"].default
    if embedding.backend == "http" and embedding.model == bundled:
        # Cached vectors and the index are labelled with it: those of another model would pass.
        return f"embedding.backend is http: set embedding.model to its name, {bundled} is our own"
    if reranker.backend == "http" and not reranker.url:
        return "reranker.backend is http: set reranker.url"
    if reranker.backend == "local" and not reranker.model:
        return "reranker.backend is local: set reranker.model to a folder"
    return None


def _unbounded_time(settings: Settings) -> str | None:
    """A limit inside another must be the smaller one, or the outer one hides it."""
    if settings.indexer.backoff_min_s > settings.indexer.backoff_max_s:
        return "indexer.backoff_min_s is above indexer.backoff_max_s: lower it"
    return None


def _foreign_overload(settings: Settings) -> str | None:
    """Serve queues what is above its own limit, and our 429 would never be seen."""
    ours, serves = settings.http.max_in_flight, settings.serve.search.max_ongoing_requests
    if ours >= serves:
        return (
            f"http.max_in_flight {ours} must be below serve.search.max_ongoing_requests {serves}: "
            "our own 429 must come first"
        )
    return None


def _incomplete_production(settings: Settings) -> str | None:
    """A cluster has several nodes: nothing of it may live inside one of them."""
    if settings.profile != "prod":
        return None
    if not settings.mongo.uri:
        return "profile prod needs a replica set: set MONGODB_URI"
    if not settings.qdrant.url:
        return "profile prod needs a Qdrant server: set QDRANT_URL"
    if not settings.keys_required:
        return "profile prod needs keys: set auth.mode to keys"
    if settings.auth.sessions and not settings.auth.session_secret:
        return (
            "profile prod signs session tokens on several hosts: set auth.session_secret to one "
            "secret for all of them, or auth.sessions to false"
        )
    if settings.backup.is_local_to(settings.data.dir):
        return (
            "profile prod keeps archives of users where all hosts see them: set backup.dir to a "
            "folder that every host mounts, outside data.dir"
        )
    if settings.understanding.test_topics:
        return "profile prod tries nothing on people: empty understanding.test_topics"
    return None


_RULES: tuple[Callable[[Settings], str | None], ...] = (
    _open_bind,
    _missing_backend,
    _unbounded_time,
    _foreign_overload,
    _incomplete_production,
)
