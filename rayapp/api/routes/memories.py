"""Store, read, change and explain memories."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from rayapp.api.json_body import read_model
from rayapp.api.paths import MemoryIdPart
from rayapp.api.responses import raises
from rayapp.api.route import IDEMPOTENT, CurrentCall, router
from rayapp.core.errors import (
    BankFull,
    Conflict,
    DuplicateMemory,
    InvalidInput,
    NotFound,
    TooLarge,
    VersionConflict,
)
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.requests import ItemQuery, NewMemory, StoreResult
from rayapp.search.requests import SearchQuery
from rayapp.wire.memories import (
    ArchiveBody,
    BatchAnswer,
    BatchBody,
    BatchResult,
    DoneAnswer,
    EditBody,
    ExplainAnswer,
    ExplainQuery,
    ItemAnswer,
    ItemsAnswer,
    MemoryView,
    RestoreBody,
    StoreAnswer,
    StoreBody,
    StoreItem,
    VersionsAnswer,
    VersionsQuery,
    VersionView,
)
from rayapp.wire.search import ItemsQuery

routes = router("memories")
ITEM = "/api/memory/items/{memory_id}"


@routes.post(
    "/api/memory/store",
    summary="Store a memory",
    status_code=201,
    responses={
        200: {"model": StoreAnswer, "description": "It was there already: `duplicate` is true."},
        **raises(TooLarge, DuplicateMemory, BankFull),
    },
    dependencies=[IDEMPOTENT],
)
async def store(call: CurrentCall, body: StoreBody) -> StoreAnswer:
    """The answer does not wait for the index: search finds the memory at once. An equal active text
    of the same tier is not stored again (`duplicate`)."""
    result = await call.services.memories.store(call.writes, body.new_memory())
    duplicate = result.status == "duplicate"
    call.status = 200 if duplicate else 201
    return StoreAnswer.of(result, duplicate=duplicate)


@routes.post(
    "/api/memory/store/batch",
    summary="Store many memories",
    responses=raises(TooLarge),
    dependencies=[IDEMPOTENT],
)
async def store_batch(call: CurrentCall, body: BatchBody) -> BatchAnswer:
    """One result per item, in order. A bad item is rejected alone, without an id; `archived` of a
    fact are those that left the full memory bank for it. `success` is false when nothing of the
    batch was kept."""
    most = call.services.settings.http.batch_limit_items
    if len(body.items) > most:
        raise TooLarge(
            f"The batch has {len(body.items)} items; send at most {most} at once.",
            details={"field": "items", "limit": most},
        )
    results = await call.services.memories.store_batch(
        call.writes, [_new_or_rejected(item) for item in body.items]
    )
    return BatchAnswer(
        success=not results or any(one.status != "rejected" for one in results),
        results=tuple(BatchResult.from_result(one) for one in results),
    )


def _new_or_rejected(data: Any) -> NewMemory | StoreResult:
    """One bad item rejects itself only."""
    try:
        if not isinstance(data, dict):
            raise InvalidInput("An item must be a JSON object.")
        return read_model(StoreItem, data).new_memory()
    except InvalidInput as error:
        return StoreResult(memory_id=None, status="rejected", code=error.code, error=error.message)


@routes.get("/api/memory/items", summary="List memories")
async def items(call: CurrentCall, query: Annotated[ItemsQuery, Query()]) -> ItemsAnswer:
    """Paged by cursor. List fields repeat: `tags=a&tags=b`; an empty list matches nothing."""
    where = query.item_filter(
        tiers=call.services.tiers_default if query.tiers is None else query.tiers,
        statuses=(Status(query.status),),
        now=call.services.clock.now(),
    )
    page = await call.services.memories.page(
        call.reads,
        where,
        ItemQuery(
            sort=query.sort,
            limit=query.limit,
            cursor=query.cursor,
            text_query=query.query,
            with_total=query.with_total,
        ),
    )
    shown = tuple(MemoryView.from_item(item, call.documents) for item in page.items)
    return ItemsAnswer.of(page, items=shown)


def _shown(call: CurrentCall, item: MemoryItem) -> ItemAnswer:
    return ItemAnswer(memory=MemoryView.from_item(item, call.documents))


@routes.get(ITEM, summary="Read a memory", responses=raises(NotFound))
async def get_item(call: CurrentCall, memory_id: MemoryIdPart) -> ItemAnswer:
    return _shown(call, await call.services.memories.get(call.reads, memory_id))


@routes.patch(
    ITEM,
    summary="Change a memory",
    responses=raises(NotFound, DuplicateMemory, VersionConflict, TooLarge),
    dependencies=[IDEMPOTENT],
)
async def edit_item(call: CurrentCall, memory_id: MemoryIdPart, body: EditBody) -> ItemAnswer:
    """In place: the id stays, the old state goes to the versions."""
    return _shown(call, await call.services.memories.edit(call.writes, memory_id, body.edit()))


@routes.delete(
    ITEM,
    summary="Delete a memory",
    responses=raises(NotFound, Conflict),
    dependencies=[IDEMPOTENT],
)
async def delete_item(call: CurrentCall, memory_id: MemoryIdPart) -> DoneAnswer:
    await call.services.memories.delete(call.writes, memory_id)
    return DoneAnswer(memory_id=memory_id, message="Memory deleted.")


@routes.post(
    f"{ITEM}/archive",
    summary="Archive a memory",
    responses=raises(NotFound, VersionConflict),
    dependencies=[IDEMPOTENT],
)
async def archive_item(
    call: CurrentCall, memory_id: MemoryIdPart, body: ArchiveBody | None = None
) -> ItemAnswer:
    """It leaves search and can be restored. The body may be left out."""
    how = body or ArchiveBody()
    item = await call.services.memories.archive(
        call.writes, memory_id, reason=how.reason, expected_version=how.expected_version
    )
    return _shown(call, item)


@routes.post(
    f"{ITEM}/restore",
    summary="Restore a memory",
    responses=raises(NotFound, DuplicateMemory, VersionConflict),
    dependencies=[IDEMPOTENT],
)
async def restore_item(
    call: CurrentCall, memory_id: MemoryIdPart, body: RestoreBody | None = None
) -> ItemAnswer:
    """Back to active with a fresh lifetime. The body may be left out."""
    how = body or RestoreBody()
    item = await call.services.memories.restore(
        call.writes, memory_id, expected_version=how.expected_version
    )
    return _shown(call, item)


@routes.get(f"{ITEM}/versions", summary="Old states of a memory", responses=raises(NotFound))
async def versions(
    call: CurrentCall, memory_id: MemoryIdPart, query: Annotated[VersionsQuery, Query()]
) -> VersionsAnswer:
    rows = await call.services.memories.versions(call.reads, memory_id, query.limit)
    return VersionsAnswer(memory_id=memory_id, versions=tuple(map(VersionView.of, rows)))


@routes.get(
    f"{ITEM}/explain",
    summary="Why a question finds a memory, or not",
    responses=raises(NotFound),
)
async def explain(
    call: CurrentCall, memory_id: MemoryIdPart, query: Annotated[ExplainQuery, Query()]
) -> ExplainAnswer:
    check_query(call, query.query)
    found = await call.services.search.explain(
        call.reads, memory_id, SearchQuery(query=query.query)
    )
    return ExplainAnswer.of(found)


def check_query(call: CurrentCall, question: str) -> None:
    """Not blank, and within http.query_limit_chars."""
    most = call.services.settings.http.query_limit_chars
    if len(question) > most:
        raise InvalidInput(
            f"query: has {len(question)} characters; send at most {most}.",
            details={"field": "query", "limit": most},
        )
    if not question.strip():
        raise InvalidInput("query: is blank; ask something.", details={"field": "query"})
