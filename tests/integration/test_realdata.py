"""Real evaluation sets through the running service: above plain BM25 on both, in one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs import evaluate
from tests.running import RunningService

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.realdata]


QUESTIONS = 150


@pytest.mark.parametrize(("suite", "metric"), [("locomo", "MRR"), ("heq", "R@1")])
def test_the_service_beats_plain_bm25(
    service: RunningService, realdata: Path, tmp_path: Path, suite: str, metric: str
) -> None:
    out = tmp_path / "report.json"
    arguments = ["--suite", suite, "--data", str(realdata), "--url", service.url]
    limit = ["--limit-questions", str(QUESTIONS)]
    assert evaluate.main([*arguments, *limit, "--out", str(out)]) == 0
    (report,) = json.loads(out.read_text(encoding="utf-8"))["suites"]
    assert report["questions"] == QUESTIONS
    assert not report["errors"]
    assert not report["degraded"]
    headline = report["summaries"][0]["set"]
    means: dict[str, float] = {
        row["system"]: row["metrics"][metric]["mean"]
        for row in report["summaries"]
        if row["set"] == headline
    }
    floor = next(value for system, value in means.items() if system != "service")
    assert means["service"] > floor


def test_outcomes_alone_put_the_good_before_the_bad(
    service: RunningService, realdata: Path, tmp_path: Path
) -> None:
    out = tmp_path / "report.json"
    arguments = ["--suite", "outcomes", "--data", str(realdata), "--url", service.url]
    limit = ["--limit-questions", "60"]
    assert evaluate.main([*arguments, *limit, "--out", str(out)]) == 0
    (report,) = json.loads(out.read_text(encoding="utf-8"))["suites"]
    forms = {form["form"]: form for form in report["forms"]}
    pooled = forms["pooled"]
    assert pooled["kept"] == pooled["stored"] == 60
    assert pooled["levels"]["0"]["good_first_of_all"] < 0.5  # else the set proves nothing
    assert pooled["levels"]["3"]["good_first_of_all"] >= 0.85
    assert pooled["levels"]["3"]["good_first_of_candidates"] >= 0.95
    assert forms["contradictions"]["levels"]["5"]["good_first_of_all"] >= 0.85
    # One question of sixty may move; the whole set is measured by the command.
    assert report["same_store"]["hit@10"]["change"] >= -0.02
    assert report["sabotage"]["flipped"] == 0
    assert report["sabotage"]["refused"] == report["sabotage"]["tried"] > 0
