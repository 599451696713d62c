"""The third retriever in the fusion: its share, its scale, and what it did not read."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.fusion import DenseRetriever, Fused, fuse
from rayapp.search.rules.ranking import rank
from rayapp.search.rules.recipes import NO_ENCODER, EncoderWeights, Recipe, find_recipe
from tests.support.builders import an_item

SHARE, UNRELATED = 0.25, 0.8
WEIGHTS = EncoderWeights(hebrew=SHARE, english=SHARE, mixed=SHARE, cross=SHARE, unrelated=UNRELATED)
RECIPE = Recipe(name="r", encoder=WEIGHTS)
OFF = Recipe(name="r", encoder=NO_ENCODER)


def candidate(number: int, **said: object) -> Candidate:
    item = an_item(memory_id=f"m-{number}", text=f"text {number}", lang="en")
    return replace(Candidate(item=item), **said)


def fused(found: list[Candidate], recipe: Recipe = RECIPE, *, used: bool = True) -> Fused:
    return fuse(Candidates.of(found), "en", recipe, DenseRetriever(used=used))


BOTH = {"dense": 0.5, "dense_rank": 1, "sparse": 4.0, "sparse_rank": 1}


def test_its_share_is_taken_from_the_others_alike() -> None:
    found = [
        candidate(0, **BOTH, encoder=0.9, encoder_rank=1),
        candidate(1, dense=0.25, dense_rank=2, sparse=2.0, sparse_rank=2, encoder=0.85),
    ]
    got, without = fused(found), fused(found, OFF)
    assert got.encoder.tolist() == pytest.approx([1.0, 0.5])
    assert got.score.tolist() == pytest.approx(
        [(1 - SHARE) * without.score[0] + SHARE, (1 - SHARE) * without.score[1] + SHARE * 0.5]
    )
    weights = got.dense_weight + got.text_weight + got.encoder_weight
    assert weights.tolist() == pytest.approx([1.0, 1.0])


def test_a_cosine_of_unrelated_texts_says_nothing() -> None:
    found = [candidate(n, **BOTH, encoder=0.7 + n / 100, encoder_rank=n + 1) for n in range(4)]
    assert fused(found).encoder.tolist() == [0.0] * 4


def test_what_is_not_listed_is_as_near_as_the_last_one() -> None:
    found = [
        candidate(0, **BOTH, encoder=0.9, encoder_rank=1),
        candidate(1, encoder=0.82, encoder_rank=2),
        candidate(2, sparse=3.0, sparse_rank=2),
    ]
    assert fused(found).encoder.tolist() == pytest.approx([1.0, 0.2, 0.2])


def test_what_it_did_not_read_is_ranked_whole_by_the_others() -> None:
    found = [
        candidate(0, dense=0.3, dense_rank=2, encoder=0.9, encoder_rank=1),
        candidate(1, **BOTH, encoded=False),
    ]
    got, without = fused(found), fused(found, OFF)
    assert got.score[1] == pytest.approx(without.score[1])
    assert got.encoder_weight.tolist() == [SHARE, 0.0]


def test_a_memory_that_it_alone_found_is_found() -> None:
    found = [candidate(0, **BOTH, encoder=0.82), candidate(1, encoder=0.9, encoder_rank=1)]
    ranked = rank(Candidates.of(found), query_lang="en", recipe=RECIPE, retriever=DenseRetriever())
    scores = {one.item.memory_id: one.final_score for one in ranked}
    assert scores["m-1"] >= SHARE


def test_its_passage_speaks_where_it_counts_most() -> None:
    said = {"near_passage": 1, "word_passage": 2, "encoder_passage": 3}
    found = [
        candidate(0, **BOTH, encoder=0.81, **said),
        candidate(1, dense=0.1, dense_rank=2, encoder=0.9, encoder_rank=1, **said),
        candidate(2, dense=0.5, dense_rank=1, **said),
    ]
    assert fused(found).passage.tolist() == [2, 3, 1]


@pytest.mark.parametrize("used", [True, False])
def test_a_question_of_identifiers_alone_goes_by_words(used: bool) -> None:
    got = fused([candidate(0, **BOTH, encoder=0.9, encoder_rank=1)], used=used)
    assert got.encoder_weight.tolist() == [SHARE if used else 0.0]


def test_rrf_counts_the_lists_that_could_hold_it() -> None:
    recipe = RECIPE.model_copy(update={"fusion": "rrf"})
    found = [
        candidate(0, **BOTH, encoder=0.9, encoder_rank=1),
        candidate(1, **BOTH, encoded=False),
        candidate(2, **BOTH),
    ]
    assert fused(found, recipe).rrf.tolist() == pytest.approx([1.0, 1.0, 2 / 3])


def test_a_recipe_without_it_leaves_no_trace() -> None:
    found = [
        candidate(0, **BOTH, encoder=0.81),
        candidate(1, dense=0.4, dense_rank=2, encoder=0.95, encoder_rank=1),
    ]
    bare = [replace(one, encoder=None, encoder_rank=None) for one in found]
    without = find_recipe({"r": RECIPE}, "r-without-encoder")
    assert fused(found, without).score.tolist() == fused(bare, OFF).score.tolist()


SCORES = st.one_of(st.none(), st.floats(0.0, 1.0))


@given(
    st.lists(st.tuples(SCORES, SCORES, SCORES, st.booleans()), min_size=1, max_size=15),
    st.sampled_from(["weighted", "rrf"]),
)
def test_every_candidate_keeps_its_place_among_the_ranked(
    drawn: list[tuple[float | None, float | None, float | None, bool]], fusion: str
) -> None:
    """Whatever of it was read: none vanishes, none is ranked by a score that is none, and what the
    encoder did not read has exactly the score that it has without the encoder."""
    found = [
        candidate(
            n,
            dense=dense,
            dense_rank=n + 1 if dense is not None else None,
            sparse=sparse,
            sparse_rank=n + 1 if sparse is not None else None,
            encoder=encoder if encoded else None,
            encoder_rank=n + 1 if encoded and encoder is not None else None,
            encoded=encoded,
        )
        for n, (dense, sparse, encoder, encoded) in enumerate(drawn)
    ]
    recipe = RECIPE.model_copy(update={"fusion": fusion})
    got, without = fused(found, recipe), fused(found, OFF.model_copy(update={"fusion": fusion}))
    assert np.isfinite(got.score).all()
    assert ((got.score >= 0.0) & (got.score <= 1.0 + 1e-9)).all()
    unread = [not one.encoded for one in found]
    np.testing.assert_allclose(got.score[unread], without.score[unread])
    ranked = rank(Candidates.of(found), query_lang="en", recipe=recipe, retriever=DenseRetriever())
    assert {one.item.memory_id for one in ranked} == {f"m-{n}" for n in range(len(found))}
