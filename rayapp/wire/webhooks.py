"""Webhooks over HTTP."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from rayapp.wire import bases
from rayapp.wire.events import UserEventName

MAX_URL_CHARS = 2_000
MAX_DESCRIPTION_CHARS = 200
# Days that a program may have been away and is told of afterwards: as long as deliveries are kept.
MAX_DAYS = 30

Url = Annotated[str, Field(min_length=1, max_length=MAX_URL_CHARS)]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION_CHARS)]
Kinds = Annotated[tuple[UserEventName, ...], Field(max_length=50)]
DeliveryState = Literal["waiting", "done", "dead"]


class WebhookBody(bases.Strict):
    """A new webhook."""

    aliases: ClassVar = {"types": "events"}
    url: Url = Field(description="https:// or http://; it must lead into the public network.")
    events: Kinds = Field((), description="Which events; empty: all of the user.")
    description: Description = ""


class WebhookEdit(bases.Strict):
    """What is changed; a field that is left out stays."""

    aliases: ClassVar = {"types": "events"}
    url: Url | None = None
    events: Kinds | None = None
    description: Description | None = None
    enabled: bases.Flag | None = bases.optional("false: nothing is sent until it is true again.")


class ReplayBody(bases.Strict):
    """What is sent again."""

    delivery_id: Annotated[str, Field(max_length=bases.MAX_ID_CHARS)] | None = bases.optional(
        "This one, whatever became of it; left out: all that were given up."
    )
    days: Annotated[float, Field(gt=0, le=MAX_DAYS)] = Field(
        MAX_DAYS, description="Of all: what happened in so many days."
    )


class DeliveriesQuery(bases.Strict):
    """Which deliveries."""

    state: DeliveryState | None = bases.optional("Those that stand so; all when absent.")
    limit: int = Field(50, ge=1, le=bases.MAX_PAGE, description="Deliveries.")


class WebhookView(bases.Answer):
    """`off`: why nothing is sent; null while it is told."""

    webhook_id: str
    url: str
    events: tuple[str, ...] = bases.path("kinds", alias="events")
    description: str
    enabled: bool
    off: str | None
    created_at: datetime
    created_by: str = bases.path("principal", alias="created_by")


class WebhookAnswer(bases.Written):
    """One of them, without its secret."""

    webhook: WebhookView


class WebhookMadeAnswer(bases.Success):
    """`secret` signs the requests as Standard Webhooks says; it is shown here alone."""

    webhook: WebhookView
    secret: str


class WebhooksAnswer(bases.Success):
    """Oldest first."""

    webhooks: tuple[WebhookView, ...]


class DeliveryView(bases.Answer):
    """One event for one webhook. `tries`: all; `error`: of the last one that failed."""

    delivery_id: str = bases.path("row.delivery_id", alias="delivery_id")
    type: str = bases.path("row.kind", alias="type")
    at: datetime = bases.path("row.at", alias="at")
    data: dict[str, Any] = bases.path("row.data", alias="data")
    state: DeliveryState
    tries: int = bases.path("row.tries", alias="tries")
    tried_at: datetime | None = bases.path("row.tried_at", alias="tried_at")
    status: int | None = bases.path("row.status", alias="status")
    took_ms: float | None = bases.path("row.took_ms", alias="took_ms")
    error: str | None


class DeliveriesAnswer(bases.Success):
    """The latest events first."""

    deliveries: tuple[DeliveryView, ...]


class TriedAnswer(bases.Written):
    """What the program answered to the event `test`."""

    delivered: bool
    status: int | None
    took_ms: float
    error: str | None


class ReplayedAnswer(bases.Written):
    queued: int


class WebhookDeleted(bases.Written):
    message: str
