"""Whole ways through the console, as a person goes them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.ports import Scope
from rayapp.core.scope import WriteScope
from rayapp.understanding.statements.ports import KnowledgeRows
from rayapp.understanding.statements.records import Merge, MergeState
from tests.browser.conftest import PATIENCE_MS, Served, Visit, serving
from tests.support.derived_contract import AT, a_row, put
from tests.support.harness import unsuspended

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.engine, pytest.mark.takes(25)]

MARKUP = "<script>pwned = 1</script><img src=x onerror='pwned = 1'>{{7*7}}"
TURNED = "safe \u202eevil\u202c end"


def test_from_stored_to_erased(served: Served, visit: Visit, tmp_path: Path) -> None:
    page = visit(f"{served.url}/console/live", user="way")
    page.get_by_text("Connected", exact=True).wait_for()
    with served.http("way") as http:
        body = {"text": "Noa's flat is in Jaffa", "tier": "history"}
        http.post("/api/memory/store", json=body).raise_for_status()
    page.locator(".feed").get_by_text("Noa's flat is in Jaffa").first.wait_for()

    page.get_by_role("link", name="Ask", exact=True).click()
    page.get_by_label("Question").fill("Where is Noa's flat?")
    page.get_by_label("Question").press("Enter")
    hit = page.locator(".hits > li").first
    hit.get_by_text("Noa's flat is in Jaffa").wait_for()
    assert hit.locator(".bar").count() >= 8
    hit.get_by_role("button", name="It helped").click()
    page.get_by_text("Judged.").wait_for()

    hit.get_by_role("link").first.click()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text").fill("Noa's flat is in Haifa")
    page.get_by_label("Why").fill("She moved")
    page.get_by_role("button", name="Save").click()
    page.locator("ins").get_by_text("Haifa").wait_for()
    with served.http("way") as http:
        found = http.post("/api/memory/search", json={"query": "Where is Noa's flat?"}).json()
    assert found["results"][0]["content"] == "Noa's flat is in Haifa"
    assert found["results"][0]["uses"] == 1

    page.get_by_role("button", name="Put this text back").click()
    page.locator("blockquote").get_by_text("Noa's flat is in Jaffa").wait_for()
    page.get_by_role("link", name="Your data").click()
    page.get_by_role("button", name="Erase everything").click()
    sure = page.get_by_role("dialog").get_by_role("button", name="Erase everything")
    assert sure.is_disabled()
    page.get_by_label("Type DELETE to confirm").fill("DELETE")
    sure.click()
    page.get_by_text("Everything is gone.").wait_for()
    with page.expect_download() as kept:
        page.get_by_role("button", name="Save the certificate").click()
    kept.value.save_as(tmp_path / "certificate.json")
    certificate = json.loads((tmp_path / "certificate.json").read_text(encoding="utf-8"))
    assert (set(certificate["left"].values()), certificate["part"]) == ({0}, "user")
    page.get_by_role("link", name="Memories", exact=True).click()
    page.get_by_text("Nothing is remembered yet.").wait_for()


def test_several_at_once_and_back(served: Served, visit: Visit) -> None:
    with served.http("several") as http:
        for text in ("The first of May", "The second of May", "The third of May"):
            http.post("/api/memory/store", json={"text": text, "tier": "history"})
    page = visit(f"{served.url}/console/memories", user="several")
    page.get_by_label("Select all shown").check()
    page.get_by_role("button", name="Archive").click()
    page.get_by_label("Reason").fill("a calendar has them")
    page.get_by_role("dialog").get_by_role("button", name="Archive").click()
    page.get_by_text("Nothing is remembered yet.").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Memories: 3").wait_for()


def test_silence_is_shown_with_its_reason(served: Served, visit: Visit) -> None:
    with served.http("silent") as http:
        for text in FAR:
            body = {"text": text, "tier": "history"}
            http.post("/api/memory/store", json=body).raise_for_status()
        for _ in range(int(PATIENCE_MS / 100)):
            index = http.get("/api/memory/diagnostics").json()["index"]
            if index["pending"] == index["unencoded"] == 0:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("the encoder has not read all of them")
    address = f"{served.url}/console/ask?q=Who+won+the+chess+olympiad+in+Baku%3F"
    page = visit(address, user="silent", lang="he")
    page.get_by_text("הזיכרון שותק").wait_for()
    page.get_by_text("למה: אין זיכרון קרוב מספיק לשאלה").wait_for()


FAR = (
    *("הרכב של דנה במוסך בירושלים", "Dana is allergic to peanuts", "הפגישה עם יואב נדחתה למרץ"),
    *("When the printer jams, open the rear tray", "סבתא רחל גרה בתל אביב", "The shed is blue"),
    *("The invoice is paid on Mondays", "הכלב אוכל פעמיים ביום", "The spare key is with Ruth"),
    *("עץ הלימון צריך דישון", "Yoav's office is on the fourth floor", "הסיסמה לרשת על המקרר"),
)


def test_hostile_texts_show_as_text(served: Served, visit: Visit) -> None:
    long = "ארוך מאוד very long " * 5_000 + "."
    with served.http("hostile") as http:
        ids = []
        for text in (MARKUP, TURNED, long[:9_000]):
            body = {"text": text, "tier": "history", "tags": ["<b>x</b>"]}
            answer = http.post("/api/memory/store", json=body)
            ids.append(answer.raise_for_status().json()["memory_id"])
        file = {"file": (f"{MARKUP}.md".replace("/", ""), f"# {MARKUP}\n\n{long}")}
        http.post("/api/memory/books", files=file).raise_for_status()
        said = [{"role": "user", "content": MARKUP}, {"role": "assistant", "content": TURNED}]
        turn = {"conversationId": MARKUP, "messageId": "m1", "messages": said}
        http.post("/api/hooks/exchange", json=turn).raise_for_status()
        said = [{"role": "user", "content": "A letter"}, {"role": "assistant", "content": long}]
        turn = {"conversationId": "long", "messageId": "m2", "messages": said}
        http.post("/api/hooks/exchange", json=turn).raise_for_status()
    page = visit(f"{served.url}/console/memories", user="hostile", width=360)
    page.get_by_text(MARKUP).first.wait_for()
    for path in ("memories", f"memories/{ids[0]}", f"memories/{ids[2]}", "documents"):
        _as_text(page, f"{served.url}/console/{path}")
    _as_text(page, f"{served.url}/console/conversations/long")
    assert len(page.inner_text(".talk > .assistant p")) > 100_000 - 50
    page.goto(f"{served.url}/console/conversations")
    page.get_by_role("link", name="pwned").click()
    page.get_by_text(MARKUP).first.wait_for()
    with served.http("hostile") as http:
        person = {
            "type": "Person",
            "name": MARKUP,
            "synonyms": [TURNED],
            "attributes": {"a": MARKUP},
        }
        node = http.post("/api/knowledge/entity", json=person).json()["node"]["id"]
        key = {"principal": MARKUP, "user_id": "hostile", "name": TURNED}
        http.post("/api/admin/keys", json=key).raise_for_status()
        hook = {"url": "https://garden.example/x", "description": MARKUP}
        http.post("/api/webhooks", json=hook).raise_for_status()
    for path in ("people", f"people/{node}", "learning", "operate/keys", "operate/audit"):
        _as_text(page, f"{served.url}/console/{path}")
    _as_text(page, f"{served.url}/console/operate/webhooks")
    page.goto(f"{served.url}/console/memories/{ids[1]}")
    assert "\u202e" not in page.inner_text("main")
    page.get_by_text("U+202E").first.wait_for()


def _as_text(page: Page, url: str) -> None:
    page.goto(url)
    page.locator("main bdi").first.wait_for()
    assert page.evaluate("typeof pwned") == "undefined"
    assert page.locator("main script, main img, main b").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_service_that_goes_away_and_comes_back(served: Served, visit: Visit) -> None:
    page = visit(f"{served.url}/console/memories", user="away")
    page.get_by_text("Nothing is remembered yet.").wait_for()
    page.context.set_offline(True)
    page.get_by_label("Words").fill("anything")
    page.get_by_label("Words").press("Enter")
    page.get_by_text("The service does not answer.").wait_for()
    assert page.get_by_role("button", name="Try again").is_visible()
    page.context.set_offline(False)
    page.get_by_text("No memory fits these conditions.").wait_for()


def test_a_server_that_dies_and_comes_back(visit: Visit) -> None:
    with serving() as first:
        page = visit(f"{first.url}/console/live", user="risen")
        page.get_by_text("Connected", exact=True).wait_for()
        beside = visit(f"{first.url}/console/operate", user="risen", lang="he")
        beside.get_by_text("הכול פועל").wait_for()
    page.get_by_text("Connecting again").wait_for()
    beside.get_by_text("השירות אינו עונה").first.wait_for()
    with serving(int(first.url.rsplit(":")[-1])) as second:
        page.get_by_text("Connected", exact=True).wait_for()
        beside.get_by_text("הכול פועל").wait_for()
        beside.get_by_text("השירות אינו עונה").first.wait_for(state="detached")
        with second.http("risen") as http:
            body = {"text": "It is up again", "tier": "history"}
            http.post("/api/memory/store", json=body).raise_for_status()
        page.locator(".feed").get_by_text("It is up again").first.wait_for()


MANY = 100_000
# The answers of the list, made in the page itself: a row of the service, again and again.
A_LONG_LIST = """([row, many]) => {
  const real = window.fetch;
  window.fetch = async (asked, ...rest) => {
    const url = new URL(asked.url ?? asked, location.href);
    if (url.pathname !== '/api/memory/items') return real(asked, ...rest);
    const from = Number(url.searchParams.get('cursor') ?? 0);
    const until = Math.min(many, from + 5000);
    const items = [];
    for (let n = from; n < until; n++)
      items.push({...row, memory_id: `m-${n}`, text: `${n}. ${row.text}`});
    const next_cursor = until < many ? String(until) : null;
    const body = {success: true, degraded: [], items, total: many, next_cursor};
    return new Response(JSON.stringify(body), {headers: {'Content-Type': 'application/json'}});
  };
}"""
TO_THE_END = """async () => {
  const end = performance.now() + 100_000;
  const loading = () => document.querySelector('.list + .row.center');
  while (loading() && performance.now() < end) {
    scrollTo(0, document.documentElement.scrollHeight);
    await new Promise((done) => setTimeout(done));
  }
  scrollTo(0, document.documentElement.scrollHeight);
  return !loading();
}"""
# Like a thumb that flings.
FLING = """async (from) => {
  let top = document.documentElement.scrollHeight * from;
  for (let step = 0; step < 40; step++) {
    scrollTo(0, (top -= 1500));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
}"""


def longest_task_ms(page: Page, script: str, argument: float) -> float:
    """Of the page's main thread while a script runs, in time of its own: what else the machine
    does is not counted."""
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["toplevel"])
    page.evaluate(script, argument)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    main = {
        (one["pid"], one["tid"])
        for one in events
        if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }
    tasks = [one.get("tdur", 0) / 1000 for one in events if (one["pid"], one["tid"]) in main]
    assert len(tasks) > 40, "nothing was measured"
    return max(tasks)


def test_a_hundred_thousand_rows_scroll(served: Served, visit: Visit) -> None:
    with served.http("many") as http:
        body = {"text": "Something that was said once", "tier": "history", "tags": ["a", "b"]}
        http.post("/api/memory/store", json=body).raise_for_status()
        (row,) = http.get("/api/memory/items").json()["items"]
    page = visit(f"{served.url}/healthz", user="many")
    page.add_init_script(f"({A_LONG_LIST})({json.dumps([row, MANY])})")
    page.goto(f"{served.url}/console/memories")
    page.get_by_text("Memories: 100,000").wait_for()
    assert page.evaluate(TO_THE_END), "not all of them were loaded"
    page.get_by_role("link", name=f"{MANY - 1}. Something").wait_for()
    assert page.locator(".list li").count() < 2_000, "rows far away are kept"
    for share in (0.9, 0.3):
        assert longest_task_ms(page, FLING, share) < 100, share
    assert page.locator(".list li").count() < 2_000


def test_a_file_is_dropped_read_and_deleted(served: Served, visit: Visit) -> None:
    page = visit(f"{served.url}/console/documents", user="reader")
    content = "# Bread\n\nThe dough rests for two hours.\n"
    page.locator("input[type=file]").set_input_files(
        {"name": "bread.md", "mimeType": "text/markdown", "buffer": content.encode()}
    )
    page.get_by_text("completed").wait_for()
    page.get_by_role("link", name="Bread").click()
    page.get_by_text("The dough rests for two hours.", exact=True).first.wait_for()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("No documents yet.").wait_for()


def test_somebody_is_added_linked_looked_up_and_deleted(served: Served, visit: Visit) -> None:
    with served.http("friends") as http:
        body = {"text": "My boss is Ruth Cohen", "tier": "history"}
        http.post("/api/memory/store", json=body).raise_for_status()
        until = time.monotonic() + 20
        while "Ruth Cohen" not in http.get("/api/knowledge/nodes").text:
            assert time.monotonic() < until, "nobody is known"
            time.sleep(0.1)
    page = visit(f"{served.url}/console/people", user="friends")
    page.get_by_role("button", name="Add by hand").click()
    page.get_by_label("Its name").fill("Omer")
    page.get_by_label("Other names").fill("עומר, the baker")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="Omer", level=1).wait_for()
    page.get_by_role("button", name="Link").click()
    page.get_by_label("Relation").select_option("FRIEND_OF")
    page.get_by_label("To", exact=True).select_option(label="Ruth Cohen · person")
    page.get_by_label("Since").fill("2024-05-01")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("is a friend of").wait_for()
    page.get_by_label("As it stood on").fill("2023-01-01")
    page.get_by_text("Nothing was known of it then.").wait_for()

    page.get_by_role("link", name="People and things").first.click()
    page.get_by_label("Name").fill("the baker")
    page.get_by_role("button", name="Show").click()
    page.locator(".list").get_by_role("link", name="Omer").click()
    page.get_by_role("link", name="Ruth Cohen").click()
    page.get_by_role("heading", name="Ruth Cohen", level=1).wait_for()
    page.get_by_role("link", name="My boss is Ruth Cohen").first.wait_for()
    page.go_back()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("Deleted.").wait_for()
    assert page.get_by_role("link", name="Omer").count() == 0


def test_two_are_one_and_one_is_two_and_back(served: Served, visit: Visit) -> None:
    texts = ("Ruth Cohen lives in Haifa", "Ruth Cohen lives in Acre", "Rutie lives in Eilat")
    with served.http("two") as http:
        for text in texts:
            body = {"text": text, "tier": "history"}
            http.post("/api/memory/store", json=body).raise_for_status()
        until, ids = time.monotonic() + 20, dict[str, str]()
        while (
            len(ids) < 2
            or http.get(f"/api/knowledge/nodes/{ids['Ruth Cohen']}").json()["node"]["mentions"] < 2
        ):
            assert time.monotonic() < until, "not all of them are known"
            time.sleep(0.1)
            asked = {"type": "Person"}
            found = http.get("/api/knowledge/nodes", params=asked).json()["nodes"]
            ids = {one["name"]: one["id"] for one in found if one["name"].startswith("Rut")}
        page = visit(f"{served.url}/console/people/{ids['Ruth Cohen']}", user="two", lang="he")
        page.get_by_role("button", name="מיזוג").click()
        page.get_by_label("זהה ל־").select_option(label="Rutie")
        page.get_by_role("button", name="לראות מה זה יעשה").click()
        page.get_by_text("עדיין לא השתנה דבר").wait_for()
        assert http.get("/api/knowledge/merges").json()["merges"] == []
        page.get_by_role("button", name="למזג").click()
        page.locator(".chip", has_text="Rutie").wait_for()
        (merged,) = http.get("/api/knowledge/merges").json()["merges"]
        assert (merged["state"], merged["gone"]["name"]) == ("done", "Rutie")
        page.get_by_role("button", name="לבטל את הפעולה").first.click()
        page.get_by_text("הוחזר", exact=True).first.wait_for()

        page.get_by_role("button", name="פיצול").click()
        page.get_by_label(texts[1]).check()
        page.get_by_role("button", name="לראות מה זה יעשה").click()
        page.get_by_role("button", name="לפצל").click()
        page.get_by_text("≠").wait_for()
        people = http.get("/api/knowledge/nodes", params={"type": "Person"}).json()["nodes"]
        assert [one["name"] for one in people].count("Ruth Cohen") == 2


# What a person presses and reads, in both languages.
DECIDING = {
    "en": ("Undo", "Accept", "Decline", "names 80%", "State"),
    "he": ("לבטל את הפעולה", "אישור", "דחייה", "שמות 80%", "מצב"),
}


@pytest.mark.parametrize("lang", DECIDING)
def test_what_waits_is_decided(served: Served, visit: Visit, lang: str) -> None:
    from playwright.sync_api import expect

    undo, accept, decline, alike, state = DECIDING[lang]
    user = f"decides-{lang}"
    with served.http(user) as http:
        nodes = []
        for called in ("Sarah Cohen", "Sarah"):
            body = {"type": "Person", "name": called}
            nodes.append(http.post("/api/knowledge/entity", json=body).json()["node"]["id"])
        proposed = Merge(
            merge_id=f"merge-{lang}",
            state=MergeState.PENDING,
            kept_id=nodes[0],
            gone_id=nodes[1],
            score=0.5,
            reasons=("name 0.80", "time 1.00"),
            created_at=AT,
        )

        async def propose(rows: KnowledgeRows) -> None:
            await rows.put_merges([proposed])

        said = tuple(one for day in (1, 2, 3) for one in a_row(day).sources)
        names = ("Thought 1", "Thought 2", "Thought 3")
        rows = [
            a_row(at, derived_id=f"{lang}-{at}", title=title, sources=said)
            for at, title in enumerate(names)
        ]
        unsuspended(put(served.world.derived, *rows, user=user))
        unsuspended(served.world.knowledge.change(WriteScope(user), propose))
        page = visit(f"{served.url}/console/review", user=user, lang=lang)
        waits, now = page.locator("main .list > li"), page.locator("li[aria-current=true]")
        stands = dict.fromkeys((*names, "Sarah = Sarah Cohen"), "pending")

        def check(count: int, chosen: str, **changed: str) -> None:
            """So many are shown, this one is chosen, and the service knows what was decided."""
            expect(waits).to_have_count(count)
            expect(now).to_contain_text(chosen)
            stands.update({title.replace("_", " "): value for title, value in changed.items()})
            until, found = time.monotonic() + PATIENCE_MS / 1000, dict[str, str]()
            while found != stands:
                assert time.monotonic() < until, found
                time.sleep(0.05)
                for each in ("pending", "accepted", "declined"):
                    answer = http.get("/api/review", params={"state": each}).json()["items"]
                    found |= {one["title"]: each for one in answer}

        check(4, "Thought 3")
        for key in "jjk":
            page.keyboard.press(key)
        check(4, "Thought 2")
        # A key that is pressed twice is for two.
        page.keyboard.press("a")
        page.keyboard.press("d")
        check(2, "Sarah", Thought_2="accepted", Thought_1="declined")
        page.keyboard.press("u")
        check(3, "Thought 1", Thought_1="pending")
        page.keyboard.press("e")
        # The first field is where one writes at once.
        page.locator("form input:focus").wait_for()
        page.keyboard.press("Control+a")
        page.keyboard.type("בין שתי שפות")
        page.keyboard.press("Enter")
        stands["בין שתי שפות"] = stands.pop("Thought 1")
        check(2, "Sarah", **{"בין שתי שפות": "accepted"})
        page.locator(".toast").get_by_role("button", name=undo).click()
        stands["Thought 1"] = stands.pop("בין שתי שפות")
        check(3, "Thought 1", Thought_1="pending")

        merge = waits.filter(has_text="Sarah")
        merge.get_by_text(alike).wait_for()
        expect(merge.get_by_role("link")).to_have_text(["Sarah", "Sarah Cohen"])
        assert merge.get_by_role("button").count() == 2
        merge.get_by_role("button", name=accept).click()
        check(2, "Thought 1", **{"Sarah = Sarah Cohen": "accepted"})
        people = http.get("/api/knowledge/nodes", params={"type": "Person"}).json()["nodes"]
        assert [one["name"] for one in people] == ["Sarah Cohen"]
        page.get_by_label(state).select_option("accepted")
        waits.filter(has_text="Sarah").get_by_role("button", name=undo).click()
        # Two people again: what somebody took apart is not proposed any more.
        del stands["Sarah = Sarah Cohen"]
        check(1, "Thought 2")

        # A kind that the page has never heard of is a yes or a no.
        (odd,) = http.get("/api/review", params={"state": "accepted"}).json()["items"]
        odd |= {"kind": "odd_one", "state": "pending", "confidence": 0, "text": "מילה"}
        answer = {"success": True, "waiting": {"odd_one": 1}, "items": [odd]}
        page.route("**/api/review?*", lambda asked: asked.fulfill(json=answer))
        page.reload()
        expect(waits.get_by_role("button")).to_have_text([accept, decline, undo])
        expect(waits).to_contain_text("odd one")
        page.keyboard.press("e")
        expect(waits.locator("form, p:empty")).to_have_count(0)


def test_a_key_is_made_rotated_and_revoked(served: Served, visit: Visit) -> None:
    page = visit(f"{served.url}/console/operate/keys", user="operator")
    page.get_by_role("button", name="Make a key").click()
    page.get_by_label("What it is for").fill("The garden's assistant")
    page.get_by_label("Who", exact=True).fill("gardener")
    page.get_by_label("Covers").select_option("read")
    page.get_by_role("button", name="Make a key").click()
    # Only a key with admin may open the memories of anybody.
    page.get_by_text("A key without the admin scope needs a user").wait_for()
    page.get_by_label("User", exact=True).fill("omer")
    page.get_by_label("Ends on").fill("2999-01-01")
    page.get_by_role("button", name="Make a key").click()
    secret = page.locator("code.secret").inner_text()
    assert secret.startswith("rk_")
    page.get_by_role("button", name="Close").click()
    row = page.locator(".list > li", has_text="The garden's assistant")
    row.get_by_text("last used never").wait_for()
    row.get_by_role("button", name="Rotate").click()
    page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
    assert page.locator("code.secret").inner_text() not in ("", secret)
    page.get_by_role("button", name="Close").click()
    assert row.count() == 2
    row.first.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    row.first.get_by_text("revoked").wait_for()
    page.reload()
    row.first.wait_for()
    assert secret not in page.content()
    page.get_by_role("link", name="Audit log").click()
    page.get_by_text("DELETE /api/admin/keys/{key_id}").first.wait_for()
    page.get_by_text("POST /api/admin/keys/{key_id}/rotate").first.wait_for()


def test_a_webhook_is_added_paused_and_deleted(served: Served, visit: Visit) -> None:
    page = visit(f"{served.url}/console/operate/webhooks", user="hooked")
    page.get_by_text("No program is told anything.").wait_for()
    page.get_by_role("button", name="Add a webhook").click()
    page.get_by_label("Address").fill("https://garden.example/events")
    page.get_by_role("button", name="stored", exact=True).click()
    page.get_by_role("button", name="Save").click()
    assert page.locator("code.secret").inner_text().startswith("whsec_")
    row = page.locator(".list > li", has_text="garden.example")
    row.get_by_text("What it was told").click()
    row.get_by_text("Nothing yet.").wait_for()
    row.get_by_role("button", name="Pause").click()
    row.get_by_role("button", name="Resume").wait_for()
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("No program is told anything.").wait_for()


def test_export_and_import(served: Served, visit: Visit, tmp_path: Path) -> None:
    with served.http("mover") as http:
        body = {"text": "The bicycle is blue", "tier": "history"}
        http.post("/api/memory/store", json=body).raise_for_status()
    page = visit(f"{served.url}/console/yours", user="mover")
    with page.expect_download() as kept:
        page.get_by_role("button", name="Export everything").click()
    kept.value.save_as(tmp_path / "memory.zip")
    other = visit(f"{served.url}/console/yours", user="moved")
    other.locator("input[type=file]").set_input_files(tmp_path / "memory.zip")
    other.get_by_role("button", name="Try without writing").click()
    other.get_by_text("Nothing was written yet.").wait_for()
    with served.http("moved") as http:
        assert http.get("/api/memory/items").json()["items"] == []
        other.get_by_role("button", name="Import now").click()
        other.get_by_text("Imported:").wait_for()
        found = http.get("/api/memory/items").json()["items"]
    assert [one["text"] for one in found] == ["The bicycle is blue"]


def key_of(service: Served, *scopes: Scope) -> str:
    keys = ApiKeyService(service.world.services.api_keys, clock=service.world.clock, cache_s=0)
    made = keys.create("console", scopes=scopes, user_id="dana", org_id=None)
    return unsuspended(made)[0]


def test_signing_in_and_out(visit: Visit) -> None:
    auth = {"mode": "keys", "sessions": True, "session_secret": "s" * 40}
    with serving(auth=auth) as locked:
        page = visit(f"{locked.url}/console/memories", user="", lang="en")
        page.get_by_label("Key").fill("rk_wrong")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("alert").wait_for()
        page.get_by_label("Key").fill(key_of(locked, "read"))
        page.get_by_label("Stay signed in here").check()
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Read only").wait_for()
        assert page.get_by_role("button", name="Remember something").count() == 0
        page.goto(f"{locked.url}/console/operate")
        page.get_by_text("The rest is for whoever runs the service").wait_for()
        page.reload()
        page.get_by_text("Read only").wait_for()
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert page.evaluate("document.cookie") == ""
        # The cookie of somebody who is signed in is worth nothing to a form of another page.
        sent = {"Cookie": f"{cookie['name']}={cookie['value']}"}
        assert httpx.get(f"{locked.url}/api/memory/items", headers=sent).status_code == 401
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Key").wait_for()
        sent["X-Rayapp-Console"] = "1"
        assert httpx.get(f"{locked.url}/api/memory/items", headers=sent).status_code == 401
        page.get_by_label("Key").fill(key_of(locked, "read", "write"))
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Memories", exact=True).click()
        page.get_by_role("button", name="Remember something").wait_for()
        page.reload()
        page.get_by_label("Key").wait_for()
