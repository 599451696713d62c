"""Conversations of users in process memory."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from rayapp.assistant.ports import (
    MAX_INJECTED_CHARS,
    MAX_TURNS,
    Conversation,
    InjectedContext,
    Session,
    TurnRecord,
)
from rayapp.core.errors import InvalidInput
from rayapp.core.runtime import Clock
from rayapp.learning.ports import ScoreGiven
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.stores.rows import to_ms

KEEP = timedelta(days=30)


class InMemorySessionStore:
    """Implements `SessionStore`. By (user, conversation): `rows`, and `kept` where words are."""

    def __init__(self, clock: Clock, keep: timedelta = KEEP) -> None:
        self._clock = clock
        self._keep = keep
        self.rows: dict[tuple[str, str], Session] = {}
        self.kept: dict[tuple[str, str], Conversation] = {}

    async def get(self, scope: ReadScope, conversation_id: str) -> Session | None:
        row = self.rows.get((checked_user(scope.user_id), conversation_id))
        return row if row is not None and self._alive(row) else None

    async def by_message(self, scope: ReadScope, message_id: str) -> Session | None:
        user_id = checked_user(scope.user_id)

        def fits(row: Session) -> bool:
            return row.user_id == user_id and self._alive(row) and row.turn(message_id) is not None

        return self._newest(fits)

    async def log_injected(self, scope: WriteScope, context: InjectedContext) -> None:
        row = self._row(scope, context.conversation_id, context.at)
        told = context.fingerprints
        injected = tuple(one for one in row.injected if one != told) + ((told,) if told else ())
        if sum(map(len, injected)) > MAX_INJECTED_CHARS:
            injected = injected[len(injected) // 2 :]
        self._put(replace(row, injected=injected, receipt_id=context.receipt_id))

    async def add_turn(self, scope: WriteScope, conversation_id: str, turn: TurnRecord) -> bool:
        row = self._row(scope, conversation_id, turn.at)
        if row.turn(turn.message_id) is not None:
            return False
        kept = replace(turn, at=to_ms(turn.at))
        row = replace(row, turns=(*row.turns, kept)[-MAX_TURNS:], exchanges=row.exchanges + 1)
        if turn.required:
            row = replace(row, owed_message=turn.message_id, owed_receipt=turn.receipt_id)
        self._put(row)
        return True

    async def replace_turn(self, scope: WriteScope, conversation_id: str, turn: TurnRecord) -> None:
        row = self._row(scope, conversation_id, turn.at)
        kept = replace(turn, at=to_ms(turn.at))
        same = (kept if one.message_id == turn.message_id else one for one in row.turns)
        row = replace(row, turns=tuple(same))
        if row.owed_message == turn.message_id:
            row = replace(row, owed_message=None, owed_receipt=None)
        if turn.required:
            row = replace(row, owed_message=turn.message_id, owed_receipt=turn.receipt_id)
        self._put(row)

    async def scored(self, scope: WriteScope, given: ScoreGiven) -> bool:
        row = self._scored_row(checked_user(scope.user_id), given)
        if row is None:
            return False
        target, at = given.message_id or row.owed_message, to_ms(given.at)
        turns = tuple(
            replace(one, scored_at=at, score=one.score if given.score is None else given.score)
            if one.message_id == target
            else one
            for one in row.turns
        )
        row = replace(row, turns=turns, updated_at=at)
        if row.owed_message == target:
            row = replace(row, owed_message=None, owed_receipt=None)
        self._put(row)
        return True

    async def refine(
        self, scope: WriteScope, conversation_id: str, turn_id: str, at: datetime
    ) -> int:
        row = self._row(scope, conversation_id, at)
        made = row.refinements + 1 if row.turn_id == turn_id else 1
        self._put(replace(row, turn_id=turn_id, refinements=made))
        return made

    # --- inside

    def _scored_row(self, user_id: str, given: ScoreGiven) -> Session | None:
        if (given.conversation_id, given.message_id, given.receipt_id) == (None, None, None):
            raise InvalidInput("A score names a conversation, a message or a receipt.")

        def fits(row: Session) -> bool:
            if row.user_id != user_id or given.conversation_id not in (None, row.conversation_id):
                return False
            if given.message_id is not None:
                return row.turn(given.message_id) is not None
            if row.owed_message is None:
                return False
            return given.conversation_id is not None or row.owed_receipt == given.receipt_id

        return self._newest(fits)

    def _newest(self, fits: Callable[[Session], bool]) -> Session | None:
        found = [row for row in self.rows.values() if fits(row)]
        return max(found, key=lambda row: (row.updated_at, row.conversation_id), default=None)

    def _row(self, scope: WriteScope, conversation_id: str, at: datetime) -> Session:
        user_id = checked_user(scope.user_id)
        new = Session(user_id=user_id, conversation_id=conversation_id, updated_at=to_ms(at))
        row = self.rows.get((user_id, conversation_id), new)
        return replace(row, updated_at=to_ms(at))

    def _put(self, row: Session) -> None:
        self.rows[row.user_id, row.conversation_id] = row

    def _alive(self, row: Session) -> bool:
        kept = (row.user_id, row.conversation_id) in self.kept
        return kept or row.updated_at + self._keep > self._clock.now()
