"""What every store of archives must do, seen through export, import and erasure."""

import asyncio
import gc
import io
import itertools
import json
import zipfile
from collections.abc import AsyncIterator, Iterable
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from types import CoroutineType
from typing import Any

import httpx
import pytest

from rayapp.assistant.ports import InjectedContext, TurnRecord
from rayapp.core.errors import StoreDown
from rayapp.learning import promotion
from rayapp.memory.item import point_id_of
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.portability import imports
from rayapp.portability.archive import Archive, of_payload, open_zip
from rayapp.portability.ports import ExportRequest, ImportRequest, Putting, RowsWanted
from rayapp.portability.rules.archive import MANIFEST, SUFFIX, BadArchive, Row, of_line
from rayapp.portability.rules.collections import BY_NAME, EXPORTED
from rayapp.portability.rules.kinds import Kind, Merge, Part
from rayapp.storage.mongo.rows import to_row
from tests.support.archive_world import ArchiveWorld, ask, fill
from tests.support.foreign_exports import (
    SAMPLES,
    TEA_HE,
    chatgpt,
    gpt_conversation,
    gpt_node,
    gpt_nodes,
)

ALL = frozenset(Kind)
# What the fixture has something of; open data and books that were judged need more.
FILLED = {one.name for one in EXPORTED} - {"books", "known_solutions", "events"}
NOA = "noa"


def opened(data: bytes) -> Archive:
    return open_zip(io.BytesIO(data), max_bytes=1 << 30)


def rows_of(data: bytes) -> dict[str, list[dict[str, Any]]]:
    """By collection, in the order of their keys, without what the manifest lists as renewed."""
    renewed = opened(data).manifest.renewed
    with zipfile.ZipFile(io.BytesIO(data)) as found:
        names = [name for name in found.namelist() if name != MANIFEST]
        rows = {
            name.removesuffix(SUFFIX): [of_line(line) for line in found.read(name).splitlines()]
            for name in names
        }
    for name, many in rows.items():
        for row, field in itertools.product(many, renewed[name]):
            row.pop(field, None)
    return {
        name: sorted(many, key=lambda row: [str(row[part]) for part in BY_NAME[name].key])
        for name, many in rows.items()
    }


async def imported(world: ArchiveWorld, data: bytes, user: str = "", **how: Any) -> Any:
    scope = WriteScope(user or world.user, "local")
    return await world.container.imports.run(scope, opened(data), ImportRequest(**how))


async def erase_rows(world: ArchiveWorld) -> None:
    """All that is exported, whatever the order, and the background work after it."""
    for collection in reversed(EXPORTED):
        while await world.stores.archive.clear(world.writes, collection, 100):
            pass
    await world.work()


ASKED = {
    "mem0": ("מה דנה שותה?", TEA_HE, "2024-03-02T10:20:30"),
    "chatgpt": ("כמה מים מקבל עץ הלימון?", "שני ליטר", "2024-05-06T10:06:46"),
    "claude": ("Where is the spare key?", "flower pot", "2025-02-03T04:05:03"),
    "markdown": ("green varnish of the boat", "varnish", "2023-07-08T00:00:00"),
    "roampal": ("במה מנגבים אקורדיון?", "מטלית", "20"),
}
TITLES = {
    "chatgpt": [("Watering the lemon tree", 2)],
    "claude": [("The cabin", 2)],
    "roampal": [("Bellows", 1)],
}


async def six_facts(world: ArchiveWorld, http: httpx.AsyncClient) -> bytes:
    """The archive of six memories, which are gone."""
    for number in range(6):
        said = {"text": f"fact {number}", "memory_id": f"f{number}", "tier": "history"}
        await ask(http, "POST", "/api/memory/store", said)
    data = await world.exported()
    await erase_rows(world)
    return data


async def sent(
    http: httpx.AsyncClient, source: str, name: str, data: bytes, **fields: str
) -> dict[str, Any]:
    path = "/api/memory/backup/import-from"
    form = {"source": source, **fields}
    answer = await http.post(path, files={"file": (name, data)}, data=form)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


def own_tasks() -> set["asyncio.Task[Any]"]:
    """Those that run code of the service: the driver of MongoDB has tasks of its own."""
    source = str(Path(imports.__file__).parents[1])
    return {
        task
        for task in asyncio.all_tasks()
        if isinstance(coroutine := task.get_coro(), CoroutineType)
        and coroutine.cr_code.co_filename.startswith(source)
    }


class AwayReader:
    async def pages(self, *_: Any) -> AsyncIterator[Iterable[Row]]:
        raise StoreDown("away")
        yield ()


