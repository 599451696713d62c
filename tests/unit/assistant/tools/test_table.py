"""What a program shows of tools: the shipped table, and the route that serves it."""

from pathlib import Path

import pytest

from rayapp.assistant.tools.rules.definitions import TOOLS_BY_NAME
from rayapp.assistant.tools.rules.table import ANY_OTHER, row_of
from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.storage.files import load_tools
from rayapp.text.hebrew import HAS_HEBREW
from tests.support.harness import Harness
from tests.unit.api.serving import client_of

ROW = "{category: other, priority: 1, latency: fast, tokens: 9, label: &w {en: a, he: b}"
WHOLE = f"{ROW}, progress: *w, failure: *w}}"


def test_every_row_speaks_both_languages_and_every_tool_of_ours_has_one() -> None:
    table = load_tools(CONFIG_DIR / "tools.yaml")
    assert table.keys() >= TOOLS_BY_NAME.keys()
    for row in table.values():
        assert 0 <= row.priority <= 100
        assert row.tokens > 0
        for words in (row.label, row.progress, row.failure):
            assert HAS_HEBREW.search(words.he)
            assert not HAS_HEBREW.search(words.en)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("search_memory", "Memory"),
        ("mcp__memory__search_memory", "Memory"),
        ("Tavily_Search", "Web search"),
        ("juggle", "A tool"),
    ],
)
def test_a_tool_is_known_by_its_own_name(name: str, label: str) -> None:
    assert row_of(name, load_tools(CONFIG_DIR / "tools.yaml")).label.en == label


@pytest.mark.parametrize(
    "text", ["", "[1]", f"a: {WHOLE}", f'"*": {ROW}}}', f'"*": {WHOLE.replace("fast", "warp")}']
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tools.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"tools\.yaml"):
        load_tools(path)


async def test_the_table_is_served_whole_or_for_the_tools_that_are_named() -> None:
    async with client_of(Harness.ready().services) as api:
        whole = (await api.get("/api/memory/tools/table")).json()["tools"]
        asked = {"tools": ["gov__search_datagov", "juggle"]}
        some = (await api.get("/api/memory/tools/table", params=asked)).json()["tools"]
    assert {ANY_OTHER, "search_memory"} <= {one["name"] for one in whole}
    data, other = some
    assert (data["name"], data["label"]["he"]) == ("gov__search_datagov", "נתונים רשמיים")
    assert (data["latency"], data["wait_s"], data["tokens"]) == ("medium", 15.0, 3000)
    assert other["progress"] == {"en": "Using a tool…", "he": "משתמש בכלי…"}
