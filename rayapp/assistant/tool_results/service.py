"""Remembers what tools answered: durable before the answer, embedded later like any memory."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from rayapp.assistant.tool_results.rules import (
    LOOKED_AT,
    Ingested,
    Prepared,
    ToolResult,
    conversation_tag,
    prepare,
    surplus_results,
)
from rayapp.core.errors import Conflict, DuplicateMemory, NotFound, RayappError
from rayapp.core.runtime import Runtime
from rayapp.inference.chat.rules.answers import faithful
from rayapp.inference.ports import ModelPort, ModelQuestion, prompt_language
from rayapp.learning.rules.promotion import OWN_REASONS
from rayapp.memory.item import MemoryItem, SourceType, Status
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import ItemQuery, MemoryEdit, NewMemory
from rayapp.memory.rules.creation import MAX_TAGS
from rayapp.memory.scope import ItemFilter, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier
from rayapp.text.normalize import content_hash
from rayapp.text.redaction import redact

log = logging.getLogger(__name__)

# Looks at a full conversation per request: one does it, more only while other writers interfere.
SURPLUS_ROUNDS = 3
# Below this length, characters, a result is its own summary.
SUMMARY_FROM_CHARS = 2_000
# A longer one is no summary: three short sentences. Our choice.
MAX_SUMMARY_CHARS = 1_000
# Summaries in work per process; a result beyond them goes without one.
MAX_SUMMARIES = 8


@dataclass(eq=False)
class ToolResultService:
    """Remembers what tools answered. Raises InvalidInput, Conflict, StoreDown.

    `models`: makes a short form after the answer, where its settings allow it.
    """

    memories: MemoriesService
    store: MemoryStore
    models: ModelPort
    _: KW_ONLY
    runtime: Runtime

    def __post_init__(self) -> None:
        self._summaries: set[asyncio.Task[None]] = set()

    async def ingest(self, scope: WriteScope, results: Sequence[ToolResult]) -> list[Ingested]:
        """One answer per result, in order. Each is durable before the next one is looked at."""
        return [await self._one(scope, result) for result in results]

    async def settle(self) -> None:
        """Wait for the summaries in work."""
        await asyncio.gather(*self._summaries, return_exceptions=True)

    async def _one(self, scope: WriteScope, result: ToolResult) -> Ingested:
        prepared = prepare(result, self.runtime.settings.tool_results)
        done = Ingested(status="skipped", prepared=prepared)
        if prepared.new is not None:
            done = await self._stored(scope, prepared, prepared.new)
        self.runtime.metrics.count("tool_results", status=prepared.skipped or done.status)
        return done

    async def _stored(self, scope: WriteScope, prepared: Prepared, new: NewMemory) -> Ingested:
        """The id is made of what the tool said, so equal answers meet in the store itself."""
        try:
            result = await self.memories.store(scope, new)
        except DuplicateMemory:
            return await self._again(scope, prepared, new)
        assert result.memory_id is not None
        if result.status == "duplicate":
            return await self._again(scope, prepared, new)
        self._start_summary(scope, result.memory_id, new.text)
        archived = await self._archive_surplus(scope, new, keep=result.memory_id)
        return Ingested(
            status="stored", prepared=prepared, memory_id=result.memory_id, archived=archived
        )

    async def _again(self, scope: WriteScope, prepared: Prepared, new: NewMemory) -> Ingested:
        """Said before: it is current again, was mentioned once more, and is known to belong to
        this conversation too. What a person archived or hid stays as it is."""
        assert new.memory_id is not None
        memory_id = new.memory_id
        try:
            item = await self.memories.get(scope.own, memory_id)
            if item.memory_id == memory_id:
                if _put_away(item):
                    return Ingested(status="duplicate", prepared=prepared, memory_id=memory_id)
                item = await self.memories.restore(scope, memory_id)
                await self._join(scope, item, new)
            memory_id = item.memory_id
            also = _said_in(item, new)
            await self.store.mention(scope, memory_id, self.runtime.clock.now(), also)
        except DuplicateMemory as error:
            memory_id = str(error.details.get("memory_id") or memory_id)
        except (Conflict, NotFound):
            log.info("a repeated tool result changed while it was looked at")
        return Ingested(status="duplicate", prepared=prepared, memory_id=memory_id)

    async def _join(self, scope: WriteScope, item: MemoryItem, new: NewMemory) -> None:
        """Add the tags that this telling has and the first one had not, while there is room."""
        tags = tuple(dict.fromkeys((*item.tags, *new.tags)))[:MAX_TAGS]
        if tags != item.tags:
            edit = MemoryEdit(tags=tags, reason="said again by a tool")
            await self.memories.edit(scope, item.memory_id, edit)

    async def _archive_surplus(
        self, scope: WriteScope, new: NewMemory, *, keep: str
    ) -> tuple[str, ...]:
        """Below the cap this is one count over the tag of the conversation."""
        conversation = new.source.conversation_id
        if conversation is None:
            return ()
        where = ItemFilter(
            tiers=(Tier.WORKING,),
            source_types=(SourceType.TOOL.value,),
            tags_all=(conversation_tag(conversation),),
            include_superseded=True,
        )
        gone: list[str] = []
        for _ in range(SURPLUS_ROUNDS):
            there = await self.store.count(scope.own, where)
            over = there - self.runtime.settings.tool_results.per_conversation
            if over <= 0:
                break
            last = max(0, there - over - LOOKED_AT)
            query = ItemQuery(limit=over + LOOKED_AT, offset=last)
            oldest = await self.store.page(scope.own, where, query)
            for item in surplus_results(oldest.items, over, keep=keep):
                gone += await self._leave(scope, item)
        return tuple(gone)

    async def _leave(self, scope: WriteScope, item: MemoryItem) -> list[str]:
        """Archive `item` unless it changed since it was judged; the next round sees it anew."""
        try:
            left = await self.memories.archive(
                scope, item.memory_id, reason="capacity", expected_version=item.version
            )
        except (Conflict, NotFound):
            return []
        return [left.memory_id] if left.status is Status.ARCHIVED else []

    def _start_summary(self, scope: WriteScope, memory_id: str, text: str) -> None:
        if len(text) < SUMMARY_FROM_CHARS or not self.models.enabled("tool_result_summary"):
            return
        if len(self._summaries) >= MAX_SUMMARIES:
            self.runtime.metrics.count("tool_results", status="no_summary")
            return
        task = asyncio.create_task(self._summary(scope, memory_id, text))
        self._summaries.add(task)
        task.add_done_callback(self._summaries.discard)

    async def _summary(self, scope: WriteScope, memory_id: str, text: str) -> None:
        """A result without a summary is as good as it was: no failure of this reaches anybody."""
        question = ModelQuestion(
            helper="tool_result_summary",
            variables={"text": text},
            answer=str,
            language=prompt_language(text),
        )
        try:
            said = (await self.models.ask(scope.user_id, question)).value
            made = faithful(said or "", text, MAX_SUMMARY_CHARS)
            short = redact(made or "").text.strip()[:MAX_SUMMARY_CHARS]
            if short:
                edit = MemoryEdit(summary=short, reason="summarised")
                await self.memories.edit(scope, memory_id, edit)
        except RayappError as error:
            log.info("a tool result has no summary: %s", error.code)


def _said_in(item: MemoryItem, new: NewMemory) -> str | None:
    """The other conversation that said this; None: it is the same one, or it asked with words of
    its own, and those of the first one go with it."""
    name = new.source.conversation_id
    same = content_hash(new.text) == item.content_hash
    return (name or "") if same and name != item.source.conversation_id else None


def _put_away(item: MemoryItem) -> bool:
    """Whether a person took it out of sight, and so wants it there."""
    return item.status is not Status.ACTIVE and item.archived_reason not in OWN_REASONS
