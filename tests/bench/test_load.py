"""The pieces of the load test, and the whole against a small real service."""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.requests import Request
from starlette.responses import Response

from jobs.ending import DEPENDENCY_AWAY, exit_code_of
from tests.bench import closed_loop, phases
from tests.bench.batch_store import batch_calls, batch_store
from tests.bench.closed_loop import knee, spread
from tests.bench.delay import Sample, index_delays
from tests.bench.load import failed, main, parser
from tests.bench.phases import Load
from tests.bench.processes import pss_bytes
from tests.bench.texts import facts
from tests.bench.wire import REFUSED, Call, Drive, Driven, _client, drive
from tests.support.ports import free_port
from tests.unit.fake_service import FakeService, serving


class Busy(FakeService):
    """Refuses as a service does that has too much to do."""

    def refused(self, request: Request) -> Response | None:
        answer = super().refused(request)
        if answer is not None:
            answer.status_code = REFUSED
        return answer


def a_load(url: str = "", **changes: Any) -> Load:
    fields = {"memories": 20, "users": 2, "heavy": 0, "seed": 1, "seconds": 0.2, "warm_s": 0.0}
    return Load(url=url, run_id="r", **(fields | changes))


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving(FakeService()) as started:
        yield started


@pytest.mark.parametrize(
    ("acknowledged", "samples", "expected"),
    [
        ([1.0], [(1.1, 1.2, 0)], [0.2]),
        ([1.0], [(1.1, 1.2, 1), (1.3, 1.4, 0)], [0.4]),
        # A sample asked before the acknowledgement says nothing about it.
        ([1.0], [(0.9, 1.2, 0), (1.3, 1.4, 0)], [0.4]),
        ([1.0, 2.0], [(2.1, 2.2, 1), (3.0, 3.1, 0)], [1.2, 1.1]),
        ([1.0, 2.0], [(2.1, 2.2, 2)], []),
        ([], [(1.0, 1.1, 0)], []),
    ],
)
def test_delay_is_an_upper_bound_from_counts(
    acknowledged: list[float], samples: list[tuple[float, float, int]], expected: list[float]
) -> None:
    looks = [Sample(*sample) for sample in samples]
    assert index_delays(acknowledged, looks) == pytest.approx(expected)


def test_texts_are_seeded_distinct_and_bilingual() -> None:
    first = [fact.text for fact in islice(facts(3), 2_000)]
    assert first == [fact.text for fact in islice(facts(3), 2_000)]
    assert len(set(first)) == 2_000
    languages = [fact.lang for fact in islice(facts(3), 2_000)]
    assert 0.45 < languages.count("he") / 2_000 < 0.55


@pytest.mark.parametrize(
    ("memories", "users", "heavy"), [(1_000, 10, 0), (7, 3, 0), (1_001, 10, 450), (500, 1, 0)]
)
def test_batches_hold_everything_once(memories: int, users: int, heavy: int) -> None:
    load = a_load(memories=memories, users=users, heavy=heavy)
    batches = load.batches()
    assert sum(size for _, size in batches) == memories + heavy
    assert all(0 < size <= 200 for _, size in batches)
    assert sum(size for user, size in batches if user == load.heavy_user) == heavy
    assert len({user for user, _ in batches}) == users + bool(heavy)


def test_few_users_ask_most_and_each_for_what_is_theirs() -> None:
    load = a_load(memories=600, users=200, zipf=1.0)
    calls = phases.search_calls(load, heavy=False)
    often = Counter(call.user_id for call in calls)
    assert len(calls) == phases.ZIPF_QUERIES
    first, tenth = often[load.user(0)], often[load.user(9)]
    assert 8 < first / tenth < 12.5
    mine = [fact.text for fact in islice(facts(load.seed), 3)]
    named = {word for text in mine for word in text.split() if word.isalpha()}
    asked = [orjson.loads(call.body)["query"] for call in calls if call.user_id == load.user(0)]
    assert all(named & set(question.strip("?").split()) for question in asked)


def test_pss_is_read_in_bytes() -> None:
    assert pss_bytes("55d-7ff ---p 00000000 [rollup]\nRss: 90 kB\nPss:  12 kB\n") == 12 * 1024
    with pytest.raises(ValueError, match="no Pss line"):
        pss_bytes("Rss: 90 kB\n")


def test_spread_reports_observed_values() -> None:
    assert spread([float(i) for i in range(1, 101)]) == {
        "p50": 50.0,
        "p95": 95.0,
        "p99": 99.0,
        "max": 100.0,
    }


async def a_client_of(url: str, enough: Callable[[Driven], bool]) -> Driven:
    """What one client saw until it was enough, however long that takes on a busy machine."""
    seen, call = Driven(), Call("/api/memory/search", b'{"query": "x"}', "u")
    client = asyncio.create_task(_client(url, [call], 0.0, math.inf, seen))
    while not (client.done() or enough(seen)):
        await asyncio.wait({client}, timeout=0.01)
    client.cancel()
    await asyncio.wait({client})
    return seen


async def test_the_wire_client_counts_answers_and_errors(service: FakeService) -> None:
    service.shed["/api/memory/search"] = 3
    seen = await a_client_of(service.url, lambda seen: len(seen.kept) > 0)
    assert seen.statuses[503] == 3
    assert len(seen.latencies_ms) == seen.statuses[200] + 3
    assert seen.lost == 0
    assert json.loads(seen.kept[0])["success"] is True


async def test_refused_calls_are_counted_apart_and_take_no_time() -> None:
    with serving(Busy()) as busy:
        busy.shed["/api/memory/search"] = 3
        seen = await a_client_of(busy.url, lambda seen: sum(seen.statuses.values()) > 3)
    assert seen.refused == 3
    assert set(seen.statuses) == {200}
    assert len(seen.latencies_ms) == seen.statuses[200]


