"""What a chat program calls around each turn: enrich the messages, keep the turn, score it."""

import hashlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from typing import get_args

from rayapp.assistant import ports
from rayapp.assistant.context.service import ContextService
from rayapp.assistant.conversations import rules
from rayapp.assistant.conversations.sessions import SESSION
from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.assistant.extraction.rules.history import About, outcome_key
from rayapp.assistant.history.rules import first_words
from rayapp.assistant.history.unlearning import Unlearning
from rayapp.assistant.prompt.service import Plan, Prompt, PromptService
from rayapp.assistant.records import (
    AssistantContext,
    ContextRequest,
    ExchangeRequest,
    PendingFeedback,
    ScoreRequest,
    ScoreState,
    StoredExchange,
)
from rayapp.assistant.tools.rules.runs import called_tools, tool_use
from rayapp.core import errors
from rayapp.core.runtime import Runtime
from rayapp.inference.ports import Message
from rayapp.learning.outcomes import OutcomesService, all_shown, judged_unnamed
from rayapp.learning.ports import OutcomesOf, ScoreGiven
from rayapp.learning.records import FeedbackRequest, OutcomeAnswer, OutcomeRequest, Signal
from rayapp.learning.rules.outcomes import key_prefix
from rayapp.learning.rules.promotion import OWN_REASONS
from rayapp.learning.rules.tools import failure_key, verdict_prefix
from rayapp.learning.tools import ToolVerdicts
from rayapp.memory.item import MemoryItem, Outcome, Source, SourceType, Status
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.rules import creation
from rayapp.memory.rules.filtering import is_expired
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt, ReceiptReads
from rayapp.text.language import detect_language

# The assistant named the memories itself, so its marks count in full.
ATTRIBUTION = Signal(source="attribution", confidence=1.0)
# Why the text of a turn has an earlier version.
REPLACED = "the message came again with other words"
OWES_TOOL = "record_response"
OWES_EN = "Your previous answer was not scored yet: call record_response for it first."
OWES_HE = "התשובה הקודמת שלך עדיין לא דורגה: קרא תחילה ל-record_response עבורה."


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeAnswer:
    """`messages` are the given ones with the context in the first system message.

    owed: the message whose score is still waited for. prompt: the whole one, when it was asked for.
    """

    messages: tuple[Message, ...]
    context: AssistantContext
    stored: StoredExchange | None = None
    owed: str | None = None
    prompt: Prompt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """What the marks of an answer did: memories moved, and positions that mean nothing.

    `scored`: they count as the score of the turn, now or in an earlier try of the call.
    """

    moved: int = 0
    skipped: tuple[int, ...] = ()
    scored: bool = False


