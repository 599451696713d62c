"""Answers of the service as the client reads them: the recorded ones with a few fields changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from rayapp.api.openapi import examples
from rayapp.client import HitView, RecentView, SearchReply


def a_hit(**changed: Any) -> HitView:
    """A hit of the user's own."""
    recorded = _search()["results"][0] | {"datagov": None}
    recorded["source"] = recorded["source"] | {"datagov": None} | (changed.pop("source", {}) or {})
    return HitView.model_validate(recorded | changed)


def a_reply(
    hits: Sequence[HitView],
    *,
    tiers: Sequence[str] = (),
    timings_ms: Mapping[str, float] | None = None,
    **changed: Any,
) -> SearchReply:
    """The answer of a search; `tiers` are those that it says it searched."""
    recorded = _search()
    debug = recorded["debug"] | {"tiers": tiers, "stage_timings_ms": timings_ms or {}}
    changed = {"total": len(hits), "abstained": not hits, "degraded": ()} | changed
    return SearchReply.model_validate(recorded | {"results": hits, "debug": debug} | changed)


def a_recent_memory(**changed: Any) -> RecentView:
    recorded = examples()["GET /api/memory/search"]["answer"]["memories"][0]
    return RecentView.model_validate(recorded | changed)


def _search() -> dict[str, Any]:
    return dict(examples()["POST /api/memory/search"]["answer"])
