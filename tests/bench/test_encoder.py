"""The parts of the encoder bench that need no torch."""

import asyncio
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.ending import BAD_ARGUMENTS
from rayapp.core.errors import ConfigError
from tests.bench import encoder
from tests.bench.encoder import parser, ready, tables
from tests.bench.encoder_gateways import _spread
from tests.bench.encoder_model import mixed_lengths, trained_tokenizer
from tests.bench.encoder_work import LONGEST, Work, works


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tokenizer")
    trained_tokenizer(1, facts_read=200).save(str(made / "tokenizer.json"))
    return made


@pytest.mark.parametrize("pairs", [False, True])
def test_texts_have_the_length_that_is_asked_for(folder: Path, pairs: bool) -> None:
    short, long = works(folder, ["32", "200"], count=lambda mean: 640 // mean, pairs=pairs, seed=1)
    assert (len(short.texts), len(long.texts)) == (20, 3)
    # Cutting a text may cost a token or win one at the cut.
    assert all(abs(tokens - 32) <= 3 for tokens in short.tokens)
    assert all(abs(tokens - 200) <= 3 for tokens in long.tokens)
    assert len({*short.texts, *long.texts}) == 23
    assert bool(short.query) == pairs


def test_mixed_texts_are_short_and_long(folder: Path) -> None:
    _, mixed = works(folder, ["256", "mixed"], count=lambda _mean: 200, pairs=False, seed=1)
    assert min(mixed.tokens) < 20
    assert 200 < max(mixed.tokens) <= 259
    assert mixed_lengths(50, 256, 1) == mixed_lengths(50, 256, 1)


def test_a_part_keeps_its_tokens() -> None:
    work = Work("16", ("a", "b", "c"), "q", (1, 2, 3))
    part = work.part([2, 0])
    assert (part.texts, part.tokens, part.inputs) == (("c", "a"), (3, 1), [("q", "c"), ("q", "a")])


async def test_answers_of_many_callers_are_in_order() -> None:
    async def call(part: Sequence[str]) -> list[Any]:
        await asyncio.sleep(0.001 * (5 - len(part[0])))
        return [text.upper() for text in part]

    parts = [["aaaa", "b"], ["c"], ["ddd"]]
    assert await _spread(call, parts, 2) == ["AAAA", "B", "C", "DDD"]


def test_the_report_names_a_failed_recovery() -> None:
    row = {"length": "16", "way": "bulk", "texts_per_s": 1.0, "tokens_per_s": 16.0, "ratio": 0.9,
           "tokenizer_share": 0.1, "model_share": 0.8}  # fmt: skip
    memory = {"how": "injected", "texts": 4, "answered": 3, "batches": [4, 2], "furthest": 0.0,
              "batches_next_time": [2, 2], "recovered": False}  # fmt: skip
    report = {"size": "tiny", "precision": "float32", "device": "cpu", "embedding": [row],
              "reranking": [row], "embedding_out_of_memory": memory,
              "reranking_out_of_memory": {**memory, "recovered": True}}  # fmt: skip
    made = tables(report)
    assert [table.row_count for table in made] == [1, 1, 2]
    assert list(made[-1].columns[-1].cells) == ["NO", "yes"]


def test_defaults_measure_every_length() -> None:
    arguments = parser().parse_args([])
    assert arguments.size is None
    assert arguments.lengths == ["16", "64", "256", "512", "mixed"]


def test_mixed_alone_has_a_longest_text(folder: Path) -> None:
    (mixed,) = works(folder, ["mixed"], count=lambda _mean: 300, pairs=False, seed=1)
    assert 200 < max(mixed.tokens) <= LONGEST + 3


def test_a_missing_extra_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert encoder.main([]) == BAD_ARGUMENTS
    assert capsys.readouterr().err == "Install rayapp[gpu]: the encoder runs in torch.\n"


def test_texts_longer_than_the_model_reads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())
    ready(parser().parse_args(["--size", "tiny", "--lengths", "512", "mixed"]))
    with pytest.raises(ConfigError, match="tiny reads up to 512 tokens"):
        ready(parser().parse_args(["--size", "tiny", "--lengths", "513"]))
