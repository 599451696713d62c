"""Client calls about memories, the memory bank and search."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from rayapp.client.calls import Reader, Talk, Writer, asked, at, call, given, listed
from rayapp.client.core import Core
from rayapp.core.errors import DependencyDown
from rayapp.wire import bank as facts
from rayapp.wire import memories as wire
from rayapp.wire.search import RecentAnswer, RecentView, SearchAnswerView
from rayapp.wire.vectors import CompareAnswer, NearAnswer

MEMORY = "/api/memory"
ITEMS = f"{MEMORY}/items"
BANK = f"{MEMORY}/memory-bank"


class SearchReply(SearchAnswerView):
    """`elapsed_ms` is measured by the client, headers to last byte."""

    elapsed_ms: float = 0.0


def json_of(memory: wire.StoreItem) -> dict[str, Any]:
    """Its JSON; the fields that are not set are left to the server."""
    return memory.model_dump(mode="json", exclude_defaults=True)


class MemoryCalls(Core):
    """The calls."""

    @call
    def store(self, memory: wire.StoreItem, **who: Unpack[Writer]) -> Talk[wire.StoreAnswer]:
        """Store one memory. A text that is already there answers `duplicate` with its id.

        Raises:
            InvalidInput, Unauthorized, Forbidden, TooLarge: as the server says.
            RateLimited, DependencyDown: after all retries.
        """
        return self.writing(wire.StoreAnswer, f"{MEMORY}/store", json_of(memory), **who)

    @call
    def store_batch(
        self, memories: Sequence[wire.StoreItem], **who: Unpack[Writer]
    ) -> Talk[list[wire.BatchResult]]:
        """Store many; one answer per memory in the same order, a bad one rejects itself only.

        Raises: as `store`.
        """
        body = {"items": [json_of(memory) for memory in memories]}
        answer = yield from self.writing(wire.BatchAnswer, f"{MEMORY}/store/batch", body, **who)
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
    ) -> Talk[wire.ItemsAnswer]:
        """One page of memories; `conditions` are further query fields (tiers, tags, status …)."""
        path = asked(ITEMS, cursor=cursor, limit=limit, **conditions)
        return self.reading(wire.ItemsAnswer, path, user_id=user_id)

    @call
    def item(self, memory_id: str, **who: Unpack[Reader]) -> Talk[wire.MemoryView]:
        """One memory with its counters. Raises NotFound: no such memory of the user."""
        return (yield from self.reading(wire.ItemAnswer, at(ITEMS, memory_id), **who)).memory

    @call
    def edit(
        self,
        /,
        memory_id: str,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **changes: Any,
    ) -> Talk[wire.MemoryView]:
        """Change one memory: text, tags, importance, expected_version …, as the API documents it.

        Raises:
            NotFound: no such memory of the user.
            Conflict: code `version_conflict`, when it is not at `expected_version`.
        """
        who = Writer(user_id=user_id, idempotency_key=idempotency_key)
        path, body = at(ITEMS, memory_id), given(changes)
        found = yield from self.writing(wire.ItemAnswer, path, body, method="PATCH", **who)
        return found.memory

    @call
    def archive(
        self, memory_id: str, *, reason: str | None = None, **who: Unpack[Writer]
    ) -> Talk[wire.MemoryView]:
        """Hide it from every search; `restore` brings it back. Raises NotFound."""
        path, body = at(ITEMS, memory_id, "archive"), given({"reason": reason})
        return (yield from self.writing(wire.ItemAnswer, path, body, **who)).memory

    @call
    def restore(self, memory_id: str, **who: Unpack[Writer]) -> Talk[wire.MemoryView]:
        """Bring an archived memory back. Raises NotFound."""
        path = at(ITEMS, memory_id, "restore")
        return (yield from self.writing(wire.ItemAnswer, path, {}, **who)).memory

    @call
    def delete(self, memory_id: str, **who: Unpack[Writer]) -> Talk[wire.DoneAnswer]:
        """Remove it for good, with its versions and vectors. Raises NotFound."""
        return self.writing(wire.DoneAnswer, at(ITEMS, memory_id), method="DELETE", **who)

    @call
    def versions(
        self, memory_id: str, *, limit: int | None = None, **who: Unpack[Reader]
    ) -> Talk[wire.VersionsAnswer]:
        """What it was before, newest first. Raises NotFound."""
        path = asked(at(ITEMS, memory_id, "versions"), limit=limit)
        return self.reading(wire.VersionsAnswer, path, **who)

    @call
    def explain(
        self, memory_id: str, query: str, **who: Unpack[Reader]
    ) -> Talk[wire.ExplainAnswer]:
        """Why a search shows it, or which stage lost it. Raises NotFound."""
        path = asked(at(ITEMS, memory_id, "explain"), query=query)
        return self.reading(wire.ExplainAnswer, path, **who)

    @call
    def search_vector(
        self,
        vector: Sequence[float],
        *,
        limit: int | None = None,
        tiers: Sequence[str] | None = None,
        filters: Mapping[str, Any] | None = None,
        **who: Unpack[Reader],
    ) -> Talk[NearAnswer]:
        """The nearest memories of a vector. Raises InvalidInput."""
        body = given({"limit": limit, "tiers": tiers, "filters": filters})
        sent = body | {"vector": [float(one) for one in vector]}
        return self.reading(NearAnswer, "/api/vectors/search", sent, **who)

    @call
    def nearest(
        self, memory_id: str, *, limit: int | None = None, **who: Unpack[Reader]
    ) -> Talk[NearAnswer]:
        """The nearest memories of one of them. Raises NotFound, Conflict."""
        path = asked(at("/api/vectors/nearest", memory_id), limit=limit)
        return self.reading(NearAnswer, path, **who)

    @call
    def compare(self, memory_id: str, other_id: str, **who: Unpack[Reader]) -> Talk[float]:
        """The cosine of two memories. Raises NotFound, Conflict."""
        body = {"memory_ids": [memory_id, other_id]}
        answer = yield from self.reading(CompareAnswer, "/api/vectors/compare", body, **who)
        return answer.cosine

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
            body["tiers"] = listed(tiers)
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

    # --- the memory bank: what always holds about the user

    @call
    def bank(
        self,
        *,
        status: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        **who: Unpack[Reader],
    ) -> Talk[facts.BankListAnswer]:
        """One page of the memory bank."""
        path = asked(BANK, status=status, tag=tag, limit=limit, offset=offset)
        return self.reading(facts.BankListAnswer, path, **who)

    @call
    def bank_add(
        self,
        /,
        text: str,
        *,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Talk[facts.BankStoreAnswer]:
        """Keep a fact; `options` are further body fields (tags, importance, always_inject …)."""
        body = given({"text": text, **options})
        return self.writing(
            facts.BankStoreAnswer, BANK, body, user_id=user_id, idempotency_key=idempotency_key
        )

    @call
    def bank_entry(self, memory_id: str, **who: Unpack[Reader]) -> Talk[facts.BankView]:
        """One memory as the bank shows it. Raises NotFound."""
        return (yield from self.reading(facts.BankItemAnswer, at(BANK, memory_id), **who)).memory

    @call
    def bank_edit(
        self, memory_id: str, changes: Mapping[str, Any], **who: Unpack[Writer]
    ) -> Talk[wire.DoneAnswer]:
        """Change status, tags or text. Raises NotFound."""
        path = at(BANK, memory_id)
        return self.writing(wire.DoneAnswer, path, changes, method="PUT", **who)

    @call
    def bank_delete(self, memory_id: str, **who: Unpack[Writer]) -> Talk[wire.DoneAnswer]:
        """Remove it for good. Raises NotFound."""
        return self.writing(wire.DoneAnswer, at(BANK, memory_id), method="DELETE", **who)

    @call
    def bank_stats(self, **who: Unpack[Reader]) -> Talk[facts.BankStatsAnswer]:
        """How much the bank holds, and its tags."""
        return self.reading(facts.BankStatsAnswer, f"{BANK}/stats", **who)

    @call
    def archive_many(
        self, ids: Sequence[str], *, reason: str | None = None, **who: Unpack[Writer]
    ) -> Talk[facts.BulkArchiveAnswer]:
        """Archive up to 500 memories."""
        body = given({"ids": listed(ids), "archived_reason": reason})
        return self.writing(facts.BulkArchiveAnswer, f"{MEMORY}/bulk/archive", body, **who)

    @call
    def delete_many(
        self, ids: Sequence[str], **who: Unpack[Writer]
    ) -> Talk[facts.BulkDeleteAnswer]:
        """Remove up to 500 memories for good."""
        return self.writing(
            facts.BulkDeleteAnswer, f"{MEMORY}/bulk/delete", {"ids": listed(ids)}, **who
        )

    @call
    def goals(self, **who: Unpack[Reader]) -> Talk[tuple[facts.ListedView, ...]]:
        """What the user wants to reach."""
        return (yield from self.reading(facts.GoalsAnswer, f"{BANK}/goals", **who)).goals

    @call
    def add_goal(self, text: str, **who: Unpack[Writer]) -> Talk[facts.BankStoreAnswer]:
        """A goal more."""
        return self.writing(facts.BankStoreAnswer, f"{BANK}/goals", {"text": text}, **who)

    @call
    def delete_goal(self, memory_id: str, **who: Unpack[Writer]) -> Talk[wire.DoneAnswer]:
        """A goal less. Raises NotFound."""
        path = at(BANK, "goals", memory_id)
        return self.writing(wire.DoneAnswer, path, method="DELETE", **who)

    @call
    def values(self, **who: Unpack[Reader]) -> Talk[tuple[facts.ListedView, ...]]:
        """What matters to the user."""
        return (yield from self.reading(facts.ValuesAnswer, f"{BANK}/values", **who)).values

    @call
    def add_value(self, text: str, **who: Unpack[Writer]) -> Talk[facts.BankStoreAnswer]:
        """A value more."""
        return self.writing(facts.BankStoreAnswer, f"{BANK}/values", {"text": text}, **who)

    @call
    def delete_value(self, memory_id: str, **who: Unpack[Writer]) -> Talk[wire.DoneAnswer]:
        """A value less. Raises NotFound."""
        path = at(BANK, "values", memory_id)
        return self.writing(wire.DoneAnswer, path, method="DELETE", **who)
