"""The pieces of the reindex bench, against a small real service."""

import asyncio
from typing import Any

import pytest

from tests.bench.phases import Load
from tests.bench.reindex import MAX_P95_RATIO, MIN_SHARE, Offered, Seen, failed, table
from tests.bench.reindex_limits import share_of
from tests.unit.fake_service import FakeService, serving

SPREAD = {"p50": 1.0, "p95": 2.0, "p99": 3.0, "max": 4.0}


ALONE = {
    "items_per_s": 600.0,
    "limits": {"embedder": 9_000.0, "engine_upsert": 1_000.0, "dims": 256},
    "share": 0.6,
}


def a_report(**changes: Any) -> dict[str, Any]:
    stretch = {
        "search_ms": SPREAD,
        "store_ms": SPREAD,
        "statuses": {"search 200": 9, "store 201": 4},
        "degraded": {},
    }
    report = {
        "run_id": "r",
        "before": stretch,
        "during": stretch,
        "job": {"exit_code": 0, "wall_s": 3.0, "report": {"report": {"items": 9}}},
        "stored": 4,
        "lost": [],
        "p95_ratio": 1.0,
    }
    return report | changes


@pytest.mark.parametrize(
    "change",
    [
        {"lost": ["m-1"]},
        {"p95_ratio": MAX_P95_RATIO + 0.1},
        {"job": {"exit_code": 3, "wall_s": 1.0, "report": {}}},
        {"alone": ALONE | {"share": MIN_SHARE - 0.1}},
        {"alone": ALONE | {"share": None}},
        {"during": a_report()["during"] | {"statuses": {"search 200": 9, "search 503": 1}}},
    ],
    ids=["lost", "slow", "job", "slow-alone", "no-share", "refused"],
)
def test_what_users_would_notice_fails_the_bench(change: dict[str, Any]) -> None:
    assert failed(a_report(**change))
    rows = table(a_report(**change)).row_count
    assert rows == table(a_report()).row_count + 3 * ("alone" in change)


def test_a_quiet_reindex_passes() -> None:
    assert not failed(a_report())
    assert not failed(a_report(alone=ALONE))


def test_a_text_that_was_stored_before_is_no_failure() -> None:
    again = a_report()["during"] | {"statuses": {"search 200": 9, "store 200": 4}}
    assert not failed(a_report(during=again))


def test_the_share_is_of_the_slower_part() -> None:
    assert share_of(500.0, {"embedder": 4_000.0, "engine_upsert": 1_000.0}) == 0.5
    assert share_of(500.0, {"embedder": 800.0, "engine_upsert": 1_000.0}) == 0.625
    assert share_of(None, {"embedder": 800.0, "engine_upsert": 1_000.0}) is None


def test_the_slow_searches_say_where_they_waited() -> None:
    seen = Seen()
    seen.stages = [(5.0, {"query_ms": 1.0, "total_ms": 4.0})] * 39
    seen.stages.append((900.0, {"query_ms": 700.0, "embed_ms": 50.0, "total_ms": 800.0}))
    seen.stages.append((700.0, {"query_ms": 500.0, "embed_ms": 50.0, "total_ms": 600.0}))
    assert seen.slow_stages() == {"total": 700.0, "query": 600.0, "outside": 100.0, "embed": 50.0}


async def test_searches_and_stores_are_offered_until_told_to_stop() -> None:
    with serving(FakeService()) as service:
        load = Load(
            url=service.url,
            run_id="r",
            memories=20,
            users=2,
            heavy=0,
            seed=1,
            seconds=1.0,
            warm_s=0.0,
        )
        offered, over = Offered(load, 50.0, 50.0), asyncio.Event()
        asyncio.get_running_loop().call_later(0.3, over.set)
        seen = await offered.until(over)
    assert len(seen.search_ms) > 0
    assert len(seen.stored) == len(seen.store_ms) > 0
    assert set(seen.statuses) == {"search 200", "store 201"}
    assert len({text for _, _, text in seen.stored}) == len(seen.stored)
