"""Record what helped and what did not, once the request was checked."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta

from rayapp.core import errors
from rayapp.core.ids import MEMORY_ID_PATTERN
from rayapp.core.runtime import Runtime
from rayapp.learning.ports import OutcomeLimits, OutcomeStore, ScoredSessions, ScoreGiven
from rayapp.learning.records import (
    FeedbackRequest,
    OutcomeAnswer,
    OutcomeEvent,
    OutcomeRequest,
    ResponseAnswer,
    ResponseRequest,
    Signal,
    Skipped,
)
from rayapp.learning.rules import outcomes as rules
from rayapp.learning.rules.tools import EXPLICIT, RESPONSE
from rayapp.learning.tools import ToolVerdicts, Verdict
from rayapp.memory.item import Outcome, Source, SourceType, derived_id
from rayapp.memory.requests import NewMemory, StoreResult
from rayapp.memory.rules import creation
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier
from rayapp.search.ports import STANDING, Receipt, ReceiptReads
from rayapp.text.normalize import content_hash

log = logging.getLogger("rayapp.outcomes")

MAX_IDS = 200  # ids of one outcome: four times what one search shows at most
MAX_TAKEAWAY_CHARS = 1_000  # a sentence or two; more is a text


def takeaway_id(user_id: str, key: str) -> str:
    """The memory id of the takeaway stored with this idempotency key: a retry meets it again."""
    return derived_id("takeaway", user_id, key)


def outcome_of(request: ResponseRequest) -> OutcomeRequest:
    """The outcome part of a response. Its key holds a space, so no key of an outcome is like it."""
    key = request.idempotency_key
    return OutcomeRequest(
        outcome=request.outcome,
        receipt_id=request.receipt_id,
        conversation_id=request.conversation_id,
        idempotency_key=None if key is None else f"response {key}",
        recorder=request.recorder,
        request_hash=rules.fingerprint(
            key_takeaway=request.key_takeaway.strip(),
            outcome=request.outcome.value,
            related=_as_set(request.related),
            receipt_id=request.receipt_id,
            conversation_id=request.conversation_id,
        ),
    )


def with_hash(request: OutcomeRequest) -> OutcomeRequest:
    """The request with its own fingerprint, unless it is a part of a larger one."""
    if request.request_hash:
        return request
    return replace(
        request,
        request_hash=rules.fingerprint(
            outcome=request.outcome.value,
            memory_ids=_as_set(request.memory_ids),
            positions=_as_set(request.positions),
            receipt_id=request.receipt_id,
            conversation_id=request.conversation_id,
            action=request.action,
            signal=[request.signal.source, float(request.signal.confidence)],
        ),
    )


def _as_set(named: Sequence[int | str] | None) -> list[str] | None:
    """In any order and however often: as often as not, a caller sends a set."""
    return None if named is None else sorted({json.dumps(one) for one in named})


def checked_takeaway(text: str) -> str:
    takeaway = text.strip()
    if not 1 <= len(takeaway) <= MAX_TAKEAWAY_CHARS:
        raise errors.InvalidInput(
            f"key_takeaway must have 1 to {MAX_TAKEAWAY_CHARS} characters.",
            code="bad_takeaway",
            details={"field": "key_takeaway"},
        )
    # As the store does, but before anything is recorded.
    creation.check_text(takeaway, MAX_TAKEAWAY_CHARS)
    return takeaway


def check_request(request: OutcomeRequest) -> None:
    if request.memory_ids is not None and request.positions is not None:
        raise errors.InvalidInput(
            "Send memory_ids or positions, not both.", details={"field": "positions"}
        )
    if request.memory_ids is not None:
        if not request.memory_ids:
            raise errors.InvalidInput(
                "memory_ids is empty: name at least one, or leave it out to score a receipt.",
                details={"field": "memory_ids"},
            )
        check_ids(request.memory_ids, "memory_ids")
    if request.positions is not None and not request.positions:
        raise errors.InvalidInput(
            "positions is empty: name at least one, or leave it out to score all that was shown.",
            details={"field": "positions"},
        )


def check_ids(ids: Sequence[str], field: str) -> None:
    check_count(ids, field)
    for memory_id in ids:
        if not MEMORY_ID_PATTERN.fullmatch(memory_id):
            raise errors.InvalidInput(
                f"{field} holds an id that is not 1 to 128 characters of A-Z a-z 0-9 . _ : @ -.",
                code="bad_memory_id",
                details={"field": field},
            )


def check_count(ids: Sequence[str], field: str) -> None:
    if len(set(ids)) > MAX_IDS:
        raise errors.InvalidInput(
            f"{field} names {len(set(ids))} memories: send at most {MAX_IDS} at once.",
            details={"field": field},
        )


def check_repeat(first: OutcomeEvent, request: OutcomeRequest, outcome: Outcome) -> None:
    """Raise IdempotencyConflict when the key stands for another request.

    An event without a fingerprint is compared by what it was about.
    """
    if first.request_hash:
        same = first.request_hash == request.request_hash
    else:
        named = request.memory_ids
        same = (
            first.outcome is outcome
            and (named is None or set(named) == set(first.memory_ids))
            and request.receipt_id in (None, first.receipt_id)
        )
    if not same:
        raise rules.key_reused()


def all_shown(receipt: Receipt) -> tuple[str, ...]:
    return tuple(dict.fromkeys(shown.memory_id for shown in receipt.shown))


def judged_unnamed(receipt: Receipt) -> tuple[str, ...]:
    """What an outcome is about that names nothing: all that was shown because of the question.

    Lines that stand before every question would be judged by every answer.
    """
    asked = (shown for shown in receipt.shown if STANDING not in shown.ranks)
    return tuple(dict.fromkeys(shown.memory_id for shown in asked))


def at_positions(receipt: Receipt, positions: Sequence[int]) -> tuple[str, ...]:
    shown = {one.position: one.memory_id for one in receipt.shown if one.position}
    for position in positions:
        if position not in shown:
            raise errors.InvalidInput(
                f"There is no position {position}: the receipt shows {_numbers(shown)}.",
                code="bad_position",
                details={"field": "positions", "position": position, "shown": len(shown)},
            )
    return tuple(dict.fromkeys(shown[position] for position in positions))


def _numbers(positions: Collection[int]) -> str:
    """Positions in words; a later page starts where the one before it ended."""
    if not positions:
        return "nothing"
    first, last = min(positions), max(positions)
    if last - first + 1 != len(positions):
        return ", ".join(str(one) for one in sorted(positions))
    return f"only {first}" if first == last else f"{first} to {last}"


TAKEAWAY_TAG = "key_takeaway"
# The score with which a takeaway is born.
TAKEAWAY_SCORE: dict[Outcome, float] = {
    Outcome.WORKED: 0.7,
    Outcome.PARTIAL: 0.55,
    Outcome.UNKNOWN: 0.5,
    Outcome.FAILED: 0.2,
}
FEEDBACK: dict[int, Outcome] = {1: Outcome.WORKED, 0: Outcome.PARTIAL, -1: Outcome.FAILED}
# Receipts of a conversation among which a fitting one is looked for.
RECEIPTS_LOOKED_AT = 20
# Thumbs of one answer among which the newest of a citation is looked for. One that lies further
# back counts as none: the citation is judged once more.
THUMBS_LOOKED_AT = 200
# Different thumbs on one answer at once: each try lets at least one of them through.
THUMB_TRIES = 8
OnRecorded = Callable[[OutcomeEvent], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What an outcome is about. `strict`: the caller named the ids, so each must exist.

    `takeaway_id` is the memory that was stored with it. `replaces`: keys of the earlier verdicts
    whose place it takes; None for what is no verdict of a thumb.
    """

    memory_ids: tuple[str, ...] = ()
    receipt: Receipt | None = None
    strict: bool = False
    takeaway_id: str | None = None
    replaces: tuple[str, ...] | None = None


