"""Operators' calls under one name, `client.ops`: bulk jobs, upkeep, circuit breakers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rayapp.client.calls import AnswerT, Request, Talk
from rayapp.client.core import Core
from rayapp.client.operations import OperationCalls
from rayapp.client.upkeep import UpkeepCalls


class OpsCalls(OperationCalls, UpkeepCalls):
    """The calls; the client that they belong to says to whom and for whom.

    They need a key with the scope `admin` where keys are asked for.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def reading(
        self,
        model: type[AnswerT],
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        user_id: str | None = None,
    ) -> Talk[AnswerT]:
        return self._core.reading(model, path, body, user_id=user_id)

    def writing(
        self,
        model: type[AnswerT],
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        method: str = "POST",
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Talk[AnswerT]:
        return self._core.writing(
            model, path, body, method=method, user_id=user_id, idempotency_key=idempotency_key
        )

    def asking(self, request: Request) -> Talk[Any]:
        return self._core.asking(request)

    def headers_of(self, user_id: str | None) -> dict[str, str]:
        return self._core.headers_of(user_id)
