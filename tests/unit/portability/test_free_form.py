"""What a caller adds to a source in names of its own comes back as it was, from every route and
through an export, or is refused when it is stored."""

import asyncio
from typing import Any

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.memory.rules.creation import MAX_FIELD_DEPTH
from tests.support.archive_world import ArchiveWorld
from tests.support.examples import examples
from tests.support.harness import Harness

M = "/api/memory"
NOA = "noa-2"
PLACES = ("book", "datagov")
INT64 = 1 << 63
# Names that mean something somewhere: to a database, to an archive, to a reader of ours.
NAMES = (
    *("$ref", "$id", "$db", "$date", "$binary", "$oid", "$set", "$", "", ".", "v1.2", "a.b.", " "),
    *("_id", "user_id", "memory_id", "point_id", "points", "judged", "org_id", "subject_id"),
    *("author", "headings", "section", "pages", "has_code", "chunk_index", "book_id", "title"),
    *("kind", "fields", "total_records", "record_hash", "dataset_id", "url", "שם", "cafe\u0301"),
)
TEXTS = (
    "The blue kettle belongs to Dana",
    "Omri broke a kettle in Haifa on Sunday",
    "A new kettle costs ninety shekels at the market",
    "The office on the third floor has no kettle",
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-INT64 + 1, INT64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
    | st.sampled_from(["2026-01-01T00:00:00+00:00", "m-1", "YQ=="])
)
KEYS = st.sampled_from(NAMES) | st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
FREE_FORM = st.dictionaries(KEYS, VALUES, max_size=4)


def reserved(value: Any) -> bool:
    """Whether a name in it, at any depth, begins with $."""
    if isinstance(value, dict):
        return any(name.startswith("$") or reserved(one) for name, one in value.items())
    return isinstance(value, list) and any(map(reserved, value))


async def shown(http: httpx.AsyncClient) -> list[dict[str, Any]]:
    """The source of each memory by its id, as each route says it that shows one."""
    items = (await http.get(f"{M}/items", params={"query": "kettle", "limit": 200})).json()["items"]
    asked = {"query": "kettle", "limit": 20}
    found = (await http.post(f"{M}/search", json=asked)).json()["results"]
    recent = (await http.get(f"{M}/search", params={"limit": 200})).json()["memories"]
    routes = [{one["memory_id"]: one["source"] for one in many} for many in (items, found, recent)]
    alone = [await http.get(f"{M}/items/{memory_id}") for memory_id in routes[0]]
    read = [answer.json()["memory"] for answer in alone]
    return [*routes, {one["memory_id"]: one["source"] for one in read}]


async def check(many: list[dict[str, Any]], place: str) -> None:
    world = ArchiveWorld(Harness.ready().container)
    kept: dict[str, dict[str, Any]] = {}
    async with world.http() as http, world.http(NOA) as other:

        async def all_come_back(reader: httpx.AsyncClient) -> None:
            await world.work()
            for sources in await shown(reader):
                assert {name: one[place] for name, one in sources.items()} == kept

        for number, (text, free) in enumerate(zip(TEXTS, many, strict=False)):
            body = {"text": text, "memory_id": f"m-{number}", "source": {place: free}}
            answer = await http.post(f"{M}/store", json=body)
            assert answer.is_success is not reserved(free), answer.text
            if answer.is_success:
                kept[f"m-{number}"] = free
            else:
                assert (answer.status_code, answer.json()["code"]) == (422, "reserved_name")
        await all_come_back(http)
        for how in ("json", "zip"):
            export = await http.get(f"{M}/backup/export", params={"format": how})
            for reader in (http, other):
                file = {"file": (f"export.{how}", export.content)}
                form = {"mergeStrategy": "replace", "confirm": "DELETE", "mapUser": "true"}
                done = await reader.post(f"{M}/backup/upload", files=file, data=form)
                assert done.is_success, done.text
                await all_come_back(reader)


@settings(max_examples=examples(60), deadline=None)
@given(many=st.lists(FREE_FORM, min_size=1, max_size=len(TEXTS)), place=st.sampled_from(PLACES))
def test_free_form_fields_come_back_or_are_refused(many: list[dict[str, Any]], place: str) -> None:
    asyncio.run(check(many, place))


def nested(depth: int) -> dict[str, Any]:
    """So many objects within each other, the last one empty."""
    found: dict[str, Any] = {}
    for _ in range(depth - 1):
        found = {"in": found}
    return found


async def test_the_deepest_that_is_stored_comes_back_as_json() -> None:
    world = ArchiveWorld(Harness.ready().container)
    async with world.http() as http:
        for depth, stored in ((MAX_FIELD_DEPTH, True), (MAX_FIELD_DEPTH + 1, False)):
            source = {"book": nested(depth)}
            item = {"text": f"Nested {depth} deep", "memory_id": "deep", "source": source}
            answer = await http.post(f"{M}/store", json=item)
            assert answer.is_success is stored
            if not stored:
                assert answer.json()["message"] == "source.book is nested more than 24 deep; " + (
                    "flatten it."
                )
        payload = (await http.get(f"{M}/backup/export", params={"format": "json"})).json()
        wanted = {"payload": payload, "confirm": "DELETE", "mergeStrategy": "replace"}
        done = await http.post(f"{M}/backup/import", json=wanted)
        assert done.is_success, done.text
        found = (await http.get(f"{M}/items/deep")).json()["memory"]
    assert found["source"]["book"] == nested(MAX_FIELD_DEPTH)


async def test_a_batch_refuses_the_one_alone_and_names_the_field() -> None:
    world = ArchiveWorld(Harness.ready().container)
    named = {"text": "It has a reference", "source": {"book": {"parts": [{"$ref": "#/a"}]}}}
    async with world.http() as http:
        body = {"items": [{"text": "It has none"}, named]}
        answer = await http.post(f"{M}/store/batch", json=body)
    first, second = answer.json()["results"]
    assert first["status"] == "stored"
    assert (second["status"], second["code"]) == ("rejected", "reserved_name")
    assert second["error"] == (
        "source.book has a field with the name '$ref'; no name may begin with $, write it without."
    )
