"""What is read for its relevance, whatever order the list is shown in."""

from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.confidence import READ_MOST, Thresholds, precise
from rayapp.search.rules.fusion import DenseRetriever
from rayapp.search.rules.ranking import Ranked, rank
from rayapp.search.rules.recipes import ConfidenceModel, Recipe
from tests.support.builders import an_item

QUESTION = "where does Dana keep her passport"
MODEL = ConfidenceModel(bias=-2.0, cosine=4.0)


def shown_last(weak: int) -> list[Ranked]:
    """The best item behind `weak` others, as a list by time may have it."""
    items = [
        Candidate(
            item=an_item(memory_id=f"m{at}", point_id=f"p{at}", text=f"note {at}"),
            dense=0.1,
            sparse=1.0,
        )
        for at in range(weak)
    ]
    text = "Dana keeps her passport in the drawer"
    best = an_item(memory_id="best", point_id="p-best", text=text)
    ranked = rank(
        Candidates.of([*items, Candidate(item=best, dense=0.9, sparse=9.0)]),
        query_lang="en",
        recipe=Recipe(name="r"),
        retriever=DenseRetriever(),
    )
    assert ranked[0].item.memory_id == "best"
    return [*ranked[1:], ranked[0]]


def least(relevance: float) -> Thresholds:
    return Thresholds(question=QUESTION, relevance=relevance, named_only=False)


def test_the_best_by_score_is_read_wherever_it_is_shown() -> None:
    kept = precise(shown_last(READ_MOST + 5), least(0.5), MODEL)
    assert [one.item.memory_id for one in kept] == ["best"]
    assert kept[0].summary.relevance is not None


def test_a_relevance_of_nothing_leaves_nothing_out() -> None:
    ranked = shown_last(READ_MOST + 5)
    assert [one.item for one in precise(ranked, least(0.0), MODEL)] == [one.item for one in ranked]
