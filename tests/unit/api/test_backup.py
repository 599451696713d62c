"""Exports, imports, restores and erasures over HTTP."""

import asyncio
import hashlib
import io
import json
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rayapp.core.errors import IndexDown
from rayapp.core.settings.model import CompatSettings, Settings
from rayapp.portability import files
from rayapp.portability.files import KeptArchive
from tests.support.archive_world import ArchiveWorld, ask, fill, settings_in
from tests.support.harness import Harness

B = "/api/memory/backup"


@pytest.fixture
async def world(tmp_path: Path) -> ArchiveWorld:
    return ArchiveWorld(Harness.ready(settings_in(tmp_path)).container)


async def taken(http: httpx.AsyncClient, **query: str) -> dict[str, Any]:
    return await ask(http, "GET", f"{B}/export?{httpx.QueryParams(query)}")


async def test_a_restore_without_room_for_what_is_there_is_refused(
    world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Archives may lie on a disk of their own."""
    await fill(world)
    async with world.http() as http:
        before = await taken(http)
        full = Path("/dev/full").open("wb")  # noqa: ASYNC230, SIM115 - the service closes it
        monkeypatch.setattr(files, "private_file", lambda _: full)
        wanted = {"payload": before, "confirm": "DELETE"}
        answer = await http.post(f"{B}/restore", json=wanted)
        assert (answer.status_code, answer.json()["code"]) == (507, "disk_full")
        assert (await taken(http))["collections"] == before["collections"]


async def test_a_zip_is_a_file_with_a_name(world: ArchiveWorld) -> None:
    await fill(world)
    async with world.http() as http:
        answer = await http.get(f"{B}/export", params={"format": "zip", "include": "memories"})
    assert answer.headers["Content-Type"] == "application/zip"
    assert 'filename="rayapp-export-' in answer.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as found:
        assert found.namelist() == ["memory_items.jsonl", "manifest.json"]
        manifest = json.loads(found.read("manifest.json"))
        assert manifest["parts"][0]["rows"] == len(found.read("memory_items.jsonl").splitlines())


async def test_what_the_first_client_leaves_out_is_left_out(world: ArchiveWorld) -> None:
    await fill(world)
    off = {"includeKg": "false", "includeVersions": "false", "includeArchived": "false"}
    async with world.http() as http:
        found = await taken(http, **off, includeTiers="memory_bank,working")
        estimate = await ask(http, "GET", f"{B}/estimate?includeKg=false")
    assert found["collections"].keys().isdisjoint({"kg_nodes", "kg_edges", "memory_versions"})
    assert {row["tier"] for row in found["collections"]["memory_items"]} == {
        "memory_bank",
        "working",
    }
    assert found["manifest"]["partial"] is True
    assert "kg_nodes" not in estimate["estimate"]["collection_counts"]
    assert estimate["estimate"]["qdrant"]["point_count"] > 0


@pytest.mark.parametrize("query", ["include=nonsense", "includeTiers=nonsense", "format=tar"])
async def test_a_wrong_wish_is_refused(world: ArchiveWorld, query: str) -> None:
    async with world.http() as http:
        assert (await http.get(f"{B}/export?{query}")).status_code == 422


@pytest.mark.parametrize(("first_client", "status"), [(False, 400), (True, 200)])
async def test_only_the_first_client_replaces_without_the_word(
    tmp_path: Path, first_client: bool, status: int
) -> None:
    compat = CompatSettings(first_client=first_client)
    settings = settings_in(tmp_path).model_copy(update={"compat": compat})
    world = ArchiveWorld(Harness.ready(settings).container)
    await fill(world)
    async with world.http() as http:
        wanted = {"payload": await taken(http), "mergeStrategy": "replace"}
        newer = {"text": "Stored after the export", "tier": "history"}
        later = (await ask(http, "POST", "/api/memory/store", newer))["memory_id"]
        answer = await http.post(f"{B}/import", json=wanted)
        assert answer.status_code == status
        is_there = (await http.get(f"/api/memory/items/{later}")).status_code == 200
        assert is_there is not first_client
        # Our own route for files asks everybody.
        data = (await http.get(f"{B}/export?format=zip")).content
        form = {"files": {"file": ("a.zip", data)}, "data": {"mergeStrategy": "replace"}}
        assert (await http.post(f"{B}/upload", **form)).json()["code"] == "confirm_needed"


async def test_the_zip_of_the_first_client_is_the_one_document_that_it_sends_back(
    tmp_path: Path,
) -> None:
    """It takes the first `*.json` of the archive as the payload."""
    compat = CompatSettings(first_client=True)
    settings = settings_in(tmp_path).model_copy(update={"compat": compat})
    world = ArchiveWorld(Harness.ready(settings).container)
    await fill(world)
    async with world.http() as http:
        answer = await http.get(f"{B}/export", params={"format": "zip"})
        assert answer.headers["Content-Type"] == "application/zip"
        assert answer.headers["Content-Disposition"].endswith('.zip"')
        with zipfile.ZipFile(io.BytesIO(answer.content)) as found:
            assert found.testzip() is None
            first = next(name for name in found.namelist() if name.endswith(".json"))
            payload = json.loads(found.read(first))
        whole = await taken(http)
        assert payload["collections"] == whole["collections"]
        await ask(http, "DELETE", "/api/memory/items/m-1")
        assert (await http.get("/api/memory/items/m-1")).status_code == 404
        done = await ask(http, "POST", f"{B}/restore", {"payload": payload})
        assert done["import"]["success"] is True
        assert await ask(http, "GET", "/api/memory/items/m-1")
        again = await http.post(f"{B}/upload", files={"file": ("a.zip", answer.content)})
        assert again.status_code == 200, again.text
        assert again.json()["stats"]["memoriesSkipped"] > 0
        wrong = answer.content.replace(b"m-1", b"m-9")[:-30]
        bad = await http.post(f"{B}/upload", files={"file": ("a.zip", wrong)})
        assert (bad.status_code, bad.json()["code"]) == (422, "bad_archive")


async def test_a_file_comes_back_through_an_upload(world: ArchiveWorld) -> None:
    await fill(world)
    async with world.http() as http:
        data = (await http.get(f"{B}/export?format=zip")).content
        wanted = {"files": {"file": ("a.zip", data)}, "data": {"dryRun": "true"}}
        would = (await http.post(f"{B}/upload", **wanted)).json()
        assert (would["dryRun"], would["stats"]["memoriesImported"]) == (True, 0)
        wrong = await http.post(f"{B}/upload", files={"file": ("a.zip", b"PK" + data[9:])})
        assert (wrong.status_code, wrong.json()["code"]) == (422, "bad_archive")
        listed = await ask(http, "GET", "/api/memory/conversations")
    async with world.http("noa") as http:
        other = await http.post(f"{B}/upload", files={"file": ("a.zip", data)})
        assert other.json()["code"] == "other_user_archive"
        form = {"mapUser": "true"}
        mapped = await http.post(f"{B}/upload", files={"file": ("a.zip", data)}, data=form)
        assert mapped.json()["stats"]["memoriesImported"] == would["stats"]["memoriesSkipped"]
        assert await ask(http, "GET", "/api/memory/conversations") == listed


async def test_a_restore_keeps_what_was_there_before(world: ArchiveWorld) -> None:
    async with world.http() as http:
        await ask(http, "POST", "/api/memory/store", {"text": "תה", "memory_id": "old"})
        payload = await taken(http)
        await ask(http, "DELETE", "/api/memory/items/old")
        await world.work()
        await ask(http, "POST", "/api/memory/store", {"text": "Coffee", "memory_id": "new"})
        done = await ask(http, "POST", f"{B}/restore", {"payload": payload})
        assert (await ask(http, "GET", "/api/memory/items/old"))["memory"]["text"] == "תה"
        assert (await http.get("/api/memory/items/new")).status_code == 404
        kept = await ask(http, "GET", f"{B}/list")
        assert [one["name"] for one in kept["backups"]] == [done["preRestore"]["name"]]
        world.container.runtime.clock.advance(1)  # type: ignore[attr-defined]
        again = {"name": done["preRestore"]["name"]}
        await ask(http, "POST", f"{B}/restore", again)
        assert (await ask(http, "GET", "/api/memory/items/new"))["memory"]["text"] == "Coffee"
        assert (await taken(http, **again))["format"] == "rayapp-export"
        assert (await ask(http, "GET", f"{B}/list"))["total"] == 2
        gone = await ask(http, "DELETE", f"{B}/cleanup?keep=1")
        assert (len(gone["removed"]), gone["kept"]) == (1, 1)


@pytest.mark.parametrize("name", ["../../../etc/passwd", "rayapp-export-x.zip", "", "a/b.zip"])
async def test_a_name_opens_no_other_file(world: ArchiveWorld, name: str) -> None:
    async with world.http() as http:
        answer = await http.post(f"{B}/import", json={"name": name})
        assert (answer.status_code, answer.json()["code"]) == (404, "no_archive")
        assert (await http.get(f"{B}/export", params={"name": name})).status_code == 404


@pytest.mark.parametrize("body", [{}, {"payload": {}, "name": "x"}, {"payload": None}])
async def test_one_archive_is_named(world: ArchiveWorld, body: dict[str, Any]) -> None:
    async with world.http() as http:
        assert (await http.post(f"{B}/import", json=body)).status_code == 422


@pytest.mark.parametrize(("pause_s", "whole"), [(0.1, True), (0.9, False)])
async def test_an_export_lasts_as_long_as_it_goes_on(
    world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch, pause_s: float, whole: bool
) -> None:
    """Twice the limit of a request in sum; a pause that is as long ends it."""
    monkeypatch.setattr(Settings, "stream_limit_s", 0.5)
    stream = world.container.exports.stream

    async def slow(*asked: Any) -> AsyncIterator[bytes]:
        async for chunk in stream(*asked):
            await asyncio.sleep(pause_s)
            yield chunk

    monkeypatch.setattr(world.container.exports, "stream", slow)
    async with world.http() as http:
        begun = asyncio.get_running_loop().time()
        try:
            answer = await http.get(f"{B}/export?format=zip")
            came = zipfile.is_zipfile(io.BytesIO(answer.content))
        except (httpx.HTTPError, RuntimeError):
            came = False
        assert came is whole
        assert not whole or asyncio.get_running_loop().time() - begun > 1


# --- erasing


@pytest.mark.parametrize("word", ["", "delete", "yes"])
async def test_erasing_asks_for_the_word(world: ArchiveWorld, word: str) -> None:
    await fill(world)
    async with world.http() as http:
        answer = await http.delete("/api/memory/user", params={"confirm": word})
        assert (answer.status_code, answer.json()["code"]) == (400, "confirm_needed")
        assert await ask(http, "GET", "/api/memory/items/m-1")


async def test_a_certificate_says_what_went_and_what_is_left(world: ArchiveWorld) -> None:
    await fill(world)
    other = ArchiveWorld(world.container, "noa")
    await fill(other, "Acre")
    before = await other.stores.archive.left(other.reads)
    async with world.http() as http:
        payload = await taken(http)
        await ask(http, "POST", f"{B}/restore", {"payload": payload})
        first = await ask(http, "DELETE", "/api/memory/user?confirm=DELETE")
        assert first["complete"] is False  # nobody indexes yet
        assert first["certificate"]["left"]["memory_items"] > 0
        await world.work()
        done = await ask(http, "DELETE", "/api/memory/user?confirm=DELETE")
    proof = done["certificate"]
    assert done["complete"] is True
    assert not any(proof["left"].values())
    assert first["certificate"]["removed"]["archives"] == 1
    said = {name: proof[name] for name in proof.keys() - {"sha256"}}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    assert proof["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert proof["user_sha256"] == hashlib.sha256(world.user.encode()).hexdigest()
    assert await other.stores.archive.left(other.reads) == before


async def test_a_certificate_names_what_could_not_be_looked_at(
    world: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(user_id: str) -> list[KeptArchive]:
        raise OSError("Stale file handle")

    await fill(world)
    await world.work()
    files = world.container.exports.files
    async with world.http() as http:
        await ask(http, "DELETE", "/api/memory/user?confirm=DELETE")
        await world.work()
        with monkeypatch.context() as patch:
            patch.setattr(world.container.index, "error", IndexDown("The index is away."))
            patch.setattr(files, "_list", unreadable)
            blind = await ask(http, "DELETE", "/api/memory/user?confirm=DELETE")
        seen = await ask(http, "DELETE", "/api/memory/user?confirm=DELETE")
    assert blind["complete"] is False
    assert blind["certificate"]["unseen"] == ["archives", "vector_index"]
    assert not {"archives", "vector_index"} & blind["certificate"]["left"].keys()
    assert "could not be looked at: archives, vector_index." in blind["message"]
    assert (seen["complete"], seen["certificate"]["unseen"]) == (True, [])


async def test_a_conversation_of_which_no_turn_was_kept_is_erased_with_what_names_it(
    world: ArchiveWorld,
) -> None:
    asked = {"part": "conversation", "id": "c-9", "confirm": "DELETE"}
    async with world.http() as http:
        said = {"text": "Tea", "memory_id": "m", "source": {"conversation_id": "c-9"}}
        await ask(http, "POST", "/api/memory/store", said)
        await http.delete("/api/memory/user/part", params=asked)
        await world.work()
        done = (await http.delete("/api/memory/user/part", params=asked)).json()
        assert done["complete"], done
        assert (await http.get("/api/memory/items/m")).status_code == 404


async def test_parts_are_erased_with_certificates_and_nothing_beside(world: ArchiveWorld) -> None:
    await fill(world)
    other = ArchiveWorld(world.container, "noa")
    await fill(other, "Acre")
    while await world.container.understanding.run_once():
        pass
    before = await other.stores.archive.left(other.reads)
    part = "/api/memory/user/part"
    async with world.http() as http:
        for number in range(3):
            about = {"text": f"Noa likes tea {number}; נועה אוהבת תה", "subject_id": "noa / נועה"}
            await ask(http, "POST", "/api/memory/store", about)
        book = (await ask(http, "GET", "/api/memory/books"))["books"][0]["book_id"]
        await world.work()
        for kind, name, places in (
            ("subject", "noa / נועה", {"memory_items": 3}),
            ("memory", "m-1", {"memory_items": 1}),
            ("document", book, {"documents": 1}),
            ("conversation", "c-1", {"memory_items": 1, "turns": 1, "sessions": 1}),
        ):
            asked = {"part": kind, "id": name}
            refused = await http.delete(part, params=asked)
            assert refused.json()["code"] == "confirm_needed"
            sure = {**asked, "confirm": "DELETE"}
            first = (await http.delete(part, params=sure)).json()
            await world.work()
            done = first if first["complete"] else (await http.delete(part, params=sure)).json()
            assert done["complete"], (kind, done)
            proof = first["certificate"]
            waits = proof["left"].get("memory_items", 0)
            for place, rows in places.items():
                gone = proof["removed"][place] + (waits if place == "memory_items" else 0)
                assert gone == rows, (kind, place, proof)
            assert proof["part"] == kind
            assert proof["user_sha256"] == hashlib.sha256(world.user.encode()).hexdigest()
            assert proof["part_sha256"] == hashlib.sha256(name.encode()).hexdigest()
        never = {"part": "memory", "id": "never", "confirm": "DELETE"}
        none = (await http.delete(part, params=never)).json()
        assert none["complete"] is True
        assert not any(none["certificate"]["removed"].values())
        assert (await http.get("/api/memory/items/m-2")).is_success
    assert await other.stores.archive.left(other.reads) == before
