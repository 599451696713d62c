"""The pairs behind the threshold of the near-duplicate merge, and what the words alone decide."""

import pytest

from tests.bench.dedup_threshold import Measured, Pair, load_pairs, rates

PAIRS = load_pairs()
DANGEROUS = [pair for pair in PAIRS if not pair.same]


@pytest.mark.parametrize("lang", ["en", "he"])
def test_both_languages_have_enough_of_both_kinds(lang: str) -> None:
    mine = [pair for pair in PAIRS if pair.lang == lang]
    assert sum(pair.same for pair in mine) >= 30
    assert sum(not pair.same for pair in mine) >= 30
    assert len({pair.texts for pair in mine}) == len(mine)


@pytest.mark.parametrize("pair", DANGEROUS, ids=lambda pair: f"{pair.lang} {pair.kind}")
def test_a_dangerous_pair_never_merges_however_near(pair: Pair) -> None:
    assert not pair.coherent


@pytest.mark.parametrize("lang", ["en", "he"])
def test_the_check_of_the_words_leaves_something_to_merge(lang: str) -> None:
    same = [pair for pair in PAIRS if pair.lang == lang and pair.same]
    assert sum(pair.coherent for pair in same) >= len(same) / 4


def test_rates_count_what_would_merge() -> None:
    said = ("Dana likes tea", "Dana likes tea.")
    rows = [
        Measured(Pair("en", "same", said), 0.99),
        Measured(Pair("en", "same", said), 0.5),
        Measured(Pair("en", "tense", ("Dana works", "Dana works.")), 0.95),
        Measured(Pair("en", "negation", ("Dana works", "Dana does not work")), 0.95),
    ]
    assert rates(rows, 0.9, coherent=False) == (1, 2)
    assert rates(rows, 0.9, coherent=True) == (1, 1)
    assert rates(rows, 0.97, coherent=True) == (1, 0)
