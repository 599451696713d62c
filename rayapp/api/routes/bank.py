"""The memory bank, as the first client calls it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.core.errors import BankFull, Conflict, DuplicateMemory, NotFound, TooLarge
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.requests import BulkResult, StoreResult
from rayapp.memory.rules.lifecycle import room_made
from rayapp.wire import answers as shapes
from rayapp.wire import client_answers as client
from rayapp.wire.bank import (
    BANK_ALIASES,
    PAGE_ALIASES,
    BankBody,
    BankEdit,
    BankQuery,
    BulkArchiveBody,
    BulkBody,
)
from rayapp.wire.examples.memories import BANK_EXAMPLE
from rayapp.wire.views.memories import bank_view

BANK = "/api/memory/memory-bank"
BANK_ITEM = f"{BANK}/{{memory_id}}"


def _view(call: Call, item: MemoryItem) -> dict[str, object]:
    return bank_view(item, call.documents)


async def bank_page(call: Call) -> Response:
    query = call.query_as(BankQuery, PAGE_ALIASES)
    page = await call.services.bank.page(
        call.reads,
        status=Status(query.status),
        tag=query.tag,
        limit=query.limit,
        offset=query.offset,
    )
    return answer(
        {
            "success": True,
            "memories": [_view(call, item) for item in page.items],
            "total": page.total if page.total is not None else len(page.items),
            "degraded": [],
        }
    )


async def bank_add(call: Call) -> Response:
    body = call.body_as(BankBody, BANK_ALIASES)
    bank, new = call.services.bank, body.new_memory()
    if body.memory_id is None:
        return kept(await bank.add(call.writes, new))
    return kept(await bank.pin(call.writes, body.memory_id, new))


def kept(result: StoreResult) -> Response:
    duplicate = result.status == "duplicate"
    message = "Already in the memory bank" if duplicate else "Kept in the memory bank"
    if result.archived:
        message += f"; {room_made(result.archived)}"
    return answer(
        {
            "success": True,
            "id": result.memory_id,
            "memory_id": result.memory_id,
            "message": f"{message}.",
            "duplicate": duplicate,
            "archived": result.archived,
            "degraded": [],
        }
    )


async def bank_stats(call: Call) -> Response:
    stats = await call.services.bank.stats(call.reads)
    return answer(
        {
            "success": True,
            "total_memories": stats.total,
            "active": stats.active,
            "archived": stats.archived,
            "unique_tags": len(stats.tags),
            "tags": stats.tags,
            "degraded": [],
        }
    )


async def bank_get(call: Call) -> Response:
    item = await call.services.memories.get(call.reads, call.memory_id())
    return answer({"success": True, "memory": _view(call, item), "degraded": []})


async def _fact_id(call: Call) -> str:
    """The id in the path, when it is that of a fact: other tiers are changed by their own route."""
    own = replace(call.reads, include_shared=False)
    memory_id = call.memory_id()
    await call.services.bank.fact(own, memory_id)
    return memory_id


async def bank_edit(call: Call) -> Response:
    """Fields first, because only they can be refused; then the status."""
    body = call.body_as(BankEdit, BANK_ALIASES)
    memory_id, memories = await _fact_id(call), call.services.memories
    edit = body.edit()
    if edit is not None:
        await memories.edit(call.writes, memory_id, edit)
    if body.status == "active":
        await memories.restore(call.writes, memory_id)
    if body.status == "archived":
        await memories.archive(call.writes, memory_id, reason=body.archived_reason)
    return done(memory_id, "Memory changed.")


async def bank_delete(call: Call) -> Response:
    memory_id = await _fact_id(call)
    await call.services.memories.delete(call.writes, memory_id)
    return done(memory_id, "Memory deleted.")


def done(memory_id: str, message: str) -> Response:
    return answer({"success": True, "message": message, "memory_id": memory_id, "degraded": []})


async def bulk_archive(call: Call) -> Response:
    body = call.body_as(BulkArchiveBody)
    results = await call.services.bank.archive_many(call.writes, body.ids, body.archived_reason)
    counts = Counter(one.status for one in results)
    return answer(
        {
            "success": _as_asked(results),
            "matched": counts["archived"] + counts["already_archived"],
            "modified": counts["archived"],
            "results": _bulk_view(results),
            "degraded": [],
        }
    )


async def bulk_delete(call: Call) -> Response:
    body = call.body_as(BulkBody)
    results = await call.services.bank.delete_many(call.writes, body.ids)
    return answer(
        {
            "success": _as_asked(results),
            "deleted": sum(one.status == "deleted" for one in results),
            "results": _bulk_view(results),
            "degraded": [],
        }
    )


def _as_asked(results: Sequence[BulkResult]) -> bool:
    """Whether something changed, or everything was already as it was asked to be."""
    said = {one.status for one in results}
    return not said.isdisjoint({"archived", "deleted"}) or said == {"already_archived"}


def _bulk_view(results: Sequence[BulkResult]) -> list[dict[str, str]]:
    return [{"memory_id": one.memory_id, "status": one.status} for one in results]


_TAG = "memory bank"
_DONE = {"success": True, "message": "Memory changed.", "memory_id": "mem-1", "degraded": []}
_BULK = (
    "Facts of the memory bank only; `results` says what became of each id: a memory of another "
    "tier is `not_in_bank` and stays, an unknown id is `not_found`. `success` is true when at "
    "least one fact changed, or when every one was archived already."
)

_FACTS = "Facts of the memory bank only: the id of a memory of another tier is 404, and it stays."

OPERATIONS = (
    Operation(
        method="GET",
        path=BANK,
        tag=_TAG,
        summary="List the memory bank",
        handler=bank_page,
        query=BankQuery,
        example_query={"status": "active", "limit": "100"},
        aliases=PAGE_ALIASES,
        answer=client.BankListAnswer,
        example={"success": True, "memories": [BANK_EXAMPLE], "total": 1, "degraded": []},
    ),
    Operation(
        method="POST",
        path=BANK,
        tag=_TAG,
        summary="Keep a fact",
        description="Without tags the fact is tagged `pinned`. With `memory_id` the memory of that "
        "id is pinned: it stays where it is, and the fact takes over where it came from. A full "
        "bank archives its least useful fact (`archived`), never one that is pinned, a goal or a "
        "value; a fact that is less useful than all is refused with `bank_full`.",
        handler=bank_add,
        body=BankBody,
        example_body={"text": "Dana prefers tea.", "tags": ["taste"], "importance": 0.9},
        aliases=BANK_ALIASES,
        answer=client.BankStoreAnswer,
        example={
            "success": True,
            "id": "0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a11",
            "memory_id": "0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a11",
            "message": "Kept in the memory bank.",
            "duplicate": False,
            "archived": [],
            "degraded": [],
        },
        errors=(TooLarge, BankFull),
        writes=True,
    ),
    Operation(
        method="GET",
        path=f"{BANK}/stats",
        tag=_TAG,
        summary="Counts of the memory bank",
        handler=bank_stats,
        answer=client.BankStatsAnswer,
        example={
            "success": True,
            "total_memories": 2,
            "active": 1,
            "archived": 1,
            "unique_tags": 1,
            "tags": ["taste"],
            "degraded": [],
        },
    ),
    Operation(
        method="GET",
        path=BANK_ITEM,
        tag=_TAG,
        summary="Read a memory of any tier",
        handler=bank_get,
        answer=client.BankItemAnswer,
        example={"success": True, "memory": BANK_EXAMPLE, "degraded": []},
        errors=(NotFound,),
    ),
    Operation(
        method="PUT",
        path=BANK_ITEM,
        tag=_TAG,
        summary="Archive, restore, tag or rewrite a fact",
        description=_FACTS,
        handler=bank_edit,
        body=BankEdit,
        example_body={"status": "archived", "archived_reason": "no longer true"},
        aliases=BANK_ALIASES,
        answer=shapes.DoneAnswer,
        example=_DONE,
        errors=(NotFound, Conflict, DuplicateMemory, BankFull, TooLarge),
        writes=True,
    ),
    Operation(
        method="DELETE",
        path=BANK_ITEM,
        tag=_TAG,
        summary="Delete a fact",
        description=_FACTS,
        handler=bank_delete,
        answer=shapes.DoneAnswer,
        example=_DONE,
        errors=(NotFound, Conflict),
        writes=True,
    ),
    Operation(
        method="POST",
        path="/api/memory/bulk/archive",
        tag=_TAG,
        summary="Archive many memories",
        description=_BULK,
        handler=bulk_archive,
        body=BulkArchiveBody,
        example_body={"ids": ["mem-1"], "archived_reason": "spring cleaning"},
        answer=client.BulkArchiveAnswer,
        example={
            "success": True,
            "matched": 1,
            "modified": 1,
            "results": [{"memory_id": "mem-1", "status": "archived"}],
            "degraded": [],
        },
        writes=True,
    ),
    Operation(
        method="POST",
        path="/api/memory/bulk/delete",
        tag=_TAG,
        summary="Delete many memories",
        description=_BULK,
        handler=bulk_delete,
        body=BulkBody,
        example_body={"ids": ["mem-1"]},
        answer=client.BulkDeleteAnswer,
        example={
            "success": True,
            "deleted": 1,
            "results": [{"memory_id": "mem-1", "status": "deleted"}],
            "degraded": [],
        },
        writes=True,
    ),
)
