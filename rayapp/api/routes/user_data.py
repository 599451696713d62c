"""The caller's own data as a whole: hidden memories, counts, clearing."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from rayapp.api.auth import DATA_CLEAR, USER, USER_PART
from rayapp.api.call import check_confirmed
from rayapp.api.json_body import read_query
from rayapp.api.paths import Target
from rayapp.api.responses import raises, raises_code
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from rayapp.memory.requests import ClearTarget
from rayapp.memory.rules.hiding import hidden_reason
from rayapp.memory.scope import EVERYTHING
from rayapp.portability.rules.kinds import Part
from rayapp.wire import data as wire

routes, data_routes = router("hidden memories"), router("data")
GHOST = "/api/memory/ghost"
# Other names of what may be cleared.
TARGET_ALIASES = {
    "books": ClearTarget.DOCUMENTS,
    "knowledge_graph": ClearTarget.KNOWLEDGE_GRAPH,
    "memory-bank": ClearTarget.MEMORY_BANK,
}


@routes.post(GHOST, summary="Hide a memory", **writes(NotFound, Conflict))
async def hide(call: CurrentCall, body: wire.GhostBody) -> wire.GhostDone:
    """It is archived with this reason: no search, no context shows it, its source stays, and it can
    be shown again."""
    item = await call.services.user_data.hide(call.writes, body.memory_id, body.reason)
    return _done(
        body.memory_id,
        "Memory hidden; it is kept, and can be shown again.",
        "archived",
        hidden_reason(item),
    )


@routes.get(GHOST, summary="List the hidden memories")
async def listed(call: CurrentCall, query: InQuery[wire.GhostQuery]) -> wire.GhostsAnswer:
    found, total = await call.services.user_data.hidden(call.reads, query.limit)
    rows = tuple(wire.GhostView.from_item(one, call.documents) for one in found)
    return wire.GhostsAnswer(memories=rows, total=total)


@routes.delete(
    GHOST,
    summary="Show a hidden memory again",
    description="The memory is named in the body or in the query.",
    **writes(NotFound, Conflict),
)
async def unhide(call: CurrentCall, body: wire.UnhideBody | None = None) -> wire.GhostDone:
    """The first client sends a body with DELETE; others may name the memory in the query."""
    wanted = body or read_query(wire.UnhideBody, call.scope["query_string"])
    item = await call.services.user_data.unhide(call.writes, wanted.memory_id)
    return _done(wanted.memory_id, "Memory shown again.", item.status.value)


def _done(memory_id: str, message: str, status: str, reason: str | None = None) -> wire.GhostDone:
    return wire.GhostDone(
        memory_id=memory_id, memoryId=memory_id, message=message, status=status, reason=reason
    )


@data_routes.get("/api/data/stats", summary="What there is of the user")
async def stats(call: CurrentCall) -> wire.DataStatsAnswer:
    """Archived memories are counted, deleted ones are not."""
    counts = await call.services.user_data.counts(call.reads)
    return wire.DataStatsAnswer.from_counts(counts, call.documents)


@data_routes.post(DATA_CLEAR, summary="Delete all of one kind", **writes())
async def clear(
    call: CurrentCall,
    target: Target,
    query: InQuery[wire.ClearQuery],
    body: wire.ClearBody | None = None,
) -> wire.ClearAnswer:
    """Of the caller's user, for good: memories with their versions, and the indexer takes their
    points. It ends within the time of a request; `remaining` says what is left, and asking again
    goes on. `all` clears each kind in turn, and `parts` says what became of each. Send
    `confirm=DELETE`; sessions cannot be cleared while their user is in a conversation. Clearing the
    graph keeps the memories; `POST /api/memory/content-graph/backfill` builds the content graph
    anew. Hiding a memory (`/api/memory/ghost`) deletes nothing."""
    wanted, compat = _target(target), call.services.settings.compat
    word = query.confirm or (body.confirm if body else "")
    check_confirmed(word, "Clearing cannot be undone", unasked=compat)
    if wanted in (None, ClearTarget.SESSIONS) and not compat.first_client:
        await call.services.conversations.check_inactive(call.reads.own)
    if wanted is None:
        parts = await call.services.user_data.clear_all(call.writes)
        return wire.ClearAnswer.from_parts(parts, call.documents)
    cleared = await call.services.user_data.clear(call.writes, wanted)
    return wire.ClearAnswer.from_cleared(cleared, call.documents)


@data_routes.delete(
    USER, summary="Erase the user", responses={**raises_code("confirm_needed"), **raises(Forbidden)}
)
async def erase(call: CurrentCall, query: InQuery[wire.EraseQuery]) -> wire.ErasedAnswer:
    """All that is kept of the caller's user, for good: memories with their versions, outcomes,
    graphs, receipts, conversations, documents, points of the index, kept archives. The certificate
    says what was there and what is left. Backups of the operator are not touched. Hiding a memory
    (`/api/memory/ghost`) keeps it; this does not."""
    check_confirmed(query.confirm, "Erasing cannot be undone")
    if not call.who.owner:
        raise Forbidden("Only the user's own key, or one of scope admin, may erase the user.")
    return wire.ErasedAnswer.from_certificate(await call.services.erasure.erase(call.writes))


@data_routes.delete(
    USER_PART,
    summary="Erase a part of the user, with a certificate",
    responses={**raises_code("confirm_needed"), **raises(Conflict, Forbidden)},
)
async def erase_part(call: CurrentCall, query: InQuery[wire.ErasePartQuery]) -> wire.ErasedAnswer:
    """A conversation, a document or a memory as its own route deletes it, or all memories about a
    subject; then the index is waited for, and a certificate says what went and what is left. Points
    in older collections of the index go with those."""
    check_confirmed(query.confirm, "Erasing cannot be undone")
    if not call.who.owner:
        raise Forbidden("Only the user's own key, or one of scope admin, may erase the user.")
    services, scope, name = call.services, call.writes, query.id
    budget_s = services.user_data.runtime.budget_s
    about = replace(EVERYTHING, subject_ids=(name,))
    deletes: Mapping[Part, Callable[[], Awaitable[object]]] = {
        Part.CONVERSATION: lambda: services.conversations.erase(scope, name),
        Part.DOCUMENT: lambda: services.books.delete(scope, name),
        Part.SUBJECT: lambda: services.user_data.delete(scope, about, budget_s),
        Part.MEMORY: lambda: services.memories.delete(scope, name),
    }
    found = await services.erasure.erase_part(scope, query.part, name, deletes[query.part])
    return wire.ErasedAnswer.from_certificate(found)


def _target(name: str) -> ClearTarget | None:
    """None: all of them."""
    if name == wire.ALL:
        return None
    try:
        return TARGET_ALIASES.get(name) or ClearTarget(name)
    except ValueError:
        names = ", ".join([*ClearTarget, wire.ALL])
        raise InvalidInput(
            f"Nothing of this name can be cleared; use one of {names}.",
            code="bad_target",
            details={"field": "target"},
        ) from None


routes.routes.extend(data_routes.routes)
