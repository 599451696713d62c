"""JSON answers through orjson: times as ISO-8601 with Z, no model validation on the way out."""

from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import BaseModel
from starlette.responses import Response

OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_SERIALIZE_NUMPY


def answer(
    content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON response. Datetimes must be tz-aware UTC; NaN becomes null."""
    return Response(
        orjson.dumps(content, option=OPTIONS),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )


def model_answer(
    content: BaseModel, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The JSON of a model of `rayapp.wire`, under the names of the API document."""
    body = content.__pydantic_serializer__.to_json(content, by_alias=True)
    return Response(body, status_code=status, headers=headers, media_type="application/json")
