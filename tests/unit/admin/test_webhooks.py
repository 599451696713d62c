"""Webhooks: how requests are signed, where none is sent, and what becomes of one that fails."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.admin.ports import USER_KINDS, StreamKind
from rayapp.admin.webhooks.records import Delivery, OffReason, Reply, Webhook
from rayapp.admin.webhooks.rules import BACKOFF, body_of, checked_url, headers_of, is_public, wants
from rayapp.admin.webhooks.service import MOST_WEBHOOKS, WebhookChange
from rayapp.core.claims import WorkState
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.memory.scope import WriteScope
from rayapp.wire.events import UserEventName
from tests.support.harness import Harness

DANA, NOA = WriteScope("dana"), WriteScope("noa")
URL = "https://garden.example/events"
AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def a_webhook(**fields: object) -> Webhook:
    one = Webhook(
        user_id="dana",
        webhook_id="hook-1",
        url=URL,
        kinds=(),
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        since="00000004",
        principal="local",
        created_at=AT,
    )
    return replace(one, **fields)  # type: ignore[arg-type]


def test_the_signature_is_that_of_the_published_example() -> None:
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = headers_of(a_webhook(), "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', at)
    assert headers["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert headers["webhook-timestamp"] == "1614265330"
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_body_is_the_same_at_every_try() -> None:
    one = Delivery(
        user_id="dana",
        delivery_id="d",
        webhook_id="hook-1",
        kind="stored",
        at=AT,
        data={"tier": "history", "memory_id": "m"},
        expires_at=AT,
    )
    again = replace(one, data={"memory_id": "m", "tier": "history"}, tries=3, tried_at=AT)
    assert body_of(one) == body_of(again)
    assert orjson.loads(body_of(one)) == {
        "type": "stored",
        "timestamp": "2026-03-01T09:30:00Z",
        "data": {"memory_id": "m", "tier": "history"},
    }


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.9", "169.254.169.254", "0.0.0.0"),
        *("::1", "fe80::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"),
        *("2002:7f00:1::", "224.0.0.1", "ff02::1", "100.64.0.1", "::"),
    ],
)
def test_what_is_not_public_is_known_in_every_form(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_an_address_is_public_or_not_however_it_is_written(ip: object) -> None:
    assert is_public(str(ip)) == is_public(f"::ffff:{ip}") == is_public(f"64:ff9b::{ip}")


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111"])
def test_public_addresses_are_told(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a.example", "garden.example", "https://", "https://u:p@a.example"),
        *("https://a.example/#x", "http://a.example:99999/", "https://[::1"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"^url: "):
        checked_url(url)


def test_an_event_is_wanted_by_its_kind_and_place() -> None:
    hook = a_webhook(kinds=("stored",))
    assert wants(hook, "stored", "00000005")
    assert not wants(hook, "stored", "00000004")
    assert not wants(hook, "archived", "00000005")
    assert wants(a_webhook(), "archived", "00000005")
    assert not wants(a_webhook(off=OffReason.PAUSED), "stored", "00000005")


def test_a_day_is_tried() -> None:
    pauses = [BACKOFF.pause(failed, 0.5) for failed in range(1, BACKOFF.tries)]
    assert BACKOFF.pause(BACKOFF.tries, 0.5) is None
    assert pauses[:4] == [1, 2, 4, 8]
    assert 86_400 <= sum(one or 0 for one in pauses) <= 90_000


def test_a_webhook_may_be_told_whatever_a_user_may_follow() -> None:
    assert set(get_args(UserEventName)) == {kind.value for kind in USER_KINDS}


async def test_events_of_the_user_are_sent_once_and_signed() -> None:
    world = Harness.ready()
    hooks, feed = world.services.webhooks, world.container.webhook_feed
    await world.stream.tell("dana", StreamKind.STORED, {"memory_id": "before"})
    hook = await hooks.create(DANA, URL, ["stored"], "", "local")
    await world.stream.tell("noa", StreamKind.STORED, {"memory_id": "of noa"})
    await world.stream.tell("dana", StreamKind.ARCHIVED, {"memory_id": "not wanted"})
    await world.stream.tell("dana", StreamKind.STORED, {"memory_id": "m", "source": None})
    assert await feed.run_once() == 1
    await feed.close()
    await world.webhooks.move_to(None)  # a process that died before it kept its place
    assert await feed.run_once() == 1
    assert await world.container.webhook_deliveries.run_once() == 1
    ((url, headers, body),) = world.sender.sent
    assert url == URL
    assert orjson.loads(body)["data"] == {"memory_id": "m"}
    at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    assert headers == headers_of(hook, headers["webhook-id"], body, at)
    (logged,) = await hooks.log(DANA.own, hook.webhook_id, None, 10)
    assert (logged.state, logged.row.tries, logged.row.status) == (WorkState.DONE, 1, 204)
    assert await hooks.log(DANA.own, hook.webhook_id, WorkState.DEAD, 10) == []


async def test_what_fails_waits_longer_each_time_and_dies_after_a_day() -> None:
    world = Harness.ready()
    hooks, feed = world.services.webhooks, world.container.webhook_feed
    hook = await hooks.create(DANA, URL, [], "", "local")
    await world.stream.tell("dana", StreamKind.STORED, {"memory_id": "m"})
    await feed.run_once()
    world.sender.replies = [Reply(1.0, 503, "The program answered with status 503.")] * 99
    for _ in range(BACKOFF.tries):
        world.clock.advance(2 * BACKOFF.most_s)
        assert await world.container.webhook_deliveries.run_once() == 1
    world.clock.advance(2 * BACKOFF.most_s)
    assert await world.container.webhook_deliveries.run_once() == 0
    (logged,) = await hooks.log(DANA.own, hook.webhook_id, None, 10)
    assert (logged.state, logged.row.tries) == (WorkState.DEAD, BACKOFF.tries)
    assert logged.error == "The program answered with status 503."
    assert (await hooks.get(DANA.own, hook.webhook_id)).off is OffReason.FAILED

    world.sender.replies = []
    await hooks.change(DANA, hook.webhook_id, WebhookChange(on=True))
    assert await hooks.replay(DANA, hook.webhook_id, delivery_id=None, days=30) == 1
    assert await world.container.webhook_deliveries.run_once() == 1
    (logged,) = await hooks.log(DANA.own, hook.webhook_id, None, 10)
    assert logged.state is WorkState.DONE
    assert len({headers["webhook-id"] for _, headers, _ in world.sender.sent}) == 1


async def test_a_program_that_is_gone_is_told_nothing_more() -> None:
    world = Harness.ready()
    hooks, feed = world.services.webhooks, world.container.webhook_feed
    hook = await hooks.create(DANA, URL, [], "", "local")
    for name in ("one", "two"):
        await world.stream.tell("dana", StreamKind.STORED, {"memory_id": name})
    await feed.run_once()
    gone = Reply(1.0, 410, "The program answered with status 410.")
    world.sender.replies = [gone, gone]
    await world.container.webhook_deliveries.run_once()
    assert (await hooks.get(DANA.own, hook.webhook_id)).off is OffReason.GONE
    await world.stream.tell("dana", StreamKind.STORED, {"memory_id": "three"})
    assert await feed.run_once() == 0


async def test_a_feed_that_lost_its_place_says_so() -> None:
    world = Harness.ready()
    hook = await world.services.webhooks.create(DANA, URL, [], "", "local")
    await world.stream.tell("dana", StreamKind.STORED, {"memory_id": "lost"})
    world.stream.oldest = 1
    await world.container.webhook_feed.run_once()
    (logged,) = await world.services.webhooks.log(DANA.own, hook.webhook_id, None, 10)
    assert (logged.row.kind, logged.row.data) == ("reset", {})


async def test_private_addresses_and_too_many_are_refused() -> None:
    world = Harness.ready()
    hooks = world.services.webhooks
    world.sender.addresses["inside.example"] = "10.0.0.7"
    with pytest.raises(InvalidInput, match="private network"):
        await hooks.create(DANA, "https://inside.example/", [], "", "local")
    for number in range(MOST_WEBHOOKS):
        hook = await hooks.create(DANA, f"{URL}/{number}", [], "", "local")
    with pytest.raises(Conflict, match="the most"):
        await hooks.create(DANA, URL, [], "", "local")
    with pytest.raises(InvalidInput, match="private network"):
        await hooks.change(DANA, hook.webhook_id, WebhookChange(url="https://inside.example/"))
    await hooks.create(NOA, URL, [], "", "local")


async def test_a_webhook_is_its_users_alone() -> None:
    world = Harness.ready()
    hooks = world.services.webhooks
    hook = await hooks.create(DANA, URL, [], "", "local")
    for work in (
        hooks.get(NOA.own, hook.webhook_id),
        hooks.change(NOA, hook.webhook_id, WebhookChange(on=False)),
        hooks.renew_secret(NOA, hook.webhook_id),
        hooks.test(NOA, hook.webhook_id),
        hooks.log(NOA.own, hook.webhook_id, None, 5),
        hooks.replay(NOA, hook.webhook_id, delivery_id=None, days=1),
        hooks.delete(NOA, hook.webhook_id),
        hooks.replay(DANA, hook.webhook_id, delivery_id="none", days=1),
    ):
        with pytest.raises(NotFound):
            await work
    renewed = await hooks.renew_secret(DANA, hook.webhook_id)
    assert len(base64.b64decode(renewed.secret.removeprefix("whsec_"))) == 32
    assert renewed.secret != hook.secret
    assert (await hooks.test(DANA, hook.webhook_id)).error is None
    paused = await hooks.change(DANA, hook.webhook_id, WebhookChange(on=False))
    assert paused.off is OffReason.PAUSED
    await hooks.delete(DANA, hook.webhook_id)
    assert await hooks.all(DANA.own) == []


async def test_the_place_is_forgotten_with_the_last_webhook() -> None:
    world = Harness.ready()
    hooks, feed = world.services.webhooks, world.container.webhook_feed
    hook = await hooks.create(DANA, URL, [], "", "local")
    await feed.run_once()
    assert feed.following
    assert await world.webhooks.position() is not None
    await hooks.delete(DANA, hook.webhook_id)
    await feed.run_once()
    assert not feed.following
    assert await world.webhooks.position() is None
    assert world.stream.open_feeds == 0
    assert world.clock.now() - hook.created_at < timedelta(days=1)
