"""The speed of the systems beside each other: ratios turn by turn, report, picture, the server."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from tests.bench.closed_loop import shared_out
from tests.bench.peer_server import application
from tests.bench.peer_speed import between, chroma_texts, main, mem0_body, mem0_texts, parser
from tests.bench.peer_speed_report import (
    METRICS,
    Idle,
    Slice,
    against,
    failed,
    lines,
    picture,
    ratio,
    summary,
    systems_report,
)
from tests.bench.wire import Call, Drive
from tests.support.ports import free_port
from tests.unit.fake_service import FakeService, serving

P50, _P95, PER_S, CPU = METRICS


def asked(
    system: str, turn: int, latencies_ms: Sequence[float], *, cpu_s: float | None = 0.1, **rest: Any
) -> Slice:
    given: dict[str, Any] = {"clients": 1, "statuses": {"200": len(latencies_ms)}, "failed": 0}
    return Slice(
        system=system,
        turn=turn,
        measure_s=2.0,
        latencies_ms=latencies_ms,
        cpu_s=cpu_s,
        client_cpu_s=0.003,
        **(given | rest),
    )


OURS = [asked("ours", 0, [2.0] * 10), asked("ours", 1, [4.0] * 10), asked("ours", 2, [8.0] * 10)]
MEM0 = [asked("mem0", 0, [4.0] * 5), asked("mem0", 1, [12.0] * 5), asked("mem0", 2, [8.0] * 5)]
IDLE = {"ours": Idle(33, 30.0, 2000.0, 2200.0), "mem0": Idle(2, 0.0, 200.0, 220.0)}


def test_a_ratio_compares_what_was_asked_in_the_same_turn() -> None:
    assert ratio(P50, MEM0, OURS) == {"median": 2.0, "low": 1.0, "high": 3.0}
    assert ratio(P50, MEM0[:1], OURS) == {"median": 2.0, "low": 2.0, "high": 2.0}
    assert ratio(P50, MEM0[:1], OURS[1:]) is None


def test_rates_and_cpu_are_of_all_slices_together() -> None:
    assert PER_S.of(OURS) == 5.0
    assert CPU.of(OURS) == pytest.approx(10.0)
    assert CPU.of([*OURS, asked("ours", 3, [1.0], cpu_s=None)]) is None
    assert P50.of([asked("ours", 0, [])]) is None


def test_a_report_has_every_system_with_its_ratio_to_ours() -> None:
    report = systems_report([*OURS, *MEM0], IDLE)
    ours, mem0 = report["ours"], report["mem0"]
    assert list(report) == ["ours", "mem0"]
    assert (ours["clients"]["1"]["p50_ms"], mem0["clients"]["1"]["p50_ms"]) == (4.0, 8.0)
    assert ours["clients"]["1"]["ratio_to_ours"] == {}
    assert mem0["clients"]["1"]["ratio_to_ours"]["per_s"]["median"] == 0.5
    assert mem0["clients"]["1"]["client_cpu_ms"] == 0.6
    assert mem0["idle"]["ratio_to_ours"] == {"cpu_percent": 0.0, "uss_mib": 0.1, "pss_mib": 0.1}


def test_ours_is_compared_with_each_peer_and_the_best_is_named_per_number() -> None:
    quick = [asked("chroma", turn, [1.0] * 2) for turn in range(3)]
    over = against([*OURS, *MEM0, *quick])["1"]
    assert over["p50_ms"]["best"] == "chroma"
    assert over["per_s"]["best"] == "mem0"
    assert over["p50_ms"]["over"]["chroma"]["median"] == 4.0
    first = next(summary({"1": over}))
    assert first.startswith("p50 ms, 1 client: ours over mem0 hybrid ×0.50 (0.33 to 1.00), Chroma")
    assert first.endswith("best peer: Chroma")
    assert against(OURS) == against(MEM0) == {}


def test_a_slice_without_answers_or_with_refusals_fails_the_run() -> None:
    assert not failed([*OURS, *MEM0])
    assert failed([asked("ours", 0, [])])
    assert failed([asked("ours", 0, [1.0], failed=1)])
    assert failed([asked("ours", 0, [1.0], statuses={"503": 1})])


def test_the_picture_draws_the_longest_bar_for_the_largest_number() -> None:
    report = systems_report([*OURS, *MEM0], IDLE)
    drawn = ElementTree.fromstring(picture(report, "a & b"))
    boxes = [node for node in drawn.iter() if node.tag.endswith("rect")]
    assert len(boxes) == 2 * sum(line.drawn for line in lines(report)) == 12
    ours, mem0 = (float(box.attrib["width"]) for box in boxes[:2])
    assert ours == pytest.approx(mem0 / 2, abs=0.1)


def test_computed_seconds_are_of_processes_that_lived_through_the_window() -> None:
    assert between({1: 1.0, 2: 5.0}, {1: 1.5, 3: 9.0}) == 0.5


def test_clients_are_shared_out_over_processes_with_calls_of_their_own() -> None:
    calls = [Call("/", b"", str(index)) for index in range(9)]
    whole = Drive(url="u", clients=6, start_at=1.0, warm_s=0.0, measure_s=1.0, calls=calls)
    one, other = shared_out(whole)
    assert (one.clients, other.clients) == (4, 2)
    assert {*one.calls} | {*other.calls} == {*calls}
    assert not {*one.calls} & {*other.calls}


class Library:
    def hits(self, user: str, text: str, limit: int) -> list[dict[str, Any]]:
        return [{"memory": f"{user} {text}", "score": 0.5}][:limit]


async def test_the_server_of_a_library_answers_what_it_finds() -> None:
    transport = httpx.ASGITransport(application(Library()))
    async with httpx.AsyncClient(transport=transport, base_url="http://peer") as client:
        answer = await client.post("/search", content=mem0_body("u", "חיפה"))
    assert answer.status_code == 200
    assert mem0_texts(answer.json()) == ["u חיפה"]


def test_texts_of_chroma_are_those_of_the_one_question() -> None:
    assert chroma_texts({"documents": [["a", "b"]]}) == ["a", "b"]


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving(FakeService()) as started:
        yield started


@pytest.mark.process
def test_the_whole_run_measures_a_service_by_its_address(
    tmp_path: Path, service: FakeService, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["--memories", "40", "--users", "4", "--questions", "20", "--clients", "1", "5"]
    times = ["--turns", "1", "--seconds", "0.5", "--warm-s", "0", "--idle-s", "0.1"]
    out, drawn = tmp_path / "o.json", tmp_path / "o.svg"
    where = ["--url", service.url, "--out", str(out), "--picture", str(drawn)]
    assert main([*where, *sizes, *times, "--systems", "ours", "--data-dir", str(tmp_path)]) == 0
    report = json.loads(out.read_text())
    ours = report["systems"]["ours"]["clients"]
    assert list(ours) == ["1", "5"]
    assert ours["1"]["requests"] > 0
    assert ours["1"]["cpu_ms"] is None  # only the stack of a data directory can be looked into
    assert report["finds_first_text"] == {"ours": 1.0}
    assert "<svg" in drawn.read_text()
    assert "p50 ms, 1 client" in capsys.readouterr().out


def test_an_absent_service_or_environment_ends_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--url", f"http://127.0.0.1:{free_port()}", "--memories", "2", "--users", "1"]
    assert main([*where, "--systems", "ours"]) == 4
    assert "No service answers at" in capsys.readouterr().err
    assert main([*where, "--env", str(tmp_path), "--systems", "chroma"]) == 2
    assert "add --make-env" in capsys.readouterr().err
    assert parser().parse_args([]).memories == 100_000
