"""The items made of a catalogue: texts, ids, hashes, the graph, and what leaves the catalogue."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.ids import MEMORY_ID_PATTERN, SYSTEM_USER
from rayapp.datagov.ports import Dataset, Field
from rayapp.datagov.rules.changes import ROOT_ID, graph_changes, graph_of, put_change, retiring
from rayapp.datagov.rules.items import (
    ERROR_IMPORTANCE,
    MAX_CHARS,
    MAX_FIELDS,
    items_of,
    kind_of,
    memory_id_of,
    partial_ids,
    record_hash_of,
)
from rayapp.datagov.rules.prepare import has_hebrew, prepared
from rayapp.index.rules.points import payload_of
from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.rules.creation import TextLimits, check_item, dedup_scope
from rayapp.memory.rules.filtering import flag_names
from rayapp.memory.tiers import Tier
from tests.support.builders import STORED_AT
from tests.support.catalogue import VEHICLES, WELLS, a_catalogue, many_datasets

ENTRIES = [
    ("water", ["מים"], ["water"]),
    ("water", ["באר"], ["well"]),
    ("statistics", ["מדד"], ["index"]),
    ("acronyms", ['צה"ל'], ["IDF"]),
]
LATER = STORED_AT + timedelta(days=1)


def made(*datasets: Dataset, entries: Any = ENTRIES, at: Any = STORED_AT) -> dict[str, MemoryItem]:
    items = items_of(prepared(a_catalogue(*datasets))[0], entries, at)
    return {item.memory_id: item for item in items}


def facts(item: MemoryItem) -> dict[str, Any]:
    assert item.source.datagov is not None
    return item.source.datagov


def resource_item(items: dict[str, MemoryItem], number: int) -> MemoryItem:
    return items[f"datagov_resource_22222222-0000-4000-8000-00000000000{number}"]


def test_every_record_and_every_domain_is_one_item() -> None:
    items = made()
    assert Counter(kind_of(memory_id) for memory_id in items) == {
        "category": 21,
        "dataset": 2,
        "resource": 3,
        "expansion": 2,
    }
    for memory_id, item in items.items():
        assert MEMORY_ID_PATTERN.fullmatch(memory_id)
        assert item.user_id == SYSTEM_USER
        expansion = kind_of(memory_id) == "expansion"
        assert item.tier is (Tier.DATAGOV_EXPANSION if expansion else Tier.DATAGOV_SCHEMA)
        check_item(item, TextLimits(text=100_000, memory_bank=5_000))
        assert 0 < len(item.text) <= MAX_CHARS
        assert has_hebrew(item.text.split("\n")[0])
        assert "datagov" in item.tags


def test_a_resource_tells_what_it_is_in_both_languages() -> None:
    item = resource_item(made(), 1)
    hebrew, english, *shared = item.text.split("\n")
    for part in (
        VEHICLES.title,
        "כלי רכב 2024",
        "תחבורה",
        "משרד התחבורה",
        "CSV",
        "4,000,000 רשומות",
    ):
        assert part in hebrew
    for part in ("Transportation", "Ministry of Transport", "CSV", "4,000,000 records", "dates"):
        assert part in english
    assert VEHICLES.title not in english
    assert "תאריך עלייה לכביש" in shared[-1]
    assert "_id" not in item.text
    assert item.quality.importance == 0.7
    assert item.tags == ("datagov", "resource", "transportation", "csv")
    assert dedup_scope(item.tier, item.source) == item.dedup_scope


def test_an_english_title_stands_in_the_english_line() -> None:
    text = made()[f"datagov_dataset_{WELLS.dataset_id}"].text
    assert "Dataset: Water levels in wells" in text.split("\n")[1]


def test_the_words_of_the_address_that_the_title_does_not_say_are_in_the_english_line() -> None:
    named = replace(VEHICLES, name="private-cars-2022-il-x", title="רכב פרטי cars")
    (dataset,) = (i for i in made(named).values() if i.source.datagov["kind"] == "dataset")
    (english,) = (line for line in dataset.text.splitlines() if "Name:" in line)
    assert "Name: private." in english
    numbered = replace(VEHICLES, name="517")
    assert not any("Name:" in item.text for item in made(numbered).values())


def test_filters_find_what_the_item_says() -> None:
    payload = payload_of(resource_item(made(), 1))
    assert payload["category"] == "transportation"
    assert payload["format"] == "csv"
    assert payload["organization"] == "משרד התחבורה"
    assert payload["flags"] == ["has_date"]
    assert payload["source_type"] == "datagov"
    wells = payload_of(made()[f"datagov_dataset_{WELLS.dataset_id}"])
    assert (wells["flags"], wells["format"]) == (["has_phone"], "csv")


def test_a_resource_with_an_error_is_marked_and_counts_less() -> None:
    broken = resource_item(made(), 2)
    assert facts(broken)["error"] == "HTTP Error 404: Not Found"
    assert "error" in flag_names(broken.source)
    assert broken.quality.importance == ERROR_IMPORTANCE
    assert "The resource could not be read" in broken.text
    assert "error" not in flag_names(resource_item(made(), 1).source)


def test_the_facts_of_an_item_are_bounded() -> None:
    fields = tuple(Field(name=f"עמודה {n}") for n in range(500))
    long = replace(
        VEHICLES,
        title="א" * 3_000,
        description="ב" * 5_000,
        resources=(replace(VEHICLES.resources[0], fields=fields, name="ג" * 3_000),),
    )
    for item in made(long).values():
        assert len(item.text) <= MAX_CHARS
        assert len(facts(item)["fields"]) <= MAX_FIELDS
        assert len(facts(item).get("description") or "") <= 600


def test_descriptions_are_kept_but_are_not_part_of_the_text() -> None:
    item = made()[f"datagov_dataset_{VEHICLES.dataset_id}"]
    assert facts(item)["description"] == VEHICLES.description
    assert VEHICLES.description not in item.text


def test_resources_of_one_name_have_distinct_texts() -> None:
    resource = VEHICLES.resources[0]
    same = tuple(replace(resource, resource_id=f"same-{n}") for n in range(3))
    items = made(replace(VEHICLES, resources=same))
    texts = [item.text for item in items.values() if facts(item)["kind"] == "resource"]
    assert len(set(texts)) == 3


def test_equal_records_of_other_datasets_do_not_clash() -> None:
    twin = replace(
        WELLS,
        dataset_id="twin",
        resources=(replace(WELLS.resources[0], resource_id="twin-resource"),),
    )
    items = made(WELLS, twin).values()
    keys = {(item.tier, item.dedup_scope, item.content_hash) for item in items}
    assert len(keys) == len(items)


def test_a_category_counts_what_is_filed_under_it_first() -> None:
    items = made()
    transport, geography = (
        items["datagov_category_transportation"],
        items["datagov_category_geography"],
    )
    assert (facts(transport)["datasets"], facts(transport)["resources"]) == (1, 2)
    assert facts(geography)["datasets"] == 0
    assert VEHICLES.title in transport.text
    assert "Ministry of Transport" in transport.text
    assert transport.quality.importance == 0.9


def test_a_domain_lists_its_terms_and_other_dictionaries_have_no_item() -> None:
    items = made()
    water = items["datagov_expansion_water"]
    assert "מים = water; באר = well" in water.text
    assert water.tier is Tier.DATAGOV_EXPANSION
    assert water.quality.importance == 0.85
    assert "datagov_expansion_acronyms" not in items
    assert "datagov_expansion_statistics" in items


def test_a_change_beyond_the_text_of_a_domain_changes_its_hash() -> None:
    many = [("water", [f"מילה {n}"], [f"word {n}"]) for n in range(500)]
    one, other = made(entries=many), made(entries=[*many, ("water", ["נחל"], ["stream"])])
    key = "datagov_expansion_water"
    assert one[key].text == other[key].text
    assert record_hash_of(one[key]) != record_hash_of(other[key])


def test_hashes_do_not_depend_on_time_or_order() -> None:
    one = {key: record_hash_of(item) for key, item in made(VEHICLES, WELLS).items()}
    other = {key: record_hash_of(item) for key, item in made(WELLS, VEHICLES, at=LATER).items()}
    assert one == other


@pytest.mark.parametrize(
    "change",
    [
        {"title": "אחר"},
        {"organization": "גוף אחר"},
        {"organization_en": "Other"},
        {"tags": ("אחר",)},
        {"keywords": ("אחר",)},
        {"categories": ("health",)},
        {"description": "אחר"},
    ],
)
def test_every_change_of_a_dataset_changes_its_hash_and_its_resources(
    change: dict[str, Any],
) -> None:
    before, after = made(), made(replace(VEHICLES, **change), WELLS)
    for key in (f"datagov_dataset_{VEHICLES.dataset_id}", resource_item(before, 1).memory_id):
        assert record_hash_of(before[key]) != record_hash_of(after[key])
    for key in (f"datagov_dataset_{WELLS.dataset_id}", resource_item(before, 3).memory_id):
        assert record_hash_of(before[key]) == record_hash_of(after[key])


@pytest.mark.parametrize(
    "change",
    [
        {"name": "אחר"},
        {"format": "xlsx"},
        {"url": "https://example.org/other"},
        {"fields": (Field(name="אחר"),)},
        {"total_records": 5},
        {"error": "HTTP 404"},
    ],
)
def test_every_change_of_a_resource_changes_its_hash_and_not_its_neighbour(
    change: dict[str, Any],
) -> None:
    first, second = VEHICLES.resources
    changed = replace(VEHICLES, resources=(replace(first, **change), second))
    before, after = made(), made(changed, WELLS)
    one, two = resource_item(before, 1).memory_id, resource_item(before, 2).memory_id
    assert record_hash_of(before[one]) != record_hash_of(after[one])
    assert record_hash_of(before[two]) == record_hash_of(after[two])


@given(st.text(min_size=1, max_size=300))
def test_any_record_id_gives_a_usable_memory_id(record_id: str) -> None:
    found = memory_id_of("resource", record_id)
    assert MEMORY_ID_PATTERN.fullmatch(found)
    assert kind_of(found) == "resource"
    assert found == memory_id_of("resource", record_id)


def test_kind_of_other_ids_is_none() -> None:
    assert kind_of("m-1") is None
    assert kind_of("datagov_other_1") is None


# --- putting


def test_a_put_of_what_is_there_is_nothing() -> None:
    item = next(iter(made().values()))
    stored, row = put_change(None, item) or (None, None)
    assert (stored, row) == (item, None)
    later = replace(item, updated_at=LATER)
    assert put_change(item, later) is None
    assert put_change(replace(item, status=Status.DELETED), later) is not None


# --- the graph


def test_the_graph_is_root_categories_and_the_largest_datasets() -> None:
    catalogue, _ = prepared(a_catalogue(*many_datasets(60)))
    nodes, edges = graph_of(catalogue, STORED_AT, datasets=5, nodes=150)
    assert len(nodes) == 1 + 21 + 3 * 5
    assert len(edges) == len(nodes) - 1
    ids = {node.node_id for node in nodes}
    assert len(ids) == len(nodes)
    assert all(edge.source in ids and edge.target in ids for edge in edges)
    assert sum(edge.source == ROOT_ID for edge in edges) == 21
    water = [edge.target for edge in edges if edge.source == "datagov_category_water"]
    assert water == [f"datagov_dataset_d-{n:05d}" for n in (57, 54, 51, 48, 45)]
    assert all(node.mentions > 0 for node in nodes)


@given(st.integers(0, 12), st.integers(22, 60))
def test_the_graph_never_has_more_nodes_than_asked_for(datasets: int, limit: int) -> None:
    catalogue, _ = prepared(a_catalogue(*many_datasets(40)))
    nodes, edges = graph_of(catalogue, STORED_AT, datasets=datasets, nodes=limit)
    assert 22 <= len(nodes) <= limit
    assert len(edges) == len(nodes) - 1
    shown = Counter(edge.source for edge in edges if edge.source != ROOT_ID)
    # No category shows a second dataset before each with one shows its first.
    counts = [shown[f"datagov_category_{slug}"] for slug in ("water", "health", "general")]
    assert max(counts) <= datasets
    assert max(counts) - min(counts) <= 1


def test_graph_rows_that_are_equal_are_not_written_again() -> None:
    catalogue, _ = prepared(a_catalogue())
    nodes, edges = graph_of(catalogue, STORED_AT, datasets=5, nodes=150)
    later = graph_of(catalogue, LATER, datasets=5, nodes=150)
    assert graph_changes(nodes, later[0]) == ([], [])
    assert graph_changes(edges, later[1]) == ([], [])
    renamed = replace(later[0][1], label="אחר")
    write, gone = graph_changes(nodes, [*later[0][2:], renamed])
    assert write == [replace(renamed, first_seen_at=STORED_AT)]
    assert gone == [nodes[0]]


# --- tables that did not answer


def test_a_table_that_did_not_answer_makes_its_dataset_and_category_partial() -> None:
    table, file = VEHICLES.resources
    catalogue, _ = prepared(replace(a_catalogue(), unread=(table.resource_id, "not there")))
    found = partial_ids(catalogue)
    assert found == {
        f"datagov_resource_{table.resource_id}",
        f"datagov_dataset_{VEHICLES.dataset_id}",
        "datagov_category_transportation",
    }
    assert found < made().keys()
    assert f"datagov_resource_{file.resource_id}" in made()
    assert partial_ids(prepared(a_catalogue())[0]) == frozenset()


# --- retiring


def stored(*datasets: Dataset) -> dict[str, tuple[str, Status]]:
    return {memory_id: ("h", Status.ACTIVE) for memory_id in made(*datasets)}


def test_what_left_the_catalogue_is_retired_and_only_that() -> None:
    have = many_datasets(10)
    gone = retiring(stored(*have), made(*have[:8]), {})
    assert set(gone.memory_ids) == {
        "datagov_dataset_d-00008",
        "datagov_dataset_d-00009",
        "datagov_resource_r-00008",
        "datagov_resource_r-00009",
    }
    assert not gone.refused
    archived = {memory_id: ("h", Status.ARCHIVED) for memory_id in stored(*have)}
    assert retiring(archived, made(*have[:2]), {}).memory_ids == ()
    assert retiring({}, made(*have), {}).memory_ids == ()


@pytest.mark.parametrize(("left", "retired"), [(5, 10), (4, 0), (1, 0)])
def test_a_catalogue_that_lost_more_than_half_retires_nothing(left: int, retired: int) -> None:
    have = many_datasets(10)
    found = retiring(stored(*have), made(*have[:left]), {})
    assert len(found.memory_ids) == retired
    assert bool(found.refused) == (retired == 0)
    assert found.kept == (0 if retired else 2 * (10 - left))


def test_the_loss_of_one_kind_is_enough_to_refuse() -> None:
    have = many_datasets(10)
    without = tuple(replace(one, resources=()) for one in have)
    found = retiring(stored(*have), made(*without), {})
    assert found.memory_ids == ()
    assert "0 of 10 resource" in found.refused


@pytest.mark.parametrize("kind", ["rows_short", "row_unreadable"])
def test_a_source_that_was_cut_short_retires_nothing(kind: str) -> None:
    have = many_datasets(10)
    found = retiring(stored(*have), made(*have[:9]), {kind: 1})
    assert (found.memory_ids, found.kept) == ((), 2)
    # Other oddities say nothing about what is missing.
    for other in ("resource_error", "fields_unread"):
        assert retiring(stored(*have), made(*have[:9]), {other: 5}).memory_ids
