"""The memory bank, as the first client calls it; goals and values are short lists inside it."""

from collections import Counter

from rayapp.api.auth import BANK, BANK_ITEM
from rayapp.api.paths import MemoryIdPart
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.core.errors import BankFull, Conflict, DuplicateMemory, NotFound, TooLarge
from rayapp.memory.item import Status
from rayapp.wire import bank as wire
from rayapp.wire.memories import DoneAnswer

routes = router("memory bank")
BULK = (
    "Of any tier. `results` says what became of each id: `merged` lives on in another memory, "
    "which stays, an unknown id is `not_found`. `success` is true when at least one memory "
    "changed, or when every one was archived already."
)
ANY_TIER = "Of any tier, by the id that the lists, searches and the read of this route give."


def _add_list(name: str, tag: str, shape: type[wire.GoalsAnswer | wire.ValuesAnswer]) -> None:
    """One list: `name` in the path and in the answer, `tag` on its facts."""
    path = f"{BANK}/{name}"

    @routes.get(path, summary=f"List the {name}", response_model=shape)
    async def page(
        call: CurrentCall, query: InQuery[wire.ListedQuery]
    ) -> wire.GoalsAnswer | wire.ValuesAnswer:
        found = await call.services.bank.listed(call.reads, tag, query.limit)
        return shape.of(found, **{name: found.items})

    @routes.post(
        path,
        summary=f"Add to the {name}",
        description=f"A fact of the memory bank with the tag `{tag}`; the same text again is a "
        "duplicate with the same id.",
        **writes(TooLarge, BankFull),
    )
    async def add(call: CurrentCall, body: wire.ListedBody) -> wire.BankStoreAnswer:
        result = await call.services.bank.add(call.writes, body.new_memory(tag))
        return wire.BankStoreAnswer.from_result(result)

    @routes.delete(
        f"{path}/{{memory_id}}",
        summary=f"Remove from the {name}",
        description="A fact with no other tag is archived, so it can be restored. Others only "
        "leave the list.",
        **writes(NotFound, Conflict),
    )
    async def remove(call: CurrentCall, memory_id: MemoryIdPart) -> DoneAnswer:
        await call.services.bank.unlist(call.writes, tag, memory_id)
        return DoneAnswer(memory_id=memory_id, message=f"Removed from the {name}.")


# Before the facts, whose `{memory_id}` would match their names.
_add_list("goals", "goal", wire.GoalsAnswer)
_add_list("values", "value", wire.ValuesAnswer)


@routes.get(BANK, summary="List the memory bank")
async def bank_page(call: CurrentCall, query: InQuery[wire.BankQuery]) -> wire.BankListAnswer:
    page = await call.services.bank.page(
        call.reads,
        status=Status(query.status),
        tag=query.tag and query.tag.strip(),  # as it is stored
        limit=query.limit,
        offset=query.offset,
    )
    return wire.BankListAnswer(
        memories=tuple(wire.BankView.from_item(item, call.documents) for item in page.items),
        total=page.total if page.total is not None else len(page.items),
    )


@routes.post(BANK, summary="Keep a fact", **writes(TooLarge, BankFull, NotFound))
async def bank_add(call: CurrentCall, body: wire.BankBody) -> wire.BankStoreAnswer:
    """Without tags the fact is tagged `pinned`. With `memory_id` the memory of that id is pinned:
    it stays where it is, and the fact takes over where it came from. A full bank archives its least
    useful fact (`archived`), never one that is pinned, a goal or a value; a fact that is less
    useful than all is refused with `bank_full`."""
    bank, new = call.services.bank, body.new_memory()
    if body.memory_id is None:
        return wire.BankStoreAnswer.from_result(await bank.add(call.writes, new))
    return wire.BankStoreAnswer.from_result(await bank.pin(call.writes, body.memory_id, new))


@routes.get(f"{BANK}/stats", summary="Counts of the memory bank")
async def bank_stats(call: CurrentCall) -> wire.BankStatsAnswer:
    stats = await call.services.bank.stats(call.reads)
    return wire.BankStatsAnswer.of(stats, unique_tags=len(stats.tags))


@routes.get(BANK_ITEM, summary="Read a memory of any tier", responses=raises(NotFound))
async def bank_get(call: CurrentCall, memory_id: MemoryIdPart) -> wire.BankItemAnswer:
    item = await call.services.memories.get(call.reads, memory_id)
    return wire.BankItemAnswer(memory=wire.BankView.from_item(item, call.documents))


@routes.put(
    BANK_ITEM,
    summary="Archive, restore, tag or rewrite a memory",
    description=ANY_TIER,
    **writes(NotFound, Conflict, DuplicateMemory, BankFull, TooLarge),
)
async def bank_edit(call: CurrentCall, memory_id: MemoryIdPart, body: wire.BankEdit) -> DoneAnswer:
    """Fields first, because only they can be refused; then the status."""
    memories, edit = call.services.memories, body.edit()
    if edit is not None:
        await memories.edit(call.writes, memory_id, edit)
    if body.status == "active":
        await memories.restore(call.writes, memory_id)
    if body.status == "archived":
        await memories.archive(call.writes, memory_id, reason=body.archived_reason)
    return DoneAnswer(memory_id=memory_id, message="Memory changed.")


@routes.delete(
    BANK_ITEM,
    summary="Delete a memory of any tier",
    description=ANY_TIER,
    **writes(NotFound, Conflict),
)
async def bank_delete(call: CurrentCall, memory_id: MemoryIdPart) -> DoneAnswer:
    await call.services.memories.delete(call.writes, memory_id)
    return DoneAnswer(memory_id=memory_id, message="Memory deleted for good.")


@routes.post(
    "/api/memory/bulk/archive", summary="Archive many memories", description=BULK, **writes()
)
async def bulk_archive(call: CurrentCall, body: wire.BulkArchiveBody) -> wire.BulkArchiveAnswer:
    call.memory_ids = body.ids
    results = await call.services.bank.archive_many(call.writes, body.ids, body.archived_reason)
    counts = Counter(one.status for one in results)
    return wire.BulkArchiveAnswer.from_results(
        results,
        matched=counts["archived"] + counts["already_archived"],
        modified=counts["archived"],
    )


@routes.post(
    "/api/memory/bulk/delete", summary="Delete many memories", description=BULK, **writes()
)
async def bulk_delete(call: CurrentCall, body: wire.BulkBody) -> wire.BulkDeleteAnswer:
    call.memory_ids = body.ids
    results = await call.services.bank.delete_many(call.writes, body.ids)
    deleted = sum(one.status == "deleted" for one in results)
    return wire.BulkDeleteAnswer.from_results(results, deleted=deleted)
