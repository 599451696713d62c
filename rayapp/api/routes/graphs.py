"""The three graphs: pictures, lists, one concept, paths, upkeep, and the best patterns."""

from rayapp.api.auth import CONCEPT
from rayapp.api.paths import ConceptId
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.core.errors import NotFound
from rayapp.graphs.rules.listing import in_order, listed_concepts, within
from rayapp.graphs.rules.views import action_totals, beside
from rayapp.memory.tiers import Tier
from rayapp.wire import graphs as wire
from rayapp.wire.bases import MAX_PAGE, BuiltIn
from rayapp.wire.graphs import rollups

routes = router("graphs")
MEMORY = "/api/memory"
# Patterns in the answer (client contract).
PATTERNS = 50
# Rows are per tier, rollups are not: enough for the largest page of rollups.
ACTION_ROWS = MAX_PAGE * len(Tier)


@routes.get(f"{MEMORY}/graph", summary="Picture of the graphs")
async def graph(call: CurrentCall, query: InQuery[wire.GraphQuery]) -> wire.GraphAnswer:
    found = await call.services.graphs.picture(call.reads, query.mode)
    if query.include_datagov:
        found = beside(found, await call.services.graphs.catalogue())
    meta = wire.GraphMeta(
        built_ms=call.built_ms, node_count=len(found.nodes), edge_count=len(found.edges)
    )
    return wire.GraphAnswer.of(found, call.documents, meta=meta)


@routes.get(f"{MEMORY}/kg", summary="List concepts")
async def kg(call: CurrentCall, query: InQuery[wire.KgQuery]) -> wire.KgAnswer:
    """The concepts used last of both graphs (at most 200 of each), merged by their lemma and put in
    order, and how actions did."""
    listing = await call.services.graphs.listing(
        call.reads, query.mode, concepts=MAX_PAGE, actions=ACTION_ROWS
    )
    found = listed_concepts(listing)
    if query.mode == "content":
        found = [one for one in found if one.node is not None]
    shown = in_order(within(found, query.time_filter, call.services.clock.now()), query.sort_by)
    actions = action_totals(listing.actions)[:MAX_PAGE]
    return wire.KgAnswer(
        concepts=tuple(
            wire.KgConceptView.from_listed(one, call.documents) for one in shown[: query.limit]
        ),
        action_effectiveness=tuple(map(wire.KgActionView.from_total, actions)),
        meta=wire.KgMeta(
            mode=query.mode,
            routing_count=sum(one.row is not None for one in found),
            content_count=sum(one.node is not None for one in found),
            merged_count=len(found),
            built_ms=call.built_ms,
        ),
    )


@routes.post(
    f"{MEMORY}/kg",
    summary="Acknowledge a concept",
    description="Stores nothing; kept for the first client.",
)
async def kg_note(call: CurrentCall, body: wire.KgBody) -> wire.KgNoteAnswer:
    return wire.KgNoteAnswer()


@routes.get(f"{MEMORY}/kg/action-rollups", summary="How actions did")
async def action_rollups(call: CurrentCall, query: InQuery[wire.RollupQuery]) -> wire.RollupsAnswer:
    """By context type; the row with the tier `*` is over all tiers."""
    rows = await call.services.graphs.actions(
        call.reads, context_type=query.context_type, limit=ACTION_ROWS
    )
    found = rollups(rows, tiers=query.include_tiers, documents=call.documents)[: query.limit]
    return wire.RollupsAnswer(
        rollups=found, meta=wire.CountMeta(built_ms=call.built_ms, count=len(found))
    )


@routes.get(CONCEPT, summary="Everything known of a concept", responses=raises(NotFound))
async def definition(call: CurrentCall, concept_id: ConceptId) -> wire.DefinitionAnswer:
    found = await call.services.graphs.definition(call.reads, concept_id)
    return wire.DefinitionAnswer.from_definition(found, call.documents, call.built_ms)


@routes.get(f"{MEMORY}/kg/path", summary="Shortest way between two concepts")
async def path(call: CurrentCall, query: InQuery[wire.PathQuery]) -> wire.PathAnswer:
    """Over concepts that occur in the same memories; `found` false when there is no way."""
    found = await call.services.graphs.path(call.reads, query.source, query.target)
    return wire.PathAnswer.from_path(found, call.built_ms)


@routes.get(f"{MEMORY}/content-graph/stats", summary="Size of the content graph")
async def content_stats(call: CurrentCall) -> wire.ContentStatsAnswer:
    found = await call.services.graphs.stats(call.reads)
    return wire.ContentStatsAnswer(stats=found, meta=BuiltIn(built_ms=call.built_ms))


@routes.post(f"{MEMORY}/content-graph/backfill", summary="Take memories up again", **writes())
async def backfill(call: CurrentCall, body: wire.BackfillBody | None = None) -> wire.BackfillAnswer:
    """Asks for memories that the content graph does not know yet; they are added in the background
    within seconds."""
    how = body or wire.BackfillBody()
    asked = await call.services.graphs.backfill(call.writes, how.limit, dry_run=how.dry_run)
    took_ms = call.built_ms
    result = wire.BackfillBodyView(
        dry_run=how.dry_run, processed_memories=asked, duration_ms=took_ms
    )
    return wire.BackfillAnswer(result=result, meta=BuiltIn(built_ms=took_ms))


@routes.get(f"{MEMORY}/patterns/performance", summary="The best patterns")
async def patterns(call: CurrentCall) -> wire.PatternsAnswer:
    found = await call.services.graphs.patterns(call.reads, PATTERNS)
    return wire.PatternsAnswer(
        patterns=tuple(map(wire.PatternView.from_item, found)),
        meta=wire.CountMeta(count=len(found), built_ms=call.built_ms),
    )
