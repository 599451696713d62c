"""What orders of messages changed, so that a message with other words takes it back."""

import hashlib
import logging
from collections.abc import Sequence
from contextlib import suppress

from rayapp.assistant.commands.rules import Command
from rayapp.assistant.records import ContextRequest
from rayapp.core.errors import Conflict, NotFound
from rayapp.core.runtime import Clock
from rayapp.learning.rules.promotion import event_id
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.ports import Event, EventStore
from rayapp.memory.requests import MemoryEdit
from rayapp.memory.scope import WriteScope
from rayapp.memory.service import MemoriesService

log = logging.getLogger("rayapp.commands")

ORDERED = "ordered"
TAKEN_BACK = "the order was taken out of its message"


class OrderLedger:
    """A note per change that an order made; what it found done already is not its own. Only a
    memory that is still as the order left it is changed back. Raises StoreDown."""

    def __init__(self, memories: MemoriesService, events: EventStore, *, clock: Clock) -> None:
        self._memories = memories
        self._events = events
        self._clock = clock

    async def note(
        self,
        scope: WriteScope,
        request: ContextRequest,
        command: Command,
        memory_id: str,
        *,
        off: str | None = None,
    ) -> None:
        """`off`: the list that a memory was taken off; the texts stay out of the note."""
        if request.conversation_id is None or request.message_id is None:
            return
        item = await self._memories.get(scope.own, memory_id)
        event = Event(
            event_id=event_id(ORDERED, scope.user_id, memory_id, str(item.version)),
            user_id=scope.user_id,
            kind=ORDERED,
            at=self._clock.now(),
            memory_id=memory_id,
            data={
                "conversation_id": request.conversation_id,
                "message_id": request.message_id,
                "order": _key(command),
                "change": "removed" if command.kind in ("forget", "remove_goal") else "stored",
                "off": off,
                "version": item.version,
                "owner": "commands",
            },
        )
        try:
            await self._events.add(event)
        except Conflict:
            return  # another call of this message noted it

    async def removed(
        self, scope: WriteScope, request: ContextRequest, command: Command
    ) -> MemoryItem | None:
        """What an earlier call of this message removed by this order, and is as that left it: the
        next best fit is not meant."""
        if request.conversation_id is None or request.message_id is None:
            return None
        for note in await self._events.of_conversation(scope.own, request.conversation_id, ORDERED):
            of_this = (note.data["message_id"], note.data["order"], note.data["change"])
            if of_this != (request.message_id, _key(command), "removed"):
                continue
            with suppress(NotFound):  # deleted since
                item = await self._memories.get(scope.own, note.memory_id or "")
                if item.version == note.data["version"]:
                    return item
        return None

    async def take_back(
        self, scope: WriteScope, request: ContextRequest, orders: Sequence[Command]
    ) -> None:
        """What this message ordered before and does not order now; `orders`: those of now."""
        if request.conversation_id is None or request.message_id is None:
            return
        still = {_key(one) for one in orders}
        for note in await self._events.of_conversation(scope.own, request.conversation_id, ORDERED):
            if note.data["message_id"] != request.message_id or note.data["order"] in still:
                continue
            try:
                await self._change_back(scope, note)
            except NotFound:
                continue  # deleted since
            except Conflict as error:  # a full bank, or somebody changed it meanwhile
                log.warning("an order that was edited away stays done: %s", error.code)

    async def _change_back(self, scope: WriteScope, note: Event) -> None:
        memory_id = note.memory_id or ""
        item = await self._memories.get(scope.own, memory_id)
        if item.memory_id != memory_id or item.version != note.data["version"]:
            return
        if note.data["change"] == "stored":
            if item.source.also:
                return  # said elsewhere too
            await self._memories.delete(scope, memory_id)
        elif item.status is Status.ARCHIVED:
            await self._memories.restore(scope, memory_id, expected_version=item.version)
        else:
            edit = MemoryEdit(
                tags=(*item.tags, note.data["off"]),
                expected_version=item.version,
                reason=TAKEN_BACK,
            )
            await self._memories.edit(scope, memory_id, edit)


def _key(command: Command) -> str:
    return hashlib.sha256(f"{command.kind}\x00{command.text}".encode()).hexdigest()