@dataclass(eq=False)
class HooksService:
    """What a chat program calls around each turn.

    tools: what a turn teaches of those that it used. unlearning: takes back all that one taught.
    """

    context: ContextService
    memories: MemoriesService
    outcomes: OutcomesService
    _: KW_ONLY
    sessions: ports.SessionStore
    receipts: ReceiptReads
    exchanges: ports.ExchangeSink
    conversations: ports.ConversationStore
    unlearning: Unlearning
    tools: ToolVerdicts
    prompts: PromptService
    runtime: Runtime

    async def exchange(self, scope: WriteScope, request: ExchangeRequest) -> ExchangeAnswer:
        """The context is read before the turn is kept, so that it does not tell the turn back.

        The marks of the answer mean the context before it: the session is read before that, and
        told of the new context last, so that a repetition of this call meets the same receipt.
        """
        creation.check_user(scope.user_id)
        question = rules.last_question(request.messages)
        if question is None:
            raise errors.InvalidInput(
                "messages: holds no message of the user with text; send the question too.",
                details={"field": "messages"},
            )
        read = ReadScope(scope.user_id)
        session = await self.sessions.get(read, request.conversation_id)
        turn = rules.finished_turn(
            request.messages, _called(request), interrupted=request.interrupted
        )
        asked = self._asked(request, question)
        plan = await self._plan(read, request, asked, finished=turn is not None)
        context = await self.context.read(read, plan.request if plan else asked)
        stored = None
        if turn is not None:
            stored = await self._keep(scope, request, turn, session)
        context = await self.context.remember(read, context)
        owed = await self.owed(read, request.conversation_id)
        prompt = self.prompts.assemble(plan, context) if plan else None
        return ExchangeAnswer(
            prompt=prompt,
            messages=rules.enrich(request.messages, self._block(context, owed, request)),
            context=context,
            stored=stored,
            owed=owed.message_id if owed else None,
        )

    async def keep(self, scope: WriteScope, request: ExchangeRequest) -> StoredExchange | None:
        """Keep a turn whose context an earlier `exchange` gave, finished or interrupted; None: it
        has no end."""
        turn = rules.finished_turn(
            request.messages, _called(request), interrupted=request.interrupted
        )
        if turn is None:
            return None
        session = await self.sessions.get(ReadScope(scope.user_id), request.conversation_id)
        return await self._keep(scope, request, turn, session)

    async def owed(self, scope: ReadScope, conversation_id: str) -> PendingFeedback | None:
        """The answer of this conversation that still waits for its score."""
        session = await self.sessions.get(scope, conversation_id)
        if session is None or session.owed_message is None:
            return None
        return PendingFeedback(message_id=session.owed_message, receipt_id=session.owed_receipt)

    async def score(self, scope: WriteScope, request: ScoreRequest) -> OutcomeAnswer:
        """Idempotent like a thumb: the newest one on a memory of an answer counts. What was written
        with it is kept with the turn, if there is one."""
        creation.check_user(scope.user_id)
        found = request.conversation_id is None
        if found:
            # So that it is one thumb with one that names the conversation, and goes with it.
            known = await self.state(scope.own, request.message_id, None)
            request = replace(request, conversation_id=known.conversation_id)
        if request.feedback and request.feedback.strip():
            await self._comment(scope, request, request.feedback.strip())
        thumb = FeedbackRequest(
            message_id=request.message_id,
            score=request.score,
            conversation_id=request.conversation_id,
            found=found and request.conversation_id is not None,
            citations=request.memory_ids or await self._given_with(scope, request),
            recorder=request.recorder,
        )
        return await self.outcomes.feedback(scope, thumb)

    async def state(
        self, scope: ReadScope, message_id: str, conversation_id: str | None
    ) -> ScoreState:
        session = await self._session(scope, message_id, conversation_id)
        turn = session.turn(message_id) if session else None
        if session is None or turn is None:
            return ScoreState(message_id=message_id, conversation_id=conversation_id)
        return ScoreState(
            message_id=message_id,
            conversation_id=session.conversation_id,
            memory_id=turn.memory_id,
            required=turn.required and turn.scored_at is None,
            scored_at=turn.scored_at,
            score=turn.score,
        )

    # --- the context of a turn

    async def _plan(
        self, scope: ReadScope, request: ExchangeRequest, asked: ContextRequest, *, finished: bool
    ) -> Plan | None:
        """Of the prompt, when one is asked for. A window that is too small keeps no turn from being
        kept: then there is none."""
        if not request.prompt:
            return None
        model = request.model or self.runtime.settings.models.model
        try:
            return await self.prompts.plan(scope, asked, model=model, window=request.window)
        except errors.InvalidInput:
            if not finished:
                raise
            return None

    def _asked(self, request: ExchangeRequest, question: int) -> ContextRequest:
        """A question longer than a search takes is asked by its beginning."""
        most = self.runtime.settings.http.query_limit_chars
        return ContextRequest(
            query=request.messages[question].content[:most],
            conversation_id=request.conversation_id,
            message_id=request.message_id,
            recent=rules.recent_before(request.messages, question),
            token_budget=request.token_budget,
            limit=request.limit,
            tools=request.tools,
            tool_rounds=request.tool_rounds,
            principal=request.recorder.principal,
            recorder=request.recorder,
        )

    def _block(
        self, context: AssistantContext, owed: PendingFeedback | None, request: ExchangeRequest
    ) -> str:
        """The context, then what is asked of the assistant about it. No marks are asked for without
        numbered lines, or when the session knows no receipt of them."""
        hebrew = detect_language(context.request.query) == "he"
        parts = [context.block.text.strip("\n")] if context.block.text.strip() else []
        known = context.receipt_id is not None and SESSION not in context.degraded
        numbered = any(line.numbered for line in context.block.lines)
        if numbered and known and self.runtime.settings.hooks.attribution:
            parts.append(rules.instruction("he" if hebrew else "en"))
        if owed is not None and OWES_TOOL in request.tools:
            parts.append(OWES_HE if hebrew else OWES_EN)
        return "\n\n".join(parts)

    # --- keeping a turn

    async def _keep(
        self,
        scope: WriteScope,
        request: ExchangeRequest,
        turn: rules.Turn,
        session: ports.Session | None,
    ) -> StoredExchange:
        """Each step meets what an earlier try left; the record of the turn comes last. So a call
        that died half-way is finished by its repetition, and nothing is done twice."""
        known = await self._known(scope, request, session)
        before = await self._replaced(scope, request, turn) if known is not None else None
        if known is not None and before is None:
            required = known.required and known.scored_at is None
            return StoredExchange(
                memory_id=known.memory_id,
                duplicate=True,
                scoring_required=required,
                reason=_reason(required, scored=known.scored_at is not None),
            )
        # Nobody is asked for the score of a turn so old.
        old = known is not None and (session is None or session.turn(known.message_id) is None)
        if before is not None:
            await self._take_back(scope, before, turn)
            session = without(session, request.message_id)
        receipt = await self._receipt(scope, session)
        injected = session.injected if session else ()
        limit = self.runtime.settings.http.text_limit_chars
        text, truncated = rules.stored_text(turn, injected, limit)
        new = self._memory(scope, request, turn, text, receipt)
        # Where another memory had its words, the turn has none of its own yet.
        own = before is not None and before.memory_id == new.memory_id
        memory_id, duplicate = await self._store(scope, new, replaces=own)
        marks = Marked() if turn.interrupted else await self._attribute(scope, request, receipt)
        scored = marks.scored or turn.scored_itself(owed_before=owed_before(session, receipt))
        required = not (turn.trivial or scored or old)
        at = before.at if before else self.runtime.clock.now()
        if turn.scoring_calls:
            # The tool may not have known the conversation that it answered for.
            paid = ScoreGiven(at=self.runtime.clock.now(), conversation_id=request.conversation_id)
            await self.sessions.scored(scope, paid)
        now = self.runtime.clock.now()
        record = ports.TurnRecord(
            message_id=request.message_id,
            memory_id=memory_id,
            at=at,
            required=required,
            receipt_id=receipt.receipt_id if receipt else None,
            scored_at=now if scored else None,
        )
        kept = kept_turn(scope.user_id, request, turn, memory_id, receipt, at)
        use = tool_use(kept)
        if use is not None:
            await self.tools.note_failures(scope, use, request.recorder)
        learned = self._exchange(kept, turn, request, injected, receipt)
        if before is not None:
            # The words come last: as long as they differ, a repetition does all of it again.
            await self.exchanges.replace(scope, learned)
            await self.sessions.replace_turn(scope, request.conversation_id, record)
            await self.conversations.keep(scope, replace(kept, edited_at=now), "")
            added = True
        else:
            await self.exchanges.offer(scope, learned)
            await self.conversations.keep(scope, kept, first_words(turn.question))
            added = await self.sessions.add_turn(scope, request.conversation_id, record)
        return StoredExchange(
            memory_id=memory_id,
            duplicate=(duplicate and before is None) or not added,
            scoring_required=required,
            reason=_reason(required, scored=scored),
            replaced=before is not None,
            truncated=truncated,
            attributed=marks.moved,
            skipped_positions=marks.skipped,
        )

    async def _known(
        self, scope: WriteScope, request: ExchangeRequest, session: ports.Session | None
    ) -> ports.TurnRecord | None:
        """What is kept of this message. A session remembers its last turns alone; an older one is
        known by its words."""
        known = session.turn(request.message_id) if session else None
        if known is not None or session is None or session.exchanges <= len(session.turns):
            return known
        kept = await self.conversations.turn(scope.own, request.conversation_id, request.message_id)
        if kept is None:
            return None
        return ports.TurnRecord(
            message_id=kept.message_id,
            memory_id=kept.memory_id,
            at=kept.at,
            required=False,
            receipt_id=kept.receipt_id,
        )

    async def _receipt(self, scope: WriteScope, session: ports.Session | None) -> Receipt | None:
        """Of the context that this answer was given with; None when it has expired."""
        if session is None or session.receipt_id is None:
            return None
        return await self.receipts.get(scope.own, session.receipt_id)

    async def _replaced(
        self, scope: WriteScope, request: ExchangeRequest, turn: rules.Turn
    ) -> ports.KeptTurn | None:
        """The kept turn of this message, when it says something else; None: it is the same, its
        words are not known, or they were deleted. An answer that broke off takes no place of one
        that did not."""
        kept = await self.conversations.turn(scope.own, request.conversation_id, request.message_id)
        if kept is None or kept.erased:
            return None
        if kept.question == turn.question and turn.interrupted and not kept.interrupted:
            return None
        same = (kept.question, kept.answer) == (turn.question, turn.answer)
        return None if same and kept.interrupted == turn.interrupted else kept

    async def _take_back(self, scope: WriteScope, before: ports.KeptTurn, turn: rules.Turn) -> None:
        """What the turn taught before it was answered anew, or asked anew: outcomes of its answer,
        what was read out of it, what its question said of the answer before it, and what a model
        said of the conversation; a title that was made of it too."""
        name = before.conversation_id
        messages = [before.message_id]
        judged: tuple[ports.KeptTurn, ...] = ()
        title, row = None, await self.conversations.get(scope.own, name)
        if before.question != turn.question:
            place = (before.at, before.message_id)
            judged = tuple(await self.conversations.turns(scope.own, name, limit=1, before=place))
            messages += [one.message_id for one in judged]
            if not judged or (row and row.title == first_words(before.question)):
                title = first_words(turn.question)
        if title is not None or (row and await self._summed(scope.own, row, before)):
            await self.conversations.untell(scope, name, title)
        detected = [
            outcome_key(scope.user_id, name, message, about)
            for message in messages
            for about in get_args(About)
        ]
        for one in judged:
            detected += await self.tools.detected(scope, name, one.message_id)
        detected.append(failure_key(name, before.message_id))
        marks = (_mark_key(name, before.message_id, outcome) for outcome in Outcome)
        thumbs, verdicts = (of(name, before.message_id) for of in (key_prefix, verdict_prefix))
        taught = OutcomesOf(
            conversation_id=name,
            receipt_id=before.receipt_id,
            keys=(*detected, *marks),
            prefixes=(thumbs, verdicts),
        )
        await self.unlearning.outcomes(scope, taught)
        await self.unlearning.turn(scope, name, before.message_id)

    async def _summed(
        self, scope: ReadScope, row: ports.Conversation, turn: ports.KeptTurn
    ) -> bool:
        """Whether the bullets of its conversation may tell of it; those after them are not many."""
        if not row.summed:
            return False
        name, after = turn.conversation_id, row.exchanges - row.summed
        later = await self.conversations.turns(scope, name, limit=after) if after > 0 else ()
        return all(one.message_id != turn.message_id for one in later)

    def _memory(
        self,
        scope: WriteScope,
        request: ExchangeRequest,
        turn: rules.Turn,
        text: str,
        receipt: Receipt | None,
    ) -> NewMemory:
        return NewMemory(
            text=text,
            tier=Tier.WORKING,
            tags=rules.tags_of(turn, with_memory=receipt is not None and bool(receipt.shown)),
            memory_id=rules.exchange_id(scope.user_id, request.conversation_id, request.message_id),
            source=Source(
                type=SourceType.ASSISTANT,
                conversation_id=request.conversation_id,
                message_id=request.message_id,
            ),
        )

    async def _store(
        self, scope: WriteScope, new: NewMemory, *, replaces: bool
    ) -> tuple[str, bool]:
        """The id of the memory, and whether it was there. One that takes the place of an earlier
        text keeps that as a version."""
        memory_id = new.memory_id or ""
        try:
            if replaces:
                kept = await self.memories.get(scope.own, memory_id)
                if kept.memory_id != memory_id:  # part of another one, whose words are not its own
                    if kept.status is not Status.ACTIVE:
                        return memory_id, True
                    await self.unlearning.part_again(scope, memory_id, kept.memory_id)
                edit = MemoryEdit(text=new.text, tags=new.tags, reason=REPLACED)
                item = await self.memories.edit(scope, memory_id, edit)
                if self._is_over(item):
                    await self.memories.restore(scope, item.memory_id)
                return memory_id, False
            result = await self.memories.store(scope, new)
        except (errors.DuplicateMemory, errors.NotFound):
            # Kept by an earlier try of this call, and archived or deleted since; or another memory
            # has the text.
            return memory_id, True
        return result.memory_id or memory_id, result.status == "duplicate"

    def _is_over(self, item: MemoryItem) -> bool:
        """The time of the earlier words; that of the new ones begins. What a person put away stays
        away."""
        if item.status is Status.ARCHIVED:
            return item.archived_reason in OWN_REASONS
        return is_expired(item, self.runtime.clock.now())

    async def _attribute(
        self, scope: WriteScope, request: ExchangeRequest, receipt: Receipt | None
    ) -> Marked:
        marks = rules.read_attribution(rules.raw_answer(request.messages)).marks
        shown = {one.position for one in receipt.shown if one.position} if receipt else set()
        found = rules.resolve(marks, shown)
        if receipt is None or not found.by_outcome:
            return Marked(skipped=found.skipped)
        marked = await self._record_marks(scope, request, receipt.receipt_id, found.by_outcome)
        return replace(marked, skipped=found.skipped)

    async def _record_marks(
        self,
        scope: WriteScope,
        request: ExchangeRequest,
        receipt_id: str,
        by_outcome: Mapping[Outcome, tuple[int, ...]],
    ) -> Marked:
        moved, earlier = 0, False
        for outcome, positions in by_outcome.items():
            asked = OutcomeRequest(
                outcome=outcome,
                positions=positions,
                receipt_id=receipt_id,
                idempotency_key=_mark_key(request.conversation_id, request.message_id, outcome),
                signal=ATTRIBUTION,
                recorder=request.recorder,
            )
            try:
                answer = await self.outcomes.record(scope, asked)
            except errors.IdempotencyConflict:
                # An earlier try counted its marks, by another receipt or with another text.
                earlier = True
            except errors.NotFound:
                # The receipt has expired meanwhile.
                continue
            else:
                moved += len(answer.updated)
        return Marked(moved=moved, scored=earlier or moved > 0)

    def _exchange(
        self,
        kept: ports.KeptTurn,
        turn: rules.Turn,
        request: ExchangeRequest,
        injected: tuple[str, ...],
        receipt: Receipt | None,
    ) -> LearnedExchange:
        """The turn as it is left for what learns from conversations later."""
        return LearnedExchange(
            user_id=kept.user_id,
            conversation_id=kept.conversation_id,
            message_id=kept.message_id,
            user_text=kept.question,
            answer=turn.learned_answer,
            memory_id=kept.memory_id,
            at=kept.at,
            principal=request.recorder.principal,
            owner=request.recorder.owner,
            injected=injected,
            receipt_id=kept.receipt_id,
            shown=all_shown(receipt) if receipt else (),
        )

    # --- scores

    async def _comment(self, scope: WriteScope, request: ScoreRequest, said: str) -> None:
        name = request.conversation_id
        if name is not None:
            await self.conversations.comment(scope, name, request.message_id, said)

    async def _given_with(self, scope: WriteScope, request: ScoreRequest) -> tuple[str, ...]:
        """What the answer was given with because of its question."""
        session = await self._session(scope.own, request.message_id, request.conversation_id)
        turn = session.turn(request.message_id) if session else None
        if turn is None or turn.receipt_id is None:
            return ()
        receipt = await self.receipts.get(scope.own, turn.receipt_id)
        return judged_unnamed(receipt) if receipt else ()

    async def _session(
        self, scope: ReadScope, message_id: str, conversation_id: str | None
    ) -> ports.Session | None:
        if conversation_id is None:
            return await self.sessions.by_message(scope, message_id)
        return await self.sessions.get(scope, conversation_id)


