"""Store, read, change and explain memories."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.json_body import fold_aliases, refuse_forbidden, validated
from rayapp.api.operation import Operation
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
from rayapp.wire import answers as shapes
from rayapp.wire.examples.memories import ITEM_EXAMPLE, STORE_BODY, VERSION_EXAMPLE
from rayapp.wire.memories import (
    ALIASES,
    ArchiveBody,
    BatchBody,
    EditBody,
    ExplainQuery,
    RestoreBody,
    StoreBody,
    StoreItem,
    VersionsQuery,
)
from rayapp.wire.search import ItemsQuery
from rayapp.wire.views.memories import item_view, result_view, version_view

ITEM = "/api/memory/items/{memory_id}"
LIST_ALIASES = {"tier": "tiers", "sort_by": "sort", "sortBy": "sort"}


async def store(call: Call) -> Response:
    new = call.body_as(StoreBody, ALIASES).new_memory()
    result = await call.services.memories.store(call.writes, new)
    duplicate = result.status == "duplicate"
    return answer(
        {
            "success": True,
            "memory_id": result.memory_id,
            "indexed": False,
            "duplicate": duplicate,
            "archived": result.archived,
            "degraded": [],
        },
        status=200 if duplicate else 201,
    )


async def store_batch(call: Call) -> Response:
    refuse_forbidden(call.data, skip="items")
    items = validated(BatchBody, call.data).items
    most = call.services.settings.http.batch_limit_items
    if len(items) > most:
        raise TooLarge(
            f"The batch has {len(items)} items; send at most {most} at once.",
            details={"field": "items", "limit": most},
        )
    results = await call.services.memories.store_batch(
        call.writes, [_new_or_rejected(item) for item in items]
    )
    return answer(
        {
            "success": not results or any(one.status != "rejected" for one in results),
            "results": [result_view(one) for one in results],
            "degraded": [],
        }
    )


def _new_or_rejected(data: Any) -> NewMemory | StoreResult:
    """One bad item rejects itself only."""
    try:
        if not isinstance(data, dict):
            raise InvalidInput("An item must be a JSON object.")
        refuse_forbidden(data)
        return validated(StoreItem, fold_aliases(data, ALIASES)).new_memory()
    except InvalidInput as error:
        return StoreResult(memory_id=None, status="rejected", code=error.code, error=error.message)


async def items(call: Call) -> Response:
    query = call.query_as(ItemsQuery, LIST_ALIASES)
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
    return answer(
        {
            "success": True,
            "items": [item_view(item, call.documents) for item in page.items],
            "next_cursor": page.next_cursor,
            "total": page.total,
            "degraded": [],
        }
    )


def _item(call: Call, item: MemoryItem) -> Response:
    return answer({"success": True, "memory": item_view(item, call.documents), "degraded": []})


async def get_item(call: Call) -> Response:
    return _item(call, await call.services.memories.get(call.reads, call.memory_id()))


async def edit_item(call: Call) -> Response:
    edit = call.body_as(EditBody, {"content": "text"}).edit()
    return _item(call, await call.services.memories.edit(call.writes, call.memory_id(), edit))


async def delete_item(call: Call) -> Response:
    memory_id = call.memory_id()
    await call.services.memories.delete(call.writes, memory_id)
    return answer(
        {"success": True, "memory_id": memory_id, "message": "Memory deleted.", "degraded": []}
    )


async def archive_item(call: Call) -> Response:
    body = call.body_as(ArchiveBody) if call.body else ArchiveBody()
    item = await call.services.memories.archive(
        call.writes, call.memory_id(), reason=body.reason, expected_version=body.expected_version
    )
    return _item(call, item)


async def restore_item(call: Call) -> Response:
    body = call.body_as(RestoreBody) if call.body else RestoreBody()
    item = await call.services.memories.restore(
        call.writes, call.memory_id(), expected_version=body.expected_version
    )
    return _item(call, item)


async def versions(call: Call) -> Response:
    limit = call.query_as(VersionsQuery).limit
    memory_id = call.memory_id()
    rows = await call.services.memories.versions(call.reads, memory_id, limit)
    return answer(
        {
            "success": True,
            "memory_id": memory_id,
            "versions": [version_view(row) for row in rows],
            "degraded": [],
        }
    )


async def explain(call: Call) -> Response:
    question = call.query_as(ExplainQuery).query
    check_query(call, question)
    found = await call.services.search.explain(
        call.reads, call.memory_id(), SearchQuery(query=question)
    )
    return answer(
        {
            "success": True,
            "memory_id": found.memory_id,
            "query": found.query,
            "found": found.found,
            "position": found.position,
            "lost_at": found.lost_at,
            "stages": found.stages,
            "degraded": [],
        }
    )


def check_query(call: Call, question: str) -> None:
    """Not blank, and within http.query_limit_chars."""
    most = call.services.settings.http.query_limit_chars
    if len(question) > most:
        raise InvalidInput(
            f"query: has {len(question)} characters; send at most {most}.",
            details={"field": "query", "limit": most},
        )
    if not question.strip():
        raise InvalidInput("query: is blank; ask something.", details={"field": "query"})


_TAG = "memories"
_ITEM_ANSWER = {"success": True, "memory": ITEM_EXAMPLE, "degraded": []}

OPERATIONS = (
    Operation(
        method="POST",
        path="/api/memory/store",
        tag=_TAG,
        summary="Store a memory",
        description="The answer does not wait for the index: search finds the memory at once. "
        "An equal active text of the same tier is not stored again (`duplicate`).",
        handler=store,
        body=StoreBody,
        example_body=STORE_BODY,
        aliases=ALIASES,
        status=201,
        also={200: "It was there already: `duplicate` is true."},
        answer=shapes.StoreAnswer,
        example={
            "success": True,
            "memory_id": "0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a11",
            "indexed": False,
            "duplicate": False,
            "archived": [],
            "degraded": [],
        },
        errors=(TooLarge, DuplicateMemory, BankFull),
        writes=True,
    ),
    Operation(
        method="POST",
        path="/api/memory/store/batch",
        tag=_TAG,
        summary="Store many memories",
        description="One result per item, in order. A bad item is rejected alone, without an id; "
        "`archived` of a fact are those that left the full memory bank for it. `success` is false "
        "when nothing of the batch was kept.",
        handler=store_batch,
        body=BatchBody,
        example_body={"items": [STORE_BODY, {"text": ""}]},
        aliases=ALIASES,
        answer=shapes.BatchAnswer,
        example={
            "success": True,
            "results": [
                {"memory_id": "0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a11", "status": "stored"},
                {
                    "memory_id": None,
                    "status": "rejected",
                    "code": "empty_text",
                    "error": "The text is empty; send some.",
                },
            ],
            "degraded": [],
        },
        errors=(TooLarge,),
        writes=True,
    ),
    Operation(
        method="GET",
        path="/api/memory/items",
        tag=_TAG,
        summary="List memories",
        description="Paged by cursor. List fields repeat: `tags=a&tags=b`; an empty list matches "
        "nothing.",
        handler=items,
        query=ItemsQuery,
        example_query={"tiers": "all", "limit": "20"},
        aliases=LIST_ALIASES,
        answer=shapes.ItemsAnswer,
        example={
            "success": True,
            "items": [ITEM_EXAMPLE],
            "next_cursor": None,
            "total": None,
            "degraded": [],
        },
    ),
    Operation(
        method="GET",
        path=ITEM,
        tag=_TAG,
        summary="Read a memory",
        handler=get_item,
        answer=shapes.ItemAnswer,
        example=_ITEM_ANSWER,
        errors=(NotFound,),
    ),
    Operation(
        method="PATCH",
        path=ITEM,
        tag=_TAG,
        summary="Change a memory",
        description="In place: the id stays, the old state goes to the versions.",
        handler=edit_item,
        body=EditBody,
        example_body={"tags": ["family", "משפחה"], "reason": "more tags"},
        aliases={"content": "text"},
        answer=shapes.ItemAnswer,
        example=_ITEM_ANSWER,
        errors=(NotFound, DuplicateMemory, VersionConflict, TooLarge),
        writes=True,
    ),
    Operation(
        method="DELETE",
        path=ITEM,
        tag=_TAG,
        summary="Delete a memory",
        handler=delete_item,
        answer=shapes.DoneAnswer,
        example={
            "success": True,
            "memory_id": "mem-1",
            "message": "Memory deleted.",
            "degraded": [],
        },
        errors=(NotFound, Conflict),
        writes=True,
    ),
    Operation(
        method="POST",
        path=f"{ITEM}/archive",
        tag=_TAG,
        summary="Archive a memory",
        description="It leaves search and can be restored. The body may be left out.",
        handler=archive_item,
        body=ArchiveBody,
        body_required=False,
        example_body={"reason": "no longer true"},
        answer=shapes.ItemAnswer,
        example=_ITEM_ANSWER,
        errors=(NotFound, VersionConflict),
        writes=True,
    ),
    Operation(
        method="POST",
        path=f"{ITEM}/restore",
        tag=_TAG,
        summary="Restore a memory",
        description="Back to active with a fresh lifetime. The body may be left out.",
        handler=restore_item,
        body=RestoreBody,
        body_required=False,
        example_body={"expected_version": 1},
        answer=shapes.ItemAnswer,
        example=_ITEM_ANSWER,
        errors=(NotFound, DuplicateMemory, VersionConflict),
        writes=True,
    ),
    Operation(
        method="GET",
        path=f"{ITEM}/versions",
        tag=_TAG,
        summary="Old states of a memory",
        handler=versions,
        query=VersionsQuery,
        example_query={"limit": "10"},
        answer=shapes.VersionsAnswer,
        example={
            "success": True,
            "memory_id": "mem-1",
            "versions": [VERSION_EXAMPLE],
            "degraded": [],
        },
        errors=(NotFound,),
    ),
    Operation(
        method="GET",
        path=f"{ITEM}/explain",
        tag=_TAG,
        summary="Why a question finds a memory, or not",
        handler=explain,
        query=ExplainQuery,
        example_query={"query": "Where does Dana live?"},
        answer=shapes.ExplainAnswer,
        example={
            "success": True,
            "memory_id": "mem-1",
            "query": "Where does Dana live?",
            "found": True,
            "position": 1,
            "lost_at": None,
            "stages": [
                {"stage": "text", "kept": True, "detail": "rank 1", "values": {"bm25": 7.2}}
            ],
            "degraded": [],
        },
        errors=(NotFound,),
    ),
)
