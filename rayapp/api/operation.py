"""One HTTP operation: its handler, and everything the API document says about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rayapp.api.call import SCOPE_KEY, Call
from rayapp.api.idempotency import once
from rayapp.core.errors import RayappError

JSON = "application/json"
Handler = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`answer` documents the shape of a success; the handler builds it without validation.

    Attributes:
        writes: takes an idempotency key.
        keeps_key: the service behind it keeps the key with its own result, for ever; nothing
            is remembered here.
        example_path, example_query, example_body: a request that works as written, once the
            memory `mem-1` exists.
        media: of a success; `example` is its text when it is not JSON.
        errors: what it raises beyond what every route does.
        also: other successes: 202 and 204 have no body, the others that of `answer`.
        protocol_errors: refusals in the shape of `answer`, which is that of a protocol: when,
            and an example.
    """

    method: str
    path: str
    tag: str
    summary: str
    handler: Handler
    answer: type[BaseModel]
    example: Any
    description: str = ""
    status: int = 200
    body: type[BaseModel] | None = None
    body_required: bool = True
    example_body: Any = None
    query: type[BaseModel] | None = None
    example_query: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    media: str = JSON
    errors: tuple[type[RayappError], ...] = ()
    also: Mapping[int, str] = field(default_factory=dict)
    protocol_errors: Mapping[int, tuple[str, Any]] = field(default_factory=dict)
    writes: bool = False
    keeps_key: bool = False

    def route(self) -> Route:
        """A plain Starlette route: the call is parsed by us, so FastAPI's injection has no work."""
        handler, remembers = self.handler, self.writes and not self.keeps_key

        async def endpoint(request: Request) -> Response:
            call: Call = request.scope[SCOPE_KEY]
            return await (once(call, handler) if remembers else handler(call))

        return Route(self.path, endpoint, methods=[self.method], name=self.summary)
