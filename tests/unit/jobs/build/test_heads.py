"""The fitting of the heads over given readings, and the sentences that they learn from."""

import json
from collections import Counter

import numpy as np
import pytest

from jobs.build.encoder import NAME as ENCODER
from jobs.build.heads import (
    FOLDS,
    RIDGE,
    digests,
    examples_of,
    fit,
    learn,
    shares_of,
    sharpness_of,
    training,
)
from jobs.labelled import LANGUAGE, Labelled, read_labelled
from rayapp.inference.ports import TextVectors
from rayapp.inference.sentence_heads import SENTENCE_KINDS, Reading, load_heads
from rayapp.text.language import Language
from rayapp.text.normalize import canonical

LANGS: tuple[Language, Language] = ("en", "he")
EACH = 10


def drawn() -> tuple[list[Labelled], list[Reading]]:
    """Kinds apart in the first vector, languages in the second, nothing in the words."""
    chance = np.random.default_rng(7)
    sentences, readings = [], []
    for place, language in enumerate(LANGS):
        for number, kind in enumerate(SENTENCE_KINDS):
            for _ in range(EACH):
                search = chance.normal(0, 0.05, 14).astype(np.float32)
                heads = chance.normal(0, 0.05, 14).astype(np.float32)
                search[number] += 1.0
                heads[place] += 3.0
                sentences.append(Labelled(kind, "text", language))
                vectors = TextVectors(search, heads)
                readings.append(Reading(language, vectors, np.zeros(2, dtype=np.float32)))
    return sentences, readings


class TestFitting:
    def test_each_language_and_kind_counts_alike(self) -> None:
        kinds = ("goal", "goal", "goal", "plan")
        sentences = [Labelled(kind, "text", "en") for kind in kinds]
        _, readings = drawn()
        examples = examples_of(sentences, readings[:4])
        assert examples.share.tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2.0])

    def test_sentences_that_stand_together_judge_together(self) -> None:
        sentences = [Labelled("goal", "text", "en") for _ in range(EACH)]
        _, readings = drawn()
        folds = examples_of(sentences, readings[:EACH]).fold.tolist()
        assert folds == [at * FOLDS // EACH for at in range(EACH)]

    def test_the_slope_is_nothing_where_it_ends(self) -> None:
        """The momentum has come to rest at the one best place."""
        chance = np.random.default_rng(3)
        rows = np.c_[chance.normal(size=(60, 4)), np.ones(60)]
        kind = np.arange(60) % len(SENTENCE_KINDS)
        weights = fit(rows, kind, np.ones(60))
        missed = shares_of(rows @ weights) - np.eye(len(SENTENCE_KINDS))[kind]
        slope = rows.T @ missed
        slope[:-1] += RIDGE * weights[:-1]
        assert np.abs(slope).max() < 0.01

    def test_scores_that_are_too_sure_are_softened(self) -> None:
        scores = np.zeros((4, len(SENTENCE_KINDS)))
        scores[:, 0] = 10.0
        right = np.array([0, 0, 0, 0])
        half = np.array([0, 0, 1, 2])
        assert sharpness_of(scores, half) < 0.5 < sharpness_of(scores, right)

    def test_what_is_apart_is_told_apart_and_twice_the_same(self) -> None:
        sentences, readings = drawn()
        first, again = (learn(examples_of(sentences, readings), "e", "s") for _ in range(2))
        for name, array in first.items():
            assert array.tobytes() == again[name].tobytes()
        measured = json.loads(first["metadata"].tobytes())["measured"]
        assert [measured[language]["macro"] for language in LANGS] == [1.0, 1.0]


class TestSentences:
    def test_the_shipped_heads_learned_from_them(self) -> None:
        heads = load_heads(ENCODER)
        assert heads.metadata["sha256"] == digests()

    @pytest.mark.parametrize(("part", "least"), [("training", 110), ("held_out", 25)])
    @pytest.mark.parametrize("language", LANGS)
    def test_there_are_enough_of_each_kind(self, part: str, least: int, language: str) -> None:
        sentences = read_labelled(LANGUAGE / part / f"{language}.tsv")
        counts = Counter(one.kind for one in sentences)
        assert set(counts) == set(SENTENCE_KINDS)
        assert min(counts.values()) >= least

    def test_what_judges_taught_nothing(self) -> None:
        taught = Counter(canonical(one.text) for one in training())
        assert max(taught.values()) == 1
        judged = [
            canonical(one.text)
            for path in (LANGUAGE / "held_out").glob("*.tsv")
            for one in read_labelled(path)
        ]
        assert len(judged) == len(set(judged))
        assert taught.keys().isdisjoint(judged)
