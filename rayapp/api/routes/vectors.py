"""Memories by their vectors alone."""

from rayapp.api.call import Call
from rayapp.api.paths import MemoryIdPart
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, InQuery, router
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import CORE_TIERS
from rayapp.search.vectors import Near
from rayapp.wire import vectors as wire
from rayapp.wire.search import Filters, TierList

routes = router("vectors")


@routes.post(
    "/api/vectors/search", summary="Find memories by a vector", responses=raises(InvalidInput)
)
async def search(call: CurrentCall, body: wire.VectorBody) -> wire.NearAnswer:
    """The nearest by the cosine of the embedder's vectors, without words, ranks and outcomes.
    `POST /v1/embeddings` makes such vectors; a question is asked of `POST /api/memory/search`."""
    where = _where(body.filters or Filters(), body.tiers)
    found = await call.services.vectors.search(call.reads, body.vector, where, body.limit)
    return _answer(call, found)


@routes.get(
    "/api/vectors/nearest/{memory_id}",
    summary="Find memories like one",
    responses=raises(NotFound, Conflict),
)
async def nearest(
    call: CurrentCall, memory_id: MemoryIdPart, query: InQuery[wire.NearestQuery]
) -> wire.NearAnswer:
    """The nearest of the vector of its first passage, without itself."""
    where = _where(query, query.tiers)
    found = await call.services.vectors.nearest(call.reads, memory_id, where, query.limit)
    return _answer(call, found)


@routes.post(
    "/api/vectors/compare",
    summary="Say how near two memories are",
    responses=raises(NotFound, Conflict),
)
async def compare(call: CurrentCall, body: wire.CompareBody) -> wire.CompareAnswer:
    """The cosine of the vectors of their first passages."""
    vectors = call.services.vectors
    cosine = await vectors.compare(call.reads, body.memory_ids)
    return wire.CompareAnswer(model=vectors.schema.model, cosine=round(cosine, 6))


def _where(filters: Filters, tiers: TierList | None) -> ItemFilter:
    return filters.item_filter(tiers=CORE_TIERS if tiers is None else tiers)


def _answer(call: Call, found: list[Near]) -> wire.NearAnswer:
    views = (wire.NearView.of(one, call.documents, cosine=round(one.cosine, 6)) for one in found)
    return wire.NearAnswer(model=call.services.vectors.schema.model, memories=tuple(views))
