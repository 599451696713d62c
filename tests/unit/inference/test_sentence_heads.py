"""Heads over given vectors, and the file that they come in."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.build.static import write_npz
from rayapp.core.errors import ConfigError
from rayapp.inference.ports import TextVectors
from rayapp.inference.sentence_heads import (
    FORMAT,
    SENTENCE_KINDS,
    WORDS_WEIGHT,
    Reading,
    features_of,
    load_heads,
    middle_of,
)
from rayapp.text.language import Language

MEANS = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], dtype=np.float32)


def reading(language: Language, joint: list[float], words: list[float]) -> Reading:
    search, heads = np.split(np.array(joint, dtype=np.float32), 2)
    return Reading(language, TextVectors(search, heads), np.array(words, dtype=np.float32))


def put_heads(path: Path, **changes: Any) -> Path:
    """Two vectors of 2 and words of 2; the first feature speaks for `remember`."""
    metadata = {
        "format": FORMAT,
        "encoder": "tiny",
        "static_model": "words",
        "joint_dims": 4,
        "words_dims": 2,
        "kinds": SENTENCE_KINDS,
        **changes,
    }
    weights = np.zeros((6, len(SENTENCE_KINDS)), dtype=np.float16)
    weights[0, SENTENCE_KINDS.index("remember")] = 2.0
    weights[4, SENTENCE_KINDS.index("forget")] = 5.0
    write_npz(
        path,
        {
            "metadata": np.frombuffer(json.dumps(metadata).encode(), dtype=np.uint8),
            "means": MEANS.astype(np.float16),
            "weights": weights,
            "bias": np.zeros(len(SENTENCE_KINDS), dtype=np.float16),
        },
    )
    return path


class TestFeatures:
    @pytest.mark.parametrize(
        ("language", "middle"),
        [
            ("en", [1.0, 0.0, 0.0, 0.0]),
            ("he", [0.0, 0.0, 1.0, 0.0]),
            ("mixed", [0.5, 0.0, 0.5, 0.0]),
            ("other", [0.5, 0.0, 0.5, 0.0]),
        ],
    )
    def test_each_language_has_its_middle(self, language: Language, middle: list[float]) -> None:
        assert middle_of(language, MEANS).tolist() == middle

    def test_vectors_stand_from_the_middle_and_words_behind_them(self) -> None:
        found = features_of(reading("en", [1.0, 2.0, 3.0, 4.0], [1.0, 0.0]), MEANS)
        assert found == pytest.approx([0.0, 2.0, 3.0, 4.0, WORDS_WEIGHT, 0.0])


class TestProbabilities:
    def test_are_those_of_the_weights(self, tmp_path: Path) -> None:
        heads = load_heads("tiny", put_heads(tmp_path / "heads.npz"))
        found = heads.probabilities(reading("en", [2.0, 0.0, 0.0, 0.0], [1.0, 0.0]))
        both = 2 * math.exp(2.0) + len(SENTENCE_KINDS) - 2
        assert found["remember"] == pytest.approx(math.exp(2.0) / both, rel=1e-5)
        assert found["forget"] == pytest.approx(math.exp(5 * WORDS_WEIGHT) / both, rel=1e-5)
        assert found["goal"] == pytest.approx(1 / both, rel=1e-5)
        assert list(found) == list(SENTENCE_KINDS)

    def test_no_score_is_too_large(self, tmp_path: Path) -> None:
        heads = load_heads("tiny", put_heads(tmp_path / "heads.npz"))
        found = heads.probabilities(reading("en", [9e4, 0.0, 0.0, 0.0], [0.0, 0.0]))
        assert found["remember"] == pytest.approx(1.0)


class TestLoading:
    def test_heads_of_another_encoder_are_refused(self, tmp_path: Path) -> None:
        path = put_heads(tmp_path / "heads.npz")
        with pytest.raises(ConfigError, match=r"'tiny', not for 'other'.*jobs\.build\.heads"):
            load_heads("other", path)

    @pytest.mark.parametrize("changes", [{"format": 0}, {"kinds": ["goal"]}, {"words_dims": 3}])
    def test_heads_of_another_version_are_refused(
        self, tmp_path: Path, changes: dict[str, Any]
    ) -> None:
        path = put_heads(tmp_path / "heads.npz", **changes)
        with pytest.raises(ConfigError, match=r"do not fit this version.*jobs\.build\.heads"):
            load_heads("tiny", path)

    def test_a_broken_file_says_what_to_do(self, tmp_path: Path) -> None:
        (tmp_path / "heads.npz").write_bytes(b"not this")
        with pytest.raises(ConfigError, match=r"cannot be read.*jobs\.build\.heads"):
            load_heads("tiny", tmp_path / "heads.npz")
