"""The tools of an assistant: arguments in, text for a model and data out."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from rayapp.assistant.context.service import floor_of
from rayapp.assistant.ports import SessionStore
from rayapp.assistant.records import ToolAnswer, ToolCall
from rayapp.assistant.tools.known import KnownTools
from rayapp.assistant.tools.rules import definitions, texts
from rayapp.assistant.tools.rules.arguments import read_arguments
from rayapp.assistant.tools.rules.repairs import read_repaired
from rayapp.assistant.tools.rules.table import ToolRow, row_of
from rayapp.assistant.tools.writes import ToolWrites
from rayapp.core.errors import Forbidden, InvalidInput, NotFound, RayappError
from rayapp.core.runtime import Runtime
from rayapp.documents.service import BooksService
from rayapp.graphs.records import InsightsRequest
from rayapp.learning.insights import InsightsService
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search.requests import SearchQuery

# Searches that an assistant may make itself in one turn, our choice.
SEARCHES_PER_TURN = 1
# Characters of an unknown name that the refusal repeats.
ECHO_CHARS = 64
# Results of the earlier search that are shown in place of another one.
SHOWN_AGAIN = 5


Handler = Callable[[WriteScope, ToolCall, Any], Awaitable[ToolAnswer]]


@dataclass(eq=False)
class ToolsService(ToolWrites):
    """The tools of an assistant. Raises what the services behind them raise.

    `table`: what programs show of tools, by name.
    """

    insights: InsightsService
    books: BooksService
    known: KnownTools
    _: KW_ONLY
    sessions: SessionStore
    table: Mapping[str, ToolRow]
    runtime: Runtime

    def __post_init__(self) -> None:
        self.documents = self.runtime.settings.compat.tier_documents
        self.listed = definitions.tools_named(self.documents)
        self._turns = WeakValueDictionary[tuple[str, str, str], asyncio.Lock]()
        self._handlers: Mapping[str, Handler] = {
            definitions.GetContextInsights.name: self._insights,
            definitions.SearchMemory.name: self._search,
            definitions.SearchBooks.name: self._search_books,
            definitions.RecordResponse.name: self.record_response,
            definitions.AddToMemoryBank.name: self.add,
            definitions.UpdateMemory.name: self.update,
            definitions.ArchiveMemory.name: self.archive,
            definitions.ScoreMemories.name: self.score,
            definitions.MemorySummary.name: self.known.summary,
            definitions.WhoIs.name: self.known.who_is,
            definitions.Timeline.name: self.known.timeline,
        }

    async def call(self, scope: WriteScope, call: ToolCall) -> ToolAnswer:
        """NotFound, code `unknown_tool`; InvalidInput names the argument; Forbidden when the
        caller may not write."""
        tool = definitions.TOOLS_BY_NAME.get(call.name)
        if tool is None:
            known = ", ".join(definitions.TOOLS_BY_NAME)
            raise NotFound(
                f"No tool {call.name[:ECHO_CHARS]!a}; the tools are {known}.",
                code="unknown_tool",
                details={"tools": list(definitions.TOOLS_BY_NAME)},
            )
        try:
            answer = await self._answer(tool, scope, call)
        except RayappError as error:
            self.runtime.metrics.count("tool_calls", tool=tool.name, result=error.code)
            raise
        self.runtime.metrics.count("tool_calls", tool=tool.name, result="ok")
        return answer

    async def _answer(
        self, tool: type[definitions.Tool], scope: WriteScope, call: ToolCall
    ) -> ToolAnswer:
        if tool.writes and not call.may_write:
            raise Forbidden(f"{tool.name} needs the scope write; use another key.")
        if tool.writes:
            self.runtime.disk.check()
        arguments, repairs = await self._read(tool, scope, call)
        answer = await self._handlers[tool.name](scope, call, arguments)
        most = row_of(tool.name, self.table).tokens
        answer = replace(answer, text=texts.within(answer.text, most))
        return answer if not repairs else texts.with_repairs(answer, repairs)

    async def _read(
        self, tool: type[definitions.Tool], scope: WriteScope, call: ToolCall
    ) -> tuple[definitions.Tool, tuple[str, ...]]:
        """The arguments, and what was put right in them. The question of the turn is only looked
        for where it has to stand in for the query."""
        try:
            return read_arguments(tool, call.arguments), ()
        except InvalidInput:
            if tool.writes:
                raise
            return read_repaired(tool, call.arguments, await self._question(scope, call))

    async def _question(self, scope: WriteScope, call: ToolCall) -> str | None:
        """What the person asked: the newest context of the conversation was made for it."""
        if call.conversation_id is None:
            return None
        receipt = await self._receipt(scope, call, None)
        return receipt.query if receipt else None

    async def _insights(
        self, scope: WriteScope, call: ToolCall, args: definitions.GetContextInsights
    ) -> ToolAnswer:
        self._check_length(args.query)
        # The context of this turn was made for the same question, which was not asked before.
        asked = InsightsRequest(
            query=args.query, conversation_id=call.conversation_id, message_id=call.turn_id
        )
        found = await self.insights.insights(ReadScope(scope.user_id), asked)
        data = texts.insights_data(found, self.documents)
        return ToolAnswer(call.name, texts.insights_text(found, self.documents), data)

    async def _search(
        self, scope: WriteScope, call: ToolCall, args: definitions.SearchMemory
    ) -> ToolAnswer:
        asked = SearchQuery(
            query=args.query,
            limit=args.limit,
            tiers=args.tiers,
            sort_by=args.sort_by,
            # Who asks for more, or for an order of their own, wants the weak ones as well.
            floor=None
            if args.more or args.sort_by
            else floor_of(self.runtime.settings.context, args.limit, named=True),
            where=ItemFilter(tags_any=args.tags) if args.tags else ItemFilter(),
        )
        return await self._found(scope, call, args, asked)

    async def _search_books(
        self, scope: WriteScope, call: ToolCall, args: definitions.SearchBooks
    ) -> ToolAnswer:
        reads, ids = ReadScope(scope.user_id), None
        if args.titles is not None:
            ids = await self.books.with_passages(
                reads, await self.books.named(reads, args.titles, call.conversation_id)
            )
        where = ItemFilter(
            doc_ids=ids,
            authors=args.authors,
            sections=args.sections,
            page_from=args.page_from,
            page_to=args.page_to if args.page_to is not None else args.page_from,
            has_code=args.has_code,
        )
        asked = SearchQuery(query=args.query, limit=args.limit, tiers=(Tier.BOOKS,), where=where)
        return await self._found(scope, call, args, asked)

    async def _found(
        self,
        scope: WriteScope,
        call: ToolCall,
        args: definitions.SearchMemory | definitions.SearchBooks,
        asked: SearchQuery,
    ) -> ToolAnswer:
        """The one search of a turn."""
        self._check_length(args.query)
        async with self._alone(scope, call):
            if not args.more and await self._count_searches(scope, call) >= SEARCHES_PER_TURN:
                return await self._limited(scope, call)
            found = await self.search.search(
                ReadScope(scope.user_id),
                replace(
                    asked, conversation_id=call.conversation_id, principal=call.recorder.principal
                ),
            )
            made = await self._count(scope, call)
            if made > SEARCHES_PER_TURN and not args.more:
                return await self._limited(scope, call)
            now = self.runtime.clock.now()
            data: dict[str, Any] = {
                "query": args.query,
                "receipt_id": found.receipt_id,
                "confidence": found.confidence,
                "knows": found.knowledge.known,
                "total": found.total,
                "limited": False,
                "left_out": found.weak,
                "results": [texts.hit_data(hit, now, self.documents) for hit in found.hits],
            }
            text = texts.found_text(found, args.query, now, self.documents)
            if not found.hits:
                meant = await self.insights.suggestions(scope.own, args.query)
                text += texts.meant_text(meant)
                data |= {"suggestions": list(meant)} if meant else {}
            return ToolAnswer(call.name, text, data, found.degraded)

    def _alone(self, scope: WriteScope, call: ToolCall) -> AbstractAsyncContextManager[Any]:
        """Of two searches of a turn at the same time the second waits and finds that it is one too
        many: its receipt would take the place of the one that the model was shown."""
        if call.conversation_id is None or call.turn_id is None:
            return nullcontext()
        turn = (scope.user_id, call.conversation_id, call.turn_id)
        return self._turns.setdefault(turn, asyncio.Lock())

    def _check_length(self, query: str) -> None:
        most = self.runtime.settings.http.query_limit_chars
        if len(query) > most:
            raise InvalidInput(
                f"query: has {len(query)} characters; send at most {most}.",
                details={"field": "query", "limit": most},
            )

    # --- the limit of searches in one turn

    async def _count_searches(self, scope: WriteScope, call: ToolCall) -> int:
        """Searches of this turn that were answered."""
        if call.conversation_id is None or call.turn_id is None:
            return 0
        session = await self.sessions.get(ReadScope(scope.user_id), call.conversation_id)
        return session.refinements if session and session.turn_id == call.turn_id else 0

    async def _count(self, scope: WriteScope, call: ToolCall) -> int:
        """One more. It is counted once it is answered: a search that failed takes no place. Without
        a conversation and a turn nobody can tell one turn from the next. Of searches at the same
        time the count tells which one came first."""
        if call.conversation_id is None or call.turn_id is None:
            return 0
        return await self.sessions.refine(
            scope, call.conversation_id, call.turn_id, self.runtime.clock.now()
        )

    async def _limited(self, scope: WriteScope, call: ToolCall) -> ToolAnswer:
        now, earlier = self.runtime.clock.now(), await self._earlier(scope, call)
        shown = [
            {"position": at, **texts.item_data(item, now, self.documents)} for at, item in earlier
        ]
        data: dict[str, Any] = {"limited": True, "receipt_id": None, "results": shown}
        text = texts.limited_text(earlier, now, self.documents)
        return ToolAnswer(call.name, text, data)

    async def _earlier(self, scope: WriteScope, call: ToolCall) -> list[tuple[int, MemoryItem]]:
        """What the last search of the conversation showed, as far as it is still there."""
        receipt = await self._receipt(scope, call, None)
        if receipt is None:
            return []
        read, first = ReadScope(scope.user_id), receipt.shown[:SHOWN_AGAIN]
        found = await asyncio.gather(*(self._item(read, one.memory_id) for one in first))
        return [(one.position, item) for one, item in zip(first, found, strict=True) if item]

    async def _item(self, scope: ReadScope, memory_id: str) -> MemoryItem | None:
        try:
            return await self.memories.get(scope, memory_id)
        except NotFound:
            return None
