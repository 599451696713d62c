"""Client calls about memories, the memory bank and search."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rayapp.client.calls import Calls, Talk, asked, at, call, given
from rayapp.client.models import (
    BankEntry,
    BankItemReply,
    BankPage,
    BankStats,
    BatchReply,
    BulkReply,
    Done,
    ExplainReply,
    ItemPage,
    ItemReply,
    Listed,
    ListedPage,
    Memory,
    MemoryRecord,
    Plain,
    RecentMemory,
    RecentReply,
    SearchReply,
    StoreReply,
    VersionsReply,
)
from rayapp.core.errors import DependencyDown

MEMORY = "/api/memory"
ITEM = f"{MEMORY}/items/{{memory_id}}"
BANK = f"{MEMORY}/memory-bank"


class MemoryCalls(Calls):
    """The calls about single memories and search."""

    @call
    def store(
        self, memory: Memory, *, user_id: str | None = None, idempotency_key: str | None = None
    ) -> Talk[StoreReply]:
        """Store one memory. A text that is already there answers `duplicate` with its id.

        Raises:
            InvalidInput, Unauthorized, Forbidden, TooLarge: as the server says.
            RateLimited, DependencyDown: after all retries.
        """
        return (
            yield from self.writing(
                StoreReply,
                f"{MEMORY}/store",
                memory.body(),
                user_id=user_id,
                idempotency_key=idempotency_key,
            )
        )

    @call
    def store_batch(
        self,
        memories: Sequence[Memory],
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Talk[list[StoreReply]]:
        """Store many; one answer per memory in the same order, a bad one rejects itself only.

        Raises: as `store`.
        """
        answer = yield from self.writing(
            BatchReply,
            f"{MEMORY}/store/batch",
            {"items": [memory.body() for memory in memories]},
            user_id=user_id,
            idempotency_key=idempotency_key,
        )
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
    ) -> Talk[ItemPage]:
        """One page of memories; `conditions` are further query fields (tiers, tags, status …)."""
        path = asked(f"{MEMORY}/items", cursor=cursor, limit=limit, **conditions)
        return (yield from self.reading(ItemPage, path, user_id=user_id))

    @call
    def item(self, memory_id: str, *, user_id: str | None = None) -> Talk[dict[str, Any]]:
        """One memory with its counters, as the API documents it.

        Raises:
            NotFound: no such memory of the user.
        """
        found = yield from self.reading(Plain, at(ITEM, memory_id=memory_id), user_id=user_id)
        memory: dict[str, Any] = found.body["memory"]
        return memory

    @call
    def edit(
        self,
        /,
        memory_id: str,
        *,
        text: str | None = None,
        tags: Sequence[str] | None = None,
        expected_version: int | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **changes: Any,
    ) -> Talk[MemoryRecord]:
        """Change one memory; `changes` are further body fields (summary, importance …).

        Raises:
            NotFound: no such memory of the user.
            Conflict: code `version_conflict`, when it is not at `expected_version`.
        """
        body = {"text": text, "expected_version": expected_version, **changes}
        if tags is not None:
            body["tags"] = list(tags)
        found = yield from self.writing(
            ItemReply,
            at(ITEM, memory_id=memory_id),
            given(body),
            method="PATCH",
            user_id=user_id,
            idempotency_key=idempotency_key,
        )
        return found.memory

    @call
    def archive(
        self,
        memory_id: str,
        *,
        reason: str | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Talk[MemoryRecord]:
        """Hide it from every search; `restore` brings it back. Raises NotFound."""
        found = yield from self.writing(
            ItemReply,
            at(f"{ITEM}/archive", memory_id=memory_id),
            given({"reason": reason}),
            user_id=user_id,
            idempotency_key=idempotency_key,
        )
        return found.memory

    @call
    def restore(
        self,
        memory_id: str,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Talk[MemoryRecord]:
        """Bring an archived memory back. Raises NotFound."""
        found = yield from self.writing(
            ItemReply,
            at(f"{ITEM}/restore", memory_id=memory_id),
            {},
            user_id=user_id,
            idempotency_key=idempotency_key,
        )
        return found.memory

    @call
    def delete(self, memory_id: str, *, user_id: str | None = None) -> Talk[Done]:
        """Remove it for good, with its versions and vectors. Raises NotFound."""
        path = at(ITEM, memory_id=memory_id)
        return (yield from self.writing(Done, path, method="DELETE", user_id=user_id))

    @call
    def versions(
        self, memory_id: str, *, limit: int | None = None, user_id: str | None = None
    ) -> Talk[VersionsReply]:
        """What it was before, newest first. Raises NotFound."""
        path = asked(at(f"{ITEM}/versions", memory_id=memory_id), limit=limit)
        return (yield from self.reading(VersionsReply, path, user_id=user_id))

    @call
    def explain(
        self, memory_id: str, query: str, *, user_id: str | None = None
    ) -> Talk[ExplainReply]:
        """Why a search shows it, or which stage lost it. Raises NotFound."""
        path = asked(at(f"{ITEM}/explain", memory_id=memory_id), query=query)
        return (yield from self.reading(ExplainReply, path, user_id=user_id))

    @call
    def search(
        self,
        /,
        query: str,
        *,
        limit: int | None = None,
        tiers: Sequence[str] | None = None,
        recipe: str | None = None,
        user_id: str | None = None,
        **options: Any,
    ) -> Talk[SearchReply]:
        """Search; `options` are further documented body fields (offset, filters, as_of …).

        Raises: as `store`.
        """
        body: dict[str, Any] = {"query": query, "limit": limit, "recipe": recipe, **options}
        if tiers is not None:
            body["tiers"] = list(tiers)
        started = time.perf_counter()
        found = yield from self.reading(
            SearchReply, f"{MEMORY}/search", given(body), user_id=user_id
        )
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
    ) -> Talk[tuple[RecentMemory, ...]]:
        """The newest memories, or the best: `sort_by="score"`."""
        path = asked(f"{MEMORY}/search", limit=limit, tier=tiers, **options)
        return (yield from self.reading(RecentReply, path, user_id=user_id)).memories


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
        user_id: str | None = None,
    ) -> Talk[BankPage]:
        """One page of the memory bank."""
        path = asked(BANK, status=status, tag=tag, limit=limit, offset=offset)
        return (yield from self.reading(BankPage, path, user_id=user_id))

    @call
    def bank_add(
        self,
        /,
        text: str,
        *,
        tags: Sequence[str] | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Talk[StoreReply]:
        """Keep a fact; `options` are further body fields (importance, always_inject …)."""
        body = {"text": text, "tags": None if tags is None else list(tags), **options}
        return (
            yield from self.writing(
                StoreReply, BANK, given(body), user_id=user_id, idempotency_key=idempotency_key
            )
        )

    @call
    def bank_entry(self, memory_id: str, *, user_id: str | None = None) -> Talk[BankEntry]:
        """One memory as the bank shows it. Raises NotFound."""
        path = at(f"{BANK}/{{memory_id}}", memory_id=memory_id)
        return (yield from self.reading(BankItemReply, path, user_id=user_id)).memory

    @call
    def bank_edit(
        self,
        memory_id: str,
        changes: Mapping[str, Any],
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Talk[Done]:
        """Change status, tags or text. Raises NotFound."""
        return (
            yield from self.writing(
                Done,
                at(f"{BANK}/{{memory_id}}", memory_id=memory_id),
                changes,
                method="PUT",
                user_id=user_id,
                idempotency_key=idempotency_key,
            )
        )

    @call
    def bank_delete(self, memory_id: str, *, user_id: str | None = None) -> Talk[Done]:
        """Remove it for good. Raises NotFound."""
        path = at(f"{BANK}/{{memory_id}}", memory_id=memory_id)
        return (yield from self.writing(Done, path, method="DELETE", user_id=user_id))

    @call
    def bank_stats(self, *, user_id: str | None = None) -> Talk[BankStats]:
        """How much the bank holds, and its tags."""
        return (yield from self.reading(BankStats, f"{BANK}/stats", user_id=user_id))

    @call
    def archive_many(
        self, ids: Sequence[str], *, reason: str | None = None, user_id: str | None = None
    ) -> Talk[BulkReply]:
        """Archive up to 500 memories."""
        body = given({"ids": list(ids), "archived_reason": reason})
        return (yield from self.writing(BulkReply, f"{MEMORY}/bulk/archive", body, user_id=user_id))

    @call
    def delete_many(self, ids: Sequence[str], *, user_id: str | None = None) -> Talk[BulkReply]:
        """Remove up to 500 memories for good."""
        body = {"ids": list(ids)}
        return (yield from self.writing(BulkReply, f"{MEMORY}/bulk/delete", body, user_id=user_id))

    @call
    def goals(self, *, user_id: str | None = None) -> Talk[tuple[Listed, ...]]:
        """What the user wants to reach."""
        return (yield from self.reading(ListedPage, f"{BANK}/goals", user_id=user_id)).entries

    @call
    def add_goal(self, text: str, *, user_id: str | None = None) -> Talk[StoreReply]:
        """A goal more."""
        return (
            yield from self.writing(StoreReply, f"{BANK}/goals", {"text": text}, user_id=user_id)
        )

    @call
    def delete_goal(self, memory_id: str, *, user_id: str | None = None) -> Talk[Done]:
        """A goal less. Raises NotFound."""
        path = at(f"{BANK}/goals/{{memory_id}}", memory_id=memory_id)
        return (yield from self.writing(Done, path, method="DELETE", user_id=user_id))

    @call
    def values(self, *, user_id: str | None = None) -> Talk[tuple[Listed, ...]]:
        """What matters to the user."""
        return (yield from self.reading(ListedPage, f"{BANK}/values", user_id=user_id)).entries

    @call
    def add_value(self, text: str, *, user_id: str | None = None) -> Talk[StoreReply]:
        """A value more."""
        return (
            yield from self.writing(StoreReply, f"{BANK}/values", {"text": text}, user_id=user_id)
        )

    @call
    def delete_value(self, memory_id: str, *, user_id: str | None = None) -> Talk[Done]:
        """A value less. Raises NotFound."""
        path = at(f"{BANK}/values/{{memory_id}}", memory_id=memory_id)
        return (yield from self.writing(Done, path, method="DELETE", user_id=user_id))
