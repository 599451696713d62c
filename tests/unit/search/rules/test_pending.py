"""What the index does not hold yet is scored as if it did."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.fusion import IndexedHit, engine_idf, pending_scores, rarity, speaks
from rayapp.text.analyser import Analyser, score
from rayapp.text.tokens import term_index
from tests.support.builders import an_item

ANALYSER = Analyser()
WORDS = ("boiler", "code", "night", "run", "4711", "ERR_77", "הדוד", "קוד", "בחיפה", "getUserName")
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12
)


@given(TEXTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), st.data())
def test_a_text_that_the_hits_hold_gets_the_score_of_the_engine(
    texts: list[str], question: str, data: st.DataObject
) -> None:
    documents = [ANALYSER.document(text) for text in texts]
    query = ANALYSER.query(question)
    idf = rarity(query, documents, len(documents))
    scored = [IndexedHit(one, score(query, one, idf)) for one in documents]
    hits = [hit for hit in scored if hit.score > 0.0]
    if not hits:
        return
    again = data.draw(st.sampled_from(hits))
    found = pending_scores(query, {"p": [again.document]}, hits, len(texts))
    assert found["p"].score == pytest.approx(again.score, rel=0.02)


def test_the_rarity_of_words_is_the_idf_of_the_engine() -> None:
    documents = [ANALYSER.document(text) for text in ("tea", "tea milk", "milk juice")]
    idf = rarity(ANALYSER.query("tea juice"), documents, 3)
    assert idf[term_index("juice")] == pytest.approx(math.log(1 + 2.5 / 1.5))
    assert idf[term_index("tea")] == pytest.approx(math.log(1 + 1.5 / 2.5))


def test_words_rank_like_bm25() -> None:
    texts = ["הרכב האדום חונה ברחוב", "הילדים הלכו לים", "ילד אחד אוכל תפוח"]
    documents, query = [ANALYSER.document(text) for text in texts], ANALYSER.query("איפה הרכבים")
    idf = rarity(query, documents, len(documents))
    scores = [score(query, document, idf) for document in documents]
    assert scores[0] > 0.0
    assert scores[1:] == [0.0, 0.0]


def test_one_word_alone_shows_the_idf_of_the_engine() -> None:
    query = ANALYSER.query("boiler")
    hit = ANALYSER.document("the boiler")
    idf = dict.fromkeys(query.indices, 3.0)
    known = engine_idf(query, [IndexedHit(hit, score(query, hit, idf))])
    assert score(query, hit, known) == pytest.approx(score(query, hit, idf))


def test_a_word_that_nothing_indexed_holds_weighs_more_than_words_that_much_does() -> None:
    query = ANALYSER.query("the night run ERR_4711x")
    idf = rarity(query, [ANALYSER.document("the night run")] * 50, 50)
    hits = [IndexedHit(d, score(query, d, idf)) for d in [ANALYSER.document("the night run")] * 9]
    texts = {"named": "ERR_4711x", "run": "the night run"}
    pending = {name: [ANALYSER.document(text)] for name, text in texts.items()}
    found = pending_scores(query, pending, hits, 50)
    assert found["named"].score > 5 * found["run"].score
    assert found["run"].score == pytest.approx(hits[0].score, rel=0.01)


@pytest.mark.parametrize("indexed", [0, 10, 100_000])
def test_among_near_equal_neighbours_the_word_itself_wins(indexed: int) -> None:
    names = [f"zqsearch0x0001ab{n:02d}" for n in range(40)]
    pending = {name: [ANALYSER.document(f"Marker {name} for the fault run")] for name in names}
    for name in names:
        found = pending_scores(ANALYSER.query(name), pending, (), indexed)
        best, second = sorted(found.values())[-1], sorted(found.values())[-2]
        assert found[name] == best
        assert second < best


def test_a_long_text_has_the_score_of_its_best_passage() -> None:
    passages = [ANALYSER.document(text) for text in ("tea and milk", "the boiler", "boiler")]
    pending = {"long": passages, "short": passages[2:]}
    found = pending_scores(ANALYSER.query("boiler"), pending, (), 10)
    assert (found["long"].passage, found["short"].passage) == (2, 0)
    assert found["long"].score == found["short"].score


def test_nothing_shared_is_nothing_found() -> None:
    pending = {"p": [ANALYSER.document("tea")]}
    assert pending_scores(ANALYSER.query("boiler"), pending, (), 10) == {}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("ERR_4711x", False),
        ("zqsearch0x0001ab12", False),
        ("d9b1d7db-4f5c-4a0e-8d5d-1f5c2a3b4c5d", False),
        ("4711", False),
        ("build-7.1 build-7.2", False),
        ("well-known", True),
        ("getUserName", True),
        ("where is ERR_4711x", True),
        ("איפה ERR_4711x", True),
        ("boiler", True),
        ("", True),
    ],
)
def test_nearness_says_nothing_of_an_identifier(question: str, said: bool) -> None:
    with_words = [Candidate(item=an_item(), pending=1.0), Candidate(item=an_item(), dense=0.9)]
    assert speaks(question, Candidates.of(with_words)) is said
    assert speaks(question, Candidates.of(with_words[1:]))
