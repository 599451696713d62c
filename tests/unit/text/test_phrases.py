"""Phrases of tables, and the tables that are shipped."""

from typing import Any

import pytest
import yaml

from rayapp.core.errors import ConfigError
from rayapp.text.normalize import normalize
from rayapp.text.phrases import FOLDER, PhraseTables, phrases_in, shipped_tables

TABLES: dict[str, Any] = {
    "a.news": {
        "en": ["latest/today's news", "what's new"],
        "he": ["חדשות?  היום".replace("  ", " ")],
    },
    "a.search": {"en": ["search *0-2 the? web"], "but": {"en": ["never search"]}},
    "a.done": {"en": ["i ~ed"], "he": ["=כמה *"]},
    "a.verb": {"en": ["^please? send"], "he": ['לפי למ"ס', "מחקר"]},
    "a.farm": {"en": ["agricultur~", "take #"]},
}


@pytest.mark.parametrize(
    ("text", "label", "words"),
    [
        ("the latest news, please", "news", "latest news"),
        ("Today’s news?", "news", "Today’s news"),
        ("the latest, news", "news", None),
        ("what's new", "news", "what's new"),
        ("והחדשות היום", "news", "והחדשות היום"),
        ("היום", "news", "היום"),
        ("search the web", "search", "search the web"),
        ("search the whole web", "search", "search the whole web"),
        ("search it all in the web", "search", None),
        ("search-the-web", "search", "search-the-web"),
        ("never search the web", "search", None),
        ("I walked", "done", "I walked"),
        ("i ed", "done", None),
        ("כמה ערים", "done", "כמה ערים"),
        ("בכמה ערים", "done", None),
        ("send it", "verb", "send"),
        ("well, please send it", "verb", "please send"),
        ("they send it", "verb", None),
        ('לפי למ"ס', "verb", 'לפי למ"ס'),
        ('ה"מחקר"', "verb", None),
        ("ובמחקר", "verb", "ובמחקר"),
        ("agricultural land", "farm", "agricultural"),
        ("take 20", "farm", "take 20"),
        ("node.agriculture", "farm", None),
    ],
)
def test_a_phrase_is_found_where_it_is_said(text: str, label: str, words: str | None) -> None:
    said = PhraseTables(TABLES).read(text)
    places = said.of(f"a.{label}")
    assert (f"a.{label}" in said) == bool(places) == (words is not None)
    if words is not None:
        start, end = places[0]
        assert text[start:end] == words
        assert said.within(f"a.{label}", start, end)
        assert not said.within(f"a.{label}", end, len(text))


@pytest.mark.parametrize(
    ("table", "message"),
    [({"fr": ["a"]}, "is no language"), ({"en": ["a?"]}, "no word"), ({"en": ["* a"]}, "no word")],
)
def test_a_table_that_cannot_be_read_says_so(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PhraseTables({"a.b": table})


def test_every_shipped_table_is_heard() -> None:
    """A row's first words in their order are a text that says it, where nothing takes it back."""
    deaf = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for name, table in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            label = f"{path.stem}.{name}"
            rows = [row for language in ("en", "he") for row in table.get(language, ())]
            deaf += [label] * (not any(label in phrases_in(_example(row)) for row in rows))
    assert deaf == []
    assert len(shipped_tables().labels) > 60


def _example(row: str) -> str:
    found = []
    for part in row.lstrip("=^").split(" "):
        word = part.removesuffix("?").split("/")[0]
        if word.startswith("*"):
            found += ["one"] * (not part.startswith("*0"))
        else:
            found.append(word.replace("~", "aaa").replace("#", "7"))
    return normalize(" ".join(found))


@pytest.mark.parametrize("text", ["", "?", "-", "a-", "-a", " - ", "İ search the web", "'"])
def test_any_text_is_read(text: str) -> None:
    for places in PhraseTables(TABLES).read(text).places.values():
        assert all(0 <= start < end <= len(text) for start, end in places)
