"""Webhooks, their deliveries, and how far the event stream was read for them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import BulkWriteError

from rayapp.admin.webhooks.records import Delivery, LoggedDelivery, OffReason, Webhook
from rayapp.core.claims import WorkState
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.storage.mongo.claims import MongoClaimQueue
from rayapp.storage.mongo.database import MongoDatabase, first, listed, updated
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import WEBHOOK_DELIVERIES, WEBHOOK_FEED, WEBHOOKS
from rayapp.storage.mongo.predicates import mine, own
from rayapp.storage.mongo.rows import reader, to_row, utc

DUPLICATE_KEY = 11000
# The one row of the place in the event stream.
THE_FEED = {"_id": "feed"}


class MongoWebhookStore:
    """Implements `admin.webhooks.ports.WebhookStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(WEBHOOKS)
        self._feed = database.collection(WEBHOOK_FEED)
        self._log = database.collection(WEBHOOK_DELIVERIES)
        self.deliveries = MongoClaimQueue(self._log, Delivery, ("user_id", "delivery_id"))

    async def add(self, webhook: Webhook, most: int) -> bool:
        with translated():
            if await self._rows.count_documents({"user_id": webhook.user_id}, limit=most) >= most:
                return False
            await self._rows.insert_one(to_row(webhook))
        return True

    async def replace(self, webhook: Webhook) -> bool:
        with translated():
            done = await self._rows.replace_one(_one(webhook), to_row(webhook))
        return done.matched_count > 0

    async def switch_off(self, scope: WriteScope, webhook_id: str, reason: OffReason) -> None:
        where = {**own(scope), "webhook_id": {"$eq": webhook_id}}
        await updated(self._rows, where, {"$set": {"off": reason.value}})

    async def delete(self, scope: WriteScope, webhook_id: str) -> bool:
        where = {**own(scope), "webhook_id": {"$eq": webhook_id}}
        with translated():
            done = await self._rows.delete_one(where)
            await self._log.delete_many(where)
        return done.deleted_count > 0

    async def of_user(self, scope: ReadScope) -> list[Webhook]:
        order = [("created_at", ASCENDING), ("webhook_id", ASCENDING)]
        return await listed(self._rows, mine(scope), reader(Webhook), sort=order)

    async def get(self, scope: ReadScope, webhook_id: str) -> Webhook | None:
        where = {**mine(scope), "webhook_id": {"$eq": webhook_id}}
        return await first(self._rows, where, reader(Webhook))

    async def told(self) -> list[Webhook]:
        return await listed(self._rows, {"off": None}, reader(Webhook))

    async def position(self) -> str | None:
        return await first(self._feed, THE_FEED, lambda row: str(row["position"]))

    async def move_to(self, position: str | None) -> None:
        with translated():
            if position is None:
                await self._feed.delete_one(THE_FEED)
            else:
                await self._feed.replace_one(THE_FEED, {"position": position}, upsert=True)

    async def queue(self, deliveries: Sequence[Delivery]) -> None:
        rows = [self.deliveries.new_document(one) for one in deliveries]
        if not rows:
            return
        with translated(passing=BulkWriteError):
            try:
                await self._log.insert_many(rows, ordered=False)
            except BulkWriteError as error:
                codes = {one["code"] for one in error.details["writeErrors"]}
                if codes != {DUPLICATE_KEY}:  # what is there already was told by an earlier look
                    with translated():
                        raise

    async def log(
        self, scope: ReadScope, webhook_id: str, state: WorkState | None, limit: int
    ) -> list[LoggedDelivery]:
        where: dict[str, Any] = {**mine(scope), "webhook_id": {"$eq": webhook_id}}
        if state is not None:
            where["work.state"] = state.value
        order = [("at", DESCENDING), ("delivery_id", DESCENDING)]
        return await listed(self._log, where, self.deliveries.queued, sort=order, limit=limit)

    async def again(
        self, scope: WriteScope, webhook_id: str, *, delivery_id: str | None, since: datetime
    ) -> int:
        where: dict[str, Any] = {**own(scope), "webhook_id": {"$eq": webhook_id}}
        if delivery_id is not None:
            where["delivery_id"] = {"$eq": delivery_id}
        else:
            where |= {"work.state": WorkState.DEAD.value, "at": {"$gte": utc(since)}}
        return await self.deliveries.offer_again(where)


def _one(webhook: Webhook) -> Mapping[str, Any]:
    return {"user_id": webhook.user_id, "webhook_id": webhook.webhook_id}
