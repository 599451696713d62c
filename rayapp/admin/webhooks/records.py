"""A webhook, and what is told to it. Ids and numbers only; no text of a memory is among them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from rayapp.core.claims import Queued

# What a person tries a webhook with, and what a feed that lost its place says: read again.
TEST, RESET = "test", "reset"


class OffReason(StrEnum):
    """Why nothing is sent. FAILED: an event could not be told for a day. GONE: it answered 410."""

    PAUSED = "paused"
    FAILED = "failed"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address that is told what happens to the memories of one user.

    Attributes:
        kinds: names of the events; empty: all that a user may follow.
        secret: signs what is sent; shown when it is made.
        since: position in the event stream; what lies at or before it is not told.
        off: None while it is told.
    """

    user_id: str
    webhook_id: str
    url: str
    kinds: tuple[str, ...]
    secret: str
    since: str
    principal: str
    created_at: datetime
    description: str = ""
    off: OffReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event for one webhook, and how the last try went.

    Attributes:
        data: what the event says, beside its kind and time.
        tries: all that were made; the queue counts those that failed.
        status: of the HTTP answer; None while there is none.
        took_ms: of the last try, until the answer began.
        expires_at: when the row goes.
    """

    user_id: str
    delivery_id: str
    webhook_id: str
    kind: str
    at: datetime
    data: Mapping[str, Any]
    expires_at: datetime
    tries: int = 0
    tried_at: datetime | None = None
    status: int | None = None
    took_ms: float | None = None


LoggedDelivery = Queued[Delivery]


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of one request. `error`: one sentence; None: it was taken."""

    took_ms: float
    status: int | None = None
    error: str | None = None
