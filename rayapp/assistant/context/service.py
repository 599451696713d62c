"""What an assistant is told first: insights, standing memories, one search, its receipt."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from rayapp.assistant.commands.rules import told
from rayapp.assistant.commands.service import CommandsService
from rayapp.assistant.context.rules import pinned
from rayapp.assistant.context.rules.already_in_context import AlreadyInContext
from rayapp.assistant.context.rules.prompt_block import Limits, Material, SectionItem, build_block
from rayapp.assistant.conversations.reactions import Reactions
from rayapp.assistant.conversations.rules import exchange_id, fingerprints_of
from rayapp.assistant.conversations.sessions import SESSION, DeferredSessions
from rayapp.assistant.gating.rules.decision import decide_tool_gating, read_task, topic_of
from rayapp.assistant.gating.rules.hints import hint_notes, hints_of, parts_of
from rayapp.assistant.gating.rules.intents import tool_needs
from rayapp.assistant.ports import InjectedContext
from rayapp.assistant.records import (
    AssistantContext,
    ColdStart,
    ContextBlock,
    ContextRequest,
    Intents,
    Section,
    Task,
)
from rayapp.assistant.safety.rules import disclaimers_of
from rayapp.core.deadline import Deadline
from rayapp.core.runtime import Runtime
from rayapp.core.settings.model import ContextSettings
from rayapp.graphs.records import ContextInsights, InsightsRequest
from rayapp.graphs.rules.directives import side_of
from rayapp.graphs.rules.question import context_type_of
from rayapp.learning.insights import InsightsService
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import CORE_TIERS, Tier
from rayapp.search.newest import NewestMemories
from rayapp.search.ports import STANDING, Receipt, Receipts, Shown
from rayapp.search.priors import GraphsOnce
from rayapp.search.requests import ConfidenceLabel, Floor, Hit, SearchAnswer, SearchQuery
from rayapp.search.rules.confidence import LEVELS, features_of, label, relevance
from rayapp.search.rules.diversification import interleave, least_sure
from rayapp.search.rules.recipes import Texts
from rayapp.search.service import CONTEXT_HITS, SearchService
from rayapp.search.tracing import Trace
from rayapp.text.concepts import extract_concepts
from rayapp.understanding.derived.hints import HintsService

# Newest memories of one kind among which the best are chosen: far more than stand, so that a new
# one evicts none that is worth more. Measured on one mongod: with 300 patterns about 10 ms more
# than reading the places alone; with fewer memories than this, nothing.
CHOSEN_FROM = 100


class CoreMemories:
    """What is pinned, who the user is, what they prefer, and what has proven itself."""

    def __init__(self, newest: NewestMemories, settings: ContextSettings) -> None:
        self._newest = newest
        self._most: dict[Section, int] = {
            "identity": settings.identity,
            "preference": settings.preferences,
            "pattern": settings.patterns,
            "always": settings.always_inject,
            "instruction": settings.instructions,
        }

    async def read(
        self, scope: ReadScope, now: datetime, *, patterns: bool = True
    ) -> tuple[SectionItem, ...]:
        """In the order of the block. What was replaced, archived or is over is not among it: of
        the user's own, because nobody else's memory stands before their questions. What is read
        does not follow from the places, which are given by worth and not by age."""
        most = self._most if patterns else {**self._most, "pattern": 0}
        places, current = max(most.values()), ItemFilter(now=now, valid_at=now)
        if not places:
            return ()
        wheres: dict[Section, ItemFilter] = {
            "always": replace(current, always_inject=True),
            "identity": _tagged(current, pinned.IDENTITY_TAGS),
            "preference": _tagged(current, pinned.PREFERENCE_TAGS),
            "instruction": replace(current, instruction=True),
            "pattern": replace(current, tiers=(Tier.PATTERNS,)),
        }
        # A pinned fact may stand among the facts about the user, so its page serves all sections.
        wanted = [where for name, where in wheres.items() if name == "always" or most[name]]
        pages = await self._newest.of(scope, wanted, max(places, CHOSEN_FROM))
        return pinned.core_memories_of((item for page in pages for item in page), most)


def _tagged(current: ItemFilter, tags: tuple[str, ...]) -> ItemFilter:
    return replace(current, tiers=(Tier.MEMORY_BANK,), tags_any=tags)


# Seconds that a receipt may take: an answer does not wait for a slow truth.
KEEP_S = 0.2


class ContextReceipts:
    """Makes receipts, and keeps them for as long as marks of an answer may come in.

    `texts`: what reads the concepts of a question.
    """

    def __init__(self, receipts: Receipts, texts: Texts, runtime: Runtime) -> None:
        self._receipts = receipts
        self.texts = texts
        self._new_id = runtime.new_id
        self._disk = runtime.disk
        self._ttl = timedelta(days=runtime.settings.context.receipt_ttl_days)

    def of_block(
        self,
        scope: ReadScope,
        request: ContextRequest,
        block: ContextBlock,
        now: datetime,
        *,
        search: SearchAnswer | None,
        insights: ContextInsights | None,
    ) -> Receipt:
        """Under the concepts of the question: what was asked is what an outcome teaches."""
        hits = {hit.item.memory_id: hit for hit in search.hits} if search else {}
        cited = pinned.cited_ids(block.lines, search)
        numbered = {line.memory_id for line in block.lines if line.numbered}
        concepts = (
            insights.concepts
            if insights is not None
            else extract_concepts(request.query, expansions=self.texts.expansions)
        )
        return Receipt(
            receipt_id=self._new_id(),
            user_id=scope.user_id,
            query=request.query,
            recipe=search.recipe if search else "none",
            conversation_id=request.conversation_id,
            turn_id=request.message_id,
            concepts=tuple(concept.key for concept in concepts),
            context_type=context_type_of(request.query),
            principal=request.principal,
            shown=tuple(
                _shown(
                    line.position,
                    line.item,
                    hits.get(line.memory_id),
                    cited=line.memory_id in cited,
                )
                for line in block.lines
                if line.numbered or line.memory_id not in numbered
            ),
            degraded=search.degraded if search else ("search",),
            at=now,
            expires_at=now + self._ttl,
        )

    def of_cold_start(
        self,
        scope: ReadScope,
        conversation_id: str | None,
        items: Sequence[MemoryItem],
        now: datetime,
    ) -> Receipt:
        """Without concepts: nobody asked anything, so an outcome teaches the graphs nothing."""
        return Receipt(
            receipt_id=self._new_id(),
            user_id=scope.user_id,
            query=pinned.QUERY,
            recipe="cold_start",
            conversation_id=conversation_id,
            shown=tuple(
                _shown(place, item, None, cited=False) for place, item in enumerate(items, start=1)
            ),
            at=now,
            expires_at=now + self._ttl,
        )

    async def keep(self, receipt: Receipt, trace: Trace) -> str | None:
        """Its id, or None (degraded `receipt`) when it could not be stored in time."""
        stored = False
        async with trace.stage("receipt", degrades="receipt"):
            self._disk.check()
            async with asyncio.timeout(KEEP_S):
                await asyncio.shield(self._receipts.put(receipt))
            stored = True
        return receipt.receipt_id if stored else None


def _shown(position: int, item: MemoryItem, hit: Hit | None, *, cited: bool) -> Shown:
    ranks = {"search": hit.position} if hit is not None else {}
    if not cited:
        ranks[STANDING] = position
    return Shown(
        position=position,
        memory_id=item.memory_id,
        tier=item.tier,
        final=hit.summary.final_score if hit is not None else 0.0,
        ranks=ranks,
    )


# Share of the time that the search plans with: the rest is for its last rung and for the block.
SEARCH_SHARE = 0.9
# Seconds that the newest memories may take beyond the deadline.
AFTER_S = 0.2
# Hits of the fixed question of a cold start (client contract).
COLD_HITS = 5
# Best hits that are compared with the question word by word: 0.1 ms each.
KNOWN_HITS = 5
# The kind of work in which memory itself is asked.
ASKS_MEMORY = "memory_management"
# What may be missing while memory still looked everywhere.
HARMLESS = frozenset({"receipt", "reranker", "priors", "insights", "hints"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was read for one question; None and empty where it could not be read.

    sure: how sure memory is of all that the message asks, when it asks several things.
    hints: what is known of the user, as lines.
    """

    insights: ContextInsights | None
    standing: tuple[SectionItem, ...]
    search: SearchAnswer | None
    others: tuple[MemoryItem, ...] = ()
    sure: ConfidenceLabel = "low"
    hints: tuple[str, ...] = ()

    @property
    def hits(self) -> tuple[Hit, ...]:
        return self.search.hits if self.search else ()

    @property
    def only_weak(self) -> bool:
        """Something was found, and nothing of it is worth showing."""
        return self.search is not None and self.search.weak > 0 and not self.search.hits

    @property
    def silent(self) -> bool:
        """Memory knows nothing of the question, by its own answer."""
        return self.only_weak and self.search is not None and self.search.knowledge.known == "no"


