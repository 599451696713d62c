"""Conversations as a person sees them: list, read again, switch, rename, export, delete."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from rayapp.assistant.history import rules
from rayapp.assistant.history.unlearning import Unlearning
from rayapp.assistant.ports import (
    Conversation,
    ConversationStore,
    KeptTurn,
    Place,
    Session,
    SessionStore,
)
from rayapp.assistant.tools.rules.runs import tool_use
from rayapp.core.errors import InvalidInput, NotFound, RayappError
from rayapp.core.runtime import Clock
from rayapp.documents.service import BooksService
from rayapp.learning.ports import OutcomesOf, ScoreGiven
from rayapp.learning.promotion import PromotionService
from rayapp.learning.records import ToolUse
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import ItemQuery
from rayapp.memory.rules import creation
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.text.normalize import name_form

log = logging.getLogger("rayapp.conversations")
# Messages that a program shows again when a conversation is opened (the history design).
RESTORED = 20
# Turns and memories of one export; a longer conversation says that it is not complete.
MOST_TURNS, MOST_MEMORIES = 5_000, 1_000
PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPage:
    """`hits`: by conversation, the turn that a search found; `next_cursor` None: the last page."""

    conversations: tuple[Conversation, ...]
    active: str | None
    next_cursor: str | None = None
    hits: Mapping[str, KeptTurn]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPage:
    """Turns, oldest first, and their scores by message; `next_cursor` leads to older ones."""

    conversation: Conversation
    turns: tuple[KeptTurn, ...]
    scores: Mapping[str, int | None]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """`restored` None: there is no such conversation yet, or the user left for a new one."""

    conversation_id: str | None
    previous: str | None
    restored: TurnPage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A conversation with everything that is kept of it."""

    page: TurnPage
    memories: tuple[MemoryItem, ...]
    complete: bool


