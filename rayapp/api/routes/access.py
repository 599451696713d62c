"""Keys, and the audit log: who may call, and who did what (decision 0104)."""

from datetime import timedelta

from rayapp.admin.ports import ApiKey
from rayapp.api.auth import AUDIT, KEYS
from rayapp.api.call import Call
from rayapp.api.paths import KeyId
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, InQuery, router
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.wire import access as wire

routes = router("access")


@routes.get(KEYS, summary="List the keys")
async def keys(call: CurrentCall) -> wire.KeysAnswer:
    """Of all tenants. The keys themselves are not kept."""
    now = call.services.clock.now()
    found = await call.services.keys.all()
    return wire.KeysAnswer(keys=tuple(wire.KeyView.from_key(one, now) for one in found))


@routes.post(KEYS, summary="Make a key", responses=raises(InvalidInput))
async def make(call: CurrentCall, body: wire.KeyBody) -> wire.KeyMadeAnswer:
    """The answer shows the key, and nothing shows it again; so this takes no idempotency key, whose
    answers are kept for a day."""
    secret, row = await call.services.keys.create(
        body.principal,
        user_id=body.user_id,
        scopes=body.scopes,
        org_id=body.org_id,
        name=body.name,
        expires_at=body.expires_at,
    )
    return _made(call, secret, row)


@routes.post(
    f"{KEYS}/{{key_id}}/rotate", summary="Rotate a key", responses=raises(NotFound, InvalidInput)
)
async def rotate(
    call: CurrentCall, key_id: KeyId, body: wire.RotateBody | None = None
) -> wire.KeyMadeAnswer:
    """Another key that may do the same and lasts as long; the earlier one ends after the grace, so
    that programs can be moved one by one."""
    grace = timedelta(seconds=(body or wire.RotateBody()).grace_s)
    secret, row = await call.services.keys.rotate(key_id, grace=grace)
    return _made(call, secret, row)


@routes.delete(f"{KEYS}/{{key_id}}", summary="Revoke a key", responses=raises(NotFound, Conflict))
async def revoke(call: CurrentCall, key_id: KeyId) -> wire.KeyEndedAnswer:
    """With the session tokens that it made. The key of the request itself is refused: nobody locks
    the door from outside by mistake."""
    if key_id == call.who.key_id:
        raise Conflict("This is the key that you use; revoke it with another one.")
    ended = await call.services.keys.end(key_id)
    return wire.KeyEndedAnswer(ended=wire.KeyView.from_key(ended, call.services.clock.now()))


@routes.get(AUDIT, summary="Read the audit log")
async def audit(call: CurrentCall, query: InQuery[wire.AuditQuery]) -> wire.AuditAnswer:
    """What was deleted, exported, imported or operated, by which key and from which address; with
    `audit.writes` all that writes. Entries are added and never changed; each goes after
    `audit.keep_days`."""
    found = await call.services.audit.page(query.question())
    shown = found[: query.limit]
    return wire.AuditAnswer(
        entries=tuple(map(wire.AuditEntryView.from_entry, shown)),
        next_cursor=shown[-1].entry_id if len(found) > len(shown) else None,
    )


def _made(call: Call, secret: str, row: ApiKey) -> wire.KeyMadeAnswer:
    call.ids["made"] = row.key_id
    shown = wire.KeyView.from_key(row, call.services.clock.now())
    return wire.KeyMadeAnswer(key=secret, made=shown)
