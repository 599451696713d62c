"""Names in filters, in both languages."""

import pytest

from rayapp.datagov.rules.categories import (
    CATEGORIES,
    category_slug,
    flag_spellings,
    format_spellings,
    nearest_category,
)


@pytest.mark.parametrize("slug", CATEGORIES)
def test_every_category_is_known_by_its_three_names(slug: str) -> None:
    category = CATEGORIES[slug]
    for name in (slug, slug.upper(), category.he, category.en, f"  {category.he} "):
        assert category_slug(name) == slug


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("transport", "transportation"),
        ("תחבורה", "transportation"),
        ("בְּרִיאוּת", "health"),
        ("law", "justice"),
        ("משפט", "justice"),
        ("עליה", "immigration"),
    ],
)
def test_other_names_are_known(name: str, slug: str) -> None:
    assert category_slug(name) == slug


@pytest.mark.parametrize(
    ("name", "slug"),
    [("helth", "health"), ("transportaton", "transportation"), ("בריאת", "health")],
)
def test_a_misspelt_name_has_a_nearest_category(name: str, slug: str) -> None:
    assert category_slug(name) is None
    assert nearest_category(name) == slug


@pytest.mark.parametrize("name", ["", "zzzz", "קקקק", "42"])
def test_what_looks_like_no_category_has_no_nearest_one(name: str) -> None:
    assert category_slug(name) is None
    assert nearest_category(name) is None


@pytest.mark.parametrize("name", ["csv", "CSV", ".csv", " Csv "])
def test_formats_are_found_in_any_case(name: str) -> None:
    assert {"csv", "CSV"} <= set(format_spellings(name))


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("has_phone", ("has_phone",)),
        ("phone", ("phone", "has_phone")),
        ("error", ("error",)),
        ("mine", ("mine",)),
    ],
)
def test_flags_are_found_with_and_without_their_beginning(
    name: str, spellings: tuple[str, ...]
) -> None:
    assert flag_spellings(name) == spellings
