"""Kept conversations in process memory. It passes the contract suite of MongoDB's."""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from rayapp.assistant.history.rules import title_left, turn_terms
from rayapp.assistant.ports import Conversation, KeptTurn, Place, Session, TitledBy
from rayapp.memory.item import point_id_of
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.stores.rows import to_ms
from tests.support.stores.sessions import InMemorySessionStore
from tests.support.stores.stores import (
    InMemoryEventStore,
    InMemoryIdempotencyStore,
    InMemoryReceiptStore,
)

Rows = MutableMapping[Any, Any]


class InMemoryConversationStore:
    """Implements `ConversationStore`. `words`: turns by (user, conversation, message)."""

    def __init__(
        self,
        sessions: InMemorySessionStore,
        exchanges: Rows,
        receipts: InMemoryReceiptStore,
        events: InMemoryEventStore,
        answers: InMemoryIdempotencyStore,
    ) -> None:
        self._sessions = sessions
        self._rows = sessions.kept
        self._exchanges = exchanges
        self._receipts = receipts
        self._events = events
        self._answers = answers
        self.words: dict[tuple[str, str, str], KeptTurn] = {}

    async def keep(self, scope: WriteScope, turn: KeptTurn, title: str) -> None:
        user_id, at = checked_user(scope.user_id), to_ms(turn.at)
        edited = None if turn.edited_at is None else to_ms(turn.edited_at)
        kept = replace(turn, at=at, edited_at=edited)
        self.words[user_id, turn.conversation_id, turn.message_id] = kept
        key = (user_id, turn.conversation_id)
        session = self._sessions._row(scope, turn.conversation_id, turn.at)
        self._sessions.rows.setdefault(key, session)
        new = Conversation(
            user_id=user_id,
            conversation_id=turn.conversation_id,
            title=title,
            titled_by="words",
            created_at=at,
            last_at=at,
        )
        row = self._rows.get(key, new)
        self._rows[key] = replace(row, last_at=max(row.last_at, at))

    async def turn(
        self, scope: ReadScope, conversation_id: str, message_id: str
    ) -> KeptTurn | None:
        return self.words.get((checked_user(scope.user_id), conversation_id, message_id))

    async def get(self, scope: ReadScope, conversation_id: str) -> Conversation | None:
        row = self._rows.get((checked_user(scope.user_id), conversation_id))
        return self._counted(row) if row else None

    async def page(
        self, scope: ReadScope, *, limit: int, before: Place | None = None
    ) -> list[Conversation]:
        user_id = checked_user(scope.user_id)
        rows = [row for row in self._rows.values() if row.user_id == user_id]
        places = {(row.last_at, row.conversation_id): row for row in rows}
        return [self._counted(places[one]) for one in _newest(places, before, limit)]

    async def turns(
        self, scope: ReadScope, conversation_id: str, *, limit: int, before: Place | None = None
    ) -> list[KeptTurn]:
        rows = self._of(checked_user(scope.user_id), conversation_id)
        places = {(row.at, row.message_id): row for row in rows}
        return [places[one] for one in _newest(places, before, limit)]

    async def find(
        self, scope: ReadScope, words: Sequence[Sequence[int]], limit: int
    ) -> list[KeptTurn]:
        user_id = checked_user(scope.user_id)
        newest: dict[str, KeptTurn] = {}
        rows = [row for row in self.words.values() if row.user_id == user_id]
        for row in sorted(rows, key=lambda one: (one.at, one.message_id), reverse=True):
            terms = set(turn_terms(row.question, row.answer))
            if words and all(not terms.isdisjoint(one) for one in words):
                newest.setdefault(row.conversation_id, row)
        return list(newest.values())[: max(0, limit)]

    async def name(self, scope: WriteScope, conversation_id: str, title: str, by: TitledBy) -> bool:
        row = self._rows.get((checked_user(scope.user_id), conversation_id))
        if row is None or (by != "person" and row.titled_by != "words"):
            return False
        self._rows[row.user_id, conversation_id] = replace(row, title=title, titled_by=by)
        return True

    async def comment(
        self, scope: WriteScope, conversation_id: str, message_id: str, feedback: str
    ) -> bool:
        key = (checked_user(scope.user_id), conversation_id, message_id)
        turn = self.words.get(key)
        if turn is None or turn.erased:
            return False
        self.words[key] = replace(turn, feedback=feedback)
        return True

    async def sum_up(
        self, scope: WriteScope, conversation_id: str, bullets: Sequence[str], summed: int
    ) -> bool:
        row = self._rows.get((checked_user(scope.user_id), conversation_id))
        if row is None or row.summed >= summed:
            return False
        changed = replace(row, bullets=tuple(bullets), summed=summed)
        self._rows[row.user_id, conversation_id] = changed
        return True

    async def untell(self, scope: WriteScope, conversation_id: str, title: str | None) -> None:
        row = self._rows.get((checked_user(scope.user_id), conversation_id))
        if row is None:
            return
        row = replace(row, bullets=(), summed=0)
        if title is not None and row.titled_by != "person":
            row = replace(row, title=title, titled_by="words")
        self._rows[row.user_id, conversation_id] = row

    async def activate(self, scope: WriteScope, conversation_id: str | None, at: datetime) -> None:
        user_id = checked_user(scope.user_id)
        row = self._rows.get((user_id, conversation_id)) if conversation_id else None
        if row is not None:
            self._rows[user_id, row.conversation_id] = replace(row, active_at=to_ms(at))
            return
        for key, one in self._rows.items():
            if key[0] == user_id:
                self._rows[key] = replace(one, active_at=None)

    async def active(self, scope: ReadScope) -> str | None:
        user_id = checked_user(scope.user_id)
        found = [
            (row.active_at, row.conversation_id)
            for row in self._rows.values()
            if row.user_id == user_id and row.active_at is not None
        ]
        return max(found)[1] if found else None

    async def purge(self, point_ids: Sequence[str]) -> None:
        for key, row in self.words.items():
            if point_id_of(row.user_id, row.memory_id) in point_ids:
                self.words[key] = replace(
                    row, question="", answer="", citations=(), tools=(), runs=(), feedback=None
                )
                kept = self._rows[key[:2]]
                self._rows[key[:2]] = replace(kept, bullets=(), summed=0)
                self._name_anew(row)

    def _name_anew(self, gone: KeptTurn) -> None:
        row = self._rows[gone.user_id, gone.conversation_id]
        turns = [one for one in self._of(gone.user_id, gone.conversation_id) if one.question]
        left = min(turns, key=lambda one: (one.at, one.message_id), default=None)
        first = left is None or (gone.at, gone.message_id) <= (left.at, left.message_id)
        if first and row.titled_by != "person":
            title = title_left(left.question if left else None)
            named = replace(row, title=title, titled_by="words")
            self._rows[gone.user_id, gone.conversation_id] = named

    async def forget(self, scope: WriteScope, conversation_id: str) -> Mapping[str, int]:
        key = user_id, _ = checked_user(scope.user_id), conversation_id
        name = f'"{conversation_id}"'.encode()

        def is_of(one: Any) -> bool:
            return (one.user_id, one.conversation_id) == key

        def is_noted(one: Any) -> bool:
            return (one.user_id, one.data.get("conversation_id")) == key

        def is_named(one: Any) -> bool:
            return one.user_id == user_id and name in (one.response or b"")

        removed = {
            "exchanges": _drop(self._exchanges, lambda one: is_of(one.exchange)),
            "receipts": _drop(self._receipts._receipts, is_of),
            "events": _drop(self._events._events, is_noted),
            "answers": _drop(self._answers._rows, is_named),
            "turns": _drop(self.words, is_of),
        }
        gone = self._sessions.rows.pop(key, None)
        self._rows.pop(key, None)
        return {**removed, "conversation": int(gone is not None)}

    def _of(self, user_id: str, conversation_id: str) -> list[KeptTurn]:
        wanted = (user_id, conversation_id)
        return [row for row in self.words.values() if (row.user_id, row.conversation_id) == wanted]

    def _counted(self, row: Conversation) -> Conversation:
        session: Session | None = self._sessions.rows.get((row.user_id, row.conversation_id))
        return replace(row, exchanges=session.exchanges if session else 0)


def _newest(places: Mapping[Place, Any], before: Place | None, limit: int) -> list[Place]:
    behind = [one for one in places if before is None or one < before]
    return sorted(behind, reverse=True)[: max(0, limit)]


def _drop(rows: Rows, gone: Callable[[Any], bool]) -> int:
    keys = [key for key, row in rows.items() if gone(row)]
    for key in keys:
        del rows[key]
    return len(keys)
