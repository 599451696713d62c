"""The pieces of the load test, and the whole against a small real service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.bench.delay import Sample, index_delays
from tests.bench.load import main
from tests.bench.phases import Load, spread
from tests.bench.processes import pss_bytes
from tests.bench.texts import facts
from tests.bench.wire import Call, Drive, drive
from tests.unit.fake_service import FakeService, closed_port, serving


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
    load = Load(
        url="",
        run_id="r",
        memories=memories,
        users=users,
        heavy=heavy,
        seed=1,
        seconds=1,
        warm_s=0,
    )
    batches = load.batches()
    assert sum(size for _, size in batches) == memories + heavy
    assert all(0 < size <= 200 for _, size in batches)
    assert sum(size for user, size in batches if user == load.heavy_user) == heavy
    assert len({user for user, _ in batches}) == users + bool(heavy)


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


def test_the_wire_client_counts_answers_and_errors(service: FakeService) -> None:
    service.shed["/api/memory/search"] = 3
    call = Call("/api/memory/search", b'{"query": "x"}', "u")
    seen = drive(
        Drive(url=service.url, clients=2, start_at=0.0, warm_s=0.0, measure_s=0.4, calls=[call] * 9)
    )
    assert seen.statuses[503] == 3
    assert seen.statuses[200] > 10
    assert len(seen.latencies_ms) == seen.statuses[200] + 3
    assert seen.lost == 0
    assert json.loads(seen.kept[0])["success"] is True


def test_lost_connections_are_counted_not_hidden() -> None:
    call = Call("/", b"", "u")
    url = f"http://127.0.0.1:{closed_port()}"
    seen = drive(Drive(url=url, clients=1, start_at=0, warm_s=0, measure_s=0.2, calls=[call]))
    assert seen.lost > 0
    assert seen.latencies_ms == []


def test_the_whole_run_writes_both_reports(
    service: FakeService, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "load.json"
    sizes = ["--memories", "60", "--users", "3", "--heavy", "20", "--clients", "5"]
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
    assert "| search_5 p50 / p95 ms |" in out.with_suffix(".md").read_text()
    assert "fill items/s acknowledged" in capsys.readouterr().out


def test_an_absent_service_is_exit_four(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    assert main(["--url", url, "--data-dir", str(tmp_path)]) == 4
    assert "No service answers at" in capsys.readouterr().err
