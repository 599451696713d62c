"""A route declared as one value; each moves to a router of its own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from rayapp.api import paths
from rayapp.api.call import SCOPE_KEY, Call
from rayapp.api.idempotency import once
from rayapp.api.responses import ERROR_SCHEMA, JSON, EventStream, Responses, raises
from rayapp.api.route import IDEMPOTENT, KEEPS_KEY, CurrentCall, Route
from rayapp.core.errors import RayappError

Handler = Callable[[Call], Awaitable[Response]]
PARTS = {
    "memory_id": paths.MemoryIdPart,
    "job_id": paths.JobIdPart,
    "tool_name": paths.ToolName,
    "target": paths.Target,
    "book_id": paths.BookId,
    "document_id": paths.DocumentId,
    "task_id": paths.TaskId,
    "concept_id": paths.ConceptId,
}


class OperationRoute(Route):
    """Reads what it needs from the call."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler: Handler = self.endpoint.handler  # type: ignore[attr-defined]
        remembers = self.writes and not self.endpoint.keeps_key  # type: ignore[attr-defined]

        async def handle(request: Request) -> Response:
            call: Call = request.scope[SCOPE_KEY]
            return await (once(call, handler) if remembers else handler(call))

        return handle

    @property
    def aliases(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.endpoint.aliases  # type: ignore[attr-defined]
        return found

    def _arguments(self) -> Any:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    method: str
    path: str
    tag: str
    summary: str
    handler: Handler
    answer: type[BaseModel]
    example: Any = None
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
        async def endpoint(call: Call, **_: Any) -> Response:
            return await self.handler(call)

        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [inspect.Parameter("call", kind, annotation=CurrentCall)]
        for name, part in PARTS.items():
            if f"{{{name}}}" in self.path:
                parameters.append(inspect.Parameter(name, kind, annotation=part))
        if self.body is not None:
            given: Any = inspect.Parameter.empty if self.body_required else None
            model: Any = self.body if self.body_required else self.body | None
            parameters.append(inspect.Parameter("body", kind, annotation=model, default=given))
        if self.query is not None:
            asked: Any = Annotated[self.query, Query()]
            parameters.append(inspect.Parameter("query", kind, annotation=asked))
        endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        endpoint.__doc__ = self.description
        endpoint.handler, endpoint.keeps_key = self.handler, self.keeps_key  # type: ignore[attr-defined]
        endpoint.aliases = self.aliases  # type: ignore[attr-defined]
        responses: Responses = {status: {"description": text} for status, text in self.also.items()}
        for status, text in self.also.items():
            if status not in (202, 204):
                responses[status] = {"description": text, "model": self.answer}
        for status, (when, _) in self.protocol_errors.items():
            shapes = [{"$ref": f"#/components/schemas/{self.answer.__name__}"}, ERROR_SCHEMA]
            content = {JSON: {"schema": {"anyOf": shapes}}}
            responses[status] = {"description": when, "content": content}
        if self.media != JSON:
            responses[200] = {"model": self.answer}
        key = KEEPS_KEY if self.keeps_key else IDEMPOTENT
        return OperationRoute(
            self.path,
            endpoint,
            methods=[self.method],
            summary=self.summary,
            tags=[self.tag],
            status_code=self.status,
            response_model=self.answer if self.media == JSON else None,
            **({} if self.media == JSON else {"response_class": EventStream}),
            responses=responses | raises(*self.errors),
            dependencies=[key] if self.writes else [],
        )
