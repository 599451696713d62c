"""A route of the API: declared as FastAPI declares one, its request read by our rules.

FastAPI reads what a route takes from the signature of its handler, and writes the API document from
it. The request itself is read here: a refusal names the field and says what to do, two names of one
field may not differ, and the body was read by the gate already (decision 0052).
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Query, params
from fastapi.datastructures import DefaultPlaceholder
from fastapi.routing import APIRoute, APIRouter
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as PlainRoute
from starlette.routing import request_response

from rayapp.api.auth import RULES
from rayapp.api.call import SCOPE_KEY, Call
from rayapp.api.idempotency import once
from rayapp.api.json_answer import model_answer
from rayapp.api.json_body import read_model, read_query
from rayapp.api.paths import ID_PATTERN, read_path
from rayapp.api.responses import JSON, common_responses, merged, raises, spoken
from rayapp.core.errors import ConfigError, RayappError
from rayapp.wire.bases import IDEMPOTENCY_KEY_PATTERN, Body

FOR_USER = Header(alias="X-User-Id", description="Acts for this user.", pattern=ID_PATTERN)
ECHOED = Header(alias="X-Request-Id", description="Echoed in the answer.")
KEY = Header(
    alias="Idempotency-Key", description="Makes a retry safe.", pattern=IDEMPOTENCY_KEY_PATTERN
)


def current_call(
    request: Request,
    key: Annotated[
        HTTPAuthorizationCredentials | None,
        Depends(HTTPBearer(scheme_name="key", auto_error=False)),
    ] = None,
    user_id: Annotated[str, FOR_USER] = "",
    request_id: Annotated[str, ECHOED] = "",
) -> Call:
    """The call that the gate made; the arguments are what the API document says of each route."""
    call: Call = request.scope[SCOPE_KEY]
    return call


def idempotency_key(key: Annotated[str, KEY] = "") -> None:
    """A write with a key runs once, and a repeat gets the first answer."""


def own_idempotency_key(key: Annotated[str, KEY] = "") -> None:
    """The service keeps the key with its own result, for ever; nothing is remembered here."""


QueryT = TypeVar("QueryT", bound=Body)
CurrentCall = Annotated[Call, Depends(current_call)]
InQuery = Annotated[QueryT, Query()]
IDEMPOTENT = Depends(idempotency_key)
KEEPS_KEY = Depends(own_idempotency_key)


def writes(*kinds: type[RayappError], key: params.Depends = IDEMPOTENT) -> dict[str, Any]:
    """Of a route that writes: it takes an idempotency key, and these errors may be its answer."""
    return {"responses": raises(*kinds), "dependencies": [key]}


KNOWN: set[Any] = {current_call, idempotency_key, own_idempotency_key}


def unread_body(model: Any, *, required: bool = True) -> params.Depends:
    """The body for the API document alone: the handler reads what was sent by rules of its own."""

    def unread(body: Any) -> None:
        """Nothing is read."""

    given = inspect.Parameter.empty if required else None
    kind = model if required else model | None
    parameter = inspect.Parameter(
        "body", inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=given
    )
    unread.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    KNOWN.add(unread)
    return params.Depends(unread)


Handler = Callable[..., Coroutine[Any, Any, BaseModel | Response]]


class Route(APIRoute):
    """One operation. Its handler returns the model of its answer, or a response of its own.

    What every route of its kind may answer is added to `responses`.
    """

    def __init__(self, path: str, endpoint: Handler, **options: Any) -> None:
        options |= {"generate_unique_id_function": operation_id, "response_description": "Done."}
        super().__init__(path, endpoint, **options)
        common = common_responses(
            self.method, path, writes=self.writes, reads_body=self.body is not None
        )
        self.responses = spoken(merged(self.responses, common), path)
        rule = RULES.get((self.method, path))
        scope = rule.scope if rule else None
        self.description = f"{self.description} Scope: `{scope}`.".strip()
        # FastAPI's own wrapper opens two exit stacks that no dependency here needs.
        self.app = request_response(self.get_route_handler())

    @property
    def method(self) -> str:
        return method_of(self)

    @property
    def body(self) -> type[Body] | None:
        return _model(self.body_field.field_info.annotation) if self.body_field else None

    @property
    def query(self) -> type[Body] | None:
        found = self.dependant.query_params
        return _model(found[0].field_info.annotation) if found else None

    @property
    def answer(self) -> type[BaseModel]:
        """The model of a success."""
        found: type[BaseModel] = self.responses.get(self.status, {}).get("model") or (
            self.response_model
        )
        return found

    @property
    def aliases(self) -> Mapping[str, str]:
        """Other names of the fields of its body or query."""
        return {**getattr(self.body, "aliases", {}), **getattr(self.query, "aliases", {})}

    @property
    def media(self) -> str:
        """Of a success."""
        kind = self.response_class
        return JSON if isinstance(kind, DefaultPlaceholder) else str(kind.media_type)

    @property
    def status(self) -> int:
        return self.status_code or 200

    @property
    def writes(self) -> bool:
        """Takes an idempotency key."""
        return self._depends_on(idempotency_key) or self._depends_on(own_idempotency_key)

    def _depends_on(self, known: Callable[..., Any]) -> bool:
        return any(one.call is known for one in self.dependant.dependencies)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint: Handler = self.endpoint
        arguments, status = self._arguments(), self.status

        async def run(call: Call) -> Response:
            found = await endpoint(**arguments(call))
            if isinstance(found, Response):
                return found
            return model_answer(found, status=call.status or status)

        remembers = self._depends_on(idempotency_key)

        async def handle(request: Request) -> Response:
            call: Call = request.scope[SCOPE_KEY]
            return await (once(call, run) if remembers else run(call))

        return handle

    def _arguments(self) -> Callable[[Call], dict[str, Any]]:
        """What reads the arguments of one request, the body last; that raises InvalidInput. Raises
        ConfigError for a parameter that nobody would fill in."""
        found, query = self.dependant, self.query
        callers = [one.name for one in found.dependencies if one.call is current_call]
        strange = {one.call for one in found.dependencies} - KNOWN
        if strange or len(callers) != 1 or found.header_params or found.cookie_params:
            raise ConfigError(f"{self.path}: a handler takes one call, one body, one query, parts.")
        body = self.body if found.body_params else None
        parts = [one.name for one in found.path_params]
        parameters = inspect.signature(self.endpoint).parameters

        def read(call: Call) -> dict[str, Any]:
            values: dict[str, Any] = {str(callers[0]): call}
            for name in parts:
                values[name] = read_path(name, call.scope["path_params"][name])
            if query is not None:
                name = found.query_params[0].name
                values[name] = read_query(query, call.scope["query_string"])
            if body is not None:
                name = found.body_params[0].name
                if call.body or parameters[name].default is inspect.Parameter.empty:
                    values[name] = read_model(body, call.data)
            return values

        return read


def _model(annotation: Any) -> type[Body]:
    """The model in an annotation such as `Body | None`."""
    kinds = getattr(annotation, "__args__", (annotation,))
    found: type[Body] = next(one for one in kinds if inspect.isclass(one) and issubclass(one, Body))
    return found


def method_of(route: PlainRoute) -> str:
    """The one method of a route, "" when it has several; HEAD belongs to GET."""
    methods = (route.methods or set()) - {"HEAD"}
    return next(iter(methods)) if len(methods) == 1 else ""


def operation_id(route: APIRoute) -> str:
    words = route.path.removeprefix("/api/").replace("{", "").replace("}", "")
    return f"{method_of(route).lower()}_{words.replace('/', '_').replace('-', '_')}"


def router(tag: str, *dependencies: params.Depends) -> APIRouter:
    """The routes of one group of the API document."""
    return APIRouter(tags=[tag], route_class=Route, dependencies=dependencies)
