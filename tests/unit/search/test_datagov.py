"""Open data in the one search: words that ask for it, filters, places, and who sees what."""

from typing import Any

import pytest

from rayapp.core.errors import EmbedderDown, Forbidden, IndexDown, InvalidInput, NotFound
from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import CORE_TIERS, Tier
from rayapp.search.requests import SearchAnswer, SearchQuery
from rayapp.text.normalize import content_hash
from tests.support.builders import an_item
from tests.support.harness import FixedReranker, Harness

ME = WriteScope("dana")


async def catalogue(
    service: Harness,
    name: str,
    text: str,
    *,
    user: str = SYSTEM_USER,
    tier: Tier = Tier.DATAGOV_SCHEMA,
    **facts: Any,
) -> None:
    """A catalogue item; of another user when a test wants to see that it stays hidden."""
    item = an_item(
        memory_id=name,
        user_id=user,
        tier=tier,
        text=text,
        content_hash=content_hash(text),
        lang="mixed",
        dedup_scope=name,
        source=Source(type=SourceType.DATAGOV, datagov={"kind": "resource", **facts}),
        stored_at=service.clock.now(),
    )
    await service.items.insert(item)


SCHOOLS = "מאגר מידע: רשימת בתי ספר. Dataset: schools with address and phone"
CLINICS = "מאגר מידע: מרפאות וטיפת חלב. Dataset: clinics and well-baby stations"
BUSES = "מאגר מידע: תחנות אוטובוס. Dataset: bus stops of public transport"


@pytest.fixture
async def service() -> Harness:
    made = await Harness.open()
    await catalogue(
        made, "schools", SCHOOLS, category="education", format="csv", dataset_id="d1",
        organization="משרד החינוך", flags={"has_phone": True, "has_date": False},
    )  # fmt: skip
    await catalogue(
        made, "clinics", CLINICS, category="health", format="xlsx", dataset_id="d2",
        organization="משרד הבריאות", flags={"has_phone": False},
    )  # fmt: skip
    await catalogue(
        made, "buses", BUSES, category="transportation", format="csv", dataset_id="d3",
        organization="משרד התחבורה", flags={},
    )  # fmt: skip
    return made


def ids(answer: SearchAnswer) -> list[str]:
    return [hit.item.memory_id for hit in answer.hits]


# --- the words of a question -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("datasets about schools", "schools"),
        ("אילו מאגרים יש על בתי ספר", "schools"),
        ("where can I find data on clinics", "clinics"),
        ("נתונים ממשלתיים על תחנות אוטובוס", "buses"),
    ],
)
async def test_a_question_about_open_data_finds_it(
    service: Harness, query: str, first: str
) -> None:
    await service.drain()
    answer = await service.search(query)
    assert ids(answer)[0] == first
    assert answer.tiers == (*CORE_TIERS, Tier.DATAGOV_SCHEMA)
    assert (answer.datagov.searched, answer.datagov.guessed) == (True, True)
    assert answer.datagov.reason


@pytest.mark.parametrize("query", ["which school does Noa go to", "לאיזה בית ספר נועה הולכת"])
async def test_an_ordinary_question_never_sees_it(service: Harness, query: str) -> None:
    await service.drain()
    answer = await service.search(query)
    assert ids(answer) == []
    assert answer.tiers == CORE_TIERS
    assert not answer.datagov.searched


async def test_the_setting_and_the_request_turn_the_guess_off(service: Harness) -> None:
    await service.drain()
    assert ids(await service.search("datasets about schools", include_datagov=False)) == []
    off = await Harness.open(datagov={"intent": False})
    await catalogue(off, "schools", SCHOOLS)
    assert ids(await off.search("datasets about schools")) == []
    assert ids(await off.search("datasets about schools", include_datagov=True)) == ["schools"]


async def test_personal_memories_keep_half_of_the_places_of_a_guess(service: Harness) -> None:
    for number in range(12):
        await catalogue(
            service, f"s{number}", f"Dataset: schools and pupils, year {number}",
            dataset_id=f"y{number}",
        )  # fmt: skip
        await service.store(f"note {number}: the schools in the talk of Noa, item {number}")
    await service.drain()
    guessed = await service.search("datasets about schools and pupils", limit=10)
    users = [hit.item.user_id for hit in guessed.hits]
    assert users.count("dana") == 5
    asked = await service.search(
        "datasets about schools and pupils", limit=10, include_datagov=True
    )
    assert [hit.item.user_id for hit in asked.hits].count(SYSTEM_USER) > 5


