"""Session tokens: for browsers, which must not hold an API key."""

from starlette.responses import Response

from rayapp.admin.session_tokens import SessionToken
from rayapp.api.auth import CONSOLE_SESSION, COOKIE, SESSION
from rayapp.api.call import Call
from rayapp.api.json_answer import model_answer
from rayapp.api.responses import raises, raises_code
from rayapp.api.route import CurrentCall, router
from rayapp.core.errors import Forbidden, InvalidInput
from rayapp.core.ids import org_of, user_of
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
    token, said, shard = _made(call, body or wire.SessionBody())
    return wire.SessionAnswer(
        token=token,
        expires_at=said.expires_at,
        user_id=said.user_id,
        shard=shard,
        scopes=tuple(sorted(said.scopes)),
    )


def _made(call: Call, wanted: wire.SessionBody) -> tuple[str, SessionToken, str | None]:
    """A token, what it says, and its tenant."""
    tokens, key = call.services.session_tokens, call.who.key
    if not tokens.on:
        raise _off(call)
    if key is None:
        raise Forbidden("A session token makes no other one; use a key.")
    if wanted.shard is not None and wanted.shard != key.org_id:
        raise Forbidden("This key belongs to another shard; leave it out, or use a key of it.")
    user_id = user_of(call.who.user_id)
    token, said = tokens.make(key, user_id, frozenset(wanted.scopes), wanted.seconds)
    return token, said, key.org_id


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


# --- the console: the token is in a cookie, which no script of a page can read


@routes.get(CONSOLE_SESSION, summary="Who is at the console")
async def see(call: CurrentCall) -> wire.ConsoleSessionAnswer:
    """Whom the caller's key or session is for, and what it covers."""
    who = call.who
    return wire.ConsoleSessionAnswer(
        user_id=user_of(who.user_id),
        shard=org_of(who.user_id),
        scopes=tuple(sorted(who.scopes)),
        keys=call.services.settings.keys_required,
        expires_at=who.token.expires_at if who.token else None,
    )


@routes.post(
    CONSOLE_SESSION,
    summary="Sign in to the console",
    response_model=wire.ConsoleSessionAnswer,
    responses={**raises(Forbidden), **raises_code("sessions_off")},
)
async def sign_in(call: CurrentCall) -> Response:
    """Called with a key; sets a cookie with a session token that covers no more than the key and
    never `admin`. The cookie counts only beside the header `X-Rayapp-Console`, which pages of other
    origins cannot send."""
    token, said, shard = _made(call, wire.SessionBody())
    shown = wire.ConsoleSessionAnswer(
        user_id=said.user_id,
        shard=shard,
        scopes=tuple(sorted(said.scopes)),
        keys=True,
        expires_at=said.expires_at,
    )
    left = said.expires_at - call.services.clock.now()
    return model_answer(shown, headers=_cookie(call, token, int(left.total_seconds())))


@routes.delete(
    CONSOLE_SESSION, summary="Sign out of the console", response_model=wire.SessionEndedAnswer
)
async def sign_out(call: CurrentCall) -> Response:
    """Revokes the session token and takes the cookie back."""
    if call.who.token is not None:
        await call.services.session_tokens.end(call.who.token)
    shown = wire.SessionEndedAnswer(message="You are signed out.")
    return model_answer(shown, headers=_cookie(call, "", 0))


def _cookie(call: Call, token: str, seconds: int) -> dict[str, str]:
    """Of this host alone, and never sent along by a page of another site."""
    secure = "; Secure" if call.scope.get("scheme") == "https" else ""
    cookie = f"{COOKIE}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    return {"Set-Cookie": cookie}


def _off(call: Call) -> Forbidden:
    wanted = "auth.sessions" if call.services.settings.keys_required else "auth.mode to keys"
    return Forbidden(f"There are no session tokens here; set {wanted}.", code="sessions_off")
