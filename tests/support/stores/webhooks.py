"""Webhooks in process memory, and a sender that reaches nobody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from rayapp.admin.webhooks.records import Delivery, LoggedDelivery, OffReason, Reply, Webhook
from rayapp.admin.webhooks.rules import is_public, refuse_private
from rayapp.core.claims import WorkState
from rayapp.core.runtime import Clock
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.stores.claims import InMemoryClaimQueue

Key = tuple[str, str]


class InMemoryWebhookStore:
    """Implements `admin.webhooks.ports.WebhookStore`. `rows`: by (user, webhook)."""

    def __init__(self, clock: Clock) -> None:
        self.rows: dict[Key, Webhook] = {}
        self.deliveries: InMemoryClaimQueue[Delivery] = InMemoryClaimQueue(clock, _key)
        self._position: str | None = None

    async def add(self, webhook: Webhook, most: int) -> bool:
        if sum(user == webhook.user_id for user, _ in self.rows) >= most:
            return False
        self.rows[webhook.user_id, webhook.webhook_id] = webhook
        return True

    async def replace(self, webhook: Webhook) -> bool:
        key = (webhook.user_id, webhook.webhook_id)
        if key in self.rows:
            self.rows[key] = webhook
        return key in self.rows

    async def switch_off(self, scope: WriteScope, webhook_id: str, reason: OffReason) -> None:
        key = (scope.user_id, webhook_id)
        if key in self.rows:
            self.rows[key] = replace(self.rows[key], off=reason)

    async def delete(self, scope: WriteScope, webhook_id: str) -> bool:
        key = (scope.user_id, webhook_id)
        self.deliveries.remove(lambda row: (row.user_id, row.webhook_id) == key)
        return self.rows.pop(key, None) is not None

    async def of_user(self, scope: ReadScope) -> list[Webhook]:
        found = [one for (user, _), one in self.rows.items() if user == scope.user_id]
        return sorted(found, key=lambda one: (one.created_at, one.webhook_id))

    async def get(self, scope: ReadScope, webhook_id: str) -> Webhook | None:
        return self.rows.get((scope.user_id, webhook_id))

    async def told(self) -> list[Webhook]:
        return [one for one in self.rows.values() if one.off is None]

    async def position(self) -> str | None:
        return self._position

    async def move_to(self, position: str | None) -> None:
        self._position = position

    async def queue(self, deliveries: Sequence[Delivery]) -> None:
        for one in deliveries:
            if self.deliveries.queued(_key(one)) is None:
                await self.deliveries.offer(one)

    async def log(
        self, scope: ReadScope, webhook_id: str, state: WorkState | None, limit: int
    ) -> list[LoggedDelivery]:
        found = [
            one
            for row in self.deliveries.rows()
            if (row.user_id, row.webhook_id) == (scope.user_id, webhook_id)
            and (one := self.deliveries.queued(_key(row))) is not None
            and state in (None, one.state)
        ]
        found.sort(key=lambda one: (one.row.at, one.row.delivery_id), reverse=True)
        return found[:limit]

    async def again(
        self, scope: WriteScope, webhook_id: str, *, delivery_id: str | None, since: datetime
    ) -> int:
        count = 0
        for one in await self.log(scope.own, webhook_id, None, len(self.deliveries.rows())):
            dead = one.state is WorkState.DEAD and one.row.at >= since
            if one.row.delivery_id == delivery_id or (delivery_id is None and dead):
                await self.deliveries.offer(one.row)
                count += 1
        return count


def _key(row: Delivery) -> Key:
    return (row.user_id, row.delivery_id)


@dataclass
class RecordingSender:
    """Implements `WebhookSender`. `replies` are given in their order, then 204 without an error.

    `addresses`: what names lead to; others lead to a public address.
    """

    sent: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    addresses: dict[str, str] = field(default_factory=dict)

    async def check(self, host: str, port: int) -> None:
        address = self.addresses.get(host, "203.0.114.7")
        refuse_private({address: is_public(address)}, host)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        self.sent.append((url, headers, body))
        return self.replies.pop(0) if self.replies else Reply(1.5, 204)

    async def close(self) -> None: ...
