"""Does what a person orders of their memory, before the context of their message is read."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass

from rayapp.assistant.commands.ledger import OrderLedger
from rayapp.assistant.commands.rules import (
    Command,
    Kind,
    Performed,
    commands_of,
    meant,
    takeaway_of,
)
from rayapp.assistant.commands.rules import Status as Result
from rayapp.assistant.records import ContextRequest
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Runtime
from rayapp.learning.outcomes import TAKEAWAY_TAG
from rayapp.memory.bank import MemoryBankService
from rayapp.memory.item import MemoryItem, Source, SourceType, Status
from rayapp.memory.requests import ItemQuery, NewMemory
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import CORE_TIERS, Tier
from rayapp.search.requests import SearchQuery
from rayapp.search.service import SearchService
from rayapp.text.analyser import Analyser

log = logging.getLogger("rayapp.commands")

GOAL, VALUE, FACT = "goal", "value", "context"
# What a person says outright is sure; what it is worth is theirs to say (as a goal over HTTP).
IMPORTANCE, CONFIDENCE = 0.8, 0.9
# Goals that are shown, the newest, and among which one is looked for.
SHOWN, LOOKED_AT = 10, 100
# Hits among which a fact that is to be forgotten is looked for.
HITS = 20
# Documents are not forgotten by a sentence of theirs.
FORGETTABLE = tuple(tier for tier in CORE_TIERS if tier is not Tier.BOOKS)
REASON = "forgotten on request"
UNLISTED = f"{GOAL} removed"  # as `MemoryBankService.unlist` says it

_Doing = Callable[[WriteScope, Command, ContextRequest], Awaitable[Performed]]


@dataclass(eq=False)
class CommandsService:
    """Never raises: a context is given in any case. A message that comes again finds its orders
    done: the same text is known, and what was removed is not found again. One that comes with other
    words has what it no longer orders taken back first."""

    memories: MemoriesService
    bank: MemoryBankService
    search: SearchService
    analyser: Analyser
    ledger: OrderLedger
    _: KW_ONLY
    runtime: Runtime

    def __post_init__(self) -> None:
        self._doing: Mapping[Kind, _Doing] = {
            "add_goal": self._add,
            "add_value": self._add,
            "remember": self._add,
            "save_learning": self._add,
            "remove_goal": self._remove_goal,
            "list_goals": self._list_goals,
            "forget": self._forget,
        }

    async def perform(self, scope: ReadScope, request: ContextRequest) -> tuple[Performed, ...]:
        """What the message orders, in its order; a key that may not write only has its goals
        listed."""
        commands, writer = commands_of(request.query), WriteScope(scope.user_id)
        if request.recorder is not None:
            try:
                await self.ledger.take_back(writer, request, commands)
            except RayappError as error:
                log.warning("what a message ordered before stays done: %s", error.code)
        done = []
        for command in commands:
            if request.recorder is None and command.kind != "list_goals":
                continue
            found = await self._perform(writer, command, request)
            self.runtime.metrics.count("commands", kind=command.kind, status=found.status)
            done.append(found)
        return tuple(done)

    async def _perform(
        self, scope: WriteScope, command: Command, request: ContextRequest
    ) -> Performed:
        try:
            if command.kind != "list_goals":
                self.runtime.disk.check()
            if command.kind in ("forget", "remove_goal"):
                earlier = await self.ledger.removed(scope, request, command)
                if earlier is not None:
                    return Performed(command, "removed", (earlier,))
            return await self._doing[command.kind](scope, command, request)
        except RayappError as error:
            log.warning("an order of a person was not done: %s", error.code)
            return Performed(command, "refused")

    async def _add(self, scope: WriteScope, command: Command, request: ContextRequest) -> Performed:
        said, order = command.text, command
        if command.kind == "save_learning":
            answers = [one.content for one in request.recent if one.role == "assistant"]
            said = takeaway_of(said, answers)
            command = Command(command.kind, said)
        if not said:
            return Performed(command, "refused")
        new = NewMemory(
            text=said,
            tier=Tier.HISTORY if command.kind == "save_learning" else Tier.MEMORY_BANK,
            tags=(_TAGS[command.kind],),
            importance=IMPORTANCE,
            confidence=CONFIDENCE,
            source=Source(
                type=SourceType.USER,
                conversation_id=request.conversation_id,
                message_id=request.message_id,
            ),
        )
        kept = await self.memories.store(scope, new)
        status: Result = "known" if kept.status == "duplicate" else "stored"
        if kept.memory_id is None:
            return Performed(command, "refused")
        if status == "stored":
            await self.ledger.note(scope, request, order, kept.memory_id)
        return Performed(command, status, (await self.memories.get(scope.own, kept.memory_id),))

    async def _list_goals(
        self, scope: WriteScope, command: Command, _: ContextRequest
    ) -> Performed:
        found = await self.bank.listed(scope.own, GOAL, SHOWN)
        return Performed(command, "listed", tuple(found.items))

    async def _remove_goal(
        self, scope: WriteScope, command: Command, request: ContextRequest
    ) -> Performed:
        goals = (await self.bank.listed(scope.own, GOAL, LOOKED_AT)).items

        async def unlist(item: MemoryItem) -> None:
            await self.bank.unlist(scope, GOAL, item.memory_id)
            await self.ledger.note(scope, request, command, item.memory_id, off=GOAL)

        return await self._removed(scope, command, goals, unlist)

    async def _forget(
        self, scope: WriteScope, command: Command, request: ContextRequest
    ) -> Performed:
        asked = SearchQuery(query=command.text, limit=HITS, tiers=FORGETTABLE, receipt=False)
        hits = (await self.search.search(scope.own, asked)).hits

        async def archive(item: MemoryItem) -> None:
            await self.memories.archive(scope, item.memory_id, reason=REASON)
            await self.ledger.note(scope, request, command, item.memory_id)

        return await self._removed(scope, command, [hit.item for hit in hits], archive)

    async def _removed(
        self,
        scope: WriteScope,
        command: Command,
        among: list[MemoryItem] | tuple[MemoryItem, ...],
        remove: Callable[[MemoryItem], Awaitable[None]],
    ) -> Performed:
        """Only the one memory that says it; where several do, the person is to be asked."""
        found = tuple(meant(among, command.text, self.analyser.coverage))
        if len(found) == 1:
            await remove(found[0])
            return Performed(command, "removed", found)
        if found:
            return Performed(command, "ambiguous", found)
        gone = await self._gone(scope, command)
        return Performed(command, "removed" if gone else "not_found", gone)

    async def _gone(self, scope: WriteScope, command: Command) -> tuple[MemoryItem, ...]:
        """What an earlier call of this message removed."""
        where = ItemFilter(tiers=FORGETTABLE, statuses=(Status.ARCHIVED,))
        page = await self.memories.page(scope.own, where, ItemQuery(limit=LOOKED_AT))
        removed = [one for one in page.items if one.archived_reason in (REASON, UNLISTED)]
        return tuple(meant(removed, command.text, self.analyser.coverage))[:1]


_TAGS: Mapping[Kind, str] = {
    "add_goal": GOAL,
    "add_value": VALUE,
    "remember": FACT,
    "save_learning": TAKEAWAY_TAG,
}