class ArchiveContract:
    async def test_every_collection_leaves(self, world: ArchiveWorld) -> None:
        await fill(world)
        found = rows_of(await world.exported(kinds=ALL))
        assert {name for name, rows in found.items() if rows} >= FILLED
        assert all(
            row.keys().isdisjoint({"_id", "user_id"}) for rows in found.values() for row in rows
        )

    async def test_what_comes_back_is_what_left(self, world: ArchiveWorld) -> None:
        await fill(world)
        before = await world.exported(kinds=ALL)
        await erase_rows(world)
        assert not any(rows_of(await world.exported(kinds=ALL)).values())
        report = await imported(world, before)
        assert report.complete
        assert report.left_out == {}
        assert rows_of(await world.exported(kinds=ALL)) == rows_of(before)
        await world.work()
        async with world.http() as http:
            asked = {"query": "Where is the home of Dana?", "limit": 3}
            answer = await ask(http, "POST", "/api/memory/search", asked)
        assert "hill of Haifa" in answer["results"][0]["content"]

    @pytest.mark.parametrize("how", ["away", "late", "cancelled"])
    async def test_an_import_that_ends_early_is_whole_when_it_was_asked_for_again(
        self, world: ArchiveWorld, how: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Rows are read ahead of those that are written: none is lost, and nothing goes on."""
        await fill(world)
        before = await world.exported(kinds=ALL)
        await erase_rows(world)
        monkeypatch.setattr(imports, "BATCH", 2)
        monkeypatch.setattr(imports, "STATE_EVERY", 2)
        if how == "late":
            monkeypatch.setattr(world.container.imports, "_budget_s", 0.0)
        puts, tries, left = world.stores.archive.put, 0, 0

        async def put(*args: Any) -> Any:
            nonlocal left
            left -= 1
            if how == "away" and not left:
                raise StoreDown("away")
            if how == "cancelled" and not left:
                writing.cancel()
                await asyncio.sleep(0)
            return await puts(*args)

        monkeypatch.setattr(world.stores.archive, "put", put)
        running, complete = own_tasks(), False
        while not complete:
            left = tries = tries + 1
            writing = asyncio.create_task(imported(world, before))
            await asyncio.wait([writing])
            complete = (
                not (writing.cancelled() or writing.exception()) and writing.result().complete
            )
            assert not own_tasks() - running
        assert tries > 5
        assert rows_of(await world.exported(kinds=ALL)) == rows_of(before)

    @pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
    @pytest.mark.parametrize("format", ["zip", "json"])
    async def test_an_export_that_gets_no_first_row_is_answered_as_an_error(
        self, world: ArchiveWorld, format: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It must not begin as a file that then breaks off, nor leave one open."""
        monkeypatch.setattr(world.stores.archive, "snapshot", lambda _: nullcontext(AwayReader()))
        async with world.http() as http:
            answer = await http.get("/api/memory/backup/export", params={"format": format})
        assert answer.status_code == 503, answer.text
        gc.collect()

    async def test_what_a_source_says_in_names_of_its_own_comes_back(
        self, world: ArchiveWorld
    ) -> None:
        """Also when it becomes another user's, and beside a change of the memory."""
        free = {"v1.2": 3, "": "x", ".": {"a.b": [{"": None}, 1.5, True]}, "שם": "cafe\u0301"}
        free |= {"points": [["m-1"]], "judged": [{}], "memory_id": "m-1", "point_id": "m-1"}
        free |= {"user_id": world.user, "large": 2**63 - 1, "headings": 1, "pages": [{}]}
        path = "/api/memory/items/free"

        async def book(http: httpx.AsyncClient) -> object:
            return (await ask(http, "GET", path))["memory"]["source"]["book"]

        async with world.http() as http, world.http(NOA) as other:
            said = {"text": "tea", "memory_id": "free", "source": {"book": free}}
            await ask(http, "POST", "/api/memory/store", said)
            assert await book(http) == free
            await ask(http, "PATCH", path, {"tags": ["drinks"]})
            await world.work()
            data = await world.exported(kinds=ALL)
            await imported(world, data, NOA, map_user=True)
            await erase_rows(world)
            await imported(world, data)
            assert (await book(http), await book(other)) == (free, free)

    async def test_a_repeat_changes_nothing(self, world: ArchiveWorld) -> None:
        await fill(world)
        before = await world.exported(kinds=ALL)
        for merge in Merge:
            again = await imported(world, before, merge=merge)
            assert again.complete
            if merge is not Merge.REPLACE:
                assert sum(one.added + one.changed for one in again.counts.values()) == 0
            assert (
                rows_of(await world.exported(kinds=ALL))["memory_versions"]
                == (rows_of(before)["memory_versions"])
            )
        await world.work()
        assert rows_of(await world.exported(kinds=ALL)) == rows_of(before)

    async def test_what_a_slow_machine_did_not_settle_in_time_is_no_difference(
        self, world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Some things are due a while after an outcome, or after an outage: the rows of a test are
        the same, whether it takes seconds or, on a busy machine, minutes."""
        graphs, calls = world.stores.graphs, []
        settle = graphs.settle_content

        async def late(*args: Any) -> bool:
            calls.append(args)
            if len(calls) == 1:
                raise StoreDown("late")
            return await settle(*args)

        monkeypatch.setattr(graphs, "settle_content", late)
        monkeypatch.setattr(promotion, "OUTAGE_PAUSE_S", 0.2)
        await fill(world)
        before = rows_of(await world.exported(kinds=ALL))
        assert len(calls) > 1
        clock = world.container.runtime.clock
        later = clock.now() + timedelta(minutes=5)
        monkeypatch.setattr(clock, "now", lambda: later)
        await world.work()
        assert rows_of(await world.exported(kinds=ALL)) == before

    async def test_a_dry_run_counts_and_writes_nothing(self, world: ArchiveWorld) -> None:
        await fill(world)
        before = await world.exported(kinds=ALL)
        there = await imported(world, before, dry_run=True)
        assert there.counts["memory_items"].added == 0
        assert there.counts["memory_versions"].present == len(rows_of(before)["memory_versions"])
        replaced = await imported(world, before, dry_run=True, merge=Merge.REPLACE)
        assert replaced.cleared["memory_items"] >= len(rows_of(before)["memory_items"])
        assert rows_of(await world.exported(kinds=ALL)) == rows_of(before)
        await erase_rows(world)
        would = await imported(world, before, dry_run=True)
        assert would.counts["memory_items"].added == len(rows_of(before)["memory_items"])
        assert not any(rows_of(await world.exported(kinds=ALL)).values())

    async def test_the_newer_state_of_a_memory_stays(self, world: ArchiveWorld) -> None:
        async with world.http() as http:
            await ask(http, "POST", "/api/memory/store", {"text": "Tea", "memory_id": "m"})
            old = await world.exported()
            await ask(http, "PATCH", "/api/memory/items/m", {"text": "Coffee"})
            new = await world.exported()
            assert (await imported(world, old)).counts["memory_items"].present == 1
            assert (await ask(http, "GET", "/api/memory/items/m"))["memory"]["text"] == "Coffee"
            await imported(world, old, merge=Merge.REPLACE)
            assert (await ask(http, "GET", "/api/memory/items/m"))["memory"]["text"] == "Tea"
            await imported(world, new, merge=Merge.SKIP)
            assert (await ask(http, "GET", "/api/memory/items/m"))["memory"]["text"] == "Tea"
            assert (await imported(world, new)).counts["memory_items"].changed == 1
            assert (await ask(http, "GET", "/api/memory/items/m"))["memory"]["text"] == "Coffee"
            await world.work()
            found = await ask(http, "POST", "/api/memory/search", {"query": "Coffee"})
            assert found["results"][0]["memory_id"] == "m"

    async def test_a_newer_state_that_another_memory_says_by_now_stays_out(
        self, world: ArchiveWorld
    ) -> None:
        async with world.http() as http:
            await ask(http, "POST", "/api/memory/store", {"text": "Tea", "memory_id": "m"})
            old = await world.exported()
            await ask(http, "PATCH", "/api/memory/items/m", {"text": "Coffee"})
            new = await world.exported()
            await imported(world, old, merge=Merge.REPLACE)
            await ask(http, "POST", "/api/memory/store", {"text": "Coffee", "memory_id": "b"})
            for dry_run in (True, False):
                found = await imported(world, new, dry_run=dry_run)
                assert found.counts["memory_items"].same_text == 1
            assert (await ask(http, "GET", "/api/memory/items/m"))["memory"]["text"] == "Tea"

    async def test_what_broke_off_begins_anew_after_another_import(
        self, world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The other one has taken out what the first one wrote."""
        exports = []
        async with world.http() as http:
            for name in "ab":
                for number in range(3):
                    said = {"text": f"{name} {number}", "memory_id": f"{name}{number}"}
                    await ask(http, "POST", "/api/memory/store", said)
                exports.append(await world.exported())
                for number in range(3):
                    await ask(http, "DELETE", f"/api/memory/items/{name}{number}")
                await world.work()
        monkeypatch.setattr(imports, "BATCH", 2)
        with monkeypatch.context() as patch:
            patch.setattr(world.container.imports, "_budget_s", 0.0)
            for _ in range(9):
                await imported(world, exports[0], merge=Merge.REPLACE)
                if rows_of(await world.exported())["memory_items"]:
                    break
        await imported(world, exports[1], merge=Merge.REPLACE)
        await imported(world, exports[0], merge=Merge.REPLACE)
        found = rows_of(await world.exported())["memory_items"]
        assert {row["memory_id"] for row in found} == {"a0", "a1", "a2"}

    async def test_half_an_import_that_was_cleared_begins_anew(
        self, world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with world.http() as http:
            data = await six_facts(world, http)
            monkeypatch.setattr(imports, "BATCH", 2)
            with monkeypatch.context() as patch:
                patch.setattr(world.container.imports, "_budget_s", 0.0)
                while not rows_of(await world.exported())["memory_items"]:
                    assert not (await imported(world, data)).complete
            await ask(http, "POST", "/api/data/clear/all", {"confirm": "DELETE"})
        await world.work()
        assert (await imported(world, data)).complete
        assert len(rows_of(await world.exported())["memory_items"]) == 6

    async def test_what_was_deleted_while_an_import_waits_stays_away(
        self, world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with world.http() as http:
            data = await six_facts(world, http)
            monkeypatch.setattr(imports, "BATCH", 2)
            monkeypatch.setattr(world.container.imports, "_budget_s", 0.0)
            gone: list[str] = []
            while not (await imported(world, data)).complete:
                there = [
                    row["memory_id"] for row in rows_of(await world.exported())["memory_items"]
                ]
                for name in there[:1]:
                    await ask(http, "DELETE", f"/api/memory/items/{name}")
                    await world.work()
                    gone.append(name)
                assert len(gone) < 6
        left = {row["memory_id"] for row in rows_of(await world.exported())["memory_items"]}
        assert left == {f"f{number}" for number in range(6)} - {*gone}

    async def test_an_equal_text_is_not_kept_twice(self, world: ArchiveWorld) -> None:
        async with world.http() as http:
            await ask(http, "POST", "/api/memory/store", {"text": "תה", "memory_id": "a"})
            archive = await world.exported()
            await ask(http, "DELETE", "/api/memory/items/a")
            await world.work()
            await ask(http, "POST", "/api/memory/store", {"text": "תה", "memory_id": "b"})
        assert (await imported(world, archive)).counts["memory_items"].same_text == 1

    @pytest.mark.parametrize("text", ["Omri runs the north depot", "עומרי מנהל את המחסן הצפוני"])
    @pytest.mark.parametrize("there", [(), ("first",), ("again",)])
    @pytest.mark.parametrize("theirs", [True, False])
    async def test_two_periods_of_one_text_come_back_as_two_memories(
        self, world: ArchiveWorld, text: str, there: tuple[str, ...], theirs: bool
    ) -> None:
        """Into an empty user, and into one who has one of them, under its id or another one."""
        said: dict[str, dict[str, Any]] = {
            "first": {"valid_from": "2025-01-01T00:00:00Z", "valid_to": "2025-03-01T00:00:00Z"},
            "again": {"created_at": "2025-09-01T00:00:00Z"},
        }
        async with world.http() as http, world.http(NOA) as other:
            for name, fields in said.items():
                body = {"text": text, "tier": "history", **fields}
                await ask(http, "POST", "/api/memory/store", body | {"memory_id": name})
                if name in there:
                    own = f"{name}-noa" if theirs else name
                    await ask(other, "POST", "/api/memory/store", body | {"memory_id": own})
            data = await world.exported()
            would = await imported(world, data, NOA, map_user=True, dry_run=True)
            done = await imported(world, data, NOA, map_user=True)
            counts = done.counts["memory_items"]
            assert counts == would.counts["memory_items"]
            assert counts.added + len(there) == 2
            assert counts.same_text == (len(there) if theirs else 0)
            await world.work()
            for month, hits in (("02", 1), ("06", 0), ("10", 1)):
                asked = {"query": text, "as_of": f"2025-{month}-02T00:00:00Z"}
                found = await ask(other, "POST", "/api/memory/search", asked)
                assert len(found["results"]) == hits
            repeated = await imported(world, await world.exported(NOA), NOA)
            assert repeated.counts["memory_items"].present == 2
        rows = rows_of(await world.exported(NOA))["memory_items"]
        assert len({row["dedup_scope"] for row in rows}) == len(rows) == 2

    async def test_what_ended_since_gives_its_text_to_its_next_period(
        self, world: ArchiveWorld
    ) -> None:
        """Whatever stands first in the archive."""
        path = "/api/memory/store"
        async with world.http() as http, world.http(NOA) as other:
            body = {"text": "Omri runs the north depot", "tier": "history"}
            begun = body | {"memory_id": "z", "valid_from": "2025-01-01T00:00:00Z"}
            await ask(other, "POST", path, begun)
            await ask(http, "POST", path, begun)
            ended = {"valid_to": "2025-03-01T00:00:00Z"}
            await ask(http, "PATCH", "/api/memory/items/z", ended)
            await ask(http, "POST", path, body | {"memory_id": "a"})
            rows = rows_of(await world.exported())["memory_items"]
            assert [row["memory_id"] for row in rows] == ["a", "z"]
            rows = [row | {"point_id": point_id_of(NOA, row["memory_id"])} for row in rows]
            put, items = world.stores.archive.put, BY_NAME["memory_items"]
            how = Putting(at=world.container.runtime.clock.now())
            counts = await put(WriteScope(NOA, "local"), items, rows, how)
            assert (counts.added, counts.changed) == (1, 1)

    async def test_an_archive_belongs_to_its_user(self, world: ArchiveWorld) -> None:
        await fill(world)
        data = await world.exported(kinds=ALL)
        with pytest.raises(Exception, match="another user; send mapUser"):
            await imported(world, data, NOA)
        assert not any((await world.stores.archive.left(ReadScope(NOA))).values())
        report = await imported(world, data, NOA, map_user=True)
        assert report.left_out.keys() == {"receipts", "events"}
        theirs = rows_of(await world.exported(NOA))
        assert len(theirs["memory_items"]) == len(rows_of(data)["memory_items"])
        assert world.user not in json.dumps(
            [{**row, "text": ""} for row in theirs["memory_items"]], default=str
        )
        await world.work()
        async with world.http(NOA) as http:
            found = await ask(http, "POST", "/api/memory/search", {"query": "home of Dana"})
            assert found["results"]
            gone = found["results"][0]["memory_id"]
            await ask(http, "DELETE", f"/api/memory/items/{gone}")
        async with world.http() as http:
            assert await ask(http, "GET", f"/api/memory/items/{gone}")

    async def test_a_tenant_takes_an_archive_only_when_it_is_mapped(
        self, world: ArchiveWorld
    ) -> None:
        await fill(world)
        data, theirs = await world.exported(kinds=ALL), f"acme/{world.user}"
        with pytest.raises(Exception, match="another user; send mapUser"):
            await imported(world, data, theirs)
        assert await world.stores.archive.owners("acme") == {}
        await imported(world, data, theirs, map_user=True)
        rows = rows_of(data)["memory_items"]
        assert await world.stores.archive.owners("acme") == {theirs: len(rows)}
        assert await world.stores.archive.owners("acm") == {}
        back = await world.exported(theirs)
        manifest = opened(back).manifest
        assert (manifest.org_id, manifest.user_id) == ("acme", world.user)
        assert {row["org_id"] for row in rows_of(back)["memory_items"]} == {"acme"}
        assert b"acme/" not in await world.exported(theirs, format="json", kinds=ALL)
        with pytest.raises(Exception, match="another user; send mapUser"):
            await imported(world, back)
        assert (await imported(world, back, theirs)).counts["memory_items"].present == len(rows)

    async def test_what_is_merged_in_is_learned_by_the_graphs(self, world: ArchiveWorld) -> None:
        """Without the rows of the graphs: they are learned anew, once."""
        await fill(world)
        before = await world.exported(kinds=ALL)
        await erase_rows(world)
        kinds = frozenset({Kind.MEMORIES, Kind.OUTCOMES})
        only = await world.exported(kinds=kinds)
        assert not opened(only).manifest.exact
        async with world.http() as http:
            await ask(http, "POST", "/api/memory/store", {"text": "Something else"})
        report = await imported(world, before)
        assert report.derived
        assert report.left_out["kg_nodes"]
        await world.work()
        learned, known = rows_of(await world.exported()), rows_of(before)
        for name, field in (("kg_nodes", "mentions"), ("kg_routing", "tiers")):
            assert {row[BY_NAME[name].key[0]]: row[field] for row in learned[name]} == {
                row[BY_NAME[name].key[0]]: row[field] for row in known[name]
            }

    async def test_json_says_the_same_as_zip(self, world: ArchiveWorld) -> None:
        await fill(world)
        payload = json.loads(await world.exported(format="json", kinds=ALL))
        zipped = rows_of(await world.exported(kinds=ALL))
        found = of_payload(payload)
        for name, rows in zipped.items():
            assert len(list(found.checked_lines(name))) == len(rows)
        await erase_rows(world)
        scope = WriteScope(world.user, "local")
        # What a browser makes of it: numbers without a fraction.
        text = json.dumps(payload).replace(".0,", ",").replace(".0}", "}")
        report = await world.container.imports.run(
            scope, of_payload(json.loads(text)), ImportRequest()
        )
        assert report.complete
        assert rows_of(await world.exported(kinds=ALL)) == zipped

    @pytest.mark.parametrize("source", SAMPLES)
    async def test_what_another_system_kept_comes_in(
        self, world: ArchiveWorld, source: str
    ) -> None:
        name, made = SAMPLES[source]
        async with world.http() as http:
            would = await sent(http, source, name, made(), dryRun="true")
            assert not any((await world.stores.archive.left(world.reads)).values())
            done = await sent(http, source, name, made())
            assert would["collections"] == done["collections"]
            assert would["found"] == done["found"]
            assert would["notTaken"] == done["notTaken"]
            assert done["collections"]["memory_items"]["added"] > 0
            await world.work()
            query, words, at = ASKED[source]
            found = await ask(http, "POST", "/api/memory/search", {"query": query})
            first = found["results"][0]
            assert words in first["content"], [one["content"] for one in found["results"]]
            assert first["created_at"].startswith(at)
            assert source in first["tags"]
            listed = (await ask(http, "GET", "/api/memory/conversations"))["conversations"]
            assert [(one["title"], one["turns"]) for one in listed] == TITLES.get(source, [])
            before = rows_of(await world.exported())
            assert all(row["expires_at"] is None for row in before["memory_items"])
            again = await sent(http, source, name, made())
            assert not any(one["added"] + one["changed"] for one in again["collections"].values())
        assert rows_of(await world.exported()) == before

    async def test_a_later_export_adds_what_was_said_since(self, world: ArchiveWorld) -> None:
        nodes = gpt_nodes()
        more = gpt_node("u3", "a2", "user", ["And in the winter?"], create_time=1_715_000_000)
        async with world.http() as http:
            for data in (chatgpt(), chatgpt(gpt_conversation([*nodes, more]))):
                await sent(http, "chatgpt", "c.zip", data)
            listed = (await ask(http, "GET", "/api/memory/conversations"))["conversations"]
            (one,) = listed
            assert one["turns"] == 3
            assert one["updated_at"].startswith("2024-05-06T12:53:20")
            name = one["conversation_id"]
            found = await ask(http, "GET", f"/api/memory/conversations/{name}/messages")
            assert found["messages"][-2]["content"] == "And in the winter?"
            gone = await ask(http, "DELETE", f"/api/memory/conversations/{name}")
            assert gone["success"]
        await world.work()
        assert not rows_of(await world.exported(kinds=ALL))["memory_items"]

    async def test_a_conversation_that_only_began_here_becomes_that_of_the_archive(
        self, world: ArchiveWorld
    ) -> None:
        """Its user asks for context in it before the import: a row without a kept turn."""
        async with world.http() as http:
            await sent(http, "chatgpt", "c.zip", chatgpt())
            path = "/api/memory/conversations"
            before = (await ask(http, "GET", path))["conversations"]
            name = before[0]["conversation_id"]
            await ask(http, "DELETE", f"{path}/{name}")
            at = world.container.runtime.clock.now()
            context = InjectedContext(conversation_id=name, fingerprints="f", at=at)
            await world.stores.sessions.log_injected(world.writes, context)
            assert (await ask(http, "GET", path))["conversations"] == []
            await sent(http, "chatgpt", "c.zip", chatgpt())
            (one,) = (await ask(http, "GET", path))["conversations"]
        assert (one["title"], one["turns"]) == (before[0]["title"], before[0]["turns"])
        session = await world.stores.sessions.get(world.reads, name)
        assert session is not None
        assert session.injected == ("f",)

    @pytest.mark.parametrize("here", [0, 5])
    async def test_a_session_that_only_began_here_lacks_nothing_and_loses_nothing(
        self, world: ArchiveWorld, here: int
    ) -> None:
        at = world.container.runtime.clock.now().replace(microsecond=0)
        sessions = world.stores.sessions
        async with world.http() as http:
            await sent(http, "chatgpt", "c.zip", chatgpt())
            (row,) = rows_of(await world.exported())["sessions"]
            name = row["conversation_id"]
            await ask(http, "DELETE", f"/api/memory/conversations/{name}")
        turns = [TurnRecord(message_id=f"m{n}", memory_id="m", at=at) for n in range(here + 1)]
        row |= {"exchanges": 3, "turns": [to_row(turns[0])], "refinements": 2}
        context = InjectedContext(conversation_id=name, fingerprints="f", at=at)
        await sessions.log_injected(world.writes, context)
        for turn in turns[1:]:
            await sessions.add_turn(world.writes, name, turn)
        await world.stores.archive.put(world.writes, BY_NAME["sessions"], [row], Putting(at=at))
        found = await sessions.get(world.reads, name)
        assert found is not None
        assert (found.injected, found.refinements) == (("f",), 2)
        assert (found.exchanges, found.turns) == (max(here, 3), tuple(turns[1:] or turns))

    async def test_sizes_are_those_of_the_export(self, world: ArchiveWorld) -> None:
        await fill(world)
        rows = rows_of(await world.exported(kinds=ALL))
        sizes = await world.stores.archive.sizes(world.reads, RowsWanted())
        assert {name: size.rows for name, size in sizes.items()} == {
            name: len(many) for name, many in rows.items()
        }
        assert sizes["memory_items"].bytes > 1_000
        others = await world.stores.archive.sizes(ReadScope(NOA), RowsWanted())
        assert not any(size.rows for size in others.values())

    async def test_an_estimate_is_of_what_the_export_holds(self, world: ArchiveWorld) -> None:
        await fill(world)
        wanted = RowsWanted(tiers=(Tier.PATTERNS,), archived=False)
        request = ExportRequest(kinds=ALL, wanted=wanted)
        rows = rows_of(await world.exported(kinds=ALL, wanted=wanted))["memory_items"]
        whole = len(rows_of(await world.exported(kinds=ALL))["memory_items"])
        estimate = await world.container.exports.estimate(world.reads, request)
        assert estimate.collections["memory_items"].rows == len(rows) < whole

    async def test_a_dry_run_that_replaces_counts_as_if_nothing_were_there(
        self, world: ArchiveWorld
    ) -> None:
        await fill(world)
        data = await world.exported(kinds=ALL)
        said, done = [
            await imported(world, data, merge=Merge.REPLACE, dry_run=dry) for dry in (True, False)
        ]
        assert said.counts == done.counts

    @pytest.mark.parametrize(
        "wanted",
        [
            RowsWanted(tiers=(Tier.MEMORY_BANK,)),
            RowsWanted(tiers=(Tier.HISTORY, Tier.PATTERNS)),
            RowsWanted(archived=False),
        ],
        ids=["bank", "two tiers", "active"],
    )
    async def test_a_part_that_replaces_leaves_what_it_does_not_hold(
        self, world: ArchiveWorld, wanted: RowsWanted
    ) -> None:
        await fill(world)
        memory = "/api/memory"
        part = await world.exported(wanted=wanted)
        async with world.http() as http:
            for tier in ("working", "history", "patterns"):
                later = {"text": f"later, in {tier}", "memory_id": f"n-{tier}", "tier": tier}
                await ask(http, "POST", f"{memory}/store", later)
            fact = {"text": "a later fact", "tags": ["later"]}
            await ask(http, "POST", f"{memory}/memory-bank", fact)
            await ask(http, "PATCH", f"{memory}/items/m-1", {"tags": ["seen"], "reason": "later"})
        await world.work()
        before = rows_of(await world.exported(kinds=ALL))
        said, done = [
            await imported(world, part, merge=Merge.REPLACE, dry_run=dry) for dry in (True, False)
        ]
        assert said.counts["memory_items"] == done.counts["memory_items"]
        assert said.cleared["memory_items"] == done.cleared["memory_items"]
        await world.work()
        after = rows_of(await world.exported(kinds=ALL))

        def is_held(row: dict[str, Any]) -> bool:
            in_tier = wanted.tiers is None or row["tier"] in wanted.tiers
            return in_tier and (wanted.archived or row["status"] == "active")

        def split(rows: list[dict[str, Any]], held: bool) -> dict[str, Any]:
            return {row["memory_id"]: row["text"] for row in rows if is_held(row) is held}

        assert split(after["memory_items"], False) == split(before["memory_items"], False)
        assert split(after["memory_items"], True) == split(rows_of(part)["memory_items"], True)
        untouched = split(before["memory_items"], False)
        was = [row for row in before["memory_versions"] if row["memory_id"] in untouched]
        assert all(row in after["memory_versions"] for row in was)
        outcomes = {row["idempotency_key"] for row in after["memory_outcomes"]}
        assert {row["idempotency_key"] for row in before["memory_outcomes"]} <= outcomes
        known = {row["label"] for row in after["kg_nodes"]}
        assert {row["label"] for row in before["kg_nodes"]} & {"haifa"} <= known
        if wanted.tiers is not None:
            assert after["documents"] == before["documents"]

    async def test_a_part_that_does_not_say_which_replaces_nothing(
        self, world: ArchiveWorld
    ) -> None:
        """As exports were written before they said it."""
        await fill(world)
        wanted = RowsWanted(tiers=(Tier.PATTERNS,))
        payload = json.loads(await world.exported(wanted=wanted, format="json"))
        del payload["manifest"]["tiers"]
        before = rows_of(await world.exported(kinds=ALL))
        asked = ImportRequest(merge=Merge.REPLACE)
        with pytest.raises(BadArchive, match="merge"):
            await world.container.imports.run(world.writes, of_payload(payload), asked)
        assert rows_of(await world.exported(kinds=ALL)) == before

    async def test_rows_of_a_part_are_counted_with_its_tombstones(
        self, world: ArchiveWorld
    ) -> None:
        await fill(world)
        await fill(ArchiveWorld(world.container, NOA), "Acre")
        archive = world.stores.archive
        found = await archive.left_of(world.reads, Part.CONVERSATION, "c-1")
        some = {"memory_items", "turns", "exchanges", "sessions", "receipts", "memory_outcomes"}
        assert {name for name, rows in found.items() if rows} == some
        given = {"derived": 0, "kg_given": 0, "kg_statements": 0, "understandings": 0}
        memory = {"memory_items": 1, "memory_versions": 1, **given}
        assert await archive.left_of(world.reads, Part.MEMORY, "m-2") == memory
        async with world.http() as http:
            await ask(http, "DELETE", "/api/memory/items/m-2")
        assert await archive.left_of(world.reads, Part.MEMORY, "m-2") == {
            "memory_items": 1,
            "memory_versions": 0,
            **given,
        }
        await world.work()
        for part in Part:
            assert not any((await archive.left_of(world.reads, part, "m-2")).values())

    async def test_what_was_made_by_hand_is_added_where_the_rest_is_learned_anew(
        self, world: ArchiveWorld
    ) -> None:
        await fill(world)
        knowledge = "/api/knowledge"
        async with world.http() as http:
            made = [
                (await ask(http, "POST", f"{knowledge}/entity", body))["node"]["id"]
                for body in ({"type": "Person", "name": "Tamar"}, {"type": "Place", "name": "Arad"})
            ]
            said = {"from_id": made[0], "type": "LIVES_IN", "to_id": made[1]}
            await ask(http, "POST", f"{knowledge}/relationships", said)
        payload = json.loads(await world.exported(kinds=ALL, format="json"))
        noa = ArchiveWorld(world.container, NOA)
        async with noa.http() as http:
            await ask(http, "POST", "/api/memory/store", {"text": "Noa is here", "tier": "history"})
            asked = ImportRequest(map_user=True)
            for added in (True, False):
                done = await world.container.imports.run(noa.writes, of_payload(payload), asked)
                assert done.counts["kg_entities"].added == (2 if added else 0)
                assert "made by hand" in done.left_out["kg_entities"]
                assert "kg_given" not in done.counts
            found = await ask(http, "GET", f"{knowledge}/nodes/{made[0]}/relationships")
        assert [one["relationship"]["to_id"] for one in found["relationships"]] == [made[1]]

    async def test_what_a_memory_gave_to_the_graph_is_counted_until_it_is_taken_back(
        self, world: ArchiveWorld
    ) -> None:
        await fill(world)
        archive = world.stores.archive
        before = await archive.left_of(world.reads, Part.MEMORY, "m-1")
        assert (before["kg_given"], before["kg_statements"], before["derived"]) == (1, 2, 1)
        async with world.http() as http:
            await ask(http, "DELETE", "/api/memory/items/m-1")
        await world.work()
        await world.container.understander.take_back(world.writes.user_id, ["m-1"])
        assert not any((await archive.left_of(world.reads, Part.MEMORY, "m-1")).values())
        left = await archive.left(world.reads)
        assert (left["kg_given"], left["kg_entities"], left["kg_statements"]) == (0, 0, 0)
        assert left["derived"] == 0
