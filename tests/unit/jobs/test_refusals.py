"""What the commands that measure refuse: one sentence, before any work."""

from pathlib import Path
from typing import Any

import pytest

from jobs import embedder_report, rerank_report, tune

NO_RECIPE = "No recipe 'nope'; use one of default, lexical, rrf."


@pytest.mark.parametrize(
    ("command", "work", "arguments", "said"),
    [
        (rerank_report, "examples_of", "--data data --recipe nope", NO_RECIPE),
        (rerank_report, "examples_of", "--data data --model nope", "No static model 'nope'"),
        (
            rerank_report,
            "examples_of",
            "--data data --weights nope.json",
            "nope.json of the reranker cannot be read",
        ),
        (rerank_report, "examples_of", "--data [nope]", "LoCoMo is not at [nope]"),
        (rerank_report, "examples_of", "--data data --out .", "is a folder"),
        (embedder_report, "speed_of", "--leave-out nope", "No field nope: choose of"),
        (embedder_report, "speed_of", "--model nope", "No static model 'nope'"),
        (embedder_report, "speed_of", "--data nope", "is not at nope"),
        (embedder_report, "speed_of", "--out .", "is a folder"),
        (tune, "Judge", "--data data --recipe nope", NO_RECIPE),
        (tune, "Judge", "--data data --model nope", "No static model 'nope'"),
        (tune, "Judge", "--data [nope]", "LoCoMo is not at [nope]"),
        (tune, "Judge", "--data data --out .", "is a folder"),
    ],
)
def test_one_sentence_before_any_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: Any,
    work: str,
    arguments: str,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, work, None)
    assert command.main(arguments.split()) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.err.count("\n") == 1
    # The search says what it reads.
    assert shown.out == "" or command is tune
