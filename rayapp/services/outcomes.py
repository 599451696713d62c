"""Record what helped and what did not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from rayapp.domain import creation
from rayapp.domain.learning import OutcomeEvent, Signal, Skipped
from rayapp.domain.learning_requests import (
    FeedbackRequest,
    OutcomeAnswer,
    OutcomeRequest,
    Recorder,
    ResponseAnswer,
    ResponseRequest,
)
from rayapp.domain.lifecycle.outcome_plan import key_reused
from rayapp.domain.memory import (
    MEMORY_ID_PATTERN,
    Outcome,
    Source,
    SourceType,
)
from rayapp.domain.requests import NewMemory, StoreResult
from rayapp.domain.scope import ReadScope, WriteScope
from rayapp.domain.text.normalize import content_hash
from rayapp.domain.tiers import Tier
from rayapp.errors import DuplicateMemory, InvalidInput, NotFound
from rayapp.learning_protocols import OutcomeLimits, OutcomeStore
from rayapp.protocols import Receipt, ReceiptStore
from rayapp.service_protocols import Memories
from rayapp.services.outcome_checks import (
    check_count,
    check_ids,
    check_repeat,
    check_request,
    checked_takeaway,
    named_ids,
    outcome_of,
    takeaway_id,
)
from rayapp.services.runtime import Runtime

TAKEAWAY_TAG = "key_takeaway"
# The score with which a takeaway is born (learning chapter, record_response).
TAKEAWAY_SCORE: dict[Outcome, float] = {
    Outcome.WORKED: 0.7,
    Outcome.PARTIAL: 0.55,
    Outcome.UNKNOWN: 0.5,
    Outcome.FAILED: 0.2,
}
FEEDBACK: dict[int, Outcome] = {1: Outcome.WORKED, 0: Outcome.PARTIAL, -1: Outcome.FAILED}
# Receipts of a conversation among which a fitting one is looked for.
RECEIPTS_LOOKED_AT = 20
EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What an outcome is about. `strict`: the caller named the ids, so each must exist."""

    memory_ids: tuple[str, ...] = ()
    receipt: Receipt | None = None
    strict: bool = False