def test_more_clients_than_calls_ask_the_same(service: FakeService) -> None:
    call = Call("/api/memory/search", b'{"query": "x"}', "u")
    seen = drive(
        Drive(url=service.url, clients=3, start_at=0, warm_s=0, measure_s=0.2, calls=[call])
    )
    assert seen.lost == 0


def test_lost_connections_are_counted_not_hidden() -> None:
    call = Call("/", b"", "u")
    url = f"http://127.0.0.1:{free_port()}"
    seen = drive(Drive(url=url, clients=1, start_at=0, warm_s=0, measure_s=0.2, calls=[call]))
    assert seen.lost > 0
    assert seen.latencies_ms == []


@pytest.mark.process
def test_the_whole_run_writes_both_reports(
    service: FakeService,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The client processes of a test need not begin together.
    monkeypatch.setattr(closed_loop, "LEAST_LAG_S", 0.0)
    monkeypatch.setattr(closed_loop, "IMPORT_S", 0.0)
    out = tmp_path / "load.json"
    sizes = [
        "--memories",
        "60",
        "--users",
        "3",
        "--heavy",
        "20",
        "--clients",
        "2",
        "5",
        "--batch",
        "150",
    ]
    times = ["--seconds", "0.5", "--warm-s", "0.1"]
    where = ["--url", service.url, "--data-dir", str(tmp_path), "--out", str(out)]
    assert main([*sizes, *times, *where]) == 0
    report = json.loads(out.read_text())
    assert report["fill"]["statuses"] == {"stored": 80}
    assert report["search_5"]["clients"] == 5
    assert report["search_5"]["statuses"].keys() == {"200"}
    assert report["search_5"]["stages_ms"]["dense_ms"]["p50"] == 0.5
    assert report["store_1"]["statuses"].keys() == {"201"}
    assert report["index_delay"]["stores"] == 25
    assert report["index_delay"]["not_indexed"] == 0
    assert report["batch_store"]["statuses"] == {"stored": 150}
    assert report["batch_store"]["items_per_s"] > 0
    rates = {clients: report[f"search_{clients}"]["per_s"] for clients in (2, 5)}
    assert report["knee"] == {"clients": knee(rates), "most": 5}
    assert "| search_5 p50 / p95 ms |" in out.with_suffix(".md").read_text()
    assert "fill items/s acknowledged" in capsys.readouterr().out


def test_an_absent_service_is_exit_four(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert main(["--url", url, "--data-dir", str(tmp_path)]) == 4
    assert "No service answers at" in capsys.readouterr().err


def test_a_service_that_refuses_every_store_is_exit_four(
    service: FakeService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service.shed["/api/memory/store/batch"] = 10_000
    where = ["--url", service.url, "--data-dir", str(tmp_path)]
    assert main([*where, "--memories", "60", "--users", "3"]) == DEPENDENCY_AWAY
    assert "The queue is full." in capsys.readouterr().err


def test_a_service_that_is_gone_ends_the_delay_phase(capsys: pytest.CaptureFixture[str]) -> None:
    load = a_load(f"http://127.0.0.1:{free_port()}")

    def work() -> int:
        asyncio.run(phases.delay(load))
        return 0

    assert exit_code_of(work) == DEPENDENCY_AWAY
    assert "was lost" in capsys.readouterr().err


async def test_a_second_run_over_the_same_users_stores_new_texts(service: FakeService) -> None:
    stored = 0
    for _ in range(2):
        stored += (await phases.delay(a_load(service.url)))["stores"]
    assert sum(map(len, service.users.values())) == stored == 20


def test_no_phase_repeats_a_text_of_an_earlier_run(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[Call]] = []

    def seen(_url: str, _clients: int, calls: list[Call], **_times: float) -> dict[str, Any]:
        given.append(calls)
        return {}

    monkeypatch.setattr(phases, "drive_all", seen)
    one, two = a_load(), a_load()
    for load in (one, two):
        phases.store(load)
    first, second = ({orjson.loads(call.body)["text"] for call in calls} for calls in given)
    assert len(first) == len(given[0])
    assert not first & second
    first, second = (_batch_texts(load) for load in (one, two))
    assert len(first) == 250
    assert not first & second


def _batch_texts(load: Load) -> set[str]:
    calls = batch_calls(load, 250)
    assert len({call.user_id for call in calls} - {load.user(0), load.user(1)}) == len(calls) == 3
    return {item["text"] for call in calls for item in orjson.loads(call.body)["items"]}


async def test_a_refused_batch_is_counted_and_not_stored() -> None:
    with serving(Busy()) as busy:
        busy.shed["/api/memory/store/batch"] = 1
        seen = await batch_store(a_load(busy.url), 300)
        kept = sum(map(len, busy.users.values()))
    assert seen["refused"] == 1
    assert seen["statuses"] == {"stored": 200}
    assert kept == 200
    assert not failed({"batch_store": seen})


@pytest.mark.parametrize(
    "section",
    [
        {"lost": 1},
        {"failed": {"429": 1}},
        {"not_indexed": 1},
        {"statuses": {"200": 9, "503": 1}},
        {"statuses": {"stored": 9, "rejected": 1}},
    ],
)
def test_what_was_not_done_fails_the_run(section: dict[str, Any]) -> None:
    assert failed({"phase": section})


def test_refusals_of_a_closed_loop_are_no_failure() -> None:
    assert not failed({"search_32": {"statuses": {"200": 9}, "refused": 4, "lost": 0}})


def test_the_usual_clients_reach_beyond_the_targets() -> None:
    assert parser().parse_args([]).clients == [1, 8, 32]
