"""Every page in both languages: what it says, its direction, and that anybody can use it."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rayapp.understanding.derived.records import DerivedKind, State
from tests.browser.conftest import PATIENCE_MS, Served, Visit
from tests.support.derived_contract import a_row, put
from tests.support.harness import unsuspended

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.engine, pytest.mark.takes(45)]

USER = "pages"
QUESTION = "Where does Dana park?"
# Path of a page, and its title in both languages.
PAGES = {
    "memories": ("Memories", "זיכרונות"),
    "ask?q=Where+does+Dana+park%3F": ("Ask", "שאלה"),
    "block?q=Where+does+Dana+park%3F": ("What the model sees", "מה המודל רואה"),
    "live": ("Live", "עכשיו"),
    "documents": ("Documents", "מסמכים"),
    "conversations": ("Conversations", "שיחות"),
    "review": ("Review", "סקירה"),
    "people": ("People and things", "אנשים ודברים"),
    "learning?q=Where+does+Dana+park%3F": ("Learning", "למידה"),
    "operate/keys": ("Operate", "תפעול"),
    "operate/audit": ("Operate", "תפעול"),
    "operate/webhooks": ("Operate", "תפעול"),
    "yours": ("Your data", "הנתונים שלך"),
    "operate": ("Operate", "תפעול"),
}
PICTURES = "RAYAPP_PICTURES"
SETTINGS = {"en": ("light", 1180), "he": ("dark", 360)}


@pytest.fixture(scope="module")
def filled(served: Served) -> dict[str, str]:
    """A user of whom something is kept; the ids that pages are about."""
    with served.http(USER) as http:
        memory = {"text": "Dana parks on the second floor", "tier": "history", "tags": ["חניה"]}
        found = http.post("/api/memory/store", json=memory).json()["memory_id"]
        edit = {"text": "Dana parks on the third floor", "reason": "She moved"}
        http.patch(f"/api/memory/items/{found}", json=edit)
        told = [
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": "Upstairs."},
        ]
        turn = {"conversationId": "talk", "messageId": "m1", "messages": told}
        http.post("/api/hooks/exchange", json=turn).raise_for_status()
        file = {"file": ("garden.md", "# The garden\n\nThe roses need water on Mondays.\n")}
        book = http.post("/api/memory/books", files=file).json()["book_id"]
        broken = {"file": ("broken.pdf", b"%PDF-1.4 it ends here")}
        http.post("/api/memory/books", files=broken).raise_for_status()
        asked = http.post("/api/memory/search", json={"query": QUESTION}).json()
        judged = {"outcome": "worked", "receipt_id": asked["receipt_id"]}
        http.post("/api/memory/outcomes", json=judged).raise_for_status()
        hook = {"url": "https://garden.example/events", "description": "הגינה"}
        http.post("/api/webhooks", json=hook).raise_for_status()
        key = {"principal": "shop", "user_id": USER, "name": "The shop"}
        http.post("/api/admin/keys", json=key).raise_for_status()
        person = {"type": "Person", "name": "Dana Levi", "synonyms": ["דנה"]}
        dana = http.post("/api/knowledge/entity", json=person).json()["node"]["id"]
        place = {"type": "Place", "name": "Haifa"}
        haifa = http.post("/api/knowledge/entity", json=place).json()["node"]["id"]
        link = {"from_id": dana, "type": "LIVES_IN", "to_id": haifa}
        http.post("/api/knowledge/relationships", json=link).raise_for_status()
        friend = http.post("/api/knowledge/entity", json={**person, "name": "Noa"}).json()
        link = {"from_id": dana, "type": "FRIEND_OF", "to_id": friend["node"]["id"]}
        http.post("/api/knowledge/relationships", json=link).raise_for_status()
    said = tuple(replace(one, node_ids=(dana,)) for one in a_row(1).sources)
    thought = a_row(1, sources=said)
    told = {"kind": DerivedKind.EPISODE, "state": State.ACCEPTED, "pattern": None}
    episode = a_row(2, sources=said, title="שמחה בריצה", **told)
    unsuspended(put(served.world.derived, thought, episode, user=USER))
    return {"memory": found, "book": book, "person": dana}


def settled(page: Page) -> None:
    from playwright.sync_api import expect

    page.wait_for_selector("h1")
    expect(page.locator("[aria-busy=true], .waiting")).to_have_count(0, timeout=PATIENCE_MS)


def violations(page: Page, axe: str) -> list[str]:
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['target']} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("lang", SETTINGS)
@pytest.mark.parametrize("path", PAGES)
def test_a_page(
    served: Served, filled: dict[str, str], visit: Visit, axe: str, path: str, lang: str
) -> None:
    theme, width = SETTINGS[lang]
    url = f"{served.url}/console/{path}"
    page = visit(url, user=USER, lang=lang, theme=theme, width=width)
    settled(page)
    assert page.inner_text("h1") == PAGES[path][lang == "he"]
    assert page.get_attribute("html", "dir") == ("rtl" if lang == "he" else "ltr")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, axe) == []
    keep(page, path, lang)


def keep(page: Page, path: str, lang: str) -> None:
    """A picture of the page, where somebody wants one: in the folder PICTURES names."""
    folder = os.environ.get(PICTURES)
    if folder:
        name = re.sub(r"\W+", "-", path.split("?")[0])
        page.screenshot(path=Path(folder) / f"{name}-{lang}.png", full_page=True)


@pytest.mark.parametrize("lang", SETTINGS)
def test_the_pages_behind_them(
    served: Served, filled: dict[str, str], visit: Visit, axe: str, lang: str
) -> None:
    theme, width = SETTINGS[lang]
    paths = {
        f"memories/{filled['memory']}": "Dana parks on the third floor",
        f"documents/{filled['book']}": "The roses need water on Mondays.",
        "conversations/talk": "Upstairs.",
        f"people/{filled['person']}": "Joy about running",
    }
    page = visit(f"{served.url}/console/", user=USER, lang=lang, theme=theme, width=width)
    for path, text in paths.items():
        page.goto(f"{served.url}/console/{path}")
        page.get_by_text(text).first.wait_for()
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert violations(page, axe) == [], path
        keep(page, path.partition("/")[0] + "-one", lang)


def test_language_and_direction_switch_at_once(served: Served, visit: Visit) -> None:
    page = visit(f"{served.url}/console/memories", user="nobody")
    page.get_by_role("button", name="עברית").click()
    assert page.inner_text("h1") == "זיכרונות"
    assert page.evaluate("getComputedStyle(document.body).direction") == "rtl"
    assert page.get_by_text("עדיין לא נזכר דבר").is_visible()
    page.reload()
    assert page.inner_text("h1") == "זיכרונות"


def test_a_memory_shows_what_changed(served: Served, filled: dict[str, str], visit: Visit) -> None:
    page = visit(f"{served.url}/console/memories/{filled['memory']}", user=USER)
    assert page.inner_text("del") == "second"
    assert page.inner_text("ins") == "third"
    assert page.get_by_text("She moved").is_visible()


def test_a_broken_file_says_why(served: Served, filled: dict[str, str], visit: Visit) -> None:
    page = visit(f"{served.url}/console/documents", user=USER, lang="he")
    said = page.get_by_role("alert").inner_text()
    assert re.search("[א-ת]", said)


def test_filters_are_in_the_address(served: Served, filled: dict[str, str], visit: Visit) -> None:
    page = visit(f"{served.url}/console/memories", user=USER)
    page.get_by_label("Tag").fill("חניה")
    page.get_by_label("Tag").press("Enter")
    page.get_by_text("Memories: 1", exact=True).wait_for()
    shared = visit(page.url, user=USER, lang="he")
    shared.get_by_role("link", name="Dana parks on the third floor").wait_for()
    assert shared.locator(".list li").count() == 1


def test_keys_alone_reach_and_change(
    served: Served, filled: dict[str, str], visit: Visit, axe: str
) -> None:
    page = visit(f"{served.url}/console/memories/{filled['memory']}", user=USER)
    settled(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Archive").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    assert violations(page, axe) == []
    page.keyboard.type("no longer true")
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
