"""The seams of webhooks: their store, and the sender of requests."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from rayapp.admin.webhooks.records import Delivery, LoggedDelivery, OffReason, Reply, Webhook
from rayapp.core.claims import ClaimQueue, WorkState
from rayapp.memory.scope import ReadScope, WriteScope


class WebhookStore(Protocol):
    """Webhooks, how far the feed has come, and what is told. Raises StoreDown."""

    @property
    def deliveries(self) -> ClaimQueue[Delivery]: ...

    async def add(self, webhook: Webhook, most: int) -> bool:
        """False: the user has `most` already."""

    async def replace(self, webhook: Webhook) -> bool:
        """False: it is gone."""

    async def switch_off(self, scope: WriteScope, webhook_id: str, reason: OffReason) -> None:
        """Nothing else of it changes: its user may be changing the rest."""

    async def delete(self, scope: WriteScope, webhook_id: str) -> bool:
        """With what is kept of its deliveries."""

    async def of_user(self, scope: ReadScope) -> list[Webhook]:
        """Oldest first."""

    async def get(self, scope: ReadScope, webhook_id: str) -> Webhook | None: ...

    async def told(self) -> list[Webhook]:
        """Those of all users that are not off."""

    async def position(self) -> str | None:
        """Up to where the event stream was read for all of them; None: nowhere yet."""

    async def move_to(self, position: str | None) -> None: ...

    async def queue(self, deliveries: Sequence[Delivery]) -> None:
        """Put what is not there yet into the queue: an event that is read twice is told once."""

    async def log(
        self, scope: ReadScope, webhook_id: str, state: WorkState | None, limit: int
    ) -> list[LoggedDelivery]:
        """The latest events first."""

    async def again(
        self, scope: WriteScope, webhook_id: str, *, delivery_id: str | None, since: datetime
    ) -> int:
        """Put one delivery, or all that were given up since, back into the queue; how many."""


class WebhookSender(Protocol):
    """Speaks HTTP to addresses that users chose."""

    async def check(self, host: str, port: int) -> None:
        """Raises InvalidInput: the host has no address, or one that nothing is sent to."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """One POST, without following where it is sent on to. Raises nothing of the network."""

    async def close(self) -> None: ...
