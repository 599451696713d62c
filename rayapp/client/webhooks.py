"""Client calls about webhooks."""

from collections.abc import Sequence
from typing import Any, Unpack

from rayapp.client.calls import Reader, Talk, Writer, asked, at, call, given
from rayapp.client.core import Core
from rayapp.wire import webhooks as wire

WEBHOOKS = "/api/webhooks"


class WebhookCalls(Core):
    """The calls."""

    @call
    def webhooks(self, **who: Unpack[Reader]) -> Talk[tuple[wire.WebhookView, ...]]:
        """Oldest first."""
        return (yield from self.reading(wire.WebhooksAnswer, WEBHOOKS, **who)).webhooks

    @call
    def webhook(self, webhook_id: str, **who: Unpack[Reader]) -> Talk[wire.WebhookView]:
        """One of them. Raises NotFound."""
        path = at(WEBHOOKS, webhook_id)
        return (yield from self.reading(wire.WebhookAnswer, path, **who)).webhook

    @call
    def add_webhook(
        self, url: str, *, events: Sequence[str] = (), description: str = "", **who: Unpack[Writer]
    ) -> Talk[wire.WebhookMadeAnswer]:
        """Its `secret` is shown once. Raises InvalidInput, Conflict."""
        body = {"url": url, "events": list(events), "description": description}
        return self.writing(wire.WebhookMadeAnswer, WEBHOOKS, body, **who)

    @call
    def edit_webhook(
        self, webhook_id: str, changes: dict[str, Any], **who: Unpack[Writer]
    ) -> Talk[wire.WebhookView]:
        """`changes`: some of `url`, `events`, `description`, `enabled`. Raises NotFound."""
        path = at(WEBHOOKS, webhook_id)
        answer = yield from self.writing(wire.WebhookAnswer, path, changes, method="PATCH", **who)
        return answer.webhook

    @call
    def delete_webhook(self, webhook_id: str, **who: Unpack[Writer]) -> Talk[str]:
        """With its log. Raises NotFound."""
        path = at(WEBHOOKS, webhook_id)
        return (yield from self.writing(wire.WebhookDeleted, path, method="DELETE", **who)).message

    @call
    def renew_webhook_secret(
        self, webhook_id: str, **who: Unpack[Writer]
    ) -> Talk[wire.WebhookMadeAnswer]:
        """Its new `secret` is shown once. Raises NotFound."""
        path = f"{at(WEBHOOKS, webhook_id)}/secret"
        return self.writing(wire.WebhookMadeAnswer, path, {}, **who)

    @call
    def test_webhook(self, webhook_id: str, **who: Unpack[Writer]) -> Talk[wire.TriedAnswer]:
        """Send it the event `test` now. Raises NotFound."""
        return self.writing(wire.TriedAnswer, f"{at(WEBHOOKS, webhook_id)}/test", {}, **who)

    @call
    def webhook_deliveries(
        self,
        webhook_id: str,
        *,
        state: str | None = None,
        limit: int | None = None,
        **who: Unpack[Reader],
    ) -> Talk[tuple[wire.DeliveryView, ...]]:
        """What it was told, the latest first. Raises NotFound."""
        path = asked(f"{at(WEBHOOKS, webhook_id)}/deliveries", state=state, limit=limit)
        return (yield from self.reading(wire.DeliveriesAnswer, path, **who)).deliveries

    @call
    def replay_webhook(
        self,
        webhook_id: str,
        *,
        delivery_id: str | None = None,
        days: float | None = None,
        **who: Unpack[Writer],
    ) -> Talk[int]:
        """Send one delivery again, or all that were given up; how many. Raises NotFound."""
        body = given({"delivery_id": delivery_id, "days": days})
        path = f"{at(WEBHOOKS, webhook_id)}/replay"
        return (yield from self.writing(wire.ReplayedAnswer, path, body, **who)).queued