async def test_a_guess_leaves_the_reranker_half_of_its_candidates() -> None:
    service = await Harness.open(reranker={"backend": "http", "url": "http://127.0.0.1:1"})
    for number in range(40):
        await catalogue(
            service, f"s{number}", f"schools datasets {number}", dataset_id=f"y{number}"
        )
    mine = await service.store("about the schools: we liked the garden of the small one most")
    await service.drain()
    seen: list[str] = []

    def score(query: str, text: str) -> float:
        seen.append(text)
        return 1.0 if "garden" in text else 0.1

    service.reranker.inner = FixedReranker(score)
    answer = await service.search("datasets about schools", limit=2)
    assert any("garden" in text for text in seen)
    assert ids(answer)[0] == mine


# --- filters ---------------------------------------------------------------------------------

FILTERS: list[tuple[dict[str, tuple[str, ...]], set[str]]] = [
    ({"categories": ("health",)}, {"clinics"}),
    ({"categories": ("health", "education")}, {"clinics", "schools"}),
    ({"formats": ("csv",)}, {"schools", "buses"}),
    ({"organizations": ("משרד הבריאות",)}, {"clinics"}),
    ({"flags": ("has_phone",)}, {"schools"}),
    ({"flags": ("has_date",)}, set()),
    ({"categories": ("health",), "formats": ("csv",)}, set()),
    ({"categories": ()}, set()),
    ({"formats": ()}, set()),
    ({"organizations": ()}, set()),
    ({"flags": ()}, set()),
]
QUESTION = "dataset מאגר מידע"


@pytest.mark.parametrize(("where", "found"), FILTERS)
@pytest.mark.parametrize("rung", ["index", "pending", "embedder away", "index away"])
async def test_filters_hold_on_every_rung(
    service: Harness, where: dict[str, tuple[str, ...]], found: set[str], rung: str
) -> None:
    if rung != "pending":
        await service.drain()
    if rung == "embedder away":
        service.embedder.error = EmbedderDown("away")
    if rung == "index away":
        service.index.error = IndexDown("away")
    answer = await service.search(QUESTION, where=ItemFilter(**where))
    assert set(ids(answer)) == found
    assert answer.datagov.reason == "filter"


async def test_a_filter_says_no_when_the_request_says_no(service: Harness) -> None:
    where = ItemFilter(categories=("health",))
    assert ids(await service.search(QUESTION, where=where, include_datagov=False)) == []


# --- places ----------------------------------------------------------------------------------


async def test_one_dataset_does_not_crowd_out_the_others(service: Harness) -> None:
    for year in range(2015, 2023):
        await catalogue(
            service, f"r{year}", f"accidents of vehicles in {year}, accidents by road",
            dataset_id="big", resource_id=f"r{year}",
        )  # fmt: skip
    await catalogue(
        service, "head", "vehicles and roads: accidents of all the years",
        kind="dataset", dataset_id="big",
    )  # fmt: skip
    for number in range(9):
        await catalogue(
            service, f"other{number}", f"vehicles of kind {number}", dataset_id=f"o{number}"
        )
    await service.drain()
    shown = ids(await service.search("accidents of vehicles", include_datagov=True, limit=10))
    of_big = [name for name in shown if name == "head" or name.startswith("r2")]
    assert len(of_big) == 2
    assert of_big[0] == "head"
    second = await service.search(
        "accidents of vehicles", include_datagov=True, limit=10, offset=10
    )
    assert not set(shown) & set(ids(second))


async def test_a_resource_that_could_not_be_read_is_not_first(service: Harness) -> None:
    await catalogue(service, "bad", "lifts of buildings", dataset_id="x1", error="404")
    await catalogue(service, "good", "lifts and other machines in buildings", dataset_id="x2")
    await service.drain()
    shown = ids(await service.search("lifts of buildings", include_datagov=True))
    assert (shown[0], shown[-1]) == ("good", "bad")


