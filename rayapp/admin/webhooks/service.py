"""Webhooks as their user manages them."""

import secrets
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta

from rayapp.admin.ports import USER_KINDS, EventStream
from rayapp.admin.webhooks.delivery import attempted
from rayapp.admin.webhooks.ports import WebhookSender, WebhookStore
from rayapp.admin.webhooks.records import TEST, Delivery, LoggedDelivery, OffReason, Reply, Webhook
from rayapp.admin.webhooks.rules import SECRET_BYTES, checked_url, new_secret
from rayapp.core.claims import WorkState
from rayapp.core.errors import Conflict, NotFound
from rayapp.core.runtime import Runtime
from rayapp.memory.scope import ReadScope, WriteScope

# Of one user: each is told every event.
MOST_WEBHOOKS = 20
# How long the stream may take to say where it stands, seconds.
POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChange:
    """What is changed; None stays as it is. `on`: whether it is told."""

    url: str | None = None
    kinds: tuple[str, ...] | None = None
    description: str | None = None
    on: bool | None = None


@dataclass(eq=False)
class WebhooksService:
    """Raises NotFound: no such webhook of this user; StoreDown."""

    store: WebhookStore
    sender: WebhookSender
    stream: EventStream
    _: KW_ONLY
    runtime: Runtime

    async def create(
        self, scope: WriteScope, url: str, kinds: Iterable[str], description: str, principal: str
    ) -> Webhook:
        """A webhook that is told what happens from now on; its secret is new.

        Raises:
            InvalidInput: nothing is sent to this address.
            Conflict: the user has as many as may be.
        """
        await self.sender.check(*checked_url(url))
        webhook = Webhook(
            user_id=scope.user_id,
            webhook_id=self.runtime.new_id(),
            url=url,
            kinds=tuple(dict.fromkeys(kinds)),
            secret=new_secret(secrets.token_bytes(SECRET_BYTES)),
            since=await self._now_at(scope),
            principal=principal,
            created_at=self.runtime.clock.now(),
            description=description,
        )
        if not await self.store.add(webhook, MOST_WEBHOOKS):
            raise Conflict(
                f"There are {MOST_WEBHOOKS} webhooks, the most that may be; delete one first.",
                code="too_many_webhooks",
            )
        return webhook

    async def all(self, scope: ReadScope) -> list[Webhook]:
        return await self.store.of_user(scope)

    async def get(self, scope: ReadScope, webhook_id: str) -> Webhook:
        found = await self.store.get(scope, webhook_id)
        if found is None:
            raise NotFound("There is no such webhook; look at GET /api/webhooks.")
        return found

    async def change(self, scope: WriteScope, webhook_id: str, change: WebhookChange) -> Webhook:
        """One that was off is told what happens from then on. Raises InvalidInput: nothing is sent
        to this address."""
        found = await self.get(scope.own, webhook_id)
        if change.url is not None:
            await self.sender.check(*checked_url(change.url))
        off = found.off
        if change.on is not None:
            off = None if change.on else off or OffReason.PAUSED
        wanted = replace(
            found,
            url=found.url if change.url is None else change.url,
            kinds=found.kinds if change.kinds is None else change.kinds,
            description=found.description if change.description is None else change.description,
            since=await self._now_at(scope) if found.off and not off else found.since,
            off=off,
        )
        return await self._replaced(wanted)

    async def renew_secret(self, scope: WriteScope, webhook_id: str) -> Webhook:
        """From now on the earlier secret signs nothing."""
        found = await self.get(scope.own, webhook_id)
        secret = new_secret(secrets.token_bytes(SECRET_BYTES))
        return await self._replaced(replace(found, secret=secret))

    async def delete(self, scope: WriteScope, webhook_id: str) -> None:
        if not await self.store.delete(scope, webhook_id):
            await self.get(scope.own, webhook_id)

    async def test(self, scope: WriteScope, webhook_id: str) -> Reply:
        """Send an event of the kind `test` now, on or off; nothing of it is kept."""
        found = await self.get(scope.own, webhook_id)
        now = self.runtime.clock.now()
        trial = Delivery(
            user_id=scope.user_id,
            delivery_id=self.runtime.new_id(),
            webhook_id=webhook_id,
            kind=TEST,
            at=now,
            data={"webhook_id": webhook_id},
            expires_at=now,
        )
        return await attempted(self.sender, found, trial, now)

    async def log(
        self, scope: ReadScope, webhook_id: str, state: WorkState | None, limit: int
    ) -> list[LoggedDelivery]:
        """What was told, and how it went; the latest events first."""
        await self.get(scope, webhook_id)
        return await self.store.log(scope, webhook_id, state, limit)

    async def replay(
        self, scope: WriteScope, webhook_id: str, *, delivery_id: str | None, days: float
    ) -> int:
        """Tell one delivery again, or all that were given up in so many days; how many.

        Raises NotFound: there is no such delivery.
        """
        await self.get(scope.own, webhook_id)
        since = self.runtime.clock.now() - timedelta(days=days)
        count = await self.store.again(scope, webhook_id, delivery_id=delivery_id, since=since)
        if delivery_id is not None and not count:
            raise NotFound("There is no such delivery; look at the log of the webhook.")
        return count

    async def _replaced(self, webhook: Webhook) -> Webhook:
        if not await self.store.replace(webhook):
            raise NotFound("There is no such webhook; look at GET /api/webhooks.")
        return webhook

    async def _now_at(self, scope: WriteScope) -> str:
        """Where the stream of events stands."""
        feed = await self.stream.open([scope.user_id], after=None, kinds=USER_KINDS, poll_s=POLL_S)
        try:
            while not feed.position:
                await feed.next()
            return feed.position
        finally:
            await feed.close()
