"""Does what was decided about an exchange. Doing it twice is doing it once.

Ids and keys follow from the exchange, never from the answer of a model, so whatever dies in
between, the next one who does it meets what is there.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, get_args

from rayapp.assistant.extraction.policies import HELPER_OF
from rayapp.assistant.extraction.rules.facts import Learned, LearnedExchange, Task
from rayapp.assistant.extraction.rules.history import About, outcome_key
from rayapp.assistant.ports import ConversationStore
from rayapp.core import errors
from rayapp.core.runtime import Runtime
from rayapp.learning.outcomes import OutcomesService
from rayapp.learning.ports import ScoreGiven
from rayapp.learning.records import OutcomeRequest, Recorder, Signal
from rayapp.learning.rules.promotion import event_id
from rayapp.learning.rules.tools import DETECTED
from rayapp.learning.tools import ToolVerdicts, Verdict
from rayapp.memory.item import Outcome, Source, SourceType
from rayapp.memory.ports import Event, EventStore
from rayapp.memory.requests import MemoryEdit, NewMemory, StoreResult
from rayapp.memory.scope import WriteScope
from rayapp.memory.service import MemoriesService

log = logging.getLogger("rayapp.extraction")
LEARNED = "learned"  # kind of the event that a learned memory leaves
EXTENDED = "extended"  # the same for one that says more than before
DETECTED_EVENT = "outcome_detected"
MERGED_REASON = "said again, with more"


@dataclass(eq=False)
class ExtractionExecutor:
    """Writes through the same services as everybody else: their rules and limits hold."""

    memories: MemoriesService
    outcomes: OutcomesService
    events: EventStore
    conversations: ConversationStore
    _: KW_ONLY
    tools: ToolVerdicts
    runtime: Runtime

    async def judged(self, exchange: LearnedExchange) -> bool:
        """Whether the answer of this turn has its judgement: by what it was shown, or as a turn."""
        for about in get_args(About):
            key = outcome_key(
                exchange.user_id, exchange.conversation_id, exchange.message_id, about
            )
            if await self.outcomes.known(_writer(exchange), key):
                return True
        return False

    async def do(self, exchange: LearnedExchange, task: Task, part: Any) -> str:
        """One part of a plan; what came of it, in one word. Raises DependencyDown."""
        if task == "outcome":
            return await self._judge(exchange, part)
        if task in ("title", "summary"):
            return await self._tell(exchange, part)
        results = [await self._one(exchange, one) for one in part]
        return LEARNED if LEARNED in results else results[0]

    async def _tell(self, exchange: LearnedExchange, part: Mapping[str, Any]) -> str:
        """What the conversation is called, or what it is about so far."""
        scope, name = _writer(exchange), exchange.conversation_id
        if "title" in part:
            told = await self.conversations.name(scope, name, part["title"], "model")
        else:
            told = await self.conversations.sum_up(scope, name, part["bullets"], part["summed"])
        return LEARNED if told else "known"

    async def _one(self, exchange: LearnedExchange, part: Mapping[str, Any]) -> str:
        if "merge" in part:
            return await self._merge(exchange, part["merge"])
        if "said" in part:
            return await self._said_here(exchange, part["said"])
        return await self._learn(exchange, Learned.of_json(part))

    async def _judge(self, exchange: LearnedExchange, part: Mapping[str, Any]) -> str:
        """What the judged turn used and was shown, and the memory that keeps it: each once. The
        tools come first: the others say that it was judged."""
        await self._judge_tools(exchange, part)
        results = []
        if (receipt_id := part["receipt_id"]) is not None:
            results.append(await self._record(exchange, part, "shown", receipt_id=receipt_id))
        if (memory_id := part["memory_id"]) is not None:
            results.append(await self._record(exchange, part, "exchange", memory_ids=(memory_id,)))
        return "judged" if "judged" in results else results[0]

    async def _judge_tools(self, exchange: LearnedExchange, part: Mapping[str, Any]) -> None:
        given = ScoreGiven(
            at=self.runtime.clock.now(),
            conversation_id=exchange.conversation_id,
            message_id=part["message_id"],
        )
        verdict = Verdict(
            outcome=Outcome(part["outcome"]),
            signal=Signal(source=DETECTED, confidence=part["confidence"]),
            by=_recorder(exchange),
        )
        await self.tools.judge(_writer(exchange), given, verdict)

    async def _record(
        self, exchange: LearnedExchange, part: Mapping[str, Any], about: About, **named: Any
    ) -> str:
        judged = outcome_key(exchange.user_id, exchange.conversation_id, part["message_id"], about)
        request = OutcomeRequest(
            outcome=Outcome(part["outcome"]),
            **named,
            conversation_id=exchange.conversation_id,
            idempotency_key=judged,
            signal=Signal(source=DETECTED, confidence=part["confidence"]),
            recorder=_recorder(exchange),
        )
        try:
            answer = await self.outcomes.record(_writer(exchange), request)
        except errors.NotFound:
            return "gone"  # deleted, or its receipt ended: nobody is left to be judged
        except errors.IdempotencyConflict:
            return "judged"  # by another turn, or another answer of a model: the first one holds
        except errors.InvalidInput as error:
            log.warning("a detected outcome was refused: %s", error.message)
            return "refused"
        data = {
            "outcome": part["outcome"],
            "confidence": part["confidence"],
            "about": about,
            "applied": len(answer.updated),
            "receipt_id": answer.receipt_id,
        }
        await self._note(exchange, DETECTED_EVENT, judged, part["memory_id"], data)
        return "judged"

    async def _learn(self, exchange: LearnedExchange, one: Learned) -> str:
        new = NewMemory(
            text=one.text,
            tier=one.tier,
            tags=one.tags,
            importance=one.importance,
            confidence=one.confidence,
            memory_id=one.memory_id,
            trust=one.trust,
            supersedes=one.supersedes,
            source=Source(
                type=SourceType.ASSISTANT,
                conversation_id=exchange.conversation_id,
                message_id=exchange.message_id,
                # What made it, and the memory that it was made of.
                tool_name=f"{HELPER_OF[one.task]}@{one.prompt_version}",
                tool_run_id=exchange.memory_id,
            ),
        )
        try:
            stored = await self._stored(exchange, new)
        except errors.DuplicateMemory:
            return "known"  # said before, or put away by the user since
        except (errors.InvalidInput, errors.BankFull) as error:
            log.warning("a learned memory was refused: %s", error.message)
            return "refused"
        if stored.memory_id != one.memory_id:
            return "known"
        data = {
            "task": one.task,
            "tier": one.tier.value,
            "from": exchange.memory_id,
            "prompt": HELPER_OF[one.task],
            "prompt_version": one.prompt_version,
            "trust": one.trust,
            "supersedes": one.supersedes,
        }
        await self._note(exchange, LEARNED, one.memory_id, one.memory_id, data)
        return LEARNED

    async def _stored(self, exchange: LearnedExchange, new: NewMemory) -> StoreResult:
        """Beside the older one where that was replaced, archived or deleted since it was looked
        at: the newest word of the person is not lost."""
        try:
            return await self.memories.store(_writer(exchange), new)
        except (errors.Conflict, errors.InvalidInput) as error:
            if new.supersedes is None or isinstance(error, errors.DuplicateMemory):
                raise
            return await self.memories.store(_writer(exchange), replace(new, supersedes=None))

    async def _merge(self, exchange: LearnedExchange, merge: Mapping[str, Any]) -> str:
        """The memory says more; its id stays, and its old text is kept as a version."""
        memory_id, text = merge["memory_id"], merge["text"]
        edit = MemoryEdit(text=text, expected_version=merge["version"], reason=MERGED_REASON)
        try:
            await self.memories.edit(_writer(exchange), memory_id, edit)
        except errors.VersionConflict:
            now = await self.memories.get(exchange.own, memory_id)
            if now.text != text:
                return "known"  # it changed since it was compared, and stays as it is
        except (errors.NotFound, errors.DuplicateMemory):
            return "known"
        data = {"task": "fact", "from": exchange.memory_id, "prompt": "merge_duplicates"}
        await self._note(exchange, EXTENDED, f"{memory_id}\x00{text}", memory_id, data)
        return EXTENDED

    async def _said_here(self, exchange: LearnedExchange, memory_id: str) -> str:
        """It outlives the conversation that it came from."""
        with suppress(errors.NotFound):
            await self.memories.said_in(_writer(exchange), memory_id, exchange.conversation_id)
        return "known"

    async def _note(
        self,
        exchange: LearnedExchange,
        kind: str,
        key: str,
        memory_id: str | None,
        data: dict[str, Any],
    ) -> None:
        event = Event(
            event_id=event_id(kind, exchange.user_id, key),
            user_id=exchange.user_id,
            kind=kind,
            at=self.runtime.clock.now(),
            memory_id=memory_id,
            data={
                **data,
                "conversation_id": exchange.conversation_id,
                "message_id": exchange.message_id,
                "owner": "extraction",
            },
        )
        try:
            await self.events.add(event)
        except errors.Conflict:
            return  # noted by who did it before


def _recorder(exchange: LearnedExchange) -> Recorder:
    return Recorder(principal=exchange.principal or "local", owner=exchange.owner)


def _writer(exchange: LearnedExchange) -> WriteScope:
    return WriteScope(exchange.user_id, exchange.principal)