@dataclass(eq=False)
class OutcomesService:
    """Raises InvalidInput, NotFound, Conflict, StoreDown; then nothing was recorded.

    A score given by any way ends the waiting of its conversation. The outcome is recorded when the
    session is told, so a session that cannot be reached never fails the call: a repeated call
    without a key would count twice.
    `on_recorded`: told of what was new.
    """

    store: OutcomeStore
    receipts: ReceiptReads
    memories: MemoriesService
    sessions: ScoredSessions
    _: KW_ONLY
    tools: ToolVerdicts
    on_recorded: OnRecorded | None = None
    runtime: Runtime

    async def record(self, scope: WriteScope, request: OutcomeRequest) -> OutcomeAnswer:
        """A known key answers before a receipt is looked for: the newest one is another by now."""
        answer = await self._score(scope, request)
        if request.signal.source == EXPLICIT:
            await self._pay(scope, request.conversation_id, answer.receipt_id)
        return answer

    async def _score(self, scope: WriteScope, request: OutcomeRequest) -> OutcomeAnswer:
        creation.check_user(scope.user_id)
        check_request(request)
        asked = with_hash(request)
        first = await self._first(scope, asked.idempotency_key)
        if first is not None:
            check_repeat(first, asked, self._outcome(asked))
            return self._answer(first, duplicate=True)
        subject = await self._subject(scope, asked)
        if asked.memory_ids is None and asked.positions is None and asked.signal.source == EXPLICIT:
            await self._judge_tools(scope, asked, subject, EXPLICIT)
        event, duplicate = await self._record(scope, asked, subject)
        return self._answer(event, duplicate=duplicate)

    async def known(self, scope: WriteScope, idempotency_key: str) -> bool:
        """Whether an outcome was recorded with this key."""
        creation.check_user(scope.user_id)
        return await self._first(scope, idempotency_key) is not None

    async def shown(self, scope: WriteScope, request: OutcomeRequest) -> Receipt | None:
        """The receipt that positions of this request mean; None when there is none (any more).

        A known key means the receipt that it was recorded with, not a newer one.
        """
        creation.check_user(scope.user_id)
        first = await self._first(scope, request.idempotency_key)
        if first is None:
            return await self._receipt(scope, request)
        if first.receipt_id is None:
            return None
        return await self.receipts.get(scope.own, first.receipt_id)

    async def record_response(self, scope: WriteScope, request: ResponseRequest) -> ResponseAnswer:
        """Everything is checked before the takeaway is stored, so an error leaves nothing behind.

        The takeaway comes first: a caller without a key who tries again stores it once by its
        text, while an outcome would count twice. A known key stores nothing: the takeaway may have
        been edited or deleted since.
        """
        answer = await self._respond(scope, request)
        await self._pay(scope, request.conversation_id, answer.scored.receipt_id)
        return answer

    async def _respond(self, scope: WriteScope, request: ResponseRequest) -> ResponseAnswer:
        creation.check_user(scope.user_id)
        takeaway = checked_takeaway(request.key_takeaway)
        asked = outcome_of(request)
        first = await self._first(scope, asked.idempotency_key)
        if first is not None:
            check_repeat(first, asked, asked.outcome)
            again = self._response(first, request.idempotency_key, duplicate=True)
            return await self._explain(scope, request, again)
        subject = await self._related(scope, request)
        await self._judge_tools(scope, asked, subject, RESPONSE)
        stored = await self._store_takeaway(scope, request, takeaway)
        if subject is None and asked.idempotency_key is None:
            nothing = OutcomeAnswer(updated=(), skipped=(), duplicate=False)
            kept = ResponseAnswer(memory_id=stored.memory_id or "", duplicate=False, scored=nothing)
            return await self._explain(scope, request, kept)
        # With a key, "nothing to score" is kept as well: a retry must not find a later receipt.
        about = replace(subject or Subject(), takeaway_id=stored.memory_id)
        event, duplicate = await self._record(scope, asked, about)
        answer = self._response(event, request.idempotency_key, duplicate=duplicate)
        return await self._explain(scope, request, answer)

    async def _explain(
        self, scope: WriteScope, request: ResponseRequest, answer: ResponseAnswer
    ) -> ResponseAnswer:
        """The answer; when it scored nothing, with the reason."""
        if answer.scored.updated or answer.scored.skipped:
            return answer
        if request.related is not None:
            return replace(answer, nothing="none_named")
        if answer.scored.receipt_id is not None:
            return replace(answer, nothing="nothing_shown")
        if request.conversation_id is None:
            return replace(answer, nothing="no_receipt")
        last = await self.receipts.latest(scope.own, request.conversation_id, 1)
        scored = bool(last) and last[0].scored_at is not None
        return replace(answer, nothing="already_scored" if scored else "nothing_shown")

    async def feedback(self, scope: WriteScope, request: FeedbackRequest) -> OutcomeAnswer:
        """The citations on which this thumb is a new one are one outcome.

        A changed thumb takes the place of the earlier one of its conversation and message.

        A citation that is unknown or gone is skipped: a chat must not fail on an old answer.
        """
        answer = await self._rate(scope, request)
        given = ScoreGiven(
            at=self.runtime.clock.now(),
            conversation_id=request.conversation_id,
            message_id=request.message_id,
            score=request.score,
        )
        signal = Signal(source=EXPLICIT)
        verdict = Verdict(outcome=FEEDBACK[request.score], signal=signal, by=request.recorder)
        await self.tools.judge(scope, given, verdict)
        await self._tell(scope, given)
        return answer

    async def _rate(self, scope: WriteScope, request: FeedbackRequest) -> OutcomeAnswer:
        creation.check_user(scope.user_id)
        outcome = FEEDBACK.get(request.score)
        if outcome is None:
            raise errors.InvalidInput(
                "score must be 1 (helped), 0 (partly) or -1 (failed).", details={"field": "score"}
            )
        citations = tuple(dict.fromkeys(request.citations))
        check_count(citations, "citations")
        known = tuple(c for c in citations if MEMORY_ID_PATTERN.fullmatch(c))
        unknown = tuple(Skipped(c, "gone") for c in citations if c not in known)
        if not known:
            return OutcomeAnswer(updated=(), skipped=unknown, duplicate=False)
        answer = await self._thumb(scope, request, outcome, known)
        return replace(answer, skipped=answer.skipped + unknown)

    async def _thumb(
        self,
        scope: WriteScope,
        request: FeedbackRequest,
        outcome: Outcome,
        citations: Sequence[str],
    ) -> OutcomeAnswer:
        """Thumbs at once take the same number: the one that comes second looks again."""
        prefix = rules.key_prefix(request.conversation_id, request.message_id)
        before = await self.store.latest(
            scope.own, rules.old_key_prefix(request.message_id), THUMBS_LOOKED_AT
        )
        old = rules.of_conversation(before, request.conversation_id)
        if request.found:
            # From before the turn was kept, when nobody knew its conversation.
            unnamed = rules.key_prefix(None, request.message_id)
            old = [*old, *await self.store.latest(scope.own, unnamed, THUMBS_LOOKED_AT)]
        for _ in range(THUMB_TRIES):
            new = await self.store.latest(scope.own, prefix, THUMBS_LOOKED_AT)
            events = [*new, *old]
            thumbs = rules.newest_thumbs(events)
            given = {c: t for c in citations if (t := thumbs.get(c)) and t.outcome is outcome}
            kept = tuple(t.skipped for t in given.values() if t.skipped)
            changed = tuple(c for c in citations if c not in given)
            if not changed:
                self._count(outcome, duplicate=True)
                return OutcomeAnswer(updated=(), skipped=kept, duplicate=True)
            asked = OutcomeRequest(
                outcome=outcome,
                conversation_id=request.conversation_id,
                idempotency_key=rules.next_key(prefix, new),
                recorder=request.recorder,
            )
            receipt = await self._receipt_showing(scope, request, changed)
            replaces = rules.replaced_by(events, changed, request.recorder)
            about = Subject(memory_ids=changed, receipt=receipt, replaces=replaces)
            try:
                event, known = await self._record(scope, asked, about)
            except errors.IdempotencyConflict:
                continue
            if not known:
                answer = self._answer(event, duplicate=False)
                return replace(answer, skipped=answer.skipped + kept)
        raise errors.Overloaded(
            "Too many thumbs on this answer at once: send it again.", retry_after_s=1.0
        )

    async def _judge_tools(
        self, scope: WriteScope, request: OutcomeRequest, subject: Subject | None, source: str
    ) -> None:
        """Before the memories: whoever tries again counts neither twice."""
        receipt = subject.receipt if subject else None
        conversation_id = request.conversation_id or (receipt.conversation_id if receipt else None)
        if conversation_id is None:
            return
        given = ScoreGiven(
            at=self.runtime.clock.now(),
            conversation_id=conversation_id,
            # One that was found for it may be of a turn that is still to come.
            receipt_id=request.receipt_id,
        )
        signal = Signal(source=source, confidence=request.signal.confidence)
        verdict = Verdict(outcome=request.outcome, signal=signal, by=request.recorder)
        await self.tools.judge(scope, given, verdict)

    # --- what its conversation waits for

    async def _pay(
        self, scope: WriteScope, conversation_id: str | None, receipt_id: str | None
    ) -> None:
        if conversation_id is None and receipt_id is None:
            return
        now = self.runtime.clock.now()
        given = ScoreGiven(at=now, conversation_id=conversation_id, receipt_id=receipt_id)
        await self._tell(scope, given)

    async def _tell(self, scope: WriteScope, given: ScoreGiven) -> None:
        try:
            await self.sessions.scored(scope, given)
        except errors.RayappError as error:
            self.runtime.metrics.count("degraded", reason="session")
            log.warning("a score is not noted in its session: %s", error.message)

    # --- what an outcome is about

    async def _subject(self, scope: WriteScope, request: OutcomeRequest) -> Subject:
        if request.memory_ids is not None:
            ids = tuple(dict.fromkeys(request.memory_ids))
            receipt = await self._receipt(scope, replace(request, conversation_id=None))
            return Subject(memory_ids=ids, receipt=receipt, strict=True)
        receipt = await self._receipt(scope, request)
        if receipt is None:
            raise errors.InvalidInput(
                "Nothing to score: name memory_ids, a receipt_id, or a conversation_id whose "
                "last search was not scored yet.",
                code="no_receipt",
            )
        if request.positions is None:
            return Subject(memory_ids=judged_unnamed(receipt), receipt=receipt)
        return Subject(memory_ids=at_positions(receipt, request.positions), receipt=receipt)

    async def _related(self, scope: WriteScope, request: ResponseRequest) -> Subject | None:
        """None when there is nothing to score: no receipt, and no ids."""
        receipt = await self._receipt(scope, request)
        if request.related is None:
            return Subject(memory_ids=judged_unnamed(receipt), receipt=receipt) if receipt else None
        ids = [one for one in request.related if isinstance(one, str)]
        check_ids(ids, "related")
        read = ReadScope(scope.user_id)
        await asyncio.gather(*(self.memories.get(read, one) for one in dict.fromkeys(ids)))
        positions = [one for one in request.related if not isinstance(one, str)]
        if positions and receipt is None:
            raise errors.InvalidInput(
                "related holds positions, but there is no receipt: send receipt_id, or memory ids.",
                code="no_receipt",
                details={"field": "related"},
            )
        shown = at_positions(receipt, positions) if receipt else ()
        named = tuple(dict.fromkeys((*shown, *ids)))
        return Subject(memory_ids=named, receipt=receipt) if named or receipt else None

    async def _receipt(
        self, scope: WriteScope, asked: OutcomeRequest | ResponseRequest
    ) -> Receipt | None:
        """The named receipt, else the newest unscored one that this principal may score."""
        if asked.receipt_id is not None:
            receipt = await self.receipts.get(scope.own, asked.receipt_id)
            if receipt is None:
                raise errors.NotFound(
                    f"No receipt {asked.receipt_id}: it expired or is not yours; search again, or "
                    "name memory_ids.",
                    details={"receipt_id": asked.receipt_id},
                )
            return receipt
        if asked.conversation_id is None:
            return None
        limit = 1 if asked.recorder.owner else RECEIPTS_LOOKED_AT
        found = await self.receipts.latest(scope.own, asked.conversation_id, limit, unscored=True)
        return next((one for one in found if asked.recorder.may_judge(one.principal)), None)

    async def _receipt_showing(
        self, scope: WriteScope, request: FeedbackRequest, citations: Sequence[str]
    ) -> Receipt | None:
        """The newest receipt of this answer that shows one of the citations, else one of no answer.
        Some programs name the question in the context and the answer in the thumb: where no receipt
        fits by its name, the newest does."""
        if request.conversation_id is None:
            return None
        found = await self.receipts.latest(scope.own, request.conversation_id, RECEIPTS_LOOKED_AT)
        mine = (one for one in found if request.recorder.may_judge(one.principal))
        cited = set(citations)
        fits = [one for one in mine if not cited.isdisjoint(all_shown(one))]
        of_turns = ((turn, one) for turn in (request.message_id, None) for one in fits)
        newest = fits[0] if fits else None
        return next((one for turn, one in of_turns if one.turn_id == turn), newest)

    # --- recording

    async def _first(self, scope: WriteScope, key: str | None) -> OutcomeEvent | None:
        if key is None:
            return None
        return await self.store.find(scope.own, key)

    async def _record(
        self, scope: WriteScope, request: OutcomeRequest, subject: Subject
    ) -> tuple[OutcomeEvent, bool]:
        """The event, and whether its key was known before."""
        now, receipt = self.runtime.clock.now(), subject.receipt
        weak = self._weak(request.signal)
        event = OutcomeEvent(
            user_id=scope.user_id,
            idempotency_key=request.idempotency_key or self.runtime.new_id(),
            principal=request.recorder.principal,
            owner=request.recorder.owner,
            outcome=self._outcome(request),
            at=now,
            memory_ids=subject.memory_ids,
            receipt_id=receipt.receipt_id if receipt else None,
            # Where its question was asked: with that conversation it is taken back.
            conversation_id=(receipt.conversation_id if receipt else None)
            or request.conversation_id,
            query=receipt.query if receipt else "",
            concepts=receipt.concepts if receipt else (),
            context_type=(receipt.context_type if receipt else None) or "general",
            action=request.action,
            signal=request.signal,
            skipped=tuple(Skipped(m, "weak_signal") for m in subject.memory_ids if weak),
            request_hash=request.request_hash if request.idempotency_key else "",
            takeaway_id=subject.takeaway_id,
            replaces=subject.replaces,
        )
        limits = OutcomeLimits(
            keep_receipt_until=now
            + timedelta(days=self.runtime.settings.learning.scored_receipt_ttl_days),
            guest_per_hour=self.runtime.settings.learning.guest_outcomes_per_hour,
        )
        recorded, duplicate = await self.store.record(event, limits, strict=subject.strict)
        if self.on_recorded is not None and not duplicate:
            await self.on_recorded(recorded)
        return recorded, duplicate

    def _outcome(self, request: OutcomeRequest) -> Outcome:
        return Outcome.UNKNOWN if self._weak(request.signal) else request.outcome

    def _weak(self, signal: Signal) -> bool:
        """An implicit signal below the confidence that counts is evidence, not an outcome."""
        floor = self.runtime.settings.learning.implicit_confidence
        return signal.source != EXPLICIT and signal.confidence < floor

    def _answer(self, event: OutcomeEvent, *, duplicate: bool) -> OutcomeAnswer:
        self._count(event.outcome, duplicate=duplicate)
        return OutcomeAnswer(
            updated=event.applied,
            skipped=event.skipped,
            duplicate=duplicate,
            receipt_id=event.receipt_id,
        )

    def _count(self, outcome: Outcome, *, duplicate: bool) -> None:
        result = "duplicate" if duplicate else "recorded"
        self.runtime.metrics.count("outcomes", outcome=outcome.value, result=result)

    def _response(self, event: OutcomeEvent, key: str | None, *, duplicate: bool) -> ResponseAnswer:
        kept = event.takeaway_id or (takeaway_id(event.user_id, key) if key else "")
        scored = self._answer(event, duplicate=duplicate)
        return ResponseAnswer(memory_id=kept, duplicate=duplicate, scored=scored)

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
            return await self.memories.store(scope, new)
        except errors.DuplicateMemory:
            if new.memory_id is None:
                raise
            # The id of this key is taken: by this takeaway, archived since, or by another text.
            kept = await self.memories.get(scope.own, new.memory_id)
            if kept.content_hash != content_hash(takeaway):
                raise rules.key_reused() from None
            return StoreResult(memory_id=kept.memory_id, status="duplicate")
