"""Session tokens: for browsers, which must not hold an API key."""

from rayapp.api.auth import SESSION
from rayapp.api.call import Call
from rayapp.api.responses import raises, raises_code
from rayapp.api.route import CurrentCall, router
from rayapp.core.errors import Forbidden, InvalidInput
from rayapp.core.ids import user_of
from rayapp.wire import session_tokens as wire

routes = router("sessions")


@routes.post(
    SESSION,
    summary="Make a session token",
    responses={**raises(Forbidden), **raises_code("sessions_off")},
)
async def make(call: CurrentCall, body: wire.SessionBody | None = None) -> wire.SessionAnswer:
    """A signed token for the caller's user, to be sent as `Authorization: Bearer …` in the place of
    the key. It covers no more than the key, never `admin`, and ends with it."""
    tokens, key = call.services.session_tokens, call.who.key
    if not tokens.on:
        raise _off(call)
    if key is None:
        raise Forbidden("A session token makes no other one; use a key.")
    wanted = body or wire.SessionBody()
    if wanted.shard is not None and wanted.shard != key.org_id:
        raise Forbidden("This key belongs to another shard; leave it out, or use a key of it.")
    user_id = user_of(call.who.user_id)
    token, said = tokens.make(key, user_id, frozenset(wanted.scopes), wanted.seconds)
    return wire.SessionAnswer(
        token=token,
        expires_at=said.expires_at,
        user_id=user_id,
        shard=key.org_id,
        scopes=tuple(sorted(said.scopes)),
    )


@routes.delete(SESSION, summary="Revoke a session token", responses=raises_code("sessions_off"))
async def end(
    call: CurrentCall, body: wire.EndSessionBody | None = None
) -> wire.SessionEndedAnswer:
    """The one that the request is made with, or the one in the body. Revoking the key ends all that
    it made."""
    tokens = call.services.session_tokens
    if not tokens.on:
        raise _off(call)
    token = tokens.read(body.token) if body is not None and body.token else call.who.token
    if token is None:
        raise InvalidInput(
            "token: send the session token that is to end.", details={"field": "token"}
        )
    await tokens.end(token)
    return wire.SessionEndedAnswer(message="The session token is revoked.")


def _off(call: Call) -> Forbidden:
    wanted = "auth.sessions" if call.services.settings.keys_required else "auth.mode to keys"
    return Forbidden(f"There are no session tokens here; set {wanted}.", code="sessions_off")
