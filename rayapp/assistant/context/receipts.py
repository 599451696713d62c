"""Receipts of what a context really shows: positions are those of its lines."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from rayapp.assistant.context.records import ContextBlock, ContextRequest
from rayapp.assistant.context.rules.cold_start import QUERY
from rayapp.assistant.context.rules.pinned import cited_ids
from rayapp.core.runtime import Runtime
from rayapp.graphs.requests import ContextInsights
from rayapp.graphs.rules.context_type import context_type_of
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import ReadScope
from rayapp.search.ports import STANDING, Receipt, ReceiptStore, Shown
from rayapp.search.requests import Hit, SearchAnswer
from rayapp.search.texts import Texts
from rayapp.search.tracing import Trace
from rayapp.text.concepts import extract_concepts

# Seconds that a receipt may take: an answer does not wait for a slow truth.
KEEP_S = 0.2


class ContextReceipts:
    """Makes receipts, and keeps them for as long as marks of an answer may come in."""

    def __init__(self, receipts: ReceiptStore, texts: Texts, runtime: Runtime) -> None:
        self._receipts = receipts
        self._expansions = texts.expansions
        self._new_id = runtime.new_id
        self._disk = runtime.disk
        self._ttl = timedelta(days=runtime.settings.context.receipt_ttl_days)

    def of_block(
        self,
        scope: ReadScope,
        request: ContextRequest,
        block: ContextBlock,
        now: datetime,
        *,
        search: SearchAnswer | None,
        insights: ContextInsights | None,
    ) -> Receipt:
        """Under the concepts of the question: what was asked is what an outcome teaches."""
        hits = {hit.item.memory_id: hit for hit in search.hits} if search else {}
        cited = cited_ids(block.lines, search)
        concepts = (
            insights.concepts
            if insights is not None
            else extract_concepts(request.query, expansions=self._expansions)
        )
        return Receipt(
            receipt_id=self._new_id(),
            user_id=scope.user_id,
            query=request.query,
            recipe=search.recipe if search else "none",
            conversation_id=request.conversation_id,
            turn_id=request.message_id,
            concepts=tuple(concept.key for concept in concepts),
            context_type=context_type_of(request.query),
            principal=request.principal,
            shown=tuple(
                _shown(
                    line.position,
                    line.item,
                    hits.get(line.memory_id),
                    cited=line.memory_id in cited,
                )
                for line in block.lines
            ),
            degraded=search.degraded if search else ("search",),
            at=now,
            expires_at=now + self._ttl,
        )

    def of_cold_start(
        self,
        scope: ReadScope,
        conversation_id: str | None,
        items: Sequence[MemoryItem],
        now: datetime,
    ) -> Receipt:
        """Without concepts: nobody asked anything, so an outcome teaches the graphs nothing."""
        return Receipt(
            receipt_id=self._new_id(),
            user_id=scope.user_id,
            query=QUERY,
            recipe="cold_start",
            conversation_id=conversation_id,
            shown=tuple(
                _shown(place, item, None, cited=False) for place, item in enumerate(items, start=1)
            ),
            at=now,
            expires_at=now + self._ttl,
        )

    async def keep(self, receipt: Receipt, trace: Trace) -> str | None:
        """Its id, or None (degraded `receipt`) when it could not be stored in time."""
        stored = False
        async with trace.stage("receipt", degrades="receipt"):
            self._disk.check()
            async with asyncio.timeout(KEEP_S):
                await asyncio.shield(self._receipts.put(receipt))
            stored = True
        return receipt.receipt_id if stored else None


def _shown(position: int, item: MemoryItem, hit: Hit | None, *, cited: bool) -> Shown:
    ranks = {"search": hit.position} if hit is not None else {}
    if not cited:
        ranks[STANDING] = position
    return Shown(
        position=position,
        memory_id=item.memory_id,
        tier=item.tier,
        final=hit.summary.final_score if hit is not None else 0.0,
        ranks=ranks,
    )