class OutcomesService:
    """Implements `service_protocols.Outcomes`."""

    def __init__(
        self,
        store: OutcomeStore,
        receipts: ReceiptStore,
        memories: Memories,
        *,
        runtime: Runtime,
    ) -> None:
        self._store = store
        self._receipts = receipts
        self._memories = memories
        self._runtime = runtime
        self._learning = runtime.settings.learning

    async def record(self, scope: WriteScope, request: OutcomeRequest) -> OutcomeAnswer:
        """A known key answers before a receipt is looked for: the newest one is another by now."""
        creation.check_user(scope.user_id)
        check_request(request)
        first = await self._first(scope, request.idempotency_key)
        if first is not None:
            outcome = Outcome.UNKNOWN if self._weak(request.signal) else request.outcome
            check_repeat(first, outcome, request.memory_ids, request.receipt_id)
            return self._answer(first, duplicate=True)
        return await self._record(scope, request, await self._subject(scope, request))

    async def record_response(self, scope: WriteScope, request: ResponseRequest) -> ResponseAnswer:
        """Everything is checked before the takeaway is stored, so an error leaves nothing behind.

        The takeaway comes first: a caller without a key who tries again stores it once by its
        text, while an outcome would count twice.
        """
        creation.check_user(scope.user_id)
        takeaway = checked_takeaway(request.key_takeaway)
        asked = outcome_of(request)
        first = await self._first(scope, asked.idempotency_key)
        subject: Subject | None = None
        if first is not None:
            check_repeat(first, asked.outcome, named_ids(request), request.receipt_id)
        else:
            subject = await self._related(scope, request)
        stored = await self._store_takeaway(scope, request, takeaway)
        if first is not None:
            scored = self._answer(first, duplicate=True)
        elif subject is None and asked.idempotency_key is None:
            scored = OutcomeAnswer(updated=(), skipped=(), duplicate=False)
        else:
            # With a key, "nothing to score" is kept as well: a retry must not find a later receipt.
            scored = await self._record(scope, asked, subject or Subject())
        return ResponseAnswer(
            memory_id=stored.memory_id or "",
            duplicate=stored.status == "duplicate",
            scored=scored,
        )

    async def feedback(self, scope: WriteScope, request: FeedbackRequest) -> OutcomeAnswer:
        """A citation that is unknown or gone is skipped: a chat must not fail on an old answer."""
        creation.check_user(scope.user_id)
        outcome = FEEDBACK.get(request.score)
        if outcome is None:
            raise InvalidInput(
                "score must be 1 (helped), 0 (partly) or -1 (failed).", details={"field": "score"}
            )
        citations = tuple(dict.fromkeys(request.citations))
        if not citations:
            return OutcomeAnswer(updated=(), skipped=(), duplicate=False)
        check_count(citations, "citations")
        asked = OutcomeRequest(
            outcome=outcome,
            conversation_id=request.conversation_id,
            idempotency_key=f"feedback:{request.message_id}:{request.score}",
            recorder=request.recorder,
        )
        known = tuple(c for c in citations if MEMORY_ID_PATTERN.fullmatch(c))
        first = await self._first(scope, asked.idempotency_key)
        if first is not None:
            check_repeat(first, outcome, known, None)
            answer = self._answer(first, duplicate=True)
        else:
            receipt = await self._receipt_showing(scope, request, known)
            answer = await self._record(scope, asked, Subject(memory_ids=known, receipt=receipt))
        unknown = tuple(Skipped(c, "gone") for c in citations if c not in known)
        return replace(answer, skipped=answer.skipped + unknown)

    # --- what an outcome is about

    async def _subject(self, scope: WriteScope, request: OutcomeRequest) -> Subject:
        if request.memory_ids is not None:
            ids = tuple(dict.fromkeys(request.memory_ids))
            receipt = await self._receipt(scope, request.receipt_id, None, request.recorder)
            return Subject(memory_ids=ids, receipt=receipt, strict=True)
        receipt = await self._receipt(
            scope, request.receipt_id, request.conversation_id, request.recorder
        )
        if receipt is None:
            raise InvalidInput(
                "Nothing to score: name memory_ids, a receipt_id, or a conversation_id whose "
                "last search was not scored yet.",
                code="no_receipt",
            )
        if request.positions is None:
            return Subject(memory_ids=_all_shown(receipt), receipt=receipt)
        return Subject(memory_ids=_at_positions(receipt, request.positions), receipt=receipt)

    async def _related(self, scope: WriteScope, request: ResponseRequest) -> Subject | None:
        """None when there is nothing to score: no receipt, and no ids."""
        receipt = await self._receipt(
            scope, request.receipt_id, request.conversation_id, request.recorder
        )
        if request.related is None:
            return Subject(memory_ids=_all_shown(receipt), receipt=receipt) if receipt else None
        ids = [one for one in request.related if isinstance(one, str)]
        check_ids(ids, "related")
        read = ReadScope(scope.user_id)
        await asyncio.gather(*(self._memories.get(read, one) for one in dict.fromkeys(ids)))
        positions = [one for one in request.related if not isinstance(one, str)]
        if positions and receipt is None:
            raise InvalidInput(
                "related holds positions, but there is no receipt: send receipt_id, or memory ids.",
                code="no_receipt",
                details={"field": "related"},
            )
        shown = _at_positions(receipt, positions) if receipt else ()
        named = tuple(dict.fromkeys((*shown, *ids)))
        return Subject(memory_ids=named, receipt=receipt) if named or receipt else None

    async def _receipt(
        self,
        scope: WriteScope,
        receipt_id: str | None,
        conversation_id: str | None,
        recorder: Recorder,
    ) -> Receipt | None:
        """The named receipt, else the newest unscored one that this principal may score."""
        read = ReadScope(scope.user_id, include_shared=False)
        if receipt_id is not None:
            receipt = await self._receipts.get(read, receipt_id)
            if receipt is None:
                raise NotFound(
                    f"No receipt {receipt_id}: it expired or is not yours; search again, or name "
                    "memory_ids.",
                    details={"receipt_id": receipt_id},
                )
            return receipt
        if conversation_id is None:
            return None
        limit = 1 if recorder.owner else RECEIPTS_LOOKED_AT
        found = await self._receipts.latest(read, conversation_id, limit, unscored=True)
        return next((r for r in found if recorder.owner or r.principal == recorder.principal), None)

    async def _receipt_showing(
        self, scope: WriteScope, request: FeedbackRequest, citations: Sequence[str]
    ) -> Receipt | None:
        """The newest receipt of the conversation that shows one of the citations."""
        if request.conversation_id is None:
            return None
        read, recorder = ReadScope(scope.user_id, include_shared=False), request.recorder
        found = await self._receipts.latest(read, request.conversation_id, RECEIPTS_LOOKED_AT)
        for receipt in found:
            mine = recorder.owner or receipt.principal == recorder.principal
            if mine and not set(citations).isdisjoint(_all_shown(receipt)):
                return receipt
        return None

    # --- recording

    async def _first(self, scope: WriteScope, key: str | None) -> OutcomeEvent | None:
        if key is None:
            return None
        return await self._store.find(ReadScope(scope.user_id, include_shared=False), key)

    async def _record(
        self, scope: WriteScope, request: OutcomeRequest, subject: Subject
    ) -> OutcomeAnswer:
        now, receipt = self._runtime.clock.now(), subject.receipt
        weak = self._weak(request.signal)
        event = OutcomeEvent(
            user_id=scope.user_id,
            idempotency_key=request.idempotency_key or self._runtime.new_id(),
            principal=request.recorder.principal,
            owner=request.recorder.owner,
            outcome=Outcome.UNKNOWN if weak else request.outcome,
            at=now,
            memory_ids=subject.memory_ids,
            receipt_id=receipt.receipt_id if receipt else None,
            conversation_id=request.conversation_id
            or (receipt.conversation_id if receipt else None),
            query=receipt.query if receipt else "",
            concepts=receipt.concepts if receipt else (),
            context_type=(receipt.context_type if receipt else None) or "general",
            action=request.action,
            signal=request.signal,
            skipped=tuple(Skipped(m, "weak_signal") for m in subject.memory_ids if weak),
        )
        limits = OutcomeLimits(
            keep_receipt_until=now + timedelta(days=self._learning.scored_receipt_ttl_days),
            guest_per_hour=self._learning.guest_outcomes_per_hour,
        )
        done, duplicate = await self._store.record(event, limits, strict=subject.strict)
        return self._answer(done, duplicate=duplicate)

    def _weak(self, signal: Signal) -> bool:
        """An implicit signal below the confidence that counts is evidence, not an outcome."""
        floor = self._learning.implicit_confidence
        return signal.source != EXPLICIT and signal.confidence < floor

    def _answer(self, event: OutcomeEvent, *, duplicate: bool) -> OutcomeAnswer:
        result = "duplicate" if duplicate else "recorded"
        self._runtime.metrics.count("outcomes", outcome=event.outcome.value, result=result)
        return OutcomeAnswer(
            updated=event.applied,
            skipped=event.skipped,
            duplicate=duplicate,
            receipt_id=event.receipt_id,
        )

    async def _store_takeaway(
        self, scope: WriteScope, request: ResponseRequest, takeaway: str
    ) -> StoreResult:
        key = request.idempotency_key
        new = NewMemory(
            text=takeaway,
            tier=Tier.WORKING,
            tags=(TAKEAWAY_TAG,),
            source=Source(type=SourceType.ASSISTANT, conversation_id=request.conversation_id),
            memory_id=None if key is None else takeaway_id(scope.user_id, key),
            score=TAKEAWAY_SCORE[request.outcome],
        )
        try:
            return await self._memories.store(scope, new)
        except DuplicateMemory:
            if new.memory_id is None:
                raise
            # The id of this key is taken: by this takeaway, archived since, or by another text.
            read = ReadScope(scope.user_id, include_shared=False)
            kept = await self._memories.get(read, new.memory_id)
            if kept.content_hash != content_hash(takeaway):
                raise key_reused() from None
            return StoreResult(memory_id=kept.memory_id, status="duplicate")


def _all_shown(receipt: Receipt) -> tuple[str, ...]:
    return tuple(dict.fromkeys(shown.memory_id for shown in receipt.shown))


def _at_positions(receipt: Receipt, positions: Sequence[int]) -> tuple[str, ...]:
    shown = {one.position: one.memory_id for one in receipt.shown}
    for position in positions:
        if position not in shown:
            valid = f"1 to {max(shown)}" if shown else "nothing"
            raise InvalidInput(
                f"There is no position {position}: the receipt shows {valid}.",
                code="bad_position",
                details={"field": "positions", "position": position, "shown": len(shown)},
            )
    return tuple(dict.fromkeys(shown[position] for position in positions))
