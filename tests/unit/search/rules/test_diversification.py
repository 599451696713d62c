"""Places of open data in an answer: datasets, broken resources, and what nobody asked for."""

import tracemalloc
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import MemoryItem, Source, SourceType
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import Tier
from rayapp.search.rules import diversification
from rayapp.search.rules.diversification import (
    BLOCK,
    PER_DATASET,
    collapse,
    dataset_of,
    is_mixed,
    with_quotas,
)
from rayapp.text import utterance
from rayapp.text.normalize import content_hash
from tests.support.builders import an_item


def own(name: str) -> MemoryItem:
    return an_item(memory_id=name)


def shared(name: str, dataset: str | None, kind: str = "resource", **facts: Any) -> MemoryItem:
    datagov = {"kind": kind, "dataset_id": dataset, **facts}
    source = Source(type=SourceType.DATAGOV, datagov=datagov)
    return an_item(
        memory_id=name, user_id=SYSTEM_USER, tier=Tier.DATAGOV_SCHEMA, source=source, text=name
    )


def names(items: list[MemoryItem], *, page: int = 10, guessed: bool = False) -> list[str]:
    return [items[index].memory_id for index in with_quotas(items, page=page, guessed=guessed)]


def test_a_dataset_has_two_places_and_the_rest_wait_for_the_next_block() -> None:
    items = [shared(f"a{n}", "a") for n in range(4)] + [shared(f"b{n}", f"b{n}") for n in range(9)]
    assert names(items) == [
        *("a0", "a1", "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"),
        *("a2", "a3", "b8"),
    ]


def test_when_nothing_else_is_left_the_rest_follow_at_once() -> None:
    assert names([shared(f"a{n}", "a") for n in range(4)]) == ["a0", "a1", "a2", "a3"]


def test_the_dataset_stands_before_its_resources() -> None:
    items = [shared("r1", "a"), shared("x", "b"), shared("r2", "a"), shared("d", "a", "dataset")]
    assert names(items) == ["d", "r1", "x", "r2"]


def passage(doc: str, n: int) -> MemoryItem:
    source = Source(type=SourceType.DOCUMENT, doc_id=doc)
    return an_item(memory_id=f"{doc}{n}", tier=Tier.BOOKS, source=source, text=f"{doc}{n}")


def test_a_document_has_three_places_while_others_wait() -> None:
    items = [passage("a", n) for n in range(5)] + [own("mine"), passage("b", 0)]
    assert names(items) == ["a0", "a1", "a2", "mine", "b0", "a3", "a4"]
    assert names(items[:5]) == ["a0", "a1", "a2", "a3", "a4"]
    assert is_mixed(items, ItemFilter())
    assert not is_mixed(items, ItemFilter(doc_ids=("a",)))
    assert not is_mixed(items[:5], ItemFilter())
    assert not is_mixed([own("mine")], ItemFilter())


def test_categories_belong_to_no_dataset() -> None:
    items = [shared(f"c{n}", None, "category") for n in range(5)]
    assert names(items) == ["c0", "c1", "c2", "c3", "c4"]


def test_a_broken_resource_is_last_of_its_block() -> None:
    items = [shared("bad", "a", error="404"), shared("b", "b"), own("mine")]
    assert names(items) == ["b", "mine", "bad"]


def test_memories_of_a_user_are_left_alone_whatever_their_source_says() -> None:
    mine = [
        an_item(memory_id=f"m{n}", source=Source(datagov={"dataset_id": "a", "error": "404"}))
        for n in range(4)
    ]
    assert names(mine) == ["m0", "m1", "m2", "m3"]


def test_a_guess_takes_half_of_a_page_at_most() -> None:
    items = [shared(f"s{n}", f"d{n}") for n in range(10)] + [own(f"m{n}") for n in range(10)]
    first = names(items, guessed=True)[:10]
    assert first == ["s0", "s1", "s2", "s3", "s4", "m0", "m1", "m2", "m3", "m4"]
    assert names(items)[:10] == [f"s{n}" for n in range(10)]


@pytest.mark.parametrize(("page", "most"), [(1, 0), (2, 1), (5, 2), (10, 5), (50, 5)])
def test_a_smaller_page_is_a_block_of_its_own(page: int, most: int) -> None:
    items = [shared(f"s{n}", f"d{n}") for n in range(60)] + [own(f"m{n}") for n in range(60)]
    shown = names(items, page=page, guessed=True)[: min(page, BLOCK)]
    assert sum(name.startswith("s") for name in shown) == most


def test_a_guess_fills_the_page_when_nothing_personal_matches() -> None:
    items = [shared(f"s{n}", f"d{n}") for n in range(10)]
    assert names(items, guessed=True) == [f"s{n}" for n in range(10)]


KINDS = st.sampled_from(["own", "dataset", "resource", "broken", "category"])


@st.composite
def mixed(draw: st.DrawFn) -> list[MemoryItem]:
    made: list[MemoryItem] = []
    for number, (kind, dataset) in enumerate(
        draw(st.lists(st.tuples(KINDS, st.sampled_from("abcdef")), max_size=60))
    ):
        name = f"{kind}-{dataset}-{number}"
        if kind == "own":
            made.append(own(name))
        elif kind == "broken":
            made.append(shared(name, dataset, error="timeout"))
        else:
            made.append(shared(name, None if kind == "category" else dataset, kind))
    return made


