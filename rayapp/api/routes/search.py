"""The search, and the recent list that shares its path."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, InQuery, router
from rayapp.api.routes.memories import check_query
from rayapp.core.errors import DeadlineExceeded, InvalidInput
from rayapp.memory.item import MemoryItem
from rayapp.memory.requests import ItemQuery, SortKey
from rayapp.memory.rules.lifecycle import shown_share
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import CORE_TIERS, DATAGOV_ANSWERS, DATAGOV_TIERS, Tier
from rayapp.wire import search as wire
from rayapp.wire.search import search_body

routes = router("search")
PATH = "/api/memory/search"


@routes.post(
    PATH,
    summary="Search memories",
    response_model=wire.SearchAnswerView,
    responses=raises(DeadlineExceeded),
)
async def search(call: CurrentCall, body: wire.SearchBody) -> Response:
    """Hybrid search over meaning and words, in Hebrew and English. A question about open government
    data also searches the shared catalogue (`include_datagov`). A stage that had to be skipped is
    named in `degraded`. The receipt is what outcomes refer to."""
    check_query(call, body.query)
    most = call.services.settings.search.max_limit
    if body.limit is not None and body.limit > most:
        raise InvalidInput(
            f"limit: {body.limit} is above {most}; ask for less and page with offset.",
            details={"field": "limit", "limit": most},
        )
    query = replace(body.search_query(), principal=call.who.principal)
    found = await call.services.search.search(call.reads, query)
    call.notes |= {"stages": found.timings_ms, "hits": len(found.hits), "degraded": found.degraded}
    now, first_client = call.services.clock.now(), call.services.settings.compat.first_client
    meant: tuple[str, ...] = ()
    if not found.hits and body.offset == 0:
        meant = await call.services.insights.suggestions(call.reads, body.query)
    shown = search_body(found, now, call.documents, first_client=first_client, suggestions=meant)
    return answer(shown)


@routes.get(PATH, summary="List recent memories")
async def recent(call: CurrentCall, query: InQuery[wire.RecentQuery]) -> wire.RecentAnswer:
    """The memories that changed last, or did best, as the first client shows them. Unknown query
    fields are ignored."""
    tiers = query.tiers if query.tiers is not None else CORE_TIERS
    asks_datagov = query.include_datagov or query.datagov_categories is not None
    if asks_datagov and query.tiers is None:
        tiers = (*CORE_TIERS, *DATAGOV_ANSWERS)
    parts = _parts(tiers, query.datagov_categories, call.services.clock.now())
    shown = await _page(call, parts, query)
    return wire.RecentAnswer(
        memories=tuple(wire.RecentView.of(item, call.documents) for item in shown)
    )


async def _page(
    call: Call, parts: list[ItemFilter], query: wire.RecentQuery
) -> Sequence[MemoryItem]:
    """One page of the store, or the merge of two."""
    memories, words = call.services.memories, query.query or None
    scored = query.sort_by == "score"
    sort: SortKey = "score" if scored else "updated"
    if len(parts) == 1:
        page = await memories.page(
            call.reads,
            parts[0],
            ItemQuery(sort=sort, limit=query.limit, offset=query.offset, text_query=words),
        )
        # The store orders by what it keeps; a page follows the percentage that it shows.
        return (
            sorted(page.items, key=lambda one: shown_share(one.stats), reverse=True)
            if scored
            else page.items
        )
    end = query.offset + query.limit
    found: list[MemoryItem] = []
    for where in parts:
        page = await memories.page(
            call.reads, where, ItemQuery(sort=sort, limit=end, text_query=words)
        )
        found.extend(page.items)
    found.sort(
        key=lambda one: (shown_share(one.stats) if scored else 0.0, one.updated_at, one.memory_id),
        reverse=True,
    )
    return found[query.offset : end]


def _parts(
    tiers: tuple[Tier, ...], categories: tuple[str, ...] | None, now: datetime
) -> list[ItemFilter]:
    """One filter, or two where categories narrow the DataGov tiers and leave the others alone."""
    every = ItemFilter(tiers=tiers, now=now)
    if categories is None:
        return [every]
    own = tuple(tier for tier in tiers if tier not in DATAGOV_TIERS)
    shared = tuple(tier for tier in tiers if tier in DATAGOV_TIERS)
    return [replace(every, tiers=own), replace(every, tiers=shared, categories=categories)]
