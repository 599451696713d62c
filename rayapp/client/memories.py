"""Client calls about memories, the memory bank and search."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from rayapp.client.calls import Calls, Reader, Talk, Writer, asked, at, call, given
from rayapp.core.errors import DependencyDown
from rayapp.wire.bank import (
    BankItemAnswer,
    BankListAnswer,
    BankStatsAnswer,
    BankStoreAnswer,
    BankView,
    BulkArchiveAnswer,
    BulkDeleteAnswer,
    GoalsAnswer,
    ListedView,
    ValuesAnswer,
)
from rayapp.wire.memories import (
    BatchAnswer,
    BatchResult,
    DoneAnswer,
    ExplainAnswer,
    ItemAnswer,
    ItemsAnswer,
    MemoryView,
    StoreAnswer,
    StoreItem,
    VersionsAnswer,
)
from rayapp.wire.search import RecentAnswer, RecentView, SearchAnswerView

MEMORY = "/api/memory"
ITEM = f"{MEMORY}/items/{{memory_id}}"
BANK = f"{MEMORY}/memory-bank"
FACT = f"{BANK}/{{memory_id}}"


class SearchReply(SearchAnswerView):
    """`elapsed_ms` is measured by the client, headers to last byte."""

    elapsed_ms: float = 0.0


def sent(memory: StoreItem) -> dict[str, Any]:
    """Its JSON; the fields that are not set are left to the server."""
    return memory.model_dump(mode="json", exclude_defaults=True)


class MemoryCalls(Calls):
    """The calls about single memories and search."""

    @call
    def store(self, memory: StoreItem, **who: Unpack[Writer]) -> Talk[StoreAnswer]:
        """Store one memory. A text that is already there answers `duplicate` with its id.

        Raises:
            InvalidInput, Unauthorized, Forbidden, TooLarge: as the server says.
            RateLimited, DependencyDown: after all retries.
        """
        return self.writing(StoreAnswer, f"{MEMORY}/store", sent(memory), **who)

    @call
    def store_batch(
        self, memories: Sequence[StoreItem], **who: Unpack[Writer]
    ) -> Talk[list[BatchResult]]:
        """Store many; one answer per memory in the same order, a bad one rejects itself only.

        Raises: as `store`.
        """
        body = {"items": [sent(memory) for memory in memories]}
        answer = yield from self.writing(BatchAnswer, f"{MEMORY}/store/batch", body, **who)
        if len(answer.results) != len(memories):
            raise DependencyDown(
                f"The service answered {len(answer.results)} results for {len(memories)} memories: "
                "check that the URL is this service and its version matches."
            )
        return list(answer.results)

    @call
    def items(
        self,
        /,
        *,
        cursor: str | None = None,
        limit: int | None = None,
        user_id: str | None = None,
        **conditions: Any,
    ) -> Talk[ItemsAnswer]:
        """One page of memories; `conditions` are further query fields (tiers, tags, status …)."""
        path = asked(f"{MEMORY}/items", cursor=cursor, limit=limit, **conditions)
        return self.reading(ItemsAnswer, path, user_id=user_id)

    @call
    def item(self, memory_id: str, **who: Unpack[Reader]) -> Talk[MemoryView]:
        """One memory with its counters. Raises NotFound: no such memory of the user."""
        return (yield from self.reading(ItemAnswer, at(ITEM, memory_id=memory_id), **who)).memory

    @call
    def edit(
        self,
        /,
        memory_id: str,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **changes: Any,
    ) -> Talk[MemoryView]:
        """Change one memory: text, tags, importance, expected_version …, as the API documents it.

        Raises:
            NotFound: no such memory of the user.
            Conflict: code `version_conflict`, when it is not at `expected_version`.
        """
        found = yield from self.writing(
            ItemAnswer,
            at(ITEM, memory_id=memory_id),
            given(changes),
            method="PATCH",
            user_id=user_id,
            idempotency_key=idempotency_key,
        )
        return found.memory

    @call
    def archive(
        self, memory_id: str, *, reason: str | None = None, **who: Unpack[Writer]
    ) -> Talk[MemoryView]:
        """Hide it from every search; `restore` brings it back. Raises NotFound."""
        path = at(f"{ITEM}/archive", memory_id=memory_id)
        return (yield from self.writing(ItemAnswer, path, given({"reason": reason}), **who)).memory

    @call
    def restore(self, memory_id: str, **who: Unpack[Writer]) -> Talk[MemoryView]:
        """Bring an archived memory back. Raises NotFound."""
        path = at(f"{ITEM}/restore", memory_id=memory_id)
        return (yield from self.writing(ItemAnswer, path, {}, **who)).memory

    @call
    def delete(self, memory_id: str, **who: Unpack[Writer]) -> Talk[DoneAnswer]:
        """Remove it for good, with its versions and vectors. Raises NotFound."""
        return self.writing(DoneAnswer, at(ITEM, memory_id=memory_id), method="DELETE", **who)

    @call
    def versions(
        self, memory_id: str, *, limit: int | None = None, **who: Unpack[Reader]
    ) -> Talk[VersionsAnswer]:
        """What it was before, newest first. Raises NotFound."""
        path = asked(at(f"{ITEM}/versions", memory_id=memory_id), limit=limit)
        return self.reading(VersionsAnswer, path, **who)

    @call
    def explain(self, memory_id: str, query: str, **who: Unpack[Reader]) -> Talk[ExplainAnswer]:
        """Why a search shows it, or which stage lost it. Raises NotFound."""
        path = asked(at(f"{ITEM}/explain", memory_id=memory_id), query=query)
        return self.reading(ExplainAnswer, path, **who)

    @call
    def search(
        self,
        /,
        query: str,
        *,
        limit: int | None = None,
        tiers: Sequence[str] | None = None,
        user_id: str | None = None,
        **options: Any,
    ) -> Talk[SearchReply]:
        """Search; `options` are further documented body fields (offset, filters, as_of …).

        Raises: as `store`.
        """
        body = given({"query": query, "limit": limit, **options})
        if tiers is not None:
            body["tiers"] = list(tiers)
        started = time.perf_counter()
        found = yield from self.reading(SearchReply, f"{MEMORY}/search", body, user_id=user_id)
        elapsed_ms = (time.perf_counter() - started) * 1000.0
        return found.model_copy(update={"elapsed_ms": elapsed_ms})

    @call
    def recent(
        self,
        /,
        *,
        limit: int | None = None,
        tiers: str | None = None,
        user_id: str | None = None,
        **options: Any,
    ) -> Talk[tuple[RecentView, ...]]:
        """The newest memories, or the best: `sort_by="score"`."""
        path = asked(f"{MEMORY}/search", limit=limit, tier=tiers, **options)
        return (yield from self.reading(RecentAnswer, path, user_id=user_id)).memories


class BankCalls(Calls):
    """The calls about the memory bank: what always holds about the user."""

    @call
    def bank(
        self,
        *,
        status: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        **who: Unpack[Reader],
    ) -> Talk[BankListAnswer]:
        """One page of the memory bank."""
        path = asked(BANK, status=status, tag=tag, limit=limit, offset=offset)
        return self.reading(BankListAnswer, path, **who)

    @call
    def bank_add(
        self,
        /,
        text: str,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Talk[BankStoreAnswer]:
        """Keep a fact; `options` are further body fields (tags, importance, always_inject …)."""
        body = given({"text": text, **options})
        return self.writing(
            BankStoreAnswer, BANK, body, user_id=user_id, idempotency_key=idempotency_key
        )

    @call
    def bank_entry(self, memory_id: str, **who: Unpack[Reader]) -> Talk[BankView]:
        """One memory as the bank shows it. Raises NotFound."""
        found = yield from self.reading(BankItemAnswer, at(FACT, memory_id=memory_id), **who)
        return found.memory

    @call
    def bank_edit(
        self, memory_id: str, changes: Mapping[str, Any], **who: Unpack[Writer]
    ) -> Talk[DoneAnswer]:
        """Change status, tags or text. Raises NotFound."""
        path = at(FACT, memory_id=memory_id)
        return self.writing(DoneAnswer, path, changes, method="PUT", **who)

    @call
    def bank_delete(self, memory_id: str, **who: Unpack[Writer]) -> Talk[DoneAnswer]:
        """Remove it for good. Raises NotFound."""
        return self.writing(DoneAnswer, at(FACT, memory_id=memory_id), method="DELETE", **who)

    @call
    def bank_stats(self, **who: Unpack[Reader]) -> Talk[BankStatsAnswer]:
        """How much the bank holds, and its tags."""
        return self.reading(BankStatsAnswer, f"{BANK}/stats", **who)

    @call
    def archive_many(
        self, ids: Sequence[str], *, reason: str | None = None, **who: Unpack[Writer]
    ) -> Talk[BulkArchiveAnswer]:
        """Archive up to 500 memories."""
        body = given({"ids": list(ids), "archived_reason": reason})
        return self.writing(BulkArchiveAnswer, f"{MEMORY}/bulk/archive", body, **who)

    @call
    def delete_many(self, ids: Sequence[str], **who: Unpack[Writer]) -> Talk[BulkDeleteAnswer]:
        """Remove up to 500 memories for good."""
        return self.writing(BulkDeleteAnswer, f"{MEMORY}/bulk/delete", {"ids": list(ids)}, **who)

    @call
    def goals(self, **who: Unpack[Reader]) -> Talk[tuple[ListedView, ...]]:
        """What the user wants to reach."""
        return (yield from self.reading(GoalsAnswer, f"{BANK}/goals", **who)).goals

    @call
    def add_goal(self, text: str, **who: Unpack[Writer]) -> Talk[BankStoreAnswer]:
        """A goal more."""
        return self.writing(BankStoreAnswer, f"{BANK}/goals", {"text": text}, **who)

    @call
    def delete_goal(self, memory_id: str, **who: Unpack[Writer]) -> Talk[DoneAnswer]:
        """A goal less. Raises NotFound."""
        path = at(f"{BANK}/goals/{{memory_id}}", memory_id=memory_id)
        return self.writing(DoneAnswer, path, method="DELETE", **who)

    @call
    def values(self, **who: Unpack[Reader]) -> Talk[tuple[ListedView, ...]]:
        """What matters to the user."""
        return (yield from self.reading(ValuesAnswer, f"{BANK}/values", **who)).values

    @call
    def add_value(self, text: str, **who: Unpack[Writer]) -> Talk[BankStoreAnswer]:
        """A value more."""
        return self.writing(BankStoreAnswer, f"{BANK}/values", {"text": text}, **who)

    @call
    def delete_value(self, memory_id: str, **who: Unpack[Writer]) -> Talk[DoneAnswer]:
        """A value less. Raises NotFound."""
        path = at(f"{BANK}/values/{{memory_id}}", memory_id=memory_id)
        return self.writing(DoneAnswer, path, method="DELETE", **who)
