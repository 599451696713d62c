"""The retrievers of a search: what to ask the index, what waits in the truth, and the fallbacks."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from rayapp.core.deadline import Deadline
from rayapp.core.errors import DeadlineExceeded, IndexDown
from rayapp.core.runtime import Runtime
from rayapp.core.vectors import SparseVector, Vector
from rayapp.graphs.records import GraphPriors
from rayapp.index.ports import VectorIndex
from rayapp.index.records import ScoredPoint, SubQuery
from rayapp.index.rules.points import vector_hash_of
from rayapp.index.write_barrier import IndexMonitor
from rayapp.inference.ports import Embedder, Encoder, TextVectors
from rayapp.inference.sentence_heads import Reading, SentenceHeads
from rayapp.memory.item import MemoryItem, Status, SyncState
from rayapp.memory.ports import MemoryStore, Page
from rayapp.memory.requests import ItemQuery
from rayapp.memory.rules.filtering import is_coming, kept
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import Tier
from rayapp.search.priors import NOTHING, PriorsRead
from rayapp.search.resident import ResidentViews
from rayapp.search.rules.candidates import (
    Candidates,
    Worded,
    gather_evidence,
    is_stale,
    to_candidates,
)
from rayapp.search.rules.fusion import HITS_READ, IndexedHit, pending_scores
from rayapp.search.rules.ranking import solution_points, solutions_among, tier_depths
from rayapp.search.rules.recipes import Recipe
from rayapp.search.rules.view import Question, UserView
from rayapp.search.tracing import Trace
from rayapp.text.analyser import Analyser
from rayapp.text.expansions import Expansion
from rayapp.text.language import detect_language
from rayapp.text.passages import passage_at, passages_of
from rayapp.text.utterance import reading

# Recent items and text matches that the "index down" rung shows at most.
RUNG_RECENT = 20
# Of the best score, for a recent item without a word in common: below any real match.
FAINT = 0.01
# Of what is left of a search, for the vector of its question: words are looked for without one.
EMBED_SHARE = 0.5
# What a stage of the truth may be skipped for; the truth being away is an error of the search.
LATE = (DeadlineExceeded, TimeoutError)


# Memories of a user without the encoder's vector, and their share of all, above which a search says
# so: those written a moment ago are read in a second or two, and explain says it of each of them.
MOST_UNENCODED, MOST_UNENCODED_SHARE = 16, 0.1
ByTier = dict[Tier, list[ScoredPoint]]


class Lists(NamedTuple):
    """What each retriever returned, by tier; nothing of one that was not asked."""

    dense: ByTier
    sparse: ByTier
    encoder: ByTier

    def deeper(self, more: "Lists") -> "Lists":
        """With the longer lists of the tiers that were asked again."""
        return Lists(*(mine | theirs for mine, theirs in zip(self, more, strict=True)))


class QuestionVectors(NamedTuple):
    """None: without this retriever. `kinds`: what kind of sentence the question is."""

    dense: Vector | None
    encoder: Vector | None
    kinds: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalRequest:
    """What the retrievers need of one search."""

    scope: ReadScope
    where: ItemFilter
    text: str
    expansions: Sequence[Expansion]
    recipe: Recipe
    tiers: tuple[Tier, ...]
    depth: int
    priors: PriorsRead


@dataclass(slots=True)
class Gathered:
    """`dense_used` False: no query vector, so the fusion gives the dense retriever no weight.

    `depths`: candidates that each retriever was asked for, by tier.
    """

    candidates: Candidates = field(default_factory=Candidates.empty)
    dense_used: bool = True
    priors: GraphPriors = field(default_factory=GraphPriors)
    depths: Mapping[Tier, int] = field(default_factory=dict)


@dataclass(eq=False)
class Retrievers:
    """Asks the retrievers and joins what they found with the truth."""

    store: MemoryStore
    index: VectorIndex
    embedder: Embedder
    analyser: Analyser
    _: KW_ONLY
    watch: IndexMonitor
    views: ResidentViews
    runtime: Runtime
    encoder: Encoder | None = None
    heads: SentenceHeads | None = None

    async def gather(self, request: RetrievalRequest, deadline: Deadline, trace: Trace) -> Gathered:
        """Candidates of all retrievers. Raises StoreDown; every other dependency only degrades."""
        if request.where.matches_nothing:
            return Gathered(dense_used=False)
        if not self.views.is_bare(request.scope.user_id):
            request.priors.begin()
        looked = asyncio.ensure_future(self.views.of(request.scope, request.where, deadline, trace))
        try:
            await asyncio.sleep(0)  # the store answers while the held view is searched
            vectors = await self._vectors(request, deadline, trace)
            seen = self.views.last_seen(request.scope, request.where)
            found = await self._from_view(request, seen.view, vectors) if seen else None
            view = await looked
        finally:
            looked.cancel()
        if view is None:
            return await self._from_index(request, vectors, deadline, trace)
        if found is None or seen != self.views.last_seen(request.scope, request.where):
            # The store had more to say.
            found = await self._from_view(request, view, vectors)
        unencoded = found.candidates.unencoded
        if unencoded.lacking > MOST_UNENCODED and unencoded.share > MOST_UNENCODED_SHARE:
            trace.degrade("encoder_backlog", "encoder")
        return found

    async def _from_view(
        self, request: RetrievalRequest, view: UserView, vectors: QuestionVectors
    ) -> Gathered:
        """What the engine would find, of the columns of one user. Nothing waits between the look at
        the columns and what is read of them, so that no write comes in between."""
        bare = self.views.is_bare(request.scope.user_id)
        priors = NOTHING if bare else await request.priors.found()
        depths = tier_depths(priors, request.tiers, request.depth, request.recipe)
        solved = kept(view.items(solution_points(priors)), request.where)
        candidates = view.candidates(
            Question(
                self._question(request),
                None if vectors.dense is None else _normalised(vectors.dense),
                vectors.encoder,
            ),
            request.where,
            depths,
            wanted=solutions_among(solved, priors),
            own=self._own(request),
        )
        if candidates.reach is not None and vectors.kinds is not None:
            reach = candidates.reach._replace(kinds=vectors.kinds)
            candidates = replace(candidates, reach=reach)
        return Gathered(candidates, vectors.dense is not None, priors, depths)

    async def _from_index(
        self, request: RetrievalRequest, vectors: QuestionVectors, deadline: Deadline, trace: Trace
    ) -> Gathered:
        request.priors.begin()
        # Before the index is asked: what is indexed in between is in both answers, and what was
        # read the other way round would be in neither.
        pending = await self._pending(request, deadline, trace)
        waiting = await self._with_matching(request, pending, deadline, trace)
        lists, priors, depths = await self._lists(request, vectors, deadline, trace)
        if lists is None:
            found = await self._without_index(request, waiting, deadline, trace)
            return replace(found, priors=priors, depths=depths)
        evidence = gather_evidence(*(one.values() for one in lists))
        solved = solution_points(priors)
        known = {item.point_id for item in waiting}
        items = waiting + await self._hydrate(
            request, evidence.keys() - known, set(solved) - known, deadline, trace
        )
        hashes = self._hashes(items)
        indexed = [(i, evidence[i.point_id]) for i in items if i.point_id in evidence]
        scores = self._lexical(request, waiting, [
            (passage_at(item.text, said.sparse_passage).of(item.text), said.sparse)
            for item, said in indexed
            if said.sparse is not None and not is_stale(item, hashes)
        ])  # fmt: skip
        wanted = solutions_among(items, priors)
        candidates = to_candidates(items, evidence, scores, hashes, wanted=wanted)
        return Gathered(candidates, vectors.dense is not None, priors, depths)

    async def _vectors(
        self, request: RetrievalRequest, deadline: Deadline, trace: Trace
    ) -> QuestionVectors:
        """Of the question, side by side: each model has a thread or a process of its own."""
        if self.encoder is None or request.recipe.encoder.off:
            return QuestionVectors(await self._embed(request.text, deadline, trace), None)
        reading = asyncio.ensure_future(self._read(self.encoder, request.text, deadline, trace))
        try:
            dense, read = await self._embed(request.text, deadline, trace), await reading
            if read is None:
                return QuestionVectors(dense, None)
            return QuestionVectors(dense, read.search, self._kinds(request.text, read, dense))
        finally:
            reading.cancel()

    def _kinds(
        self, text: str, read: TextVectors, dense: Vector | None
    ) -> Mapping[str, float] | None:
        """What kind of sentence it is; None: there are no heads, or no vector of its words."""
        if self.heads is None or dense is None:
            return None
        reading = Reading(detect_language(text), read, _normalised(dense))
        return dict(self.heads.probabilities(reading).items())

    async def _read(
        self, encoder: Encoder, text: str, deadline: Deadline, trace: Trace
    ) -> TextVectors | None:
        """Without it a search is what it is where the encoder is off."""
        read: list[TextVectors] = []
        async with trace.stage("encoder", degrades="encoder"):
            left = deadline.limit(self.runtime.settings.embedding.query_timeout_s / EMBED_SHARE)
            read = await encoder.read([text], "query", timeout_s=left * EMBED_SHARE)
        return read[0] if read else None

    async def _embed(self, text: str, deadline: Deadline, trace: Trace) -> Vector | None:
        vectors: list[Vector] = []
        async with trace.stage("embed", degrades="embedder"):
            left = deadline.limit(self.runtime.settings.embedding.query_timeout_s / EMBED_SHARE)
            limit = left * EMBED_SHARE
            vectors = await self.embedder.embed([text], "query", timeout_s=limit)
        return vectors[0] if vectors else None

    async def _lists(
        self, request: RetrievalRequest, vectors: QuestionVectors, deadline: Deadline, trace: Trace
    ) -> tuple[Lists | None, GraphPriors, Mapping[Tier, int]]:
        """What the index says, asked for the normal depths while the graphs are read.

        The graphs only ever ask for more of a tier, and seldom do: those tiers are asked again, and
        their longer lists take the place of the first.
        """
        usual = tier_depths(GraphPriors(), request.tiers, request.depth, request.recipe)
        asked = asyncio.ensure_future(self._query(request, vectors, usual, deadline, trace))
        try:
            priors = await request.priors.found()
            lists = await asked
            if lists is not None and _nothing(lists) and await self._was_lost(trace):
                lists = None
        finally:
            asked.cancel()
        depths = tier_depths(priors, request.tiers, request.depth, request.recipe)
        deeper = {tier: depth for tier, depth in depths.items() if depth > usual[tier]}
        if lists is None or not deeper:
            return lists, priors, depths
        more = await self._query(request, vectors, deeper, deadline, trace)
        if more is None:
            return lists, priors, usual
        return lists.deeper(more), priors, depths

    async def _query(
        self,
        request: RetrievalRequest,
        vectors: QuestionVectors,
        depths: Mapping[Tier, int],
        deadline: Deadline,
        trace: Trace,
    ) -> Lists | None:
        """The lists of the tiers in `depths`, in one round trip; None when the index is away."""
        sparse = self._question(request)
        asked: dict[str, dict[str, Any]] = {
            "dense": {} if vectors.dense is None else {"dense": vectors.dense},
            "bm25": {"sparse": sparse} if sparse.indices else {},
            "encoder": {} if vectors.encoder is None else {"encoder": vectors.encoder},
        }
        sub_queries = [
            SubQuery(name=f"{name}:{tier}", limit=depths[tier], tiers=(tier,), **what)
            for name, what in asked.items()
            for tier in depths
            if what
        ]
        if not sub_queries:
            return Lists({}, {}, {})
        if self.watch.reason is not None:
            trace.degrade(self.watch.reason, "index")
            return None
        answer: list[list[ScoredPoint]] | None = None
        async with trace.stage("index", degrades="index"):
            limit = deadline.limit(self.runtime.settings.qdrant.timeout_s)

            async def ask() -> list[list[ScoredPoint]]:
                # Not `wait_for`, which puts a task and two turns of the event loop in between.
                async with asyncio.timeout(limit):
                    return await self.index.query(request.scope, request.where, sub_queries)

            answer = await self.watch.breaker.call(ask, self.runtime.clock.monotonic, IndexDown)
        if answer is None:
            return None
        answers = iter(answer)
        # A retriever that was not asked has no lists; one that was has one for every tier.
        return Lists(
            *({t: next(answers) for t in depths} if what else {} for what in asked.values())
        )

    async def _was_lost(self, trace: Trace) -> bool:
        """Nothing found at all: is it because the index was emptied a moment ago?"""
        async with trace.stage("watch"):
            await self.watch.look(self.index, self.store)
        if self.watch.reason is None:
            return False
        trace.degrade(self.watch.reason, "index")
        return True

    async def _pending(
        self, request: RetrievalRequest, deadline: Deadline, trace: Trace
    ) -> list[MemoryItem]:
        limit = self.runtime.settings.search.pending_limit
        found: list[MemoryItem] = []
        if limit == 0:
            return found
        async with trace.stage("pending", degrades="pending", absorbs=LATE):
            async with asyncio.timeout(deadline.limit(self.runtime.settings.mongo.timeout_s)):
                found = await self.store.pending(
                    request.scope, request.where, limit, with_failed=self.watch.has_failed
                )
        return found

    async def _hydrate(
        self,
        request: RetrievalRequest,
        point_ids: Set[str],
        solved: Set[str],
        deadline: Deadline,
        trace: Trace,
    ) -> list[MemoryItem]:
        """Truth decides: what it does not hold any more, or holds differently, is not shown.

        A known solution that is gone is no drift: no index promised it.
        """
        try:
            async with (
                trace.stage("hydrate"),
                asyncio.timeout(deadline.limit(self.runtime.settings.mongo.timeout_s)),
            ):
                found = await self.store.by_points(request.scope, list(point_ids | solved))
        except TimeoutError:
            raise DeadlineExceeded("The truth did not answer in time; try again.") from None
        statuses = request.where.statuses or tuple(Status)
        living = [item for item in found if item.status in statuses]
        missing = len(point_ids) - sum(item.point_id in point_ids for item in living)
        if missing > 0:
            self.runtime.metrics.count("drift", missing, kind="search")
        return kept(living, request.where)

    async def _with_matching(
        self, request: RetrievalRequest, waiting: list[MemoryItem], deadline: Deadline, trace: Trace
    ) -> list[MemoryItem]:
        """Where more is pending than is read, the best by words of those that are older."""
        if len(waiting) < self.runtime.settings.search.pending_limit or not waiting:
            return waiting
        found: list[tuple[MemoryItem, float]] = []
        async with trace.stage("pending", degrades="pending", absorbs=LATE):
            async with asyncio.timeout(deadline.limit(self.runtime.settings.mongo.text_timeout_s)):
                found = await self.store.text_search(
                    request.scope, request.where, request.text, request.depth
                )
        known = {item.point_id for item in waiting}
        return waiting + [
            item
            for item, _ in found
            if item.point_id not in known
            and item.index.sync_state is not SyncState.SYNCED
            and not is_coming(item)
        ]

    def _question(self, request: RetrievalRequest) -> SparseVector:
        return self.analyser.query(
            request.text, request.expansions, expansion_weight=request.recipe.expansion_weight
        )

    def _own(self, request: RetrievalRequest) -> list[int] | None:
        """The words that the user wrote; None: there are no others."""
        return list(self.analyser.query(request.text).indices) if request.expansions else None

    def _lexical(
        self,
        request: RetrievalRequest,
        waiting: Iterable[MemoryItem],
        indexed: Sequence[tuple[str, float]],
    ) -> dict[str, Worded]:
        """BM25 of what the index does not hold in its current state, on the index's scale.

        `indexed`: the passages that the sparse retriever found, with their scores.
        """
        query = self._question(request)
        asked = frozenset(query.indices)
        documents = {item.point_id: _document_sides(item.text, self.analyser) for item in waiting}
        sharing = {
            point_id: passages
            for point_id, passages in documents.items()
            if any(not asked.isdisjoint(one.indices) for one in passages)
        }
        if not sharing:
            return {}
        best = sorted(indexed, key=lambda hit: -hit[1])[:HITS_READ]
        hits = [IndexedHit(self.analyser.document(text), score) for text, score in best]
        return pending_scores(query, sharing, hits, self.watch.points)

    async def _without_index(
        self,
        request: RetrievalRequest,
        waiting: Sequence[MemoryItem],
        deadline: Deadline,
        trace: Trace,
    ) -> Gathered:
        """The "index down" rung: Mongo `$text`, the newest and the pinned items, flagged."""
        matching: list[tuple[MemoryItem, float]] = []
        async with trace.stage("text", degrades="text", absorbs=LATE):
            async with asyncio.timeout(deadline.limit(self.runtime.settings.mongo.text_timeout_s)):
                matching = await self.store.text_search(
                    request.scope, request.where, request.text, request.depth
                )
        pages: list[Page] = []
        async with trace.stage("recent", degrades="recent", absorbs=LATE):
            async with asyncio.timeout(deadline.limit(self.runtime.settings.mongo.timeout_s)):
                pages = await asyncio.gather(
                    *(
                        self.store.page(request.scope, where, ItemQuery(limit=RUNG_RECENT))
                        for where in (request.where, replace(request.where, always_inject=True))
                    )
                )
        items = {item.point_id: item for page in pages for item in page.items}
        items |= {item.point_id: item for item in waiting}
        items |= {item.point_id: item for item, _ in matching}
        # Recent items that share no word with the question still count a little, so that a
        # question whose words nobody stored does not come back empty.
        lexical = self._lexical(request, items.values(), ())
        faint = Worded(FAINT * max((one.score for one in lexical.values()), default=1.0))
        scores = {point_id: max(faint, lexical.get(point_id, faint)) for point_id in items}
        candidates = to_candidates(items.values(), {}, scores, self._hashes(items.values()))
        return Gathered(candidates=candidates, dense_used=False)

    def _hashes(self, items: Iterable[MemoryItem]) -> dict[str, str]:
        """The hash that the text has now, of items whose index entry may be about another text."""
        schema = self.views.schema
        return {
            i.point_id: vector_hash_of(i.content_hash, schema, i.context_prefix)
            for i in items
            if i.index.sync_state is not SyncState.SYNCED
        }


def _normalised(vector: Vector) -> Vector:
    """As the engine has it, whose scores are cosines."""
    return vector / max(float(np.linalg.norm(vector)), 1e-12)


def _nothing(lists: Lists) -> bool:
    """The index was asked and returned no point at all."""
    return any(lists) and not any(hits for found in lists for hits in found.values())


@reading  # what waits for the index is met by search after search: .2 ms each, of an import
def _document_sides(text: str, analyser: Analyser) -> list[SparseVector]:
    return [analyser.document(passage.of(text)) for passage in passages_of(text)]
