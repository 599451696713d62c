"""Which tools the turn used that a score is about."""

from rayapp.assistant.ports import ConversationStore, Session, SessionStore
from rayapp.assistant.tools.rules.runs import tool_use
from rayapp.learning.ports import ScoreGiven
from rayapp.learning.records import ToolUse
from rayapp.memory.scope import ReadScope


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
