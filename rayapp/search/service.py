"""The one search: plan -> retrievers -> rank -> rerank -> select -> receipt.

API, tools, prefetch and evaluation all come through here, so they rank alike.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta

from rayapp.core.deadline import Deadline
from rayapp.core.errors import DeadlineExceeded, DependencyDown
from rayapp.core.runtime import Runtime
from rayapp.graphs.records import GraphQuestion
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt, Receipts, Shown
from rayapp.search.priors import GraphsOnce, PriorsRead, PriorsService
from rayapp.search.reader import HitReaders
from rayapp.search.requests import DatagovUse, Floor, Hit, Knowledge, SearchAnswer, SearchQuery
from rayapp.search.retrievers import Gathered, RetrievalRequest, Retrievers
from rayapp.search.rules import confidence
from rayapp.search.rules.confidence import Thresholds, judged, precise
from rayapp.search.rules.diversification import Kept, collapse, is_mixed, with_quotas
from rayapp.search.rules.fusion import DenseRetriever, speaks
from rayapp.search.rules.knowledge import KnowledgeRule, knowledge_of
from rayapp.search.rules.query import QueryPlan, choose_tiers, plan_query
from rayapp.search.rules.ranking import Ranked, graph_boosts, in_order, rank, with_rerank
from rayapp.search.rules.recipes import Recipe, Texts, find_recipe
from rayapp.search.rules.relevance_floor import above_floor
from rayapp.search.rules.updates import latest_first, newest_first
from rayapp.search.tracing import Trace
from rayapp.text.signature import may_collapse

# Most hits that one context takes; lists that people page through ask for more.
CONTEXT_HITS = 20
# Without a retriever the strength of a hit is no measure of it: then nothing is left out as weak.
_BLIND = frozenset({"embedder", "index", "index_rebuilding", "index_refused", "reranker"})
# Step of the window behind a paged list, hits.
PAGE_WINDOW = 100


@dataclass(frozen=True, slots=True)
class Prepared:
    """A search after planning: everything that follows is a function of it and the stores."""

    query: SearchQuery
    plan: QueryPlan
    question: GraphQuestion
    recipe: Recipe
    tiers: tuple[Tier, ...]
    datagov: DatagovUse
    where: ItemFilter
    scope: ReadScope
    limit: int
    depth: int


@dataclass(eq=False)
class SearchService:
    """`on_empty`: told when a search had no candidate at all; it must return at once.
    `knowledge` None: of this embedder nobody learned when it knows nothing.
    """

    retrievers: Retrievers
    readers: HitReaders
    receipts: Receipts
    texts: Texts
    _: KW_ONLY
    priors: PriorsService
    on_empty: Callable[[ReadScope], None]
    runtime: Runtime
    knowledge: KnowledgeRule | None = None

    async def search(
        self, scope: ReadScope, query: SearchQuery, graphs: GraphsOnce | None = None
    ) -> SearchAnswer:
        """`graphs`: of the request that this search is a part of."""
        trace = Trace(self.runtime.clock, self.runtime.metrics)
        deadline = Deadline(
            query.timeout_s or self.runtime.settings.search.timeout_s, self.runtime.clock.monotonic
        )
        prepared = self.prepare(scope, query)
        lists: list[list[Ranked]] = []
        for window in windows_of(prepared.limit, query.offset):
            part = replace(prepared, depth=self._depth(window))
            gathered = await self.gather(part, deadline, trace, graphs)
            lists.append(await self.ranked(part, gathered, deadline, trace))
            if len(lists[-1]) < window:  # there are no more
                break
        ranked = lists[-1]
        answer = self._answer(prepared, lists, trace)
        if query.read:
            answer = await self.readers.answers.read(scope, query.query, answer, deadline, trace)
        if not ranked:
            self.on_empty(prepared.scope)
        return await self._with_receipt(prepared, answer, trace)

    def prepare(self, scope: ReadScope, query: SearchQuery) -> Prepared:
        """Plan the search; pure but for the clock. Raises InvalidInput."""
        recipe = self.recipe(query.recipe)
        plan = plan_query(
            query.query,
            limit=query.limit,
            sort_by=query.sort_by,
            expansions=self.texts.expansions,
            latest=self.texts.latest,
        )
        intent = self.runtime.settings.datagov.intent
        choice = choose_tiers(query, plan.text, shared=scope.include_shared, intent=intent)
        now = self.runtime.clock.now()
        where = replace(
            query.where,
            tiers=choice.tiers,
            now=query.where.now or now,
            valid_at=query.as_of or query.where.valid_at or now,
            include_superseded=query.where.include_superseded or query.as_of is not None,
            attached_to=query.conversation_id,
        )
        limit = min(plan.limit, self.runtime.settings.search.max_limit)
        return Prepared(
            query=query,
            plan=plan,
            question=self.priors.question(query.query),
            recipe=recipe,
            tiers=choice.tiers,
            datagov=choice.datagov,
            where=where,
            scope=ReadScope(scope.user_id, scope.include_shared and choice.datagov.searched),
            limit=limit,
            depth=self._depth(windows_of(limit, query.offset)[-1]),
        )

    def _depth(self, window: int) -> int:
        """Candidates per tier for so many hits."""
        search = self.runtime.settings.search
        return max(search.min_depth, window * search.depth_factor)

    def recipe(self, name: str | None) -> Recipe:
        return find_recipe(self.texts.recipes, name or self.runtime.settings.search.recipe)

    async def gather(
        self, prepared: Prepared, deadline: Deadline, trace: Trace, graphs: GraphsOnce | None = None
    ) -> Gathered:
        """Candidates of all retrievers; the graphs are read while the question is embedded."""
        priors = PriorsRead(
            lambda: self.priors.gather(prepared.scope, prepared.question, deadline, trace, graphs)
        )
        request = RetrievalRequest(
            scope=prepared.scope,
            where=prepared.where,
            text=prepared.query.query,
            expansions=prepared.plan.expansions,
            recipe=prepared.recipe,
            tiers=prepared.tiers,
            depth=prepared.depth,
            priors=priors,
        )
        try:
            return await self.retrievers.gather(request, deadline, trace)
        finally:
            await priors.end()

    async def ranked(
        self, prepared: Prepared, gathered: Gathered, deadline: Deadline, trace: Trace
    ) -> list[Ranked]:
        """All candidates in their final order."""
        async with trace.stage("rank"):
            ranked = rank(
                gathered.candidates,
                query_lang=prepared.plan.language,
                recipe=prepared.recipe,
                retriever=DenseRetriever(
                    used=gathered.dense_used and speaks(prepared.plan.text, gathered.candidates),
                    langs=self.texts.langs,
                ),
                graphs=graph_boosts(gathered.priors, prepared.recipe),
                question=prepared.plan.text,
            )
        if self._is_read_again(len(ranked), prepared.limit):
            ranked = await self._rerank(prepared, ranked, deadline, trace)
        asked = prepared.query.sort_by is not None
        ordered = in_order(ranked, prepared.plan.sort_by, prepared.recipe, asked=asked)
        if not prepared.plan.latest:
            return ordered
        return latest_first(ordered, prepared.plan.text, self.texts.latest, prepared.recipe)

    def _is_read_again(self, candidates: int, limit: int) -> bool:
        """A cross-encoder is worth its time when there is much to choose from; features take
        milliseconds and are worth it for any choice (decision 0024)."""
        return candidates > (
            1 if self.runtime.settings.reranker.backend == "features" else 2 * limit
        )

    async def _rerank(
        self, prepared: Prepared, ranked: list[Ranked], deadline: Deadline, trace: Trace
    ) -> list[Ranked]:
        top = min(prepared.recipe.rerank.top, self.runtime.settings.reranker.max_candidates)
        if (
            self.runtime.settings.reranker.backend == "none"
            or not prepared.recipe.rerank.cross_encoder
        ):
            return ranked
        if prepared.datagov.guessed:
            # Personal memories are read by the reranker as well: half of what it reads at least.
            order = with_quotas([one.item for one in ranked], page=top, guessed=True)
            ranked = [ranked[index] for index in order]
        probabilities: list[float] | None = None
        async with trace.stage("rerank", degrades="reranker"):
            probabilities = await self.readers.reranker.rerank(
                prepared.query.query,
                [one.passage_text for one in ranked[:top]],
                timeout_s=deadline.limit(self.runtime.settings.reranker.timeout_s),
            )
        if probabilities is None:
            return ranked
        return with_rerank(ranked, probabilities, prepared.recipe)

    def _answer(
        self, prepared: Prepared, lists: Sequence[Sequence[Ranked]], trace: Trace
    ) -> SearchAnswer:
        """`lists`: all candidates of each window, in their final order."""
        offset, limit = prepared.query.offset, prepared.limit
        best = lists[-1]
        wanted = [self.precise(prepared, one) for one in lists]
        ranked, kept = self._listed(prepared, wanted)
        shown = kept[offset : offset + limit]
        hits = self.page(prepared, ranked, kept)
        value = self._relevance(prepared, ranked or best)
        knowledge = self.assess(prepared, best)
        floor = prepared.query.floor
        if floor is not None and _BLIND.intersection(trace.degraded):
            hits, floor = hits[: floor.expected], None
        known = floor is None or knowledge.known != "no"
        worth = self._worth(prepared, hits, value, floor) if known else ()
        label = confidence.label(value, prepared.recipe.confidence)
        least = prepared.query.min_confidence
        abstained = least is not None and not confidence.reaches(label, least)
        abstained = abstained or (bool(best) and not ranked)
        rejected = ranked[shown[0].index] if shown else best[0] if best else None
        return SearchAnswer(
            receipt_id=None,
            hits=() if abstained else worth,
            total=len(wanted[0]),
            confidence=label,
            relevance=value,
            weak=len(hits) - len(worth),
            knowledge=knowledge,
            abstained=abstained,
            best_rejected=rejected.final_score if abstained and rejected else None,
            next_offset=offset + limit if len(kept) > offset + limit and not abstained else None,
            degraded=tuple(trace.degraded),
            errors=tuple(trace.errors),
            recipe=prepared.recipe.name,
            sort_by=prepared.plan.sort_by,
            tiers=prepared.tiers,
            language=prepared.plan.language,
            expansions=tuple(one.text for one in prepared.plan.expansions),
            datagov=prepared.datagov,
        )

    def page(
        self, prepared: Prepared, ranked: Sequence[Ranked], kept: Sequence[Kept]
    ) -> tuple[Hit, ...]:
        """What is shown, in its order."""
        offset = prepared.query.offset
        hits = [
            Hit(
                position=offset + number,
                item=ranked[one.index].item,
                summary=ranked[one.index].summary,
                collapsed_ids=one.collapsed_ids,
                passage=ranked[one.index].passage,
                latest=ranked[one.index].latest,
            )
            for number, one in enumerate(kept[offset : offset + prepared.limit], start=1)
        ]
        return newest_first(hits, reorder=prepared.plan.sort_by == "relevance")

    def _listed(
        self, prepared: Prepared, lists: Sequence[Sequence[Ranked]]
    ) -> tuple[Sequence[Ranked], list[Kept]]:
        """Candidates, and what of them is shown up to this page and the question whether one
        follows. More candidates rank otherwise: what pages of an earlier window showed keeps its
        place, and comes on no later page."""
        offset, limit = prepared.query.offset, prepared.limit
        first, *others = windows_of(limit, offset)
        ranked, kept = lists[0], self.distinct(prepared, lists[0], end=min(first, offset + limit))
        for window, before, more in zip(others, (first, *others), lists[1:], strict=False):
            shown = kept[: last_end(limit, offset, before)]
            told = [ranked[one.index] for one in shown]
            ids = {one.item.memory_id for one in told}.union(*(one.collapsed_ids for one in shown))
            rest = [one for one in more if one.item.memory_id not in ids]
            fresh = self.distinct(prepared, rest, end=min(window, offset + limit), told=told)
            ranked = [*told, *rest]
            kept = [Kept(place, one.collapsed_ids) for place, one in enumerate(shown)]
            kept += [Kept(len(shown) + one.index, one.collapsed_ids) for one in fresh]
        return ranked, kept

    def distinct(
        self, prepared: Prepared, ranked: Sequence[Ranked], *, end: int, told: Sequence[Ranked] = ()
    ) -> list[Kept]:
        """Near-duplicates collapsed, as far as the place `end` and the question whether one
        follows. `told`: hits of earlier windows, which stand before these and have no twin here.

        Open data and documents are given their places among more than that, the same for all pages.
        """
        wanted = end - len(told) + 1
        items = [one.item for one in ranked]
        by_relevance = prepared.plan.sort_by == "relevance"
        mixed = by_relevance and is_mixed(items, prepared.query.where)
        quotas = mixed or prepared.datagov.searched
        among = -(-(prepared.limit + 1) // PAGE_WINDOW) * PAGE_WINDOW
        kept = collapse(
            items,
            similarity=prepared.recipe.collapse_similarity,
            wanted=-(-wanted // among) * among if quotas else wanted,
            may_collapse=may_collapse,
            told=[one.item for one in told],
        )
        if not quotas:
            return kept
        placed: list[Kept] = []
        for start in range(0, len(kept), among):
            part = kept[start : start + among]
            order = with_quotas(
                [items[one.index] for one in part],
                page=prepared.limit,
                guessed=prepared.datagov.guessed,
            )
            placed += [part[index] for index in order]
        return placed[:wanted]

    def _relevance(self, prepared: Prepared, ranked: Sequence[Ranked]) -> float:
        """Of the best hit by score, whatever the sort mode shows first."""
        if not ranked:
            return 0.0
        best = max(ranked, key=lambda one: one.final_score)
        return judged(prepared.query.query, best, prepared.recipe.confidence)

    def assess(self, prepared: Prepared, ranked: Sequence[Ranked]) -> Knowledge:
        """Whether memory knows anything of the question."""
        if self.knowledge is None:
            return Knowledge()
        return knowledge_of(self.knowledge, prepared.query, prepared.plan, ranked)

    def precise(self, prepared: Prepared, ranked: Sequence[Ranked]) -> Sequence[Ranked]:
        """What the caller holds to be precise enough; all of it when nothing was said."""
        query = prepared.query
        least = Thresholds(
            question=query.query, relevance=query.min_relevance, named_only=query.named_only
        )
        return precise(ranked, least, prepared.recipe.confidence) if least.asks else ranked

    def _worth(
        self, prepared: Prepared, hits: tuple[Hit, ...], relevance: float, floor: Floor | None
    ) -> tuple[Hit, ...]:
        """What reaches the floor; all of it without one."""
        if floor is None:
            return hits
        least = prepared.recipe.confidence.floor
        return above_floor(hits, floor, relevance=relevance, least=least)

    async def _with_receipt(
        self, prepared: Prepared, answer: SearchAnswer, trace: Trace
    ) -> SearchAnswer:
        receipt_id = await self._kept(prepared, answer, trace) if prepared.query.receipt else None
        if prepared.datagov.guessed:
            self.runtime.metrics.count("datagov_intent", reason=prepared.datagov.reason)
        for tier, shown in Counter(hit.item.tier for hit in answer.hits).items():
            self.runtime.metrics.count("search_hits", shown, tier=tier.value)
        return replace(
            answer,
            receipt_id=receipt_id,
            timings_ms=trace.finish(),
            spans=tuple(trace.spans),
            degraded=tuple(trace.degraded),
            errors=tuple(trace.errors),
        )

    async def _kept(self, prepared: Prepared, answer: SearchAnswer, trace: Trace) -> str | None:
        receipt = self._receipt(prepared, answer, trace)
        try:
            async with trace.stage("receipt"):
                self.runtime.disk.check()
                await self.receipts.put(receipt)
        except (DependencyDown, DeadlineExceeded) as error:
            trace.degrade("receipt", "receipt", error)
            return None
        return receipt.receipt_id

    def _receipt(self, prepared: Prepared, answer: SearchAnswer, trace: Trace) -> Receipt:
        now = self.runtime.clock.now()
        return Receipt(
            receipt_id=self.runtime.new_id(),
            user_id=prepared.scope.user_id,
            query=prepared.query.query,
            recipe=prepared.recipe.name,
            conversation_id=prepared.query.conversation_id,
            concepts=prepared.question.concepts,
            context_type=prepared.question.context_type,
            principal=prepared.query.principal,
            shown=tuple(
                Shown(
                    position=hit.position,
                    memory_id=hit.item.memory_id,
                    tier=hit.item.tier,
                    final=hit.summary.final_score,
                    ranks={
                        name: rank
                        for name, rank in (
                            ("dense", hit.summary.vector_rank),
                            ("bm25", hit.summary.text_rank),
                            ("encoder", hit.summary.encoder_rank),
                            ("pending", hit.summary.pending_rank),
                            ("rerank", hit.summary.ce_rank),
                        )
                        if rank is not None
                    },
                )
                for hit in answer.hits
            ),
            timings=dict(trace.timings_ms),
            degraded=tuple(trace.degraded),
            at=now,
            expires_at=now + timedelta(hours=self.runtime.settings.search.receipt_ttl_h),
        )


def windows_of(limit: int, offset: int) -> tuple[int, ...]:
    """Hits that the candidates must cover, for the first page and, as far as this page needs them,
    for those behind it: steps that double, the last of which holds the page.

    Pages of one window see the same candidates, or an item would move between them. The first
    answer that fits an assistant's context reads no more than it shows.
    """
    first = limit if limit <= CONTEXT_HITS else -(-limit // PAGE_WINDOW) * PAGE_WINDOW
    windows = [first]
    while windows[-1] < limit + offset:
        windows.append(max(PAGE_WINDOW, 2 * windows[-1]))
    return tuple(windows)


def last_end(limit: int, offset: int, window: int) -> int:
    """Where the last page ends that the window holds whole."""
    return window - (window - offset) % limit