@dataclass(eq=False)
class ConversationsService:
    """Raises NotFound, InvalidInput, StoreDown.

    settle: waits for what earlier answers to a user leave behind; it would come after a deletion.
    """

    store: ConversationStore
    sessions: SessionStore
    items: MemoryStore
    books: BooksService
    unlearning: Unlearning
    promotion: PromotionService
    _: KW_ONLY
    settle: Callable[[str], Awaitable[None]]
    clock: Clock

    def __post_init__(self) -> None:
        self._promoting: dict[str, asyncio.Task[None]] = {}

    async def page(
        self, scope: ReadScope, *, limit: int, cursor: str | None = None, query: str | None = None
    ) -> ConversationPage:
        """The newest first; with a query those of which a turn has all its words."""
        active = await self.store.active(scope)
        if query is not None:
            return await self._found(scope, query, limit, active)
        before = rules.decode_place(cursor) if cursor else None
        rows = await self.store.page(scope, limit=limit + 1, before=before)
        shown, more = rows[:limit], len(rows) > limit
        last = rules.encode_place((shown[-1].last_at, shown[-1].conversation_id)) if more else None
        return ConversationPage(
            conversations=tuple(shown), active=active, next_cursor=last, hits={}
        )

    async def _found(
        self, scope: ReadScope, query: str, limit: int, active: str | None
    ) -> ConversationPage:
        turns = await self.store.find(scope, rules.search_words(query), limit)
        rows = await asyncio.gather(*(self.store.get(scope, one.conversation_id) for one in turns))
        return ConversationPage(
            conversations=tuple(row for row in rows if row is not None),
            active=active,
            hits={one.conversation_id: one for one in turns},
        )

    async def get(self, scope: ReadScope, conversation_id: str) -> Conversation:
        found = await self.store.get(scope, conversation_id)
        if found is None:
            raise _unknown(conversation_id)
        return found

    async def one(self, scope: ReadScope, conversation_id: str) -> tuple[Conversation, str | None]:
        """The conversation, and the id of the active one."""
        found = await self.get(scope, conversation_id)
        return found, await self.store.active(scope)

    async def messages(
        self, scope: ReadScope, conversation_id: str, *, limit: int, cursor: str | None = None
    ) -> TurnPage:
        """The last `limit` messages, or those before the cursor; a turn is never cut in two."""
        conversation = await self.get(scope, conversation_id)
        before = rules.decode_place(cursor) if cursor else None
        most = max(1, limit // 2)
        turns = await self.store.turns(scope, conversation_id, limit=most + 1, before=before)
        return await self._turns(scope, conversation, turns[:most], more=len(turns) > most)

    async def _turns(
        self, scope: ReadScope, of: Conversation, newest: Sequence[KeptTurn], *, more: bool
    ) -> TurnPage:
        session = await self.sessions.get(scope, of.conversation_id)
        scores = {one.message_id: one.score for one in session.turns} if session else {}
        place: Place | None = (newest[-1].at, newest[-1].message_id) if more and newest else None
        return TurnPage(
            conversation=of,
            turns=tuple(reversed(newest)),
            scores=scores,
            next_cursor=rules.encode_place(place) if place else None,
        )

    async def switch(self, scope: WriteScope, conversation_id: str | None) -> Switched:
        """The user is in this conversation now, None: in none. Promotion runs in the background
        when they left another one: what it proved is there for the next."""
        creation.check_user(scope.user_id)
        read = ReadScope(scope.user_id)
        previous = await self.store.active(read)
        await self.store.activate(scope, conversation_id, self.clock.now())
        if previous is not None and previous != conversation_id:
            self._promote(scope.user_id)
        restored = None
        if conversation_id is not None and await self.store.get(read, conversation_id):
            restored = await self.messages(read, conversation_id, limit=RESTORED)
        return Switched(conversation_id=conversation_id, previous=previous, restored=restored)

    async def rename(self, scope: WriteScope, conversation_id: str, title: str) -> None:
        creation.check_user(scope.user_id)
        plain = " ".join(name_form(title).split())
        if not await self.store.name(scope, conversation_id, plain, "person"):
            raise _unknown(conversation_id)

    async def export(self, scope: ReadScope, conversation_id: str) -> Exported:
        conversation = await self.get(scope, conversation_id)
        turns: list[KeptTurn] = []
        before: Place | None = None
        while len(turns) < MOST_TURNS:
            page = await self.store.turns(scope, conversation_id, limit=PAGE, before=before)
            turns += page
            if len(page) < PAGE:
                break
            before = (page[-1].at, page[-1].message_id)
        where = ItemFilter(
            conversation_ids=(conversation_id,), statuses=None, include_superseded=True
        )
        found = await self.items.page(scope.own, where, ItemQuery(limit=MOST_MEMORIES))
        own_turns = {one.memory_id for one in turns}
        return Exported(
            page=await self._turns(scope, conversation, turns, more=False),
            memories=tuple(one for one in found.items if one.memory_id not in own_turns),
            complete=len(turns) < MOST_TURNS and found.next_cursor is None,
        )

    async def delete(self, scope: WriteScope, conversation_id: str) -> Mapping[str, int]:
        """With all that was learned from it; how many rows went, by kind. The conversation itself
        goes last, so that a call that died can be repeated.

        Raises InvalidInput, code `conversation_active`: its user is in it.
        """
        creation.check_user(scope.user_id)
        await self.get(ReadScope(scope.user_id), conversation_id)
        return await self.erase(scope, conversation_id)

    async def erase(self, scope: WriteScope, conversation_id: str) -> Mapping[str, int]:
        """The same, also of one of which no turn was kept: memories and receipts may name it."""
        creation.check_user(scope.user_id)
        await self.check_inactive(ReadScope(scope.user_id), conversation_id)
        await self.settle(scope.user_id)
        whole = OutcomesOf(conversation_id=conversation_id, whole=True)
        await self.unlearning.outcomes(scope, whole)
        documents = await self._detach(scope, conversation_id)
        memories = await self.unlearning.conversation(scope, conversation_id)
        rows = await self.store.forget(scope, conversation_id)
        return {"documents": documents, "memories": memories, **rows}

    async def check_inactive(self, scope: ReadScope, conversation_id: str | None = None) -> None:
        """Raises InvalidInput, code `conversation_active`: its user is in it; None: in any."""
        active = await self.store.active(scope)
        if active is not None and conversation_id in (None, active):
            raise InvalidInput(
                "This conversation is the active one; switch to another one, or to none, first.",
                code="conversation_active",
                details={"conversation_id": active},
            )

    async def _detach(self, scope: WriteScope, conversation_id: str) -> int:
        """Delete the documents that this conversation alone sees; how many."""
        deleted = 0
        while found := await self.books.attached(ReadScope(scope.user_id), conversation_id):
            # Those that rest on the text of another one go first.
            for one in sorted(found, key=lambda book: book.linked_to is None):
                await self.books.delete(scope, one.book_id)
            deleted += len(found)
        return deleted

    # --- in the background

    def _promote(self, user_id: str) -> None:
        if user_id in self._promoting:
            return
        task = asyncio.get_running_loop().create_task(self._cycle(user_id))
        self._promoting[user_id] = task
        task.add_done_callback(lambda _: self._promoting.pop(user_id))

    async def _cycle(self, user_id: str) -> None:
        try:
            await self.promotion.run(user_id)
        except RayappError as error:  # the owner's next cycle does it
            log.info("promotion after a switch waits: %s", error.message)


def _unknown(conversation_id: str) -> NotFound:
    return NotFound(
        "No such conversation; list /api/memory/conversations to see what exists.",
        details={"conversation_id": conversation_id},
    )


class KeptTurnTools:
    """Implements `TurnTools`."""

    def __init__(self, sessions: SessionStore, conversations: ConversationStore) -> None:
        self._sessions = sessions
        self._conversations = conversations

    async def used(self, scope: ReadScope, given: ScoreGiven) -> ToolUse | None:
        conversation_id, message_id = given.conversation_id, given.message_id
        if conversation_id is None or message_id is None:
            session = await self._session(scope, given)
            if session is None:
                return None
            conversation_id = session.conversation_id
            message_id = message_id or _judged_message(session, given.receipt_id)
        if message_id is None:
            return None
        turn = await self._conversations.turn(scope, conversation_id, message_id)
        return tool_use(turn) if turn is not None else None

    async def _session(self, scope: ReadScope, given: ScoreGiven) -> Session | None:
        if given.conversation_id is not None:
            return await self._sessions.get(scope, given.conversation_id)
        if given.message_id is not None:
            return await self._sessions.by_message(scope, given.message_id)
        return None


def _judged_message(session: Session, receipt_id: str | None) -> str | None:
    """The answer that was given with a receipt that was named; without one, the answer that waits
    for its score."""
    if receipt_id is None:
        return session.owed_message
    turns = reversed(session.turns)
    return next((one.message_id for one in turns if one.receipt_id == receipt_id), None)