GivenT = TypeVar("GivenT", AssistantContext, ColdStart)
Tell = Callable[[WriteScope, InjectedContext], Awaitable[bool]]


@dataclass(eq=False)
class ContextService:
    """What an assistant is told. Never raises for what is merely away: it says `degraded`.

    The session of the conversation remembers what was put before the assistant, so that its echo
    is not learned; a prefetch does not wait for that. The hooks take its two steps apart: the
    session is told of a new context when the turn before it is kept, so that a repeated call meets
    the receipt of that turn, and they wait, because they ask for marks when the session knows them.
    """

    search: SearchService
    insights: InsightsService
    newest: NewestMemories
    receipts: ContextReceipts
    sessions: DeferredSessions
    reactions: Reactions
    commands: CommandsService
    hints: HintsService
    _: KW_ONLY
    runtime: Runtime

    def __post_init__(self) -> None:
        self._settings = self.runtime.settings.context
        self._standing = CoreMemories(self.newest, self._settings)

    async def prefetch(self, scope: ReadScope, request: ContextRequest) -> AssistantContext:
        """Everything about one question, within the deadline of the settings."""
        found = await self.read(scope, request)
        return await self._remember(scope, request.conversation_id, found, self.sessions.tell_later)

    async def read(self, scope: ReadScope, request: ContextRequest) -> AssistantContext:
        """Everything in one round of parallel reads, then the block, its receipt and the gate.

        Before them the answer before is judged by this question, and what it orders of memory is
        done, so that the block shows it. No session is told of it.
        """
        trace = Trace(self.runtime.clock, self.runtime.metrics)
        begun = self.runtime.clock.monotonic()
        needs = tool_needs(request.query, request.tools)
        task = read_task(request, needs)
        async with trace.stage("reaction"):
            await self.reactions.judge(scope, request)
        intents = await self._intents(scope, request, trace)
        found = await self._gather(scope, request, task, intents, trace)
        known = self._known(request, found)
        async with trace.stage("format"):
            block = self._block(request, task, found, known, intents)
        now = self.runtime.clock.now()
        receipt_id = await self.receipts.keep(
            self.receipts.of_block(
                scope, request, block, now, search=found.search, insights=found.insights
            ),
            trace,
        )
        asked = found.search.degraded if found.search else ()
        degraded = tuple(dict.fromkeys((*asked, *trace.degraded)))
        took = self.runtime.clock.monotonic() - begun
        self.runtime.metrics.observe("prefetch_latency_s", took)
        confidence = found.search.confidence if found.search else "low"
        return AssistantContext(
            request=request,
            block=block,
            gating=decide_tool_gating(
                needs,
                confidence=found.sure,
                result_count=_answering(block, found),
                degraded=not HARMLESS.issuperset(degraded),
                tools=request.tools,
                ended=0 < self.runtime.settings.models.chain_depth <= request.tool_rounds,
            ),
            confidence=confidence,
            at=now,
            task=task,
            intents=intents,
            search=found.search,
            insights=found.insights,
            known=tuple(one.memory_id for one in known),
            receipt_id=receipt_id,
            degraded=degraded,
            timings_ms=trace.finish(found.search.spans if found.search else ()),
        )

    async def remember(self, scope: ReadScope, found: AssistantContext) -> AssistantContext:
        """Tell the session. An empty context too: the receipt of an earlier one is out of date."""
        return await self._remember(scope, found.request.conversation_id, found, self.sessions.tell)

    async def _remember(
        self, scope: ReadScope, conversation_id: str | None, found: GivenT, tell: Tell
    ) -> GivenT:
        """`found`, told to the session: the user's own, whoever reads for them."""
        if conversation_id is None:
            return found
        prints, now = "".join(fingerprints_of(found.texts)), self.runtime.clock.now()
        context = InjectedContext(conversation_id, prints, now, found.receipt_id)
        if await tell(WriteScope(scope.user_id), context):
            return found
        return replace(found, degraded=tuple(dict.fromkeys((*found.degraded, SESSION))))

    # --- reading -------------------------------------------------------------------------------

    async def _intents(self, scope: ReadScope, request: ContextRequest, trace: Trace) -> Intents:
        async with trace.stage("commands"):
            done = await self.commands.perform(scope, request)
        return Intents(
            commands=done,
            hints=hints_of(request.query),
            parts=parts_of(request.query),
            disclaimers=disclaimers_of(request.query),
        )

    async def _gather(
        self, scope: ReadScope, request: ContextRequest, task: Task, intents: Intents, trace: Trace
    ) -> Found:
        deadline = Deadline(self._settings.timeout_s, self.runtime.clock.monotonic)
        graphs = GraphsOnce(self.insights.graphs)
        # In this order the search and what stands before it ask for changes with one command.
        (search, sure), standing, insights, hints = await asyncio.gather(
            self._ask_search(scope, request, task, intents, deadline, trace, graphs),
            self._read_standing(scope, deadline, trace),
            self._ask_insights(scope, request, deadline, trace, graphs),
            self._read_hints(scope, request, deadline, trace),
        )
        others = (*_listed(intents), *await self._others(scope, search, trace))
        found = Found(
            insights=insights,
            standing=standing,
            search=search,
            others=others,
            sure=sure,
            hints=hints,
        )
        own = _own_turn(scope, request)
        return found if own is None else self._without(found, own, request.query)

    async def _read_hints(
        self, scope: ReadScope, request: ContextRequest, deadline: Deadline, trace: Trace
    ) -> tuple[str, ...]:
        """Nothing where they are off, which costs nothing."""
        if not self._settings.hints:
            return ()
        found: tuple[str, ...] = ()
        async with trace.stage("hints", degrades="hints"):
            async with asyncio.timeout(deadline.limit(self._settings.timeout_s)):
                found = await self.hints.lines(scope, request.query, self._settings.hints)
        return found

    async def _ask_insights(
        self,
        scope: ReadScope,
        request: ContextRequest,
        deadline: Deadline,
        trace: Trace,
        graphs: GraphsOnce,
    ) -> ContextInsights | None:
        asked = InsightsRequest(
            query=request.query,
            conversation_id=request.conversation_id,
            recent=tuple(message.content for message in request.recent),
            message_id=request.message_id,
        )
        found: ContextInsights | None = None
        try:
            async with trace.stage("insights", degrades="insights"):
                async with asyncio.timeout(deadline.limit(self._settings.timeout_s)):
                    found = await self.insights.insights(scope, asked, graphs)
        finally:
            graphs.followed()
        return found

    async def _read_standing(
        self, scope: ReadScope, deadline: Deadline, trace: Trace, *, patterns: bool = True
    ) -> tuple[SectionItem, ...]:
        found: tuple[SectionItem, ...] = ()
        async with trace.stage("standing", degrades="standing"):
            async with asyncio.timeout(deadline.limit(self._settings.timeout_s)):
                now = self.runtime.clock.now()
                found = await self._standing.read(scope, now, patterns=patterns)
        return found

    async def _ask_search(
        self,
        scope: ReadScope,
        request: ContextRequest,
        task: Task,
        intents: Intents,
        deadline: Deadline,
        trace: Trace,
        graphs: GraphsOnce,
    ) -> tuple[SearchAnswer | None, ConfidenceLabel]:
        """One search, and one for each question of a message that holds several, with what the
        least sure of them is. Words of a document are looked for in documents, and elsewhere only
        when none has them."""
        asked = SearchQuery(
            query=request.query,
            limit=request.limit or max(task.limit, CONTEXT_HITS),
            floor=replace(
                floor_of(self._settings, task.limit, named=request.limit is not None),
                world="web" in intents.hints,
            ),
            include_datagov=request.include_datagov,
            conversation_id=request.conversation_id,
            principal=request.principal,
        )
        if "documents" in intents.hints:
            books = replace(asked, tiers=(Tier.BOOKS,))
            found = await self._searched(scope, books, deadline, trace, graphs)
            if found is not None and found.hits:
                return found, found.confidence
        if not intents.parts:
            whole = await self._searched(scope, asked, deadline, trace, graphs)
            return whole, whole.confidence if whole else "low"
        whole, *parts = await asyncio.gather(
            *(
                self._searched(scope, replace(asked, query=one), deadline, trace, graphs)
                for one in (asked.query, *intents.parts)
            )
        )
        if whole is None:
            return None, "low"
        found_parts = [one for one in parts if one is not None]
        if len(found_parts) < len(parts):
            return whole, "low"
        joined = interleave(whole, found_parts, task.limit)
        return joined, least_sure([whole, *found_parts])

    def _without(self, found: Found, own: str, query: str) -> Found:
        """Who answers a message anew is not told the former answer. How sure the search was of that
        says nothing: it is as sure as of the rest."""
        search, sure = found.search, found.sure
        if search is not None and any(hit.item.memory_id == own for hit in search.hits):
            hits = tuple(hit for hit in search.hits if hit.item.memory_id != own)
            model, value = self.search.recipe(None).confidence, 0.0
            if hits:
                best = max(hits, key=lambda hit: hit.summary.final_score)
                told = features_of(query, best.text, best.summary.dense_similarity)
                value = relevance(told, model)
            search = replace(search, hits=hits, relevance=value, confidence=label(value, model))
            sure = min(sure, search.confidence, key=LEVELS.index)
        return Found(
            insights=found.insights and _learned_without(found.insights, own),
            standing=tuple(one for one in found.standing if one.item.memory_id != own),
            search=search,
            others=tuple(one for one in found.others if one.memory_id != own),
            sure=sure,
            hints=found.hints,
        )

    async def _searched(
        self,
        scope: ReadScope,
        asked: SearchQuery,
        deadline: Deadline,
        trace: Trace,
        graphs: GraphsOnce | None = None,
    ) -> SearchAnswer | None:
        """The one search, without a receipt: ours says what the block shows."""
        found: SearchAnswer | None = None
        async with trace.stage("search", degrades="search"):
            left = deadline.limit(self._settings.timeout_s)
            async with asyncio.timeout(left):
                found = await self.search.search(
                    scope, replace(asked, timeout_s=left * SEARCH_SHARE, receipt=False), graphs
                )
        return found

    async def _others(
        self, scope: ReadScope, search: SearchAnswer | None, trace: Trace
    ) -> tuple[MemoryItem, ...]:
        """Memories that no word of the question found: all of a small store, else the newest
        when there is no hit at all. A search with more candidates than that asks for neither."""
        small, most = self._settings.small_store, self._settings.recent
        has_hits = search is not None and bool(search.hits or search.weak)
        if search is not None and has_hits and search.total > small:
            return ()
        now = self.runtime.clock.now()
        where = ItemFilter(tiers=CORE_TIERS, now=now, valid_at=now)
        newest: list[MemoryItem] = []
        async with trace.stage("recent", degrades="recent"), asyncio.timeout(AFTER_S):
            (newest,) = await self.newest.of(scope, [where], max(most, small + 1))
        if len(newest) <= small:
            return tuple(newest)
        return () if has_hits else tuple(newest[:most])

    # --- the block -----------------------------------------------------------------------------

    def _known(self, request: ContextRequest, found: Found) -> tuple[MemoryItem, ...]:
        """A fact that holds the question's words is among the best hits, standing or not."""
        analyser = self.receipts.texts.analyser
        return pinned.already_known(
            [hit.item for hit in found.hits[:KNOWN_HITS]],
            lambda text: analyser.coverage(request.query, text),
        )

    def _block(
        self,
        request: ContextRequest,
        task: Task,
        found: Found,
        known: Sequence[MemoryItem],
        intents: Intents,
    ) -> ContextBlock:
        documents = self.runtime.settings.compat.tier_documents
        recalled = pinned.organic_recall(
            found.insights and pinned.without_advice(found.insights)
            if found.silent
            else found.insights,
            known=known,
            repeated=pinned.repeated_question(
                request.query, request.recent, self.receipts.texts.expansions
            ),
            language=task.language,
            documents=documents,
        )
        before = AlreadyInContext(request.conversation_id, request.recent)
        relevant = (
            *(
                SectionItem("relevant", hit.item, hit.text, outdated=hit.outdated_by is not None)
                for hit in found.hits
            ),
            *(SectionItem("relevant", item) for item in found.others),
        )
        material = Material(
            standing=found.standing,
            recall=recalled.lines,
            asked=pinned.asked_ids(found.search),
            found=_once((*recalled.past, *(one for one in relevant if not before.holds(one.item)))),
            topic="" if found.silent else topic_of(request.recent),
            nothing=pinned.nothing_known(task.language) if _asks_memory(task, found) else "",
            notes=_notes(intents, task.language),
            hints=found.hints,
        )
        limits = Limits(
            budget=request.token_budget or self._settings.token_budget,
            stable_share=self._settings.stable_share,
            documents=documents,
        )
        return build_block(material, limits)

    # --- before the first question -------------------------------------------------------------

    async def cold_start(self, scope: ReadScope, conversation_id: str | None) -> ColdStart:
        """By tags first, which needs no model; the fixed question fills what is left of the cap."""
        trace = Trace(self.runtime.clock, self.runtime.metrics)
        deadline = Deadline(self._settings.timeout_s, self.runtime.clock.monotonic)
        most = self._settings.cold_start
        standing = await self._read_standing(scope, deadline, trace, patterns=False)
        told = standing[:most]
        asked: tuple[str, ...] = ()
        if len(told) < most:
            query = SearchQuery(
                query=pinned.QUERY,
                limit=COLD_HITS,
                tiers=(Tier.MEMORY_BANK,),
                sort_by="relevance",
                include_datagov=False,
            )
            search = await self._searched(scope, query, deadline, trace)
            asked = search.degraded if search else ()
            hits = [SectionItem("relevant", hit.item) for hit in search.hits] if search else []
            told = _once((*told, *hits))[:most]
        items = [one.item for one in told]
        receipt_id = None
        if items:
            now = self.runtime.clock.now()
            receipt = self.receipts.of_cold_start(scope, conversation_id, items, now)
            receipt_id = await self.receipts.keep(receipt, trace)
        found = ColdStart(
            text=pinned.cold_start_text(told),
            items=tuple(items),
            receipt_id=receipt_id,
            degraded=tuple(dict.fromkeys((*asked, *trace.degraded))),
        )
        if not items:
            return found
        return await self._remember(scope, conversation_id, found, self.sessions.tell_later)


