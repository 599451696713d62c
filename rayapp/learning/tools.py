"""The outcome of a turn reaches the tools that it used: one verdict per turn, the newest counts."""

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, replace

from rayapp.core import errors
from rayapp.core.runtime import Runtime
from rayapp.learning.ports import OutcomeLimits, OutcomeStore, ScoreGiven, TurnTools
from rayapp.learning.records import OutcomeEvent, Recorder, Signal, ToolUse
from rayapp.learning.rules import tools as rules
from rayapp.learning.rules.outcomes import fingerprint, next_key
from rayapp.memory.item import Outcome
from rayapp.memory.scope import WriteScope

# Verdicts of one turn among which the one in effect is looked for.
LOOKED_AT = 50
# A run says by itself that it failed.
RUN = Signal(source="tool_run")
# Different verdicts on one turn at once: each try lets at least one of them through.
TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What somebody says of a whole answer."""

    outcome: Outcome
    signal: Signal
    by: Recorder


@dataclass(eq=False)
class ToolVerdicts:
    """Raises StoreDown, Overloaded; whoever asks again counts nothing twice.

    A guest's verdict counts for no tool, as it counts in no graph (decision 0013).
    `on_recorded`: told of what was new.
    """

    store: OutcomeStore
    turns: TurnTools
    _: KW_ONLY
    on_recorded: Callable[[OutcomeEvent], Awaitable[None]] | None = None
    runtime: Runtime

    async def judge(self, scope: WriteScope, given: ScoreGiven, verdict: Verdict) -> None:
        """What became of the turn that a score is about. An unsure signal says nothing."""
        signal = verdict.signal
        sure = (
            signal.source == rules.EXPLICIT
            or signal.confidence >= self.runtime.settings.learning.implicit_confidence
        )
        if not verdict.by.owner or verdict.outcome is Outcome.UNKNOWN or not sure:
            return
        use = await self.turns.used(scope.own, given)
        if use is not None and use.answered:
            await self.judge_use(scope, use, verdict)

    async def judge_use(self, scope: WriteScope, use: ToolUse, verdict: Verdict) -> None:
        """Verdicts at once take the same number: the one that comes second looks again."""
        prefix = rules.verdict_prefix(use.conversation_id, use.message_id)
        for _ in range(TRIES):
            events = await self.store.latest(scope.own, prefix, LOOKED_AT)
            before = rules.in_effect(events)
            if not rules.takes_effect(before, verdict.outcome, verdict.signal.source):
                return
            event = self._event(scope, use, use.answered, verdict)
            replaces = (before.idempotency_key,) if before else ()
            try:
                await self._record(replace(event, replaces=replaces), next_key(prefix, events))
            except errors.IdempotencyConflict:
                continue
            return
        raise errors.Overloaded(
            "Too many verdicts on this answer at once: send it again.", retry_after_s=1.0
        )

    async def detected(self, scope: WriteScope, conversation_id: str, message_id: str) -> list[str]:
        """Keys of the verdicts on this turn that were read out of a person's next words."""
        prefix = rules.verdict_prefix(conversation_id, message_id)
        events = await self.store.latest(scope.own, prefix, LOOKED_AT)
        return [one.idempotency_key for one in events if one.signal.source == rules.DETECTED]

    async def note_failures(self, scope: WriteScope, use: ToolUse, by: Recorder) -> None:
        """Tools that gave no answer failed, whatever the answer of the turn was worth."""
        if by.owner and use.failed:
            verdict = Verdict(outcome=Outcome.FAILED, signal=RUN, by=by)
            event = self._event(scope, use, use.failed, verdict)
            await self._record(event, rules.failure_key(use.conversation_id, use.message_id))

    # --- inside

    def _event(
        self, scope: WriteScope, use: ToolUse, tools: tuple[str, ...], verdict: Verdict
    ) -> OutcomeEvent:
        outcome, source = verdict.outcome, verdict.signal.source
        return OutcomeEvent(
            user_id=scope.user_id,
            idempotency_key="",
            principal=verdict.by.principal,
            owner=verdict.by.owner,
            outcome=outcome,
            at=self.runtime.clock.now(),
            memory_ids=(),
            conversation_id=use.conversation_id,
            context_type=use.context_type,
            signal=verdict.signal,
            tools=tools,
            request_hash=fingerprint(outcome=outcome.value, source=source, tools=tools),
        )

    async def _record(self, event: OutcomeEvent, key: str) -> None:
        limits = OutcomeLimits(keep_receipt_until=event.at, guest_per_hour=0)
        keyed = replace(event, idempotency_key=key)
        recorded, known = await self.store.record(keyed, limits, strict=False)
        if self.on_recorded is not None and not known:
            await self.on_recorded(recorded)
