"""Webhooks: programs are told what happens, by signed requests."""

from rayapp.admin.webhooks.records import Webhook
from rayapp.admin.webhooks.service import WebhookChange
from rayapp.api.auth import WEBHOOK, WEBHOOKS
from rayapp.api.paths import WebhookId
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.core.claims import WorkState
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.wire import webhooks as wire

routes = router("webhooks")


@routes.post(WEBHOOKS, summary="Make a webhook", responses=raises(InvalidInput, Conflict))
async def create(call: CurrentCall, body: wire.WebhookBody) -> wire.WebhookMadeAnswer:
    """From now on each event is sent to the address: `type`, `timestamp` and `data` with ids and
    numbers, no text. Requests are signed as Standard Webhooks says, with the secret of the answer,
    which is shown once: no idempotency key is taken, whose answers are kept for a day. What is not
    taken is sent again for a day, ever more slowly; then, or after 410, the webhook is switched
    off. Addresses in private networks are refused."""
    webhook = await call.services.webhooks.create(
        call.writes, body.url, body.events, body.description, call.who.principal
    )
    return wire.WebhookMadeAnswer(webhook=_view(webhook), secret=webhook.secret)


@routes.get(WEBHOOKS, summary="List the webhooks")
async def listed(call: CurrentCall) -> wire.WebhooksAnswer:
    """Without their secrets."""
    found = await call.services.webhooks.all(call.reads)
    return wire.WebhooksAnswer(webhooks=tuple(map(_view, found)))


@routes.get(WEBHOOK, summary="Read a webhook", responses=raises(NotFound))
async def one(call: CurrentCall, webhook_id: WebhookId) -> wire.WebhookAnswer:
    """Without its secret."""
    found = await call.services.webhooks.get(call.reads, webhook_id)
    return wire.WebhookAnswer(webhook=_view(found))


@routes.patch(WEBHOOK, summary="Change a webhook", **writes(NotFound, InvalidInput))
async def change(
    call: CurrentCall, webhook_id: WebhookId, body: wire.WebhookEdit
) -> wire.WebhookAnswer:
    """One that was off is told what happens from then on."""
    wanted = WebhookChange(
        url=body.url, kinds=body.events, description=body.description, on=body.enabled
    )
    changed = await call.services.webhooks.change(call.writes, webhook_id, wanted)
    return wire.WebhookAnswer(webhook=_view(changed))


@routes.delete(WEBHOOK, summary="Delete a webhook", **writes(NotFound))
async def delete(call: CurrentCall, webhook_id: WebhookId) -> wire.WebhookDeleted:
    """With the log of its deliveries."""
    await call.services.webhooks.delete(call.writes, webhook_id)
    return wire.WebhookDeleted(message="The webhook is deleted.")


@routes.post(
    f"{WEBHOOK}/secret", summary="Renew the secret of a webhook", responses=raises(NotFound)
)
async def renew_secret(call: CurrentCall, webhook_id: WebhookId) -> wire.WebhookMadeAnswer:
    """The earlier one signs nothing any more."""
    renewed = await call.services.webhooks.renew_secret(call.writes, webhook_id)
    return wire.WebhookMadeAnswer(webhook=_view(renewed), secret=renewed.secret)


@routes.post(f"{WEBHOOK}/test", summary="Try a webhook", **writes(NotFound))
async def test(call: CurrentCall, webhook_id: WebhookId) -> wire.TriedAnswer:
    """Sends an event of the type `test` now, and says what came back."""
    reply = await call.services.webhooks.test(call.writes, webhook_id)
    return wire.TriedAnswer.of(reply, delivered=reply.error is None)


@routes.get(
    f"{WEBHOOK}/deliveries", summary="Read what a webhook was told", responses=raises(NotFound)
)
async def deliveries(
    call: CurrentCall, webhook_id: WebhookId, query: InQuery[wire.DeliveriesQuery]
) -> wire.DeliveriesAnswer:
    """`waiting` is still to be sent, `done` was taken, `dead` was given up. Kept for 30 days."""
    state = None if query.state is None else WorkState(query.state)
    found = await call.services.webhooks.log(call.reads, webhook_id, state, query.limit)
    views = (wire.DeliveryView.of(each, state=each.state.value) for each in found)
    return wire.DeliveriesAnswer(deliveries=tuple(views))


@routes.post(f"{WEBHOOK}/replay", summary="Send events again", **writes(NotFound))
async def replay(
    call: CurrentCall, webhook_id: WebhookId, body: wire.ReplayBody | None = None
) -> wire.ReplayedAnswer:
    """With the same `webhook-id`, so that a program can tell that it knows them."""
    wanted = body or wire.ReplayBody()
    queued = await call.services.webhooks.replay(
        call.writes, webhook_id, delivery_id=wanted.delivery_id, days=wanted.days
    )
    return wire.ReplayedAnswer(queued=queued)


def _view(webhook: Webhook) -> wire.WebhookView:
    off = None if webhook.off is None else webhook.off.value
    return wire.WebhookView.of(webhook, enabled=webhook.off is None, off=off)
