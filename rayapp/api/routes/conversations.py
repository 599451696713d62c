"""Conversations: list, read again, switch, rename, export, delete."""

from rayapp.api.paths import ConversationId
from rayapp.api.responses import raises, raises_code
from rayapp.api.route import IDEMPOTENT, CurrentCall, InQuery, router, writes
from rayapp.core.errors import NotFound, Overloaded
from rayapp.wire import conversations as wire

routes = router("conversations")
CONVERSATIONS = "/api/memory/conversations"
ONE = f"{CONVERSATIONS}/{{conversation_id}}"


@routes.get(CONVERSATIONS, summary="List or search the conversations")
async def listed(
    call: CurrentCall, query: InQuery[wire.ConversationsQuery]
) -> wire.ConversationsAnswer:
    """One exists from its first kept turn on. A search finds words in either language, in any of
    their forms."""
    found = await call.services.conversations.page(
        call.reads, limit=query.limit, cursor=query.cursor, query=query.query
    )
    return wire.ConversationsAnswer.from_page(found)


@routes.post(f"{CONVERSATIONS}/switch", summary="Open a conversation", **writes())
async def switch(call: CurrentCall, body: wire.SwitchBody | None = None) -> wire.SwitchedAnswer:
    """The last 20 messages come back. When another one was open, promotion runs in the background,
    so that what was learned there serves here."""
    wanted = body.conversation_id if body else None
    found = await call.services.conversations.switch(call.writes, wanted)
    return wire.SwitchedAnswer.from_switched(found, call.documents)


@routes.get(f"{ONE}/messages", summary="Messages of a conversation", responses=raises(NotFound))
async def messages(
    call: CurrentCall, conversation_id: ConversationId, query: InQuery[wire.MessagesQuery]
) -> wire.MessagesAnswer:
    """With the model, the tools, what the answer was given with, its receipt and its score."""
    found = await call.services.conversations.messages(
        call.reads, conversation_id, limit=query.limit, cursor=query.cursor
    )
    return wire.MessagesAnswer.from_page(found, call.documents)


@routes.get(
    f"{ONE}/export", summary="Everything that is kept of a conversation", responses=raises(NotFound)
)
async def export(call: CurrentCall, conversation_id: ConversationId) -> wire.ConversationExport:
    """Its messages, and the memories that were stored or learned in it."""
    found = await call.services.conversations.export(call.reads, conversation_id)
    return wire.ConversationExport.from_exported(found, call.documents)


@routes.get(ONE, summary="One conversation", responses=raises(NotFound))
async def get(call: CurrentCall, conversation_id: ConversationId) -> wire.ConversationAnswer:
    found, active = await call.services.conversations.one(call.reads, conversation_id)
    return wire.ConversationAnswer(conversation=wire.ConversationView.from_row(found, active))


@routes.patch(ONE, summary="Rename a conversation", **writes(NotFound))
async def rename(
    call: CurrentCall, conversation_id: ConversationId, body: wire.RenameBody
) -> wire.RenamedAnswer:
    """A person's title stays: no model replaces it."""
    await call.services.conversations.rename(call.writes, conversation_id, body.title)
    found, active = await call.services.conversations.one(call.reads, conversation_id)
    return wire.RenamedAnswer(conversation=wire.ConversationView.from_row(found, active))


@routes.delete(
    ONE,
    summary="Delete a conversation",
    responses={**raises_code("conversation_active"), **raises(NotFound, Overloaded)},
    dependencies=[IDEMPOTENT],
)
async def delete(call: CurrentCall, conversation_id: ConversationId) -> wire.ForgottenAnswer:
    """For good, with everything learned from it: its memories, what it said of others, and what it
    counted. What another conversation said too stays. The active one cannot be deleted."""
    removed = await call.services.conversations.delete(call.writes, conversation_id)
    return wire.ForgottenAnswer(conversation_id=conversation_id, removed=removed)