def kept_turn(
    user_id: str,
    request: ExchangeRequest,
    turn: rules.Turn,
    memory_id: str,
    receipt: Receipt | None,
    at: datetime,
) -> ports.KeptTurn:
    """The turn as it is read again: its words, and what the answer was given with."""
    shown = [one for one in receipt.shown if one.position] if receipt else []
    return ports.KeptTurn(
        user_id=user_id,
        conversation_id=request.conversation_id,
        message_id=request.message_id,
        question=turn.question,
        answer=turn.answer,
        at=at,
        memory_id=memory_id,
        model=request.model,
        tools=turn.tools,
        runs=request.tool_runs,
        citations=tuple(ports.Citation(one.memory_id, one.tier, one.position) for one in shown),
        receipt_id=receipt.receipt_id if receipt else None,
        interrupted=turn.interrupted,
    )


def _called(request: ExchangeRequest) -> tuple[str, ...]:
    return called_tools(request.tools_called, request.tool_runs)


def without(session: ports.Session | None, message_id: str) -> ports.Session | None:
    """The session as if this turn had never been."""
    if session is None:
        return None
    turns = tuple(one for one in session.turns if one.message_id != message_id)
    return replace(session, turns=turns)


def _mark_key(conversation_id: str, message_id: str, outcome: Outcome) -> str:
    """The key of what the marks of an answer say. The space is in no key of a caller."""
    digest = hashlib.sha256(f"{conversation_id}\x00{message_id}".encode()).hexdigest()
    return f"attribution {digest} {outcome.value}"


def _reason(required: bool, *, scored: bool) -> str:
    if required:
        return "not_scored"
    return "scored" if scored else "trivial"


def owed_before(session: ports.Session | None, receipt: Receipt | None) -> bool:
    """Whether a score was owed when the turn began, which is when its context was read.

    The newest turn that needed a score tells: it waits still, or something else than a thumb paid
    for it since. Without a receipt the time is unknown, and a tool may have paid just now.
    """
    turns = session.turns if session else ()
    last = next((turn for turn in reversed(turns) if turn.required), None)
    if last is None:
        return False
    if last.scored_at is None:
        return True
    return last.score is None and (receipt is None or last.scored_at >= receipt.at)
