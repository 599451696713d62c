"""Takes back what a conversation, or a turn of it, taught: outcomes, memories, replacements.

Each step meets what an earlier try left, so a call that died is finished by its repetition.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from rayapp.assistant.extraction.executor import EXTENDED, MERGED_REASON
from rayapp.core import errors
from rayapp.core.runtime import Clock
from rayapp.learning.ports import OutcomesOf, OutcomeStore
from rayapp.learning.records import OutcomeEvent
from rayapp.learning.rules.promotion import OWN_REASONS, event_id
from rayapp.memory.item import LEARNED_TAG, ChangeType, MemoryItem, Status
from rayapp.memory.ports import Event, EventStore, MemoryStore, UserRows
from rayapp.memory.requests import ItemQuery, MemoryEdit
from rayapp.memory.rules.creation import restored
from rayapp.memory.rules.revision import replaced_state
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.service import MemoriesService

# Memories of one transaction, and of one page.
PAGE = 200
# Tries to let the graphs forget at once; another process may settle the same rows.
TRIES = 5
PAUSE_S = 0.05
REASON = "what it was learned from was deleted"

Settle = Callable[[Sequence[OutcomeEvent]], Awaitable[int]]


@dataclass(eq=False)
class Unlearning:
    """Raises StoreDown, Overloaded; asking again goes on.

    `settle`: lets the graphs count one user's events as they stand now.
    """

    memories: MemoriesService
    items: MemoryStore
    rows: UserRows
    outcome_store: OutcomeStore
    events: EventStore
    _: KW_ONLY
    settle: Settle
    clock: Clock

    async def outcomes(self, scope: WriteScope, of: OutcomesOf) -> None:
        """Take these outcomes back; those of a whole conversation are forgotten too."""
        for _ in range(TRIES):
            owed = await self.outcome_store.withdraw(scope, of, self.clock.now())
            if owed:
                await self.settle(owed)
            if not of.whole or not await self.outcome_store.forget(scope, of):
                return
            await asyncio.sleep(PAUSE_S)
        raise errors.Overloaded("The graphs are busy: delete it again.", retry_after_s=1.0)

    async def conversation(self, scope: WriteScope, conversation_id: str) -> int:
        """Delete every memory that it left, the turns too; how many."""
        await self._additions(scope, conversation_id, None)
        await self.rows.leave_conversation(scope, conversation_id)
        items = await self._all(scope.own, conversation_id, ())
        await self._set_free(
            scope, items, stays=lambda one: one.source.conversation_id != conversation_id
        )
        await self._reopen(scope, items, before=True)
        deleted = 0
        while gone := await self.rows.delete_of_conversation(
            scope, conversation_id, PAGE, self.clock.now()
        ):
            deleted += gone
        await self._reopen(scope, items, before=False)
        return deleted

    async def turn(self, scope: WriteScope, conversation_id: str, message_id: str) -> int:
        """Delete what a model read out of one turn, not the memory of the turn; how many."""
        await self._additions(scope, conversation_id, message_id)
        found = await self._all(scope.own, conversation_id, (LEARNED_TAG,))
        items = [one for one in found if _read_out_of(one, conversation_id, message_id)]
        await self._set_free(
            scope, items, stays=lambda one: not _read_out_of(one, conversation_id, message_id)
        )
        await self._reopen(scope, items, before=True)
        for one in items:
            try:
                await self.memories.delete(scope, one.memory_id)
            except (errors.NotFound, errors.Conflict):
                continue  # deleted meanwhile, or part of another one that goes on
        await self._reopen(scope, items, before=False)
        return len(items)

    async def part_again(self, scope: WriteScope, memory_id: str, winner_id: str) -> None:
        """A memory that is part of another one is one of its own: it will say something else."""
        for part in await self.rows.merged_into(scope.own, [winner_id]):
            if part.memory_id == memory_id:
                await self._alone(part)

    # --- inside

    async def _all(
        self, scope: ReadScope, conversation_id: str, tags: tuple[str, ...]
    ) -> list[MemoryItem]:
        where = ItemFilter(
            conversation_ids=(conversation_id,),
            tags_all=tags or None,
            statuses=None,
            include_superseded=True,
        )
        found: list[MemoryItem] = []
        cursor = None
        while True:
            page = await self.items.page(scope, where, ItemQuery(limit=PAGE, cursor=cursor))
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def _set_free(
        self, scope: WriteScope, gone: Sequence[MemoryItem], *, stays: Callable[[MemoryItem], bool]
    ) -> None:
        """What was merged into one of these, but was said elsewhere too, is a memory of its own
        again: a merged memory is deleted with the one that it is part of."""
        for part in await self.rows.merged_into(scope.own, [one.memory_id for one in gone]):
            if not stays(part):
                continue
            try:
                await self._alone(part)
            except (errors.DuplicateMemory, errors.VersionConflict, errors.NotFound):
                continue  # another memory says the same, or it went meanwhile

    async def _alone(self, part: MemoryItem) -> None:
        now = self.clock.now()
        row = replaced_state(part, ChangeType.RESTORE, REASON, now)
        alone = replace(restored(part, now), merged_into=None)
        await self.items.replace(alone, expected_version=part.version, row=row)

    async def _reopen(self, scope: WriteScope, gone: Sequence[MemoryItem], *, before: bool) -> None:
        """What these had taken the place of is current again, but what a person put away.

        `before` they are deleted: a repetition would not find them any more. What was archived
        waits for the place, or the text, that they leave; what goes itself stays as it is.
        """
        names = {one.memory_id for one in gone}
        for one in gone:
            old = await self.items.get(scope.own, one.supersedes) if one.supersedes else None
            if old is None or old.superseded_by != one.memory_id:
                continue
            if before and (old.status is not Status.ACTIVE or old.memory_id in names):
                continue
            if old.status is not Status.ACTIVE and old.archived_reason not in OWN_REASONS:
                continue
            try:
                back = await self.memories.restore(scope, old.memory_id)
                if back.superseded_by == one.memory_id:  # it was archived as well
                    await self.memories.restore(scope, old.memory_id)
            except errors.Conflict:
                continue  # a full bank, or a text that another memory has by now

    async def _additions(
        self, scope: WriteScope, conversation_id: str, message_id: str | None
    ) -> None:
        """Memories of elsewhere that say more because of it say what they said before, unless they
        were changed again since."""
        for note in await self.events.of_conversation(scope.own, conversation_id, EXTENDED):
            if message_id in (None, note.data.get("message_id")):
                await self._unsaid(scope, note)

    async def _unsaid(self, scope: WriteScope, note: Event) -> None:
        for _ in range(TRIES):
            item = await self.items.get(scope.own, note.memory_id or "")
            if item is None or item.memory_id != note.memory_id:
                return
            if event_id(EXTENDED, scope.user_id, item.memory_id, item.text) != note.event_id:
                return
            rows = await self.items.versions(scope.own, item.memory_id, PAGE)
            before = next((row for row in rows if row.reason == MERGED_REASON), None)
            if before is None:
                return
            edit = MemoryEdit(text=before.text, expected_version=item.version, reason=REASON)
            try:
                await self.memories.edit(scope, item.memory_id, edit)
            except errors.VersionConflict:
                continue
            except errors.DuplicateMemory:
                # What it said before is a memory of its own by now.
                await self.memories.delete(scope, item.memory_id)
            except errors.NotFound:
                return  # deleted meanwhile
            return


def _read_out_of(item: MemoryItem, conversation_id: str, message_id: str) -> bool:
    """Whether a model read it out of this turn, and out of no other."""
    source = item.source
    return (
        LEARNED_TAG in item.tags
        and (source.conversation_id, source.message_id) == (conversation_id, message_id)
        and source.tool_run_id is not None
        and not source.also
    )
