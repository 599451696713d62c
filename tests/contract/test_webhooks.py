"""Webhooks, their place in the stream and their deliveries, on the fake and on a real MongoDB."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rayapp.admin.webhooks.ports import WebhookStore
from rayapp.admin.webhooks.records import Delivery, OffReason, Webhook
from rayapp.core.claims import WorkState
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.webhooks import MongoWebhookStore
from tests.support.clock import FakeClock
from tests.support.stores.webhooks import InMemoryWebhookStore

AT = datetime(2100, 5, 1, 9, tzinfo=UTC)
DANA, NOA = WriteScope("dana"), WriteScope("noa")


def a_webhook(webhook_id: str = "hook-1", user_id: str = "dana") -> Webhook:
    return Webhook(
        user_id=user_id,
        webhook_id=webhook_id,
        url="https://garden.example/אירועים",
        kinds=("stored",),
        secret="whsec_a2V5",
        since="8266",
        principal="local",
        created_at=AT,
    )


def a_delivery(delivery_id: str, *, minutes: int = 0, webhook_id: str = "hook-1") -> Delivery:
    return Delivery(
        user_id="dana",
        delivery_id=delivery_id,
        webhook_id=webhook_id,
        kind="stored",
        at=AT + timedelta(minutes=minutes),
        data={"memory_id": "m", "tier": "$history"},
        expires_at=AT + timedelta(days=30),
    )


class WebhookContract:
    async def test_a_webhook_comes_back_to_its_user(self, store: WebhookStore) -> None:
        assert await store.add(a_webhook(), 2)
        assert await store.add(a_webhook("hook-2"), 2)
        assert not await store.add(a_webhook("hook-3"), 2)
        assert await store.add(a_webhook(user_id="noa"), 2)
        assert await store.of_user(ReadScope("dana")) == [a_webhook(), a_webhook("hook-2")]
        assert await store.get(ReadScope("noa"), "hook-2") is None
        off = replace(a_webhook(), off=OffReason.PAUSED, kinds=())
        assert await store.replace(off)
        assert await store.get(ReadScope("dana"), "hook-1") == off
        assert await store.told() == [a_webhook("hook-2"), a_webhook(user_id="noa")]
        assert not await store.replace(a_webhook("gone"))
        await store.switch_off(NOA, "hook-2", OffReason.GONE)
        await store.switch_off(DANA, "hook-2", OffReason.FAILED)
        failed = replace(a_webhook("hook-2"), off=OffReason.FAILED)
        assert await store.get(ReadScope("dana"), "hook-2") == failed

    async def test_it_goes_with_its_log(self, store: WebhookStore) -> None:
        await store.add(a_webhook(), 2)
        await store.queue([a_delivery("d-1"), a_delivery("d-2", webhook_id="hook-2")])
        assert not await store.delete(NOA, "hook-1")
        assert await store.delete(DANA, "hook-1")
        assert not await store.delete(DANA, "hook-1")
        assert await store.log(ReadScope("dana"), "hook-1", None, 10) == []
        assert len(await store.log(ReadScope("dana"), "hook-2", None, 10)) == 1

    async def test_the_place_in_the_stream_is_kept(self, store: WebhookStore) -> None:
        assert await store.position() is None
        await store.move_to("8266")
        await store.move_to("8267")
        assert await store.position() == "8267"
        await store.move_to(None)
        assert await store.position() is None

    async def test_an_event_that_is_read_twice_is_queued_once(self, store: WebhookStore) -> None:
        await store.queue([])
        await store.queue([a_delivery("d-1")])
        (claim,) = await store.deliveries.claim("one", 5, 60.0)
        assert claim.row == a_delivery("d-1")
        done = replace(claim.row, tries=1, tried_at=AT, status=204, took_ms=3.5)
        assert await store.deliveries.finish(claim, done)
        await store.queue([a_delivery("d-1"), a_delivery("d-2", minutes=1)])
        first, second = await store.log(ReadScope("dana"), "hook-1", None, 10)
        assert (first.row, first.state) == (a_delivery("d-2", minutes=1), WorkState.WAITING)
        assert (second.row, second.state) == (done, WorkState.DONE)
        assert await store.log(ReadScope("noa"), "hook-1", None, 10) == []
        assert await store.log(ReadScope("dana"), "hook-1", WorkState.DONE, 10) == [second]
        assert await store.log(ReadScope("dana"), "hook-1", None, 1) == [first]

    async def test_what_was_given_up_is_queued_again(self, store: WebhookStore) -> None:
        await store.queue([a_delivery("d-1"), a_delivery("d-2", minutes=1)])
        for claim in await store.deliveries.claim("one", 5, 60.0):
            assert await store.deliveries.bury(claim, "The program answered with status 500.")
        since = AT + timedelta(seconds=30)
        (dead, _) = await store.log(ReadScope("dana"), "hook-1", WorkState.DEAD, 10)
        assert dead.error == "The program answered with status 500."
        assert await store.again(NOA, "hook-1", delivery_id=None, since=since) == 0
        assert await store.again(DANA, "hook-1", delivery_id=None, since=since) == 1
        assert await store.again(DANA, "hook-1", delivery_id="d-1", since=since) == 1
        assert await store.again(DANA, "hook-1", delivery_id="none", since=since) == 0
        again = await store.deliveries.claim("one", 5, 60.0)
        assert {claim.row.delivery_id for claim in again} == {"d-1", "d-2"}
        assert {claim.tries for claim in again} == {0}


class TestInMemoryWebhooks(WebhookContract):
    @pytest.fixture
    def store(self) -> WebhookStore:
        return InMemoryWebhookStore(FakeClock())


@pytest.mark.engine
class TestMongoWebhooks(WebhookContract):
    @pytest.fixture
    def store(self, database: MongoDatabase) -> WebhookStore:
        return MongoWebhookStore(database)
