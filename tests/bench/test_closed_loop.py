"""What a closed loop says about the service: refusals, the overhead, and where more is no use."""

from typing import Any

import orjson
import pytest

from rayapp.core.errors import DependencyDown
from tests.bench.closed_loop import knee, summary
from tests.bench.report import TARGETS, markdown, rows
from tests.bench.wire import Driven

SPREAD = {"p50": 1.0, "p95": 2.0, "p99": 3.0, "max": 4.0}


def answer(**stages_ms: float) -> bytes:
    return orjson.dumps({"degraded": [], "debug": {"stage_timings_ms": stages_ms}})


def driven(**changes: Any) -> Driven:
    fields: dict[str, Any] = {"latencies_ms": [4.0, 6.0, 8.0], "statuses": {200: 3}, "wall_s": 2.0}
    return Driven(**(fields | changes))


def test_refused_calls_are_no_requests() -> None:
    seen = summary(2, [driven(refused=5), driven(refused=1)])
    assert (seen["requests"], seen["per_s"], seen["refused"]) == (6, 3.0, 6)
    assert seen["statuses"] == {"200": 6}


def test_a_service_that_refused_everything_is_away() -> None:
    with pytest.raises(DependencyDown, match="All calls were refused"):
        summary(1, [driven(latencies_ms=[], statuses={}, refused=3)])
    with pytest.raises(DependencyDown, match="No call was answered"):
        summary(1, [driven(latencies_ms=[], statuses={})])


def test_the_overhead_is_of_the_stages_that_wait_for_stores() -> None:
    kept = [
        answer(index_ms=1.0, hydrate_ms=0.5, receipt_ms=0.5, pending_ms=9.0, embed_ms=1.0),
        answer(index_ms=1.0, hydrate_ms=1.0),
        # Skipped the index: says nothing about what the stores take.
        answer(hydrate_ms=0.1),
    ]
    found = summary(1, [driven(kept=kept)])
    assert (found["overhead"], found["from_index"]) == (3.0, 0.667)


def test_answers_without_stages_have_no_overhead() -> None:
    kept = [orjson.dumps({"memory_id": "m"}), orjson.dumps({"debug": None})]
    assert "overhead" not in summary(1, [driven(kept=kept)])


@pytest.mark.parametrize(
    ("per_s", "expected"),
    [
        ({1: 100.0, 8: 300.0, 32: 320.0}, 8),
        ({32: 320.0, 8: 300.0, 1: 100.0}, 8),
        ({1: 100.0, 8: 105.0, 32: 104.0}, 1),
        # One slow phase in between is not the end of growth.
        ({1: 100.0, 8: 105.0, 32: 200.0}, None),
        ({1: 100.0, 8: 300.0, 32: 330.0}, None),
        ({1: 100.0, 8: 300.0, 32: 200.0}, 8),
        ({1: 100.0}, None),
    ],
)
def test_the_knee_is_where_more_clients_bring_no_tenth_more(
    per_s: dict[int, float], expected: int | None
) -> None:
    assert knee(per_s) == expected


def a_report(memories: int, users: int, heavy: int) -> dict[str, Any]:
    searched = {
        "latency_ms": SPREAD,
        "per_s": 9.0,
        "refused": 7,
        "client_cpu_share": 0.1,
        "overhead": 3.5,
        "stages_ms": {},
    }
    memory = {"pss_mib": 1.0, "rss_mib": 2.0, "processes": []}
    return {
        "run_id": "r",
        "at": "now",
        "cores": 2,
        "load": {"memories": memories, "users": users, "heavy": heavy},
        "memory_idle": memory,
        "search_1": searched,
        "search_8": searched,
        "search_heavy": searched,
        "store_1": searched,
        "index_delay": {"delay_ms": SPREAD, "method": "m"},
        "batch_store": {"items_per_s": 5.0, "indexed_s": 1.0, "refused": 0},
        "knee": {"clients": None, "most": 8},
    }


@pytest.mark.parametrize("load", [(1_000, 10, 0), (100_000, 500, 0), (100_000, 1_000, 5_000)])
def test_another_load_has_no_targets(load: tuple[int, int, int]) -> None:
    assert {row.target for row in rows(a_report(*load))} == {""}


@pytest.mark.parametrize("load", list(TARGETS))
def test_every_target_of_a_load_stands_beside_a_number(load: tuple[int, int, int]) -> None:
    shown = {row.name: row.target for row in rows(a_report(*load)) if row.target}
    assert shown == TARGETS[load]


def test_refusals_the_knee_and_the_overhead_are_reported() -> None:
    shown = {row.name: row.value for row in rows(a_report(10, 1, 0))}
    assert shown["search_8 refused"] == "7"
    assert shown["search knee, clients"] == "above 8"
    assert shown["search_1 overhead, HTTP ÷ stores"] == "3.50"
    assert "the true overhead is larger" in markdown(a_report(10, 1, 0))
