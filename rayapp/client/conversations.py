"""Client calls about kept conversations."""

from collections.abc import Mapping
from typing import Unpack

from rayapp.client.calls import Reader, Talk, Writer, asked, at, call
from rayapp.client.core import Core
from rayapp.wire import conversations as wire

CONVERSATIONS = "/api/memory/conversations"


class ConversationCalls(Core):
    """The calls."""

    @call
    def conversations(
        self,
        *,
        query: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        **who: Unpack[Reader],
    ) -> Talk[wire.ConversationsAnswer]:
        """The newest first; with a query those of which one turn has all its words."""
        path = asked(CONVERSATIONS, query=query, limit=limit, cursor=cursor)
        return self.reading(wire.ConversationsAnswer, path, **who)

    @call
    def conversation(
        self, conversation_id: str, **who: Unpack[Reader]
    ) -> Talk[wire.ConversationView]:
        """One of them. Raises NotFound."""
        path = at(CONVERSATIONS, conversation_id)
        return (yield from self.reading(wire.ConversationAnswer, path, **who)).conversation

    @call
    def messages(
        self,
        conversation_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        **who: Unpack[Reader],
    ) -> Talk[wire.MessagesAnswer]:
        """The last messages, oldest first, or those before the cursor. Raises NotFound."""
        path = at(CONVERSATIONS, conversation_id, "messages")
        path = asked(path, limit=limit, cursor=cursor)
        return self.reading(wire.MessagesAnswer, path, **who)

    @call
    def switch_conversation(
        self, conversation_id: str | None = None, **who: Unpack[Writer]
    ) -> Talk[wire.SwitchedAnswer]:
        """Open a conversation, or none: its last messages."""
        body = {"conversation_id": conversation_id}
        return self.writing(wire.SwitchedAnswer, f"{CONVERSATIONS}/switch", body, **who)

    @call
    def rename_conversation(
        self, conversation_id: str, title: str, **who: Unpack[Writer]
    ) -> Talk[wire.ConversationView]:
        """A title that no model replaces. Raises NotFound."""
        path, body = at(CONVERSATIONS, conversation_id), {"title": title}
        found = yield from self.writing(wire.RenamedAnswer, path, body, method="PATCH", **who)
        return found.conversation

    @call
    def delete_conversation(
        self, conversation_id: str, **who: Unpack[Writer]
    ) -> Talk[Mapping[str, int]]:
        """For good, with everything learned from it; how many rows went, by kind.

        Raises NotFound; InvalidInput, code `conversation_active`.
        """
        path = at(CONVERSATIONS, conversation_id)
        found = yield from self.writing(wire.ForgottenAnswer, path, method="DELETE", **who)
        return found.removed

    @call
    def export_conversation(
        self, conversation_id: str, **who: Unpack[Reader]
    ) -> Talk[wire.ConversationExport]:
        """Its messages, and the memories that were stored or learned in it. Raises NotFound."""
        path = at(CONVERSATIONS, conversation_id, "export")
        return self.reading(wire.ConversationExport, path, **who)
