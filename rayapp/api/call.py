"""One request as the handlers see it: who asks, what was sent, and the services."""

from dataclasses import dataclass, field
from typing import Any

from starlette.types import Scope

from rayapp.api.auth import Identity
from rayapp.api.json_body import json_object
from rayapp.api.services import Services
from rayapp.core.errors import InvalidInput
from rayapp.core.settings.model import CompatSettings
from rayapp.learning.records import Recorder
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.wire.bases import CONFIRM

SCOPE_KEY = "rayapp.call"


@dataclass(slots=True)
class Call:
    """Made by the middleware after authentication; `body` is complete and within its limit.

    `notes` go into the log line of the request: plain values, never a text. `ids`: what the call is
    about beside those of its path, for the audit log; `memory_ids` where they are many. `status` is
    that of the answer where it is not the one of the route.
    """

    services: Services
    scope: Scope
    who: Identity
    body: bytes = b""
    notes: dict[str, object] = field(default_factory=dict)
    status: int | None = None
    ids: dict[str, str] = field(default_factory=dict)
    memory_ids: tuple[str, ...] = ()
    _data: dict[str, Any] | None = field(default=None, repr=False)
    _began: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._began = self.services.clock.monotonic()

    @property
    def reads(self) -> ReadScope:
        return ReadScope(self.who.user_id)

    @property
    def writes(self) -> WriteScope:
        return WriteScope(self.who.user_id, self.who.principal)

    @property
    def documents(self) -> bool:
        """Whether this caller's name of the books tier is `documents`."""
        return self.services.settings.compat.tier_documents

    @property
    def recorder(self) -> Recorder:
        """Whose outcomes these are, and whether they count in full."""
        return Recorder(principal=self.who.principal, owner=self.who.owner)

    @property
    def data(self) -> dict[str, Any]:
        """The JSON object of the body, parsed once; InvalidInput when it is none."""
        if self._data is None:
            self._data = json_object(self.body)
        return self._data

    @property
    def built_ms(self) -> float:
        """Milliseconds that the call has taken, as answers tell it."""
        return round((self.services.clock.monotonic() - self._began) * 1000, 3)


def check_confirmed(
    word: str | bool | None, what: str, *, unasked: CompatSettings | None = None
) -> None:
    """The word that whatever deletes for good asks for. `unasked`: of a route of the first client,
    which sends no word (decision 0080).

    Raises InvalidInput, code `confirm_needed`: another word, or none, was sent.
    """
    if word != CONFIRM and not (unasked and unasked.first_client):
        raise InvalidInput(
            f"{what}; send confirm={CONFIRM} if you mean it.",
            code="confirm_needed",
            details={"field": "confirm"},
        )
