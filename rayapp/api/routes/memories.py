"""Store, read, change and explain memories."""

from typing import Any

from rayapp.api.auth import ITEM
from rayapp.api.json_body import read_model
from rayapp.api.paths import MemoryIdPart
from rayapp.api.responses import raises
from rayapp.api.route import IDEMPOTENT, CurrentCall, InQuery, router, writes
from rayapp.core import errors
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.requests import ItemQuery, MemoryEdit, NewMemory, StoreResult
from rayapp.search.requests import SearchQuery
from rayapp.text.normalize import shows_nothing
from rayapp.wire import memories as wire
from rayapp.wire.search import ItemsQuery

routes = router("memories")


@routes.post(
    "/api/memory/store",
    summary="Store a memory",
    status_code=201,
    responses={
        200: {
            "model": wire.StoreAnswer,
            "description": "It was there already: `duplicate` is true.",
        },
        **raises(errors.TooLarge, errors.DuplicateMemory, errors.BankFull),
    },
    dependencies=[IDEMPOTENT],
)
async def store(call: CurrentCall, body: wire.StoreBody) -> wire.StoreAnswer:
    """The answer does not wait for the index: search finds the memory at once. An equal active text
    of the same tier is not stored again (`duplicate`)."""
    result = await call.services.memories.store(call.writes, body.new_memory())
    duplicate = result.status == "duplicate"
    call.status = 200 if duplicate else 201
    return wire.StoreAnswer.of(result, duplicate=duplicate)


@routes.post("/api/memory/store/batch", summary="Store many memories", **writes(errors.TooLarge))
async def store_batch(call: CurrentCall, body: wire.BatchBody) -> wire.BatchAnswer:
    """One result per item, in order. A bad item is rejected alone, without an id; `archived` of a
    fact are those that left the full memory bank for it. `success` is false when nothing of the
    batch was kept."""
    most = call.services.settings.http.batch_limit_items
    if len(body.items) > most:
        raise errors.TooLarge(
            f"The batch has {len(body.items)} items; send at most {most} at once.",
            details={"field": "items", "limit": most},
        )
    results = await call.services.memories.store_batch(
        call.writes, [_new_or_rejected(item) for item in body.items]
    )
    return wire.BatchAnswer(
        success=not results or any(one.status != "rejected" for one in results),
        results=tuple(wire.BatchResult.from_result(one) for one in results),
    )


def _new_or_rejected(data: Any) -> NewMemory | StoreResult:
    """One bad item rejects itself only."""
    try:
        if not isinstance(data, dict):
            raise errors.InvalidInput("An item must be a JSON object.")
        return read_model(wire.StoreItem, data).new_memory()
    except errors.InvalidInput as error:
        return StoreResult.refused(None, error)


@routes.get("/api/memory/items", summary="List memories")
async def items(call: CurrentCall, query: InQuery[ItemsQuery]) -> wire.ItemsAnswer:
    """Paged by cursor. List fields repeat: `tags=a&tags=b`; an empty list matches nothing."""
    where = query.item_filter(
        tiers=call.services.tiers_default if query.tiers is None else query.tiers,
        statuses=(Status(query.status),),
        now=call.services.clock.now(),
    )
    page = await call.services.memories.page(
        call.reads, where, query.fill(ItemQuery, text_query=query.query)
    )
    shown = tuple(wire.MemoryView.from_item(item, call.documents) for item in page.items)
    return wire.ItemsAnswer.of(page, items=shown)


def _show(call: CurrentCall, item: MemoryItem) -> wire.ItemAnswer:
    return wire.ItemAnswer(memory=wire.MemoryView.from_item(item, call.documents))


@routes.get(ITEM, summary="Read a memory", responses=raises(errors.NotFound))
async def get_item(call: CurrentCall, memory_id: MemoryIdPart) -> wire.ItemAnswer:
    return _show(call, await call.services.memories.get(call.reads, memory_id))


@routes.patch(
    ITEM,
    summary="Change a memory",
    **writes(errors.NotFound, errors.DuplicateMemory, errors.VersionConflict, errors.TooLarge),
)
async def edit_item(
    call: CurrentCall, memory_id: MemoryIdPart, body: wire.EditBody
) -> wire.ItemAnswer:
    """In place: the id stays, the old state goes to the versions."""
    return _show(
        call, await call.services.memories.edit(call.writes, memory_id, body.fill(MemoryEdit))
    )


@routes.delete(ITEM, summary="Delete a memory", **writes(errors.NotFound, errors.Conflict))
async def delete_item(call: CurrentCall, memory_id: MemoryIdPart) -> wire.DoneAnswer:
    await call.services.memories.delete(call.writes, memory_id)
    return wire.DoneAnswer(memory_id=memory_id, message="Memory deleted for good.")


@routes.post(
    f"{ITEM}/archive", summary="Archive a memory", **writes(errors.NotFound, errors.VersionConflict)
)
async def archive_item(
    call: CurrentCall, memory_id: MemoryIdPart, body: wire.ArchiveBody | None = None
) -> wire.ItemAnswer:
    """It leaves search and can be restored. The body may be left out."""
    how = body or wire.ArchiveBody()
    item = await call.services.memories.archive(
        call.writes, memory_id, reason=how.reason, expected_version=how.expected_version
    )
    return _show(call, item)


@routes.post(
    f"{ITEM}/restore",
    summary="Restore a memory",
    **writes(errors.NotFound, errors.DuplicateMemory, errors.VersionConflict),
)
async def restore_item(
    call: CurrentCall, memory_id: MemoryIdPart, body: wire.RestoreBody | None = None
) -> wire.ItemAnswer:
    """Back to active with a fresh lifetime. The body may be left out."""
    how = body or wire.RestoreBody()
    item = await call.services.memories.restore(
        call.writes, memory_id, expected_version=how.expected_version
    )
    return _show(call, item)


@routes.get(f"{ITEM}/versions", summary="Old states of a memory", responses=raises(errors.NotFound))
async def versions(
    call: CurrentCall, memory_id: MemoryIdPart, query: InQuery[wire.VersionsQuery]
) -> wire.VersionsAnswer:
    rows = await call.services.memories.versions(call.reads, memory_id, query.limit)
    return wire.VersionsAnswer(memory_id=memory_id, versions=rows)


@routes.get(
    f"{ITEM}/explain",
    summary="Why a question finds a memory, or not",
    responses=raises(errors.NotFound),
)
async def explain(
    call: CurrentCall, memory_id: MemoryIdPart, query: InQuery[wire.ExplainQuery]
) -> wire.ExplainAnswer:
    check_query(call, query.query)
    found = await call.services.explainer.explain(
        call.reads, memory_id, SearchQuery(query=query.query)
    )
    return wire.ExplainAnswer.of(found)


def check_query(call: CurrentCall, question: str) -> None:
    """Not blank, and within http.query_limit_chars."""
    most = call.services.settings.http.query_limit_chars
    if len(question) > most:
        raise errors.InvalidInput(
            f"query: has {len(question)} characters; send at most {most}.",
            details={"field": "query", "limit": most},
        )
    if shows_nothing(question):
        raise errors.InvalidInput("query: is blank; ask something.", details={"field": "query"})
