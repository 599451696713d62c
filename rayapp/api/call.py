"""One request as the handlers see it: who asks, what was sent, and the services."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.types import Scope

from rayapp.api.json_body import json_object, read_model, read_query, refuse_forbidden
from rayapp.api.services import Services
from rayapp.core.errors import InvalidInput
from rayapp.core.ids import MEMORY_ID_PATTERN
from rayapp.learning.records import Recorder
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.wire.bases import MAX_CONCEPT_CHARS

ModelT = TypeVar("ModelT", bound=BaseModel)
SCOPE_KEY = "rayapp.call"


@dataclass(slots=True)
class Call:
    """Made by the middleware after authentication; `body` is complete and within its limit.

    `notes` go into the log line of the request: plain values, never a text. `owner`,
    `may_write` and `admin` are explained at `rayapp.api.auth.Identity`.
    """

    services: Services
    scope: Scope
    principal: str
    user_id: str
    body: bytes = b""
    owner: bool = False
    may_write: bool = False
    admin: bool = False
    notes: dict[str, object] = field(default_factory=dict)
    _data: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def reads(self) -> ReadScope:
        return ReadScope(self.user_id)

    @property
    def writes(self) -> WriteScope:
        return WriteScope(self.user_id, self.principal)

    @property
    def documents(self) -> bool:
        """Whether this caller's name of the books tier is `documents`."""
        return self.services.settings.compat.tier_documents

    @property
    def recorder(self) -> Recorder:
        """Whose outcomes these are, and whether they count in full."""
        return Recorder(principal=self.principal, owner=self.owner)

    @property
    def data(self) -> dict[str, Any]:
        """The JSON object of the body, parsed once; InvalidInput when it is none."""
        if self._data is None:
            self._data = json_object(self.body)
        return self._data

    def body_as(self, model: type[ModelT], aliases: dict[str, str] | None = None) -> ModelT:
        return read_model(model, self.data, aliases)

    def query_as(self, model: type[ModelT], aliases: dict[str, str] | None = None) -> ModelT:
        return read_query(model, self.scope["query_string"], aliases)

    def memory_id(self) -> str:
        """The id in the path; InvalidInput when it is of no form that was ever stored."""
        return self._id("memory_id", "bad_memory_id")

    def job_id(self) -> str:
        """The id of a job in the path; InvalidInput as for a memory."""
        return self._id("job_id", "bad_job_id")

    def _id(self, name: str, code: str) -> str:
        value: str = self.scope["path_params"][name]
        if not MEMORY_ID_PATTERN.fullmatch(value):
            raise InvalidInput(
                f"{name} must be 1 to 128 characters of letters, digits and . _ : @ -.",
                code=code,
                details={"field": name},
            )
        return value

    def concept_id(self) -> str:
        """The concept in the path, decoded: any script, spaces and slashes.

        Raises:
            InvalidInput: blank, too long, or with control characters.
        """
        value: str = self.scope["path_params"]["concept_id"]
        refuse_forbidden({"concept_id": value})
        if not value.strip() or len(value) > MAX_CONCEPT_CHARS:
            raise InvalidInput(
                f"concept_id: must be 1 to {MAX_CONCEPT_CHARS} characters; take the id of a node.",
                details={"field": "concept_id"},
            )
        return value
