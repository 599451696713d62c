"""The one core of both clients: requests, keys, retries, parsing, errors and how
they are printed.
"""

import asyncio
import logging
import random
import sys
import traceback
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack

import httpx
import orjson
from pydantic import ValidationError

from rayapp.client.calls import AnswerT, Json, Pause, Reader, Request, Talk, Writer
from rayapp.client.retry import RetryPolicy, may_retry
from rayapp.core import errors
from rayapp.core.ids import USER_ID_PATTERN

# What a program prints that ends with an error of this client: where it asked, and the sentence.
#
# Python's own report of an uncaught error shows every step inside asyncio and this package, which
# say nothing about what to do (decision 0050).

# Steps in files below these are left out.
HIDDEN = tuple(str(Path(file).parent) for file in (asyncio.__file__, __file__))


def shorten() -> None:
    """Reports of `RayappError` are short from now on; a program's own `sys.excepthook` stays."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _report


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, errors.RayappError):
        sys.__excepthook__(kind, error, trace)
        return
    found = traceback.TracebackException(kind, error, trace, compact=True)
    own = [step for step in found.stack if not step.filename.startswith(HIDDEN)]
    found.stack = traceback.StackSummary.from_list(own)
    found.print(file=sys.stderr)


logger = logging.getLogger("rayapp.client")

NOTICE_HEADER = "X-Auth-Notice"
ERROR_BY_STATUS: Mapping[int, type[errors.RayappError]] = {
    400: errors.InvalidInput,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.TooLarge,
    415: errors.InvalidInput,
    422: errors.InvalidInput,
    429: errors.RateLimited,
    503: errors.DependencyDown,
    504: errors.DeadlineExceeded,
    507: errors.StoreFull,
}


class Core:
    """What both clients know; it yields requests and never makes one."""

    def __init__(self, url: str, *, user_id: str | None, retry: RetryPolicy | None) -> None:
        self.url = checked_url(url)
        self._user_id = usable(user_id)
        self._retry = retry or RetryPolicy()
        self._told: set[str] = set()

    def reading(
        self, model: type[AnswerT], path: str, body: Json = None, **who: Unpack[Reader]
    ) -> Talk[AnswerT]:
        """One call that changes nothing, as `model`; a POST when it has a body."""
        headers = self.headers_of(who.get("user_id"))
        method = "GET" if body is None else "POST"
        return parse(model, (yield from self.asking(asking_for(method, path, body, headers))))

    def writing(
        self,
        model: type[AnswerT],
        path: str,
        body: Json = None,
        *,
        method: str = "POST",
        **who: Unpack[Writer],
    ) -> Talk[AnswerT]:
        """One write that may be repeated safely, as `model`."""
        key = {"Idempotency-Key": who.get("idempotency_key") or uuid.uuid4().hex}
        headers = self.headers_of(who.get("user_id")) | key
        return parse(model, (yield from self.asking(asking_for(method, path, body, headers))))

    def asking(self, request: Request) -> Talk[Any]:
        """The JSON of one request, with retries; every attempt is the same request."""
        for attempt in range(1, self._retry.attempts + 1):
            last = attempt == self._retry.attempts
            retry_after_s: float | None = None
            came = yield request
            if isinstance(came, httpx.Response):
                if came.is_success:
                    self._heed(came)
                    return json_of(came)
                error = failure(came)
                retry_after_s = error.retry_after_s
                if last or not may_retry(came.status_code, error.code, retry_after_s):
                    raise error
            elif last or isinstance(came, httpx.TimeoutException):
                raise unreachable(self.url, came)
            yield Pause(self._retry.wait_s(attempt, random.random(), retry_after_s))
        raise AssertionError("the last attempt returns or raises")

    def headers_of(self, user_id: str | None) -> dict[str, str]:
        """The headers that say for whom."""
        user = usable(user_id) if user_id is not None else self._user_id
        return {} if user is None else {"X-User-Id": user}

    def _heed(self, response: httpx.Response) -> None:
        """Say once what the service says of the key that it was sent."""
        notice = response.headers.get(NOTICE_HEADER)
        if notice and not self._told:
            self._told.add(notice)
            logger.warning("%s: %s", self.url, notice)


def asking_for(method: str, path: str, body: Json, headers: Mapping[str, str]) -> Request:
    """The request with this JSON body."""
    try:
        content = None if body is None else orjson.dumps(body)
    except TypeError as error:
        raise errors.InvalidInput(f"What is sent is no JSON: {error}.") from None
    return Request(method=method, path=path, content=content, headers=headers)


def unreachable(url: str, error: object) -> errors.DependencyDown:
    """Why there was no answer, and what to do."""
    if isinstance(error, httpx.TimeoutException):
        return errors.DependencyDown(
            f"{url} did not answer in time: look at its health with `rayapp doctor`."
        )
    return errors.DependencyDown(
        f"No service answers at {url}: start it with `rayapp up`, or pass its URL."
    )


def checked_url(url: str) -> str:
    """The root without a slash at its end; InvalidInput when nobody could be asked there."""
    try:
        parts = httpx.URL(url)
        fits = parts.scheme in ("http", "https") and bool(parts.host)
    except httpx.InvalidURL:
        fits = False
    if not fits:
        raise errors.InvalidInput(
            f"{url!r} is no address of a service: pass one like http://127.0.0.1:8000."
        )
    return url.rstrip("/")


def usable(user_id: str | None) -> str | None:
    """The id as it is; InvalidInput when no service would take it."""
    if user_id is not None and not USER_ID_PATTERN.fullmatch(user_id):
        raise errors.InvalidInput(
            "A user id is 1 to 128 characters of letters, digits and . _ : @ -.", code="bad_user_id"
        )
    return user_id


def key_header(api_key: str | None) -> dict[str, str]:
    """Of a key as it is read from a file, too. InvalidInput when no header can hold it."""
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise errors.InvalidInput(
            "The API key has characters that no key has: pass what `rayapp keys create` showed."
        )
    return {"Authorization": f"Bearer {key}"} if key else {}


def json_of(response: httpx.Response) -> Any:
    """The JSON object or list of an answer; DependencyDown when it holds none."""
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, (dict, list)):
        raise errors.DependencyDown(
            f"{response.url} answered {response.status_code} without a JSON object: "
            "check that the URL is this service."
        )
    return body


def parse(model: type[AnswerT], value: Any) -> AnswerT:
    """The answer as `model`; DependencyDown when it is of another shape."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise errors.DependencyDown(
            f"The answer does not fit {model.__name__} ({where}: {first['msg']}): "
            "check that the URL is this service and its version matches."
        ) from None


def failure(response: httpx.Response) -> errors.RayappError:
    """The server's error as ours: same code, message, details and `Retry-After`."""
    kind = ERROR_BY_STATUS.get(response.status_code, errors.RayappError)
    try:
        body = json_of(response)
    except errors.DependencyDown:
        body = {}
    body = body if isinstance(body, dict) else {}
    message = body.get("error") or body.get("message")
    return kind(
        str(message or f"{response.url} answered {response.status_code}."),
        code=body.get("code"),
        details=body.get("details") or {},
        retry_after_s=_retry_after(response.headers.get("Retry-After")),
    )


def _retry_after(value: str | None) -> float | None:
    """Seconds; the date form of the header is not used by this service and reads as none."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