async def test_an_explanation_gives_the_place_that_the_answer_gives(service: Harness) -> None:
    await catalogue(service, "bad", "lifts of buildings", dataset_id="x1", error="404")
    await catalogue(service, "good", "lifts and machines in buildings", dataset_id="x2")
    await service.drain()
    fields: dict[str, Any] = {"query": "lifts of buildings", "include_datagov": True}
    shown = ids(await service.search(**fields))

    for position, name in enumerate(shown, start=1):
        found = await service.services.explainer.explain(
            ReadScope("dana"), name, SearchQuery(**fields)
        )
        assert found.position == position


# --- the dictionary --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("electric vehicle charging", "עמדות טעינה לרכב חשמלי"),
        ('מע"מ', "VAT rates of the tax authority"),
        ("air pollution", "ניטור זיהום אוויר בתחנות"),
        ("תחבורה ציבורית", "public transport timetables"),
    ],
)
async def test_phrases_and_acronyms_of_the_domains_cross_languages_by_words_alone(
    service: Harness, query: str, text: str
) -> None:
    await catalogue(service, "wanted", text, dataset_id="w")
    await service.drain()
    service.embedder.error = EmbedderDown("away")
    answer = await service.search(query, include_datagov=True)
    assert "wanted" in ids(answer)
    hit = next(hit for hit in answer.hits if hit.item.memory_id == "wanted")
    assert hit.summary.text_rank is not None


async def test_pages_of_the_dictionary_are_hits_only_when_named(service: Harness) -> None:
    text = "מילון מונחים: תחבורה. Terms: bus, tram, אוטובוס"
    await catalogue(service, "terms", text, tier=Tier.DATAGOV_EXPANSION, kind="expansion")
    await service.drain()
    for fields in ({}, {"include_datagov": True}):
        assert "terms" not in ids(await service.search("datasets of bus and tram", **fields))
    named = await service.search("bus and tram", tiers=(Tier.DATAGOV_EXPANSION,))
    assert ids(named) == ["terms"]


# --- who sees and writes what ----------------------------------------------------------------


@pytest.mark.parametrize("rung", ["index", "pending", "index away"])
async def test_open_data_brings_no_memory_of_another_user(service: Harness, rung: str) -> None:
    await service.store("the schools of omer, datasets of schools", user="omer")
    await catalogue(service, "theirs", SCHOOLS + " omer", user="omer", category="education")
    # The shared tenant is shared in its own tiers only.
    await service.items.insert(
        an_item(user_id=SYSTEM_USER, memory_id="private", text="schools: a note of the system")
    )
    if rung != "pending":
        await service.drain()
    if rung == "index away":
        service.index.error = IndexDown("away")
    for fields in (
        {},
        {"include_datagov": True},
        {"tiers": (Tier.DATAGOV_SCHEMA, Tier.WORKING)},
        {"where": ItemFilter(categories=("education",))},
    ):
        answer = await service.search("datasets of schools", limit=50, **fields)  # type: ignore[arg-type]
        assert {hit.item.user_id for hit in answer.hits} == {SYSTEM_USER}
        assert not {"theirs", "private"} & set(ids(answer))


async def test_nobody_writes_what_is_shared(service: Harness) -> None:
    memories = service.services.memories
    for tier in (Tier.DATAGOV_SCHEMA, Tier.DATAGOV_EXPANSION):
        new = NewMemory(text="mine", tier=tier)
        with pytest.raises(InvalidInput, match="DataGov job"):
            await memories.store(ME, new)
        with pytest.raises(Forbidden, match="read-only"):
            await memories.store(WriteScope(SYSTEM_USER), new)
    refused: list[Any] = [
        memories.edit(ME, "schools", MemoryEdit(text="other")),
        memories.archive(ME, "schools"),
        memories.delete(ME, "schools"),
    ]
    for call in refused:
        with pytest.raises(NotFound):
            await call
    assert (await memories.get(ReadScope("dana"), "schools")).text == SCHOOLS


async def test_a_scope_without_shared_items_stays_without_them(service: Harness) -> None:

    await service.drain()
    scope = ReadScope("dana", include_shared=False)
    for fields in ({}, {"include_datagov": True}):
        query = SearchQuery(query="datasets about schools", **fields)  # type: ignore[arg-type]
        assert (await service.services.search.search(scope, query)).hits == ()


async def test_the_catalogue_graph_is_the_shared_tenants_alone(service: Harness) -> None:
    await service.store("Noa met Dana in Haifa", tier=Tier.BOOKS)
    await service.settle()
    assert (await service.services.graphs.catalogue()).nodes == ()