@given(mixed(), st.integers(1, 50), st.booleans())
def test_every_item_gets_one_place_and_own_ones_keep_their_order(
    items: list[MemoryItem], page: int, guessed: bool
) -> None:
    order = with_quotas(items, page=page, guessed=guessed)
    assert sorted(order) == list(range(len(items)))
    mine = [index for index in order if items[index].user_id != SYSTEM_USER]
    assert mine == sorted(mine)


@given(mixed(), st.integers(1, 50), st.booleans())
def test_no_dataset_crowds_a_block_while_others_wait(
    items: list[MemoryItem], page: int, guessed: bool
) -> None:
    order, block = with_quotas(items, page=page, guessed=guessed), min(page, BLOCK)
    for start in range(0, len(order), block):
        shown, later = order[start : start + block], order[start + block :]
        of = Counter(dataset_of(items[index]) for index in shown if dataset_of(items[index]))
        crowded = {name for name, count in of.items() if count > PER_DATASET}
        # Whoever still waits could not have been shown instead: it is of a full dataset, or a
        # guess that would take more than its share.
        for index in later if crowded else ():
            full = of[dataset_of(items[index])] >= PER_DATASET
            assert full or (guessed and items[index].user_id == SYSTEM_USER)
        assert not (guessed and crowded and any(items[i].user_id != SYSTEM_USER for i in later))


@given(mixed(), st.integers(1, 50))
def test_a_guess_never_takes_more_than_half_while_own_memories_wait(
    items: list[MemoryItem], page: int
) -> None:
    order, block = with_quotas(items, page=page, guessed=True), min(page, BLOCK)
    for start in range(0, len(order), block):
        shown, later = order[start : start + block], order[start + block :]
        if any(items[index].user_id != SYSTEM_USER for index in later):
            assert sum(items[index].user_id == SYSTEM_USER for index in shown) <= block // 2


@given(mixed(), st.booleans())
def test_a_dataset_is_shown_before_its_resources(items: list[MemoryItem], guessed: bool) -> None:
    seen: set[str] = set()
    heads = {
        dataset_of(item) for item in items if (item.source.datagov or {}).get("kind") == "dataset"
    }
    for index in with_quotas(items, page=10, guessed=guessed):
        facts = items[index].source.datagov or {}
        name = dataset_of(items[index])
        if facts.get("kind") == "dataset":
            seen.add(name)
        elif name in heads:
            assert name in seen


WORDS = st.lists(st.sampled_from([f"w{number}" for number in range(12)]), max_size=12)


@pytest.mark.parametrize("repeats", [1, utterance.KEPT_CHARS])
@given(st.lists(WORDS, max_size=8), st.sampled_from((0.5, 0.8, 0.9, 1.0)))
def test_texts_stand_for_each_other_from_the_similarity_on(
    repeats: int, texts: list[list[str]], similarity: float
) -> None:
    """By all words of both, whatever is left out beforehand."""
    items = [
        an_item(memory_id=str(n), text=" ".join(words) + " " * repeats, content_hash=str(n))
        for n, words in enumerate(texts)
    ]
    faces: dict[int, list[str]] = {}
    for index, words in enumerate(map(set, texts)):
        for face, stands_for in faces.items():
            other = set(texts[face])
            if words | other and len(words & other) / len(words | other) >= similarity:
                stands_for.append(str(index))
                break
        else:
            faces[index] = []
    kept = collapse(items, similarity=similarity, wanted=20, may_collapse=lambda _a, _b: True)
    assert {one.index: list(one.collapsed_ids) for one in kept} == faces


@pytest.mark.parametrize(("words", "most"), [(250, 6_000), (15_000, 500)])
def test_what_is_kept_of_a_text_is_small_however_long_it_is(words: int, most: int) -> None:
    """Bytes; thousands of texts are kept."""
    count = 6

    def search(number: int) -> None:
        text = " ".join(f"מילה{number}-{word}"[:8] for word in range(words))
        items = [an_item(memory_id=name, text=text + name, content_hash=name) for name in "ab"]
        collapse(items, similarity=0.9, wanted=9, may_collapse=lambda _a, _b: True)

    search(count)
    tracemalloc.start()
    for number in range(count):
        search(number)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < most * 2 * count


def test_far_down_a_list_only_equal_texts_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page far down makes all before it anew, and its near-duplicates are few."""
    monkeypatch.setattr(diversification, "FEW", 3)
    texts = [*(f"note {n} of them" for n in range(5)), "note 0 of them", "note 4  of them"]
    items = [
        an_item(memory_id=f"m{n}", text=text, content_hash=content_hash(text))
        for n, text in enumerate(texts)
    ]
    asked: list[tuple[str, str]] = []

    def compared(one: str, other: str) -> bool:
        asked.append((one, other))
        return False

    kept = collapse(items, similarity=0.1, wanted=100, may_collapse=compared)
    assert [one.collapsed_ids for one in kept] == [("m5",), (), (), (), ("m6",)]
    assert len(asked) == 1 + 2 + 3