def floor_of(settings: ContextSettings, limit: int, *, named: bool) -> Floor:
    """What a hit must reach to be shown unasked, and to a model that searches.

    named: the caller named the limit, which cuts the hits already: the floor rises half as fast.
    """
    return Floor(
        share=settings.min_share,
        rise=settings.share_rise,
        expected=limit * 2 if named else limit,
        relevance=settings.min_relevance,
        knowledge=settings.min_knowledge,
    )


def _asks_memory(task: Task, found: Found) -> bool:
    """Whether it is said that nothing is known: to who asks memory itself. Whoever did not ask for
    it is not told of what there is not."""
    return found.only_weak and task.context_type == ASKS_MEMORY


def _notes(intents: Intents, language: str) -> tuple[str, ...]:
    side = side_of(language)
    done = [told(one, side) for one in intents.commands]
    return (*done, *hint_notes(intents.hints, side))


def _own_turn(scope: ReadScope, request: ContextRequest) -> str | None:
    """The memory that keeps the turn of this message, where it is answered anew."""
    if request.conversation_id is None or request.message_id is None:
        return None
    return exchange_id(scope.user_id, request.conversation_id, request.message_id)


def _learned_without(insights: ContextInsights, own: str) -> ContextInsights:
    """What was learned of a former answer is not told without it."""
    known = insights.known_solution
    return replace(
        insights,
        patterns=tuple(one for one in insights.patterns if one.item.memory_id != own),
        failures=tuple(one for one in insights.failures if one.item.memory_id != own),
        known_solution=known if known is not None and known.memory_id != own else None,
    )


def _listed(intents: Intents) -> tuple[MemoryItem, ...]:
    """What the message asked to have listed."""
    return tuple(item for one in intents.commands if one.status == "listed" for item in one.items)


def _once(placed: Iterable[SectionItem]) -> tuple[SectionItem, ...]:
    unique: dict[str, SectionItem] = {}
    for one in placed:
        unique.setdefault(one.item.memory_id, one)
    return tuple(unique.values())


def _answering(block: ContextBlock, found: Found) -> int:
    """Memories in the block because of this question."""
    hits = {hit.item.memory_id for hit in found.hits}
    lines = [line for line in block.lines if line.numbered]
    return sum(line.section == "past" or line.memory_id in hits for line in lines)
