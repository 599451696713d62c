"""What happens is put into the queue of each webhook that wants it, and sent from there.

An event is told at least once. It is read from the same stream that browsers follow, so no write
knows of webhooks: one process reads for all users and keeps how far it came after the deliveries.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timedelta

from rayapp.admin.ports import USER_KINDS, EventFeed, EventStream, StreamEvent
from rayapp.admin.webhooks.ports import WebhookSender, WebhookStore
from rayapp.admin.webhooks.records import RESET, Delivery, OffReason, Reply, Webhook
from rayapp.admin.webhooks.rules import BACKOFF, GONE, body_of, headers_of, wants
from rayapp.bulk.ports import LeaseStore
from rayapp.core.claims import Claim, put_back
from rayapp.core.errors import NotFound
from rayapp.core.runtime import Runtime
from rayapp.memory.item import derived_id
from rayapp.memory.scope import WriteScope

log = logging.getLogger("rayapp.webhooks")
# One process reads; another takes over after this time, seconds.
LEASE, LEASE_S = "webhooks", 30.0
# How long the server waits for an event inside one look, seconds.
POLL_S = 1.0
# Events that are read before their deliveries are written.
MOST_AT_ONCE = 500
# Deliveries that a process sends side by side, and how long it may take, seconds.
SENT_AT_ONCE, CLAIM_S = 16, 60.0
# How long the log of deliveries is kept.
KEPT = timedelta(days=30)


async def attempted(
    sender: WebhookSender, webhook: Webhook, delivery: Delivery, at: datetime
) -> Reply:
    """One try."""
    body = body_of(delivery)
    headers = headers_of(webhook, delivery.delivery_id, body, at)
    return await sender.send(webhook.url, headers, body)


@dataclass(eq=False)
class WebhookFeed:
    """The reader; one owner loop calls `run_once` again and again."""

    store: WebhookStore
    stream: EventStream
    leases: LeaseStore
    _: KW_ONLY
    runtime: Runtime
    _feed: EventFeed | None = None
    _users: frozenset[str] = frozenset()

    @property
    def following(self) -> bool:
        """Whether the next look waits for events."""
        return self._feed is not None

    async def run_once(self) -> int:
        """Queue what happened since the last look; how many deliveries.

        Waits up to `POLL_S` for the next event where somebody is to be told.
        """
        webhooks = await self.store.told()
        if not webhooks:
            await self.close()
            if await self.store.position() is not None:
                await self.store.move_to(None)
            return 0
        if await self.leases.acquire(LEASE, self.runtime.process, LEASE_S) is None:
            await self.close()
            return 0
        try:
            feed = await self._opened(webhooks)
            events = await _read(feed)
            queued = [
                self._delivery(webhook, event)
                for event in events
                for webhook in webhooks
                if webhook.user_id == event.user_id
                and wants(webhook, event.kind.value, event.position)
            ]
        except BaseException:
            await self.close()
            raise
        await self.store.queue(queued)
        await self.store.move_to(feed.position)
        return len(queued)

    async def close(self) -> None:
        feed, self._feed = self._feed, None
        if feed is not None:
            await feed.close()

    async def _opened(self, webhooks: Sequence[Webhook]) -> EventFeed:
        """The open look at the events of those users."""
        users = frozenset(one.user_id for one in webhooks)
        if self._feed is not None and users == self._users:
            return self._feed
        await self.close()
        after = await self.store.position() or min(one.since for one in webhooks)
        try:
            feed = await self.stream.open(users, after=after, kinds=USER_KINDS, poll_s=POLL_S)
        except NotFound:
            log.warning("webhooks: events were lost, and their programs are told so")
            await self.store.queue([self._lost(one, after) for one in webhooks])
            feed = await self.stream.open(users, after=None, kinds=USER_KINDS, poll_s=POLL_S)
        self._feed, self._users = feed, users
        return feed

    def _delivery(self, webhook: Webhook, event: StreamEvent) -> Delivery:
        data = {name: value for name, value in event.data.items() if value is not None}
        return self._made(webhook, event.position, event.kind.value, event.at, data)

    def _lost(self, webhook: Webhook, after: str) -> Delivery:
        return self._made(webhook, after, RESET, self.runtime.clock.now(), {})

    def _made(
        self, webhook: Webhook, position: str, kind: str, at: datetime, data: dict[str, object]
    ) -> Delivery:
        """Its id is made of what it is, so a second look at an event makes no second one."""
        return Delivery(
            user_id=webhook.user_id,
            delivery_id=derived_id(webhook.user_id, webhook.webhook_id, f"{kind} {position}"),
            webhook_id=webhook.webhook_id,
            kind=kind,
            at=at,
            data=data,
            expires_at=self.runtime.clock.now() + KEPT,
        )


async def _read(feed: EventFeed) -> list[StreamEvent]:
    """What is there, and where nothing is, what comes within the wait."""
    events: list[StreamEvent] = []
    while len(events) < MOST_AT_ONCE and (event := await feed.next()) is not None:
        events.append(event)
    return events


@dataclass(eq=False)
class WebhookDeliveries:
    """The sender; every process may call `run_once`, claims share the work."""

    store: WebhookStore
    sender: WebhookSender
    _: KW_ONLY
    runtime: Runtime

    async def run_once(self) -> int:
        """Send what is due; how many tries were made."""
        process = self.runtime.process
        claims = await self.store.deliveries.claim(process, SENT_AT_ONCE, CLAIM_S)
        await asyncio.gather(*map(self._send, claims))
        return len(claims)

    async def _send(self, claim: Claim[Delivery]) -> None:
        queue, row = self.store.deliveries, claim.row
        whose = WriteScope(row.user_id)
        webhook = await self.store.get(whose.own, row.webhook_id)
        if webhook is None:
            await queue.finish(claim, None)
            return
        if webhook.off is not None:
            await queue.bury(claim, f"The webhook is off ({webhook.off.value}).")
            return
        now = self.runtime.clock.now()
        reply = await attempted(self.sender, webhook, row, now)
        tried = replace(
            row, tries=row.tries + 1, tried_at=now, status=reply.status, took_ms=reply.took_ms
        )
        outcome = "delivered" if reply.error is None else "failed"
        self.runtime.metrics.count("webhook_deliveries", outcome=outcome)
        if reply.error is None:
            await queue.finish(claim, tried)
            return
        if not await queue.keep(claim, tried):
            return
        if reply.status == GONE:
            await queue.bury(claim, reply.error)
            await self.store.switch_off(whose, row.webhook_id, OffReason.GONE)
        elif BACKOFF.pause(claim.tries + 1, 0.0) is None:
            await queue.bury(claim, reply.error)
            await self.store.switch_off(whose, row.webhook_id, OffReason.FAILED)
        else:
            random = self.runtime.random()
            await put_back(queue, claim, reply.error, backoff=BACKOFF, random=random)
