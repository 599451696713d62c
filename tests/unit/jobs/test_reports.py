"""The reports on reranker and embedder: what they write."""

import json
from pathlib import Path

import pytest

from jobs import embedder_report, rerank_report
from rayapp.search.rules.evaluation import Judged


def judged(name: str, *ranked: str) -> Judged:
    return Judged(question_id=name, gold=("a",), ranked=ranked)


ANSWERS = [
    rerank_report.Answered(
        plain=judged(name, *plain),
        alone=(judged(name, "b"), judged(name, "a")),
        before=judged(name, *before),
        after=judged(name, "a", "b"),
    )
    for name, plain, before in (("q1", "b", "ba"), ("q2", "b", "ab"))
]


def test_the_gain_of_the_reranker_is_the_mean_of_differences() -> None:
    made = rerank_report.report_of({"one": ANSWERS}, "m", "default")
    assert (made["model"], made["recipe"]) == ("m", "default")
    row = made["sets"]["one"]
    assert row["questions"] == 2
    assert (row["R@1"]["before"], row["R@1"]["after"]) == (0.5, 1.0)
    assert (row["R@1"]["plain_bm25"], row["R@1"]["best_retriever"]) == (0.0, 1.0)
    assert row["MRR"]["gain"][0] == 0.25


@pytest.mark.parametrize(
    ("after", "missed"), [(0.8, False), (0.71, True), (0.73, False), (0.69, True)]
)
def test_a_set_is_to_be_above_plain_bm25_and_no_worse_than_a_retriever(
    after: float, missed: bool
) -> None:
    row = {"after": after, "plain_bm25": 0.7, "best_retriever": 0.71}
    assert rerank_report.below(row) is missed


def test_the_reranker_report_is_written_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rerank_report, "compare", lambda *asked: {"[set]": ANSWERS})
    out = tmp_path / "x.json"
    assert rerank_report.main(["--data", "data", "--out", str(out)]) == 0
    assert list(json.loads(out.read_bytes())["sets"]) == ["[set]"]
    assert "+0.250" in capsys.readouterr().out


def test_the_embedder_report_is_written_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speed = {"megabytes": 1.0, "load_cpu_s": 0.1, "short_texts_per_cpu_s": {"english": 7}}
    monkeypatch.setattr(embedder_report, "speed_of", lambda folder: speed)
    out = tmp_path / "x.json"
    assert embedder_report.main(["--out", str(out)]) == 0
    assert json.loads(out.read_bytes())["speed"] == speed
    assert "1.0 MB" in capsys.readouterr().out
