"""The bilingual dictionary."""

from pathlib import Path
from typing import Any

import pytest

from rayapp.container import bootstrap
from rayapp.core.errors import ConfigError
from rayapp.storage.files import load_expansions
from rayapp.text.expansions import SYNONYM_WEIGHT, TRANSLATION_WEIGHT, Expansions
from rayapp.text.language import detect_language

FILES: dict[str, Any] = {
    "a.yaml": {
        "domain": "test",
        "entries": [
            {"he": ["מכונית", "אוטו"], "en": ["car", "automobile"]},
            {"he": ["ביטוח"], "en": ["insurance"]},
            {"he": ["ביטוח לאומי"], "en": ["National Insurance"], "weight": 0.5},
            {"he": ['ת"א', "תל אביב"], "en": ["Tel Aviv"]},
            {"he": ['צה"ל'], "en": ["IDF"]},
            {"he": ["זברנית"], "en": ["zebra room"]},
        ],
    }
}
DICTIONARY = Expansions(FILES)


def found(query: str) -> dict[str, float]:
    return {expansion.text: expansion.weight for expansion in DICTIONARY.expand(query)}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("המכוניות שלי", {"car", "automobile", "אוטו"}),
        ("my cars", {"מכונית", "אוטו", "automobile"}),
        ("ביטוח לאומי", {"National Insurance"}),
        ("national insurance", {"ביטוח לאומי"}),
        ("ביטוח", {"insurance"}),
        ("בת״א", {"Tel Aviv", "תל אביב"}),
        ("ת''א", {"Tel Aviv", "תל אביב"}),
        ("בתל אביב", {"Tel Aviv", 'ת"א'}),
        ("תא מטען", set()),
        ("צהל", {"IDF"}),
        ("בזברנית", {"zebra room"}),
        ("zebra", set()),
        ("car מכונית", {"אוטו", "automobile"}),
        ("nothing known", set()),
        ("", set()),
    ],
)
def test_expand(query: str, expected: set[str]) -> None:
    assert set(found(query)) == expected


def test_weights_and_source() -> None:
    assert found("car") == {
        "מכונית": TRANSLATION_WEIGHT,
        "אוטו": TRANSLATION_WEIGHT,
        "automobile": SYNONYM_WEIGHT,
    }
    (only,) = DICTIONARY.expand("ביטוח לאומי")
    assert (only.weight, only.source) == (0.5 * TRANSLATION_WEIGHT, "test")


def test_limit_keeps_the_heaviest() -> None:
    texts = [expansion.text for expansion in DICTIONARY.expand("car", limit=2)]
    assert texts == ["מכונית", "אוטו"]


def test_another_file_may_repeat_a_pair() -> None:
    both = Expansions(
        {**FILES, "b.yaml": {"domain": "b", "entries": [FILES["a.yaml"]["entries"][1]]}}
    )
    assert [expansion.text for expansion in both.expand("ביטוח")] == ["insurance"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"he": ["מכונית"], "en": ["car", "cars"]}], "one form"),
        ([{"en": ["car", "car"]}], "one form"),
        ([{"he": ['צה"ל', "צה״ל"]}], "one form"),
        ([{"he": ["חתול"], "en": ["cat"]}, {"he": ["חתולים"], "en": ["cat"]}], "pair of entry 1"),
        ([{"he": ["חתול"]}], "at least two"),
        ([{"en": ["IT", "information technology"]}], "stop words"),
        ([{"he": ["cat"], "en": ["kitten"]}], "wrong list"),
        ([{"he": ["חתול"], "en": ["..."]}], "no words"),
        ([{"he": ["חתול"], "en": "cat"}], "list of texts"),
        ([{"he": ["כן"], "en": [True]}], "list of texts"),
        ([{"he": ["חתול"], "fr": ["chat"]}], "he, en and weight"),
        ([{"he": ["חתול"], "en": ["cat"], "weight": 0}], "weight"),
        ("text", "must be a list"),
    ],
)
def test_bad_entries_are_named(entries: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Expansions({"bad.yaml": {"domain": "x", "entries": entries}})
    assert "bad.yaml" in caught.value.message
    assert message in caught.value.message


def test_error_names_the_entry() -> None:
    entries = [{"he": ["חתול"], "en": ["cat"]}, {"en": ["dog"]}]
    with pytest.raises(ConfigError, match="entry 2"):
        Expansions({"bad.yaml": {"domain": "x", "entries": entries}})


def test_our_dictionary_loads_and_holds_both_languages() -> None:
    dictionary = bootstrap.load_texts().expansions
    assert len(dictionary) >= 250
    for _, hebrew, english in dictionary.entries():
        assert all(detect_language(text) in ("he", "mixed") for text in hebrew)  # "כתובת IP"
        assert all(detect_language(text) == "en" for text in english)
    assert "car" in {expansion.text for expansion in dictionary.expand("הרכבים")}


def test_folder_tree_is_read_and_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    good = tmp_path / "deep" / "er" / "good.yaml"
    good.write_text("domain: d\nentries:\n  - {he: [חתול], en: [cat]}\n", encoding="utf-8")
    assert [one.text for one in load_expansions(tmp_path).expand("cats")] == ["חתול"]
    (tmp_path / "deep" / "bad.yaml").write_text("domain: [", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"bad\.yaml"):
        load_expansions(tmp_path)
    with pytest.raises(ConfigError, match="missing"):
        load_expansions(tmp_path / "missing")
