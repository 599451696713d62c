"""How records of a catalogue are cleaned, flagged and filed. Hebrew and English alike."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.datagov.ports import FLAGS, Dataset, Field, Resource, dataset_document, dataset_of
from rayapp.datagov.rules import categories
from rayapp.datagov.rules.prepare import (
    ANOMALIES,
    SAMPLES,
    Anomalies,
    clean,
    has_hebrew,
    is_data,
    normalise,
    prepared,
)
from rayapp.text.normalize import find_forbidden
from tests.support.catalogue import VEHICLES, WELLS, a_catalogue, many_datasets

# --- texts


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ("  משרד ראש הממשלה ", "משרד ראש הממשלה"),
        ("הספק\nמרבי\nבכוחות סוס", "הספק מרבי בכוחות סוס"),
        ("Decision Number \u200f", "Decision Number"),
        ("\ufeffשם\u200e", "שם"),
        ("a\tb\r\nc", "a b c"),
        ("\u202bעברית\u202c English", "עברית English"),
        ("e\u0301", "é"),
        ("bad\x00text", "badtext"),
        ("\u00a0x\u2003y ", "x y"),
        ("", ""),
        (" \u200f\n", ""),
    ],
)
def test_a_text_becomes_one_clean_line(raw: str, wanted: str) -> None:
    assert clean(raw) == wanted


@given(st.text())
def test_cleaning_is_idempotent_and_leaves_what_may_be_stored(text: str) -> None:
    plain = clean(text)
    assert clean(plain) == plain
    assert plain == plain.strip()
    assert find_forbidden(plain) is None
    assert not re.search(r"[\n\t\r\u200e\u200f\ufeff]|\s{2}", plain)


@pytest.mark.parametrize("name", ["24/03/2025", "1", "2019", "3.5", "-", "12:30", "__", "٣"])
def test_a_column_name_without_letters_is_data(name: str) -> None:
    assert is_data(name)


@pytest.mark.parametrize("name", ["שנה", "X", "a1", "תאריך 24/03/2025", "اسم", "имя"])
def test_a_column_name_with_letters_is_a_name(name: str) -> None:
    assert not is_data(name)


def cleaned(*names: str) -> tuple[tuple[str, ...], Anomalies]:
    fields = tuple(Field(name=name) for name in names)
    resource = replace(WELLS.resources[0], fields=fields)
    anomalies = Anomalies()
    found = normalise(a_catalogue(replace(WELLS, resources=(resource,))), anomalies)
    return tuple(one.name for one in found.datasets[0].resources[0].fields), anomalies


def test_columns_are_cleaned_and_what_was_odd_is_counted() -> None:
    names, anomalies = cleaned(
        "_id", "שם \nהפרויקט", "24/03/2025", "7", "Budget \u200f", "NAME", "name", " ", "שם הפרויקט"
    )
    assert names == ("שם הפרויקט", "Budget", "NAME")
    assert anomalies.counts == {
        "field_name_whitespace": 1,
        "field_name_is_data": 2,
        "field_name_marks": 1,
        "field_name_repeated": 2,
        "field_name_empty": 1,
    }


def test_records_with_an_id_twice_are_kept_once() -> None:
    twice = replace(VEHICLES, resources=(VEHICLES.resources[0], VEHICLES.resources[0]))
    anomalies = Anomalies()
    found = normalise(a_catalogue(twice, WELLS, WELLS), anomalies)
    assert [len(one.resources) for one in found.datasets] == [1, 1]
    assert anomalies.counts["record_repeated"] == 2


def test_a_resource_without_a_name_gets_the_title_and_a_bad_count_is_none() -> None:
    odd = replace(WELLS.resources[0], name=" \u200f", format=" .CSV ", total_records=-1, error="")
    found = normalise(a_catalogue(replace(WELLS, resources=(odd,))), Anomalies())
    (resource,) = found.datasets[0].resources
    assert (resource.name, resource.format) == (WELLS.title, "csv")
    assert (resource.total_records, resource.error) == (None, None)


def test_normalising_twice_changes_nothing_more() -> None:
    once = normalise(a_catalogue(), Anomalies())
    again = Anomalies()
    assert normalise(once, again) == once
    odd = {kind for kind in again.counts if kind.startswith(("field", "text", "record"))}
    assert odd == set()


def test_has_hebrew_looks_at_the_whole_text() -> None:
    assert has_hebrew("2024 נתונים")
    assert not has_hebrew("بنك أسئلة")


# --- plain JSON

TEXTS = st.text(max_size=12)


def texts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, TEXTS)


FIELDS = st.builds(Field, name=TEXTS, type=TEXTS, semantic=st.none() | TEXTS)
RESOURCES = st.builds(
    Resource,
    **texts("resource_id", "name", "format", "url"),
    fields=st.lists(FIELDS, max_size=3).map(tuple),
    total_records=st.none() | st.integers(0, 10**9),
    error=st.none() | TEXTS,
)
DATASETS = st.builds(
    Dataset,
    **texts("dataset_id", "title", "name", "organization", "organization_en", "description"),
    tags=st.lists(TEXTS, max_size=3).map(tuple),
    keywords=st.lists(TEXTS, max_size=3).map(tuple),
    categories=st.lists(st.sampled_from([*categories.CATEGORIES, "none", ""]), max_size=3).map(
        tuple
    ),
    flags=st.none() | st.frozensets(st.sampled_from(FLAGS)),
    resources=st.lists(RESOURCES, max_size=3).map(tuple),
)


@given(DATASETS)
def test_a_dataset_survives_plain_json(dataset: Dataset) -> None:
    assert dataset_of(dataset_document(dataset)) == dataset


@given(st.lists(DATASETS, max_size=4))
def test_any_catalogue_can_be_prepared_and_its_order_does_not_count(
    datasets: list[Dataset],
) -> None:
    unique = tuple({one.dataset_id: one for one in datasets}.values())
    alone = tuple(
        replace(
            one,
            resources=tuple(
                replace(r, resource_id=f"{n}-{m}") for m, r in enumerate(one.resources)
            ),
        )
        for n, one in enumerate(unique)
    )
    found, anomalies = prepared(a_catalogue(*alone) if alone else a_catalogue())
    backwards, _ = prepared(a_catalogue(*reversed(alone)) if alone else a_catalogue())
    assert found.datasets == backwards.datasets
    assert set(anomalies.counts) <= set(ANOMALIES)
    for dataset in found.datasets:
        assert 1 <= len(dataset.categories) <= categories.MAX_CATEGORIES
        assert set(dataset.categories) <= set(categories.CATEGORIES)
        assert dataset.title or not dataset.dataset_id


# --- flags


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("טלפון", {"has_phone"}),
        ("מספר טלפון נייד", {"has_phone"}),
        ("פקס", {"has_phone"}),
        ("phone_number", {"has_phone"}),
        ("ContactPhone", {"has_phone"}),
        ("phone2", {"has_phone"}),
        ("כתובת", {"has_address"}),
        ("הכתובת", {"has_address"}),
        ("STREET_NAM", {"has_address"}),
        ("addressheb", {"has_address"}),
        ("כתובת מייל", {"has_email"}),
        ("EmailAddress", {"has_email"}),
        ("דואר אלקטרוני", {"has_email"}),
        ('דוא"ל', {"has_email"}),
        ("e-mail", {"has_email"}),
        ("X", {"has_location"}),
        ("Y_ITM", {"has_location"}),
        ("lat", {"has_location"}),
        ("long", {"has_location"}),
        ("יישוב", {"has_location"}),
        ("CITYCODE", {"has_location"}),
        ("קו רוחב", {"has_location"}),
        ("תאריך", {"has_date"}),
        ("תאריך_עדכון", {"has_date"}),
        ("שנת ייצור", {"has_date"}),
        ("STARTDATE", {"has_date"}),
        ("lastBuildDate", {"has_date"}),
        ("YEAR", {"has_date"}),
        # What the source takes for one of them.
        ("RouteLength", set()),
        ("TYPE", set()),
        ("Mailing_Box_Id", set()),
        ("דואר רגיל", set()),
        ("last_update", set()),
        ("candidate", set()),
        ("רוחב צמיג", set()),
        ("LocalAuthorityLongName", set()),
        ("שם", set()),
        ("name", set()),
    ],
)
def test_flags_follow_from_the_words_of_a_name(name: str, wanted: set[str]) -> None:
    assert categories.flags_of_name(name) == wanted


def test_a_time_column_is_a_date_whatever_its_name() -> None:
    assert categories.flags_of([Field(name="q", type="timestamp")]) == {"has_date"}
    assert categories.flags_of([Field(name="q", type="text")]) == frozenset()


@given(st.text(max_size=30))
def test_any_name_gives_known_flags(name: str) -> None:
    assert categories.flags_of_name(name) <= set(FLAGS)


def test_a_resource_does_not_inherit_what_its_dataset_claims() -> None:
    _, anomalies = prepared(a_catalogue(VEHICLES))
    # The table has no phone, the file no columns at all.
    assert anomalies.counts["resource_overclaimed"] == 2


# --- categories


def test_there_are_21_categories_with_names_in_both_languages() -> None:
    assert len(categories.CATEGORIES) == 21
    assert categories.GENERAL in categories.CATEGORIES
    for category in categories.CATEGORIES.values():
        assert has_hebrew(category.he)
        assert has_hebrew(category.he_about)
        assert category.en.isascii()
        assert category.en_about.isascii()
    assert len({category.he for category in categories.CATEGORIES.values()}) == 21
    assert len(categories.DOMAINS) == 22
    assert set(categories.DOMAINS) - set(categories.CATEGORIES) == {"government", "statistics"}


@pytest.mark.parametrize(
    ("title", "tags", "owner", "slug"),
    [
        ("מאגר כלי רכב", [], "משרד התחבורה", "transportation"),
        ("Vehicles by model", [], "", "transportation"),
        ("קידוחי מים", [], "", "water"),
        ("Water wells", [], "", "water"),
        ("בתי ספר", ["חינוך"], "", "education"),
        ("List of schools", [], "", "education"),
        ("רשימת מרפאות", ["בריאות"], "משרד הבריאות", "health"),
        ("Hospitals", [], "", "health"),
        ("התקציב", [], "משרד האוצר", "finance"),
        ("State budget", [], "", "finance"),
        ("qwerty", [], "", "general"),
        ("שלום", [], "", "general"),
        ("", [], "", "general"),
    ],
)
def test_a_dataset_without_categories_is_filed_by_its_words(
    title: str, tags: list[str], owner: str, slug: str
) -> None:
    assert categories.categorise(title, tags, owner)[0] == slug


@given(st.text(), st.lists(st.text(), max_size=3), st.text())
def test_every_dataset_is_filed_somewhere(title: str, tags: list[str], owner: str) -> None:
    found = categories.categorise(title, tags, owner)
    assert 1 <= len(found) <= categories.MAX_CATEGORIES
    assert set(found) <= set(categories.CATEGORIES)


def test_unknown_and_too_many_categories() -> None:
    many = ("nonsense", "Water", "health", "finance", "justice")
    found, anomalies = prepared(a_catalogue(replace(WELLS, categories=many)))
    assert found.datasets[0].categories == ("water", "health", "finance")
    assert anomalies.counts["category_unknown"] == 1
    alone, _ = prepared(a_catalogue(replace(WELLS, categories=("nonsense",))))
    assert alone.datasets[0].categories == (categories.GENERAL,)
    assert categories.main_category(("nonsense",)) == categories.GENERAL


# --- anomalies


def test_everything_odd_is_counted_with_a_sample() -> None:
    bare = Dataset(dataset_id="bare", title="Bare", organization="גוף", categories=("water",))
    twin = replace(bare, dataset_id="twin")
    catalogue = replace(
        a_catalogue(VEHICLES, bare, twin),
        odd_counts={"split_file_missing": 94},
        oddities={"split_file_missing": ("environment/a.json",)},
    )
    _, anomalies = prepared(catalogue)
    assert anomalies.counts == {
        "split_file_missing": 94,
        "resource_overclaimed": 2,
        "resource_error": 1,
        "resource_without_fields": 1,
        "dataset_title_repeated": 1,
        "dataset_title_without_hebrew": 2,
        "dataset_without_resources": 2,
        "dataset_without_tags": 2,
        "organization_without_english": 1,
    }
    rows = {row["kind"]: row for row in anomalies.rows()}
    assert rows["resource_error"]["samples"] == ["HTTP Error 404: Not Found: vehicles-old"]
    assert rows["split_file_missing"]["samples"] == ["environment/a.json"]
    assert all(row["meaning"] for row in rows.values())


def test_samples_are_few_and_an_unknown_kind_is_refused() -> None:
    anomalies = Anomalies()
    for number in range(20):
        anomalies.add("resource_error", str(number))
    anomalies.add("resource_error", times=0)
    assert anomalies.counts["resource_error"] == 20
    assert len(anomalies.samples["resource_error"]) == SAMPLES
    with pytest.raises(ValueError, match="nonsense"):
        anomalies.add("nonsense")


def test_many_datasets_are_distinct() -> None:
    assert len({one.dataset_id for one in many_datasets(50)}) == 50
