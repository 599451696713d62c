"""The reports on reranker and embedder: what they write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs import embedder_report, rerank_report
from rayapp.search.rules.evaluation import Judged


def judged(name: str, *ranked: str) -> Judged:
    return Judged(question_id=name, gold=("a",), ranked=ranked)


PAIRS = [
    (judged("q1", "b", "a"), judged("q1", "a", "b")),
    (judged("q2", "a", "b"), judged("q2", "a", "b")),
]


def test_the_gain_of_the_reranker_is_the_mean_of_differences() -> None:
    made = json.loads(rerank_report.as_json({"one": PAIRS}, "m", "default"))
    assert (made["model"], made["recipe"]) == ("m", "default")
    row = made["sets"]["one"]
    assert row["questions"] == 2
    assert (row["R@1"]["before"], row["R@1"]["after"]) == (0.5, 1.0)
    assert row["MRR"]["gain"][0] == 0.25
    assert "+0.5000" in rerank_report.table("one", PAIRS)


def test_the_reranker_report_is_written_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rerank_report, "compare", lambda options, recipe: {"[set]": PAIRS})
    out = tmp_path / "x.json"
    assert rerank_report.main(["--data", "data", "--out", str(out)]) == 0
    assert list(json.loads(out.read_bytes())["sets"]) == ["[set]"]
    assert "[set]: 2 questions" in capsys.readouterr().out


def test_the_embedder_report_is_written_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speed = {"megabytes": 1.0, "load_cpu_s": 0.1, "short_texts_per_cpu_s": {"english": 7}}
    monkeypatch.setattr(embedder_report, "speed_of", lambda folder: speed)
    out = tmp_path / "x.json"
    assert embedder_report.main(["--out", str(out)]) == 0
    assert json.loads(out.read_bytes())["speed"] == speed
    assert "1.0 MB" in capsys.readouterr().out
