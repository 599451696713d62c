"""What the groups of client calls ask of the class that has a connection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class Calls(ABC):
    """How a call is sent is the business of the class that has a connection."""

    @abstractmethod
    async def read(
        self,
        model: type[AnswerT],
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        user_id: str | None = None,
    ) -> AnswerT:
        """One call that changes nothing, as `model`."""

    @abstractmethod
    async def write(
        self,
        model: type[AnswerT],
        path: str,
        body: Mapping[str, Any],
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> AnswerT:
        """One POST that may be repeated safely, as `model`."""
