"""Hits that are left out on request: by relevance, by name; and what the answer then says."""

import pytest

from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import Tier
from tests.support.harness import Harness


@pytest.fixture
async def service() -> Harness:
    made = await Harness.open()
    await made.store(
        "Kubernetes runs our services; קוברנטיס מריץ את השירותים",
        memory_id="k8s",
        tier=Tier.HISTORY,
        entities=("Kubernetes", "k8s", "קוברנטיס"),
        tags=("code",),
    )
    await made.store(
        "The staging services are deployed by hand; השירותים בבדיקה עולים ידנית",
        memory_id="hand",
        tier=Tier.HISTORY,
        tags=("code",),
    )
    await made.store(
        "Redis caches sessions of the services",
        memory_id="redis",
        tier=Tier.HISTORY,
        entities=("Redis",),
        tags=("prose",),
    )
    return made


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("how do k8s and our services fit?", ["k8s"]),
        ("what runs on Kuberntes", ["k8s"]),
        ("מה מריץ השירותים, קוברנטיס?", ["k8s"]),
        ("are services deployed by hand?", []),
        ("Redis or Kubernetes?", ["k8s", "redis"]),
    ],
)
async def test_only_what_the_question_names(
    service: Harness, question: str, expected: list[str], *, indexed: bool
) -> None:
    if indexed:
        await service.drain()
    answer = await service.search(question, named_only=True)
    assert sorted(hit.item.memory_id for hit in answer.hits) == expected
    assert answer.abstained == (not expected)
    assert answer.total == len(expected)
    assert all(hit.summary.named for hit in answer.hits)


@pytest.mark.parametrize("question", ["מה רץ בקוברנטיס?", "kubernets?"])
async def test_a_name_behind_a_prefix_or_mistyped_is_found_once_indexed(
    service: Harness, question: str
) -> None:
    await service.drain()
    assert await service.found(question, named_only=True) == ["k8s"]


async def test_names_stay_within_the_filters(service: Harness) -> None:
    code = ItemFilter(tags_any=("code",))
    assert await service.found("Redis or Kubernetes?", named_only=True, where=code) == ["k8s"]


async def test_without_a_wish_nothing_is_left_out(service: Harness) -> None:
    answer = await service.search("are services deployed by hand?")
    assert len(answer.hits) == 3
    assert not answer.abstained
    assert {hit.summary.relevance for hit in answer.hits} == {None}


@pytest.mark.parametrize(
    "question", ["are the staging services deployed by hand?", "האם השירותים בבדיקה עולים ידנית?"]
)
async def test_relevance_cuts_each_hit(service: Harness, question: str) -> None:
    await service.drain()
    all_of_them = await service.search(question, min_relevance=0.0)
    values = {hit.item.memory_id: hit.summary.relevance or 0.0 for hit in all_of_them.hits}
    assert len(values) == 3
    assert values["hand"] == max(values.values())
    assert all_of_them.relevance == pytest.approx(values["hand"])
    cut = await service.search(question, min_relevance=values["hand"] - 1e-6)
    assert [hit.item.memory_id for hit in cut.hits] == ["hand"]
    assert cut.total == 1


async def test_nothing_relevant_enough_is_an_abstention(service: Harness) -> None:
    answer = await service.search("are services deployed by hand?", min_relevance=1.0)
    assert answer.abstained
    assert answer.hits == ()
    assert answer.best_rejected is not None
    assert answer.next_offset is None
    assert answer.relevance > 0.0


async def test_no_candidate_at_all_is_no_abstention(service: Harness) -> None:
    answer = await service.search("Kubernetes", user="omer", named_only=True)
    assert (answer.hits, answer.abstained, answer.best_rejected) == ((), False, None)


async def test_pages_of_precise_hits_follow_each_other(service: Harness) -> None:
    for number in range(5):
        await service.store(
            f"the k8s cluster number {number}", tier=Tier.HISTORY, entities=("k8s",)
        )
    await service.drain()
    first = await service.search("k8s cluster", named_only=True, limit=4)
    second = await service.search("k8s cluster", named_only=True, limit=4, offset=4)
    ids = [hit.item.memory_id for answer in (first, second) for hit in answer.hits]
    assert (first.next_offset, second.next_offset) == (4, None)
    assert len(ids) == len(set(ids)) == 6
    assert "redis" not in ids
