"""Exports of other systems: what is read in them, and what is refused."""

import contextlib
import io
import json
import sqlite3
import struct
import zipfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.client.user_data import packed
from rayapp.core.errors import InvalidInput
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import Tier
from rayapp.portability.foreign import READERS, ForeignReport
from rayapp.portability.rules import foreign
from rayapp.portability.rules.archive import BadArchive
from rayapp.portability.rules.foreign import (
    Files,
    ForeignConversation,
    ForeignMemory,
    Found,
    LeftOut,
    time_of,
)
from rayapp.portability.rules.importers import roampal
from rayapp.portability.rules.kinds import Origin
from tests.support import foreign_exports as made
from tests.support.archive_world import ArchiveWorld, settings_in
from tests.support.examples import examples
from tests.support.harness import Harness

USER = "dana-7f"


def files_of(data: bytes, name: str = "export.json") -> Files:
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return Files((name,), lambda _: io.BytesIO(data), lambda _: None)
    found = zipfile.ZipFile(io.BytesIO(data))
    return Files(tuple(found.namelist()), found.open, lambda _: datetime(2024, 5, 6, tzinfo=UTC))


def read(origin: str, data: bytes) -> list[Found]:
    return list(READERS[Origin(origin)](files_of(data)))


def memories(found: list[Found]) -> dict[str, ForeignMemory]:
    return {one.text: one for one in found if isinstance(one, ForeignMemory)}


def conversations(found: list[Found]) -> list[ForeignConversation]:
    return [one for one in found if isinstance(one, ForeignConversation)]


def left_out(found: list[Found]) -> dict[str, int]:
    return {one.what: one.count for one in found if isinstance(one, LeftOut)}


# --- readers


def test_mem0_holds_facts_with_their_times() -> None:
    found = memories(read("mem0", made.mem0()))
    assert found.keys() == {made.TEA, made.TEA_HE}
    tea = found[made.TEA]
    assert tea.tier is Tier.MEMORY_BANK
    assert tea.tags == ("personal_details", "food")
    assert tea.at == datetime(2024, 3, 1, 17, 20, 30, 123456, UTC)
    assert tea.changed_at == datetime(2024, 4, 2, 15, tzinfo=UTC)


@pytest.mark.parametrize("form", ["list", "memories", "results"])
def test_mem0_comes_in_several_forms(form: str) -> None:
    rows: Any = made.mem0_rows()
    data = rows if form == "list" else {form: rows, "relations": [{"source": "a"}]}
    found = read("mem0", json.dumps(data).encode())
    assert len(memories(found)) == 2
    assert left_out(found) == ({} if form == "list" else {"relation": 1})


def test_chatgpt_is_read_along_the_messages_that_are_shown() -> None:
    found = read("chatgpt", made.chatgpt())
    (one,) = conversations(found)
    assert (one.key, one.title) == ("c-gpt-1", "Watering the lemon tree")
    assert one.at == datetime(2024, 5, 6, 10, 6, 40, tzinfo=UTC)
    first, second = one.turns
    assert first.question == "How often does the lemon tree on the balcony drink?"
    assert first.answer == "Twice a week in summer."
    assert (first.key, first.model) == ("u1", "gpt-4o")
    assert second.answer == "שני ליטר בכל פעם."
    assert left_out(found) == {"image": 1, "message": 1}


def test_chatgpt_in_parts_and_without_a_last_message() -> None:
    data = [made.gpt_conversation(made.gpt_nodes(), current_node=None)]
    parts = {f"conversations-00{n}.json": json.dumps(data) for n in range(2)}
    found = conversations(read("chatgpt", made.zipped(parts)))
    assert [len(one.turns) for one in found] == [2, 2]


def gpt_chain(times: Sequence[float | None], names: str = "zyxwvut") -> list[dict[str, Any]]:
    """A question and its answer for each time, under names in which no order is."""
    nodes: list[dict[str, Any]] = []
    for number, (time, name) in enumerate(zip(times, names, strict=False), 1):
        parent = nodes[-1]["id"] if nodes else "root"
        nodes.append(made.gpt_node(name, parent, "user", [f"question {number}"], create_time=time))
        said = [f"answer {number}"]
        nodes.append(made.gpt_node(f"a-{name}", name, "assistant", said, create_time=time))
    return nodes


@pytest.mark.parametrize("current", [{}, {"current_node": None}])
@pytest.mark.parametrize("links", ["both", "children", "parent"])
def test_chatgpt_is_read_by_its_links_whatever_the_times_say(
    links: str, current: dict[str, Any]
) -> None:
    nodes = gpt_chain([5e8, 5e8, 4e8, None])
    data = made.gpt_conversation(nodes, **current)
    data["mapping"] = dict(sorted(data["mapping"].items()))
    for node in data["mapping"].values():
        if links == "children":
            node["parent"] = None
        elif links == "parent":
            node["children"] = []
    (one,) = conversations(read("chatgpt", made.chatgpt(data)))
    assert [turn.question for turn in one.turns] == [f"question {n}" for n in range(1, 5)]
    assert [turn.answer for turn in one.turns] == [f"answer {n}" for n in range(1, 5)]


def test_of_two_forms_of_one_time_the_later_is_shown_where_none_is_named() -> None:
    nodes = [
        made.gpt_node("u", "root", "user", ["Where?"]),
        made.gpt_node("b", "u", "assistant", ["There."]),
        made.gpt_node("a", "u", "assistant", ["Here."]),
    ]
    data = made.chatgpt(made.gpt_conversation(nodes, current_node=None))
    (one,) = conversations(read("chatgpt", data))
    assert [turn.answer for turn in one.turns] == ["Here."]


NO_PARENT = "00000000-0000-4000-8000-000000000000"


def claude_forms(**more: Any) -> bytes:
    """A question that was asked in two ways, each with its answer, in no order."""
    said = [
        ("a-2", "assistant", "In the boat.", "h-2"),
        ("h-2", "human", "And the oars?", "a-1b"),
        ("a-1", "assistant", "Nowhere.", "h-1"),
        ("h-1", "human", "Where is the key?", NO_PARENT),
        ("a-1b", "assistant", "Under the pot.", "h-1b"),
        ("h-1b", "human", "Where is the spare key?", NO_PARENT),
    ]
    messages = [
        made.claude_message(name, sender, text, parent_message_uuid=parent, created_at="2025-02-03")
        for name, sender, text, parent in said
    ]
    return made.claude([{"uuid": "c", "name": "", "chat_messages": messages} | more])


def test_claude_is_read_by_its_links_where_it_has_them() -> None:
    found = read("claude", claude_forms(current_leaf_message_uuid="a-2"))
    (one,) = conversations(found)
    assert [(turn.question, turn.answer) for turn in one.turns] == [
        ("Where is the spare key?", "Under the pot."), ("And the oars?", "In the boat."),
    ]  # fmt: skip
    assert left_out(found)["message"] == 2


def test_claude_is_read_as_it_stands_where_its_links_lead_nowhere() -> None:
    messages = [
        made.claude_message("h-1", "human", "Where?", parent_message_uuid="gone"),
        made.claude_message("a-1", "assistant", "Here.", parent_message_uuid="gone too"),
    ]
    (one,) = conversations(read("claude", made.claude([{"chat_messages": messages}])))
    assert [(turn.question, turn.answer) for turn in one.turns] == [("Where?", "Here.")]


def test_chatgpt_in_a_circle_ends() -> None:
    nodes = [made.gpt_node("a", "b", "user", ["x"]), made.gpt_node("b", "a", "assistant", ["y"])]
    (one,) = conversations(read("chatgpt", made.chatgpt(made.gpt_conversation(nodes))))
    assert len(one.turns) == 1


def test_claude_holds_conversations_projects_and_what_it_remembers() -> None:
    found = read("claude", made.claude())
    (one,) = conversations(found)
    assert one.title == "The cabin"
    assert one.turns[0].question == "Where is the spare key of the cabin?\n\nPlan of the cabin"
    assert one.turns[0].answer == "Under the blue flower pot."
    assert one.turns[1].question == "מתי פותחים את הבריכה?"
    facts = memories(found)
    assert facts["Work: Dana restores old wooden boats."].tier is Tier.MEMORY_BANK
    assert "Work: דנה גרה בעכו." in facts
    assert facts["The kitchen has two windows."].tags == ("project",)
    assert facts["budget.md\n\nThe tiles cost 4,000 shekels"].at == datetime(2025, 1, 2, tzinfo=UTC)
    assert "Renovation\n\nThe kitchen is renovated in June" in facts
    assert left_out(found) == {"file": 1}


def test_claude_with_a_file_for_each_project_and_account() -> None:
    memory = {"conversations_memory": "Dana sails.", "project_memories": {}}
    project = {"uuid": "p", "name": "Garden", "description": "Roses", "docs": []}
    files = {"memories/a.json": memory, "projects/p.json": project, "conversations.json": []}
    data = made.zipped({name: json.dumps(one) for name, one in files.items()})
    assert memories(read("claude", data)).keys() == {"Dana sails.", "Garden\n\nRoses"}


def test_markdown_has_a_memory_for_each_file() -> None:
    found = read("markdown", made.markdown())
    notes = memories(found)
    boat = notes["Boat\n\nThe boat is painted with green varnish."]
    assert (boat.tags, boat.at) == (("sea", "wood"), datetime(2023, 7, 8, tzinfo=UTC))
    assert notes["סירה\n\nאת הסירה צובעים בכל אביב."].at == datetime(2024, 5, 6, tzinfo=UTC)
    assert len(notes) == 2
    assert [(one.why, one.count) for one in found if isinstance(one, LeftOut)] == [
        ("no Markdown", 1),
        ("without words", 1),
        ("no text in UTF-8, or too long", 1),
    ]


FRONTS = [
    "a: [",
    "[1, 2]",
    "&a [*a]",
    "x: !!python/object:os.system ls",
    "tags: {a: 1}",
    "- " * 400,
]


@pytest.mark.parametrize("front", FRONTS)
def test_odd_front_matter_loses_no_words(front: str) -> None:
    data = made.zipped({"n.md": f"---\n{front}\n---\nThe words stay"})
    assert "The words stay" in next(iter(memories(read("markdown", data))))


def test_roampal_holds_memories_by_tier_and_conversations() -> None:
    found = read("roampal", made.roampal())
    notes = memories(found)
    bank = notes["Dana repairs accordions"]
    assert (bank.tier, bank.tags) == (Tier.MEMORY_BANK, ("identity", "work"))
    assert (bank.importance, bank.confidence) == (0.9, 0.8)
    assert bank.at == datetime(2025, 10, 1, 9, tzinfo=UTC)
    assert notes["Dana repairs pianos"].archived
    pattern = notes["אקורדיון מנגבים במטלית יבשה"]
    assert (pattern.tier, pattern.score) == (Tier.PATTERNS, 0.9)
    (one,) = conversations(found)
    assert (one.key, one.title, one.turns[0].model) == ("s-1", "Bellows", "qwen2.5:7b")
    assert left_out(found) == {
        "knowledge_graph.json": 1,
        "outcomes.db": 1,
        "roampal_books": 1,
        "memory": 1,
    }


def test_roampal_is_read_with_a_write_ahead_log(tmp_path: Path) -> None:
    """As its database is left on a disk."""
    path = tmp_path / "chroma.sqlite3"
    path.write_bytes(made.chroma([("roampal_history", "h", {"text": "A walk in Acre"})]))
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.close()
    assert memories(read("roampal", made.roampal(path.read_bytes()))).keys() == {"A walk in Acre"}


# --- lists of JSON

ENTRIES = st.lists(
    st.recursive(
        st.text() | st.integers(-(2**53), 2**53) | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    ).filter(lambda one: isinstance(one, dict | list)),
    max_size=6,
)


@settings(max_examples=examples(300), deadline=None)
@given(
    entries=ENTRIES, size=st.integers(1, 40), ascii=st.booleans(), indent=st.sampled_from([None, 1])
)
def test_a_list_is_read_entry_by_entry(
    entries: list[Any], size: int, ascii: bool, indent: int | None
) -> None:
    data = json.dumps(entries, ensure_ascii=ascii, indent=indent).encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(foreign, "CHUNK_BYTES", size)
        found = list(files_of(b"\xef\xbb\xbf" + data).entries("f"))
    assert found == entries


def test_a_long_string_with_brackets_is_one_entry() -> None:
    entry = {"title": '[{"' * 400_000 + "\\"}
    assert list(files_of(json.dumps([entry, {}]).encode()).entries("f")) == [entry, {}]


# --- values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1_714_990_000, datetime(2024, 5, 6, 10, 6, 40, tzinfo=UTC)),
        (1_714_990_000_000, datetime(2024, 5, 6, 10, 6, 40, tzinfo=UTC)),
        ("2024-05-06T10:06:40Z", datetime(2024, 5, 6, 10, 6, 40, tzinfo=UTC)),
        ("2024-05-06T12:06:40+02:00", datetime(2024, 5, 6, 10, 6, 40, tzinfo=UTC)),
        ("2024-05-06", datetime(2024, 5, 6, tzinfo=UTC)),
        *[
            (one, None)
            for one in (None, True, 0, -1, 1e300, float("nan"), "soon", [], "0001-01-01")
        ],
    ],
)
def test_times(value: Any, expected: datetime | None) -> None:
    assert time_of(value) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["mapping", "message", "content", "parts", "author", "role", "chat_messages", "text",
             "sender", "uuid", "memory", "id", "created_at", "results", "metadata", "docs",
             "current_node", "parent", "a", "content_type", "categories"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip


@pytest.mark.parametrize("origin", ["mem0", "chatgpt", "claude"])
@settings(max_examples=examples(300), deadline=None)
@given(value=JSON)
def test_whatever_stands_in_the_json_is_read_or_refused(origin: str, value: Any) -> None:
    data = json.dumps([value, {"mapping": {"a": value, "b": {"parent": "a", "message": value}}}])
    files = {"conversations.json": data, "projects.json": data, "memories.json": data}
    with contextlib.suppress(BadArchive):
        read(origin, made.zipped(files) if origin == "claude" else data.encode())


# --- hostile files


def text_zip(name: str, data: bytes | str = "x") -> bytes:
    return made.zipped({"conversations.json": "[]", name: data})


def link() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        info = zipfile.ZipInfo("conversations.json")
        info.external_attr = 0o120777 << 16
        zipped.writestr(info, "/etc/passwd")
    return out.getvalue()


def locked() -> bytes:
    data = bytearray(made.chatgpt())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.index(mark) + offset
        data[at : at + 2] = struct.pack("<H", 1)
    return bytes(data)


def declared(size: int) -> bytes:
    data = made.chatgpt()
    at = data.index(b"PK\x01\x02")
    return data[: at + 24] + size.to_bytes(4, "little") + data[at + 28 :]


def endless_view() -> bytes:
    database = sqlite3.connect(":memory:")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    database.executescript(
        f"CREATE VIEW embeddings AS SELECT i AS id, 's' AS segment_id, 'e' AS embedding_id"
        f" FROM ({endless});"
        "CREATE TABLE segments (id, collection); CREATE TABLE collections (id, name);"
        "CREATE TABLE embedding_metadata (id, key, string_value, int_value, float_value,"
        " bool_value); INSERT INTO segments VALUES ('s', 'c');"
        "INSERT INTO collections VALUES ('c', 'roampal_working');"
    )
    return made.roampal(database.serialize())


def long_entry() -> bytes:
    return b'[{"title": "' + b"x" * (foreign.MAX_PIECE_BYTES + 10) + b'"}]'


HOSTILE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "nothing": ("chatgpt", lambda: b"", "."),
    "text": ("mem0", lambda: b"hello", "no JSON"),
    "cut": ("mem0", lambda: made.mem0()[:-5], "no JSON"),
    "cut list": ("chatgpt", lambda: b'[{"title": "x"', "no JSON"),
    "cut zip": ("chatgpt", lambda: made.chatgpt()[:-60], "."),
    "other form": ("mem0", lambda: b'{"a": 1}', "no memories of mem0"),
    "a number": ("chatgpt", lambda: b"17", "no list"),
    "an object": ("claude", lambda: b'{"chat_messages": []}', "no list"),
    "deep": ("mem0", lambda: b"[" * 100_000 + b"]" * 100_000, "no JSON"),
    "deep list": ("chatgpt", lambda: b"[" + b'{"mapping":' * 50_000, "no JSON|cannot be read"),
    "slip": ("chatgpt", lambda: text_zip("../../etc/passwd"), "leads out"),
    "absolute": ("chatgpt", lambda: text_zip("/etc/passwd"), "leads out"),
    "windows": ("chatgpt", lambda: text_zip("..\\..\\x"), "leads out"),
    "drive": ("chatgpt", lambda: text_zip("C:\\x"), "leads out"),
    "link": ("chatgpt", link, "link"),
    "locked": ("chatgpt", locked, "encrypted"),
    "bomb": ("chatgpt", lambda: text_zip("b.json", b" " * 60_000_000), "too much"),
    "declared": ("chatgpt", lambda: declared(4_000_000_000), "too much"),
    "long entry": ("chatgpt", long_entry, "more than 1 MB"),
    "none of it": ("chatgpt", lambda: made.zipped({"a.json": "[]", "b.json": "[]"}), "no conv"),
    "no facts": ("mem0", lambda: made.zipped({"a.png": "x"}), "no .json"),
    "no notes": ("markdown", lambda: made.zipped({"a.png": "x"}), "no .md"),
    "no backup": ("roampal", made.markdown, "no backup of Roampal"),
    "no database": ("roampal", lambda: made.roampal(b"SQLite format 3\0" + b"x" * 900), "be read"),
    "endless": ("roampal", endless_view, "be read"),
}  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too much comes sooner."""
    monkeypatch.setattr(foreign, "MAX_PIECE_BYTES", 1 << 20)
    monkeypatch.setattr(roampal, "MAX_CHUNKS", 10)


@pytest.fixture
def world(tmp_path: Path) -> ArchiveWorld:
    return ArchiveWorld(Harness.ready(settings_in(tmp_path)).container, USER)


async def take(
    world: ArchiveWorld, origin: str, data: bytes, *, dry_run: bool = False
) -> ForeignReport:
    scope = WriteScope(world.user, "local")
    service = world.container.foreign_imports
    return await service.run(scope, Origin(origin), io.BytesIO(data), "f", dry_run=dry_run)


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_file_is_refused_and_nothing_is_written(
    world: ArchiveWorld, small: None, name: str
) -> None:
    origin, data, said = HOSTILE[name]
    with pytest.raises(BadArchive, match=said) as raised:
        await take(world, origin, data())
    assert raised.value.message.count(". ") == 0
    assert raised.value.message.endswith(".")
    assert not any((await world.stores.archive.left(world.reads)).values())


async def test_one_bad_memory_keeps_no_other_out(world: ArchiveWorld) -> None:
    rows = [
        *made.mem0_rows(),
        {"memory": "\0\x07"},
        {"memory": 7},
        "text",
        {"memory": made.TEA},
        {"memory": "x" * 200_000},
        {"memory": "\ud800 A broken letter", "id": "a b", "created_at": "never"},
        {"memory": "User: hi\nAssistant: hello", "categories": ["a" * 900, 3, "\n"]},
        {"memory": "Later", "created_at": "2099-01-01"},
    ]
    done = await take(world, "mem0", made.mem0(rows))
    assert done.found == {"memory_bank": 4, "history": 1}
    whys = {why: count for (_, why), count in done.left_out.items()}
    assert whys == {
        "without words": 2,
        "no JSON object": 1,
        "said twice in the file": 1,
        "The text has 200000 characters; at most 100000 are stored": 1,
    }
    assert done.report.counts["memory_items"].added == 5


async def test_what_the_bank_has_no_room_for_goes_to_the_history(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, memory_bank={"capacity": 3})
    world = ArchiveWorld(Harness.ready(settings).container, USER)
    rows = [{"memory": f"Fact number {n}"} for n in range(5)]
    done = await take(world, "mem0", made.mem0(rows))
    assert done.found == {"memory_bank": 3, "history": 2}
    again = await take(world, "mem0", made.mem0(rows))
    assert again.report.counts["memory_items"].added == 0
    assert again.report.counts["memory_items"].present == 5


async def test_what_the_bank_has_takes_no_room_of_what_is_new(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, memory_bank={"capacity": 10})
    world = ArchiveWorld(Harness.ready(settings).container, USER)
    rows = [{"memory": f"Fact number {n}"} for n in range(8)]
    assert (await take(world, "mem0", made.mem0(rows[:7]))).found == {"memory_bank": 7}
    later = await take(world, "mem0", made.mem0(rows))
    assert (later.found, later.report.counts["memory_items"].added) == ({"memory_bank": 8}, 1)


async def test_words_that_are_too_long_keep_their_beginning(world: ArchiveWorld) -> None:
    nodes = [
        made.gpt_node("u1", "root", "user", ["Why? " * 50_000]),
        made.gpt_node("a1", "u1", "assistant", ["Because. " * 50_000]),
    ]
    done = await take(world, "chatgpt", made.chatgpt(made.gpt_conversation(nodes)))
    assert done.left_out == {("turn", "longer than is stored: its beginning is kept"): 1}
    assert done.report.counts["memory_items"].added == 1


@pytest.mark.parametrize(
    "times",
    [
        [1.7e9, 1.7e9, 1.7e9, 1.7e9],
        [1.7e9, 1.7e9 - 50, 1.7e9 + 9, 1.7e9 + 9],
        [1.7e9, 4e9, 1.7e9 + 60, 1.7e9 + 70],
        [4e9, 4e9, 4e9, 4e9],
        [None, None, None, None],
        [1.7e9, None, 1.7e9, 1.6e9],
        [-1.0, 0.0, 1.7e9, 1.7e9],
    ],
)
async def test_turns_are_shown_in_the_order_in_which_they_were_said(
    world: ArchiveWorld, times: list[float | None]
) -> None:
    """Whatever their times say: people read them, and prompts are made of them, by their times."""
    await take(world, "chatgpt", made.chatgpt(made.gpt_conversation(gpt_chain(times))))
    turns = await world.stores.conversations.turns(world.reads, "chatgpt-c-gpt-1", limit=9)
    assert [turn.question for turn in turns] == [f"question {n}" for n in (4, 3, 2, 1)]
    at = sorted(turn.at for turn in turns)
    assert len(set(at)) == 4
    assert at[-1] <= world.container.runtime.clock.now()


async def test_the_times_of_other_turns_are_kept_beside_an_odd_one(world: ArchiveWorld) -> None:
    times = [1.7e9, 1.75e9, 1.7e9 + 60, 1.7e9 + 120]
    await take(world, "chatgpt", made.chatgpt(made.gpt_conversation(gpt_chain(times))))
    turns = await world.stores.conversations.turns(world.reads, "chatgpt-c-gpt-1", limit=9)
    seconds = sorted(turn.at.timestamp() for turn in turns)
    assert seconds == pytest.approx([1.7e9, 1.7e9, 1.7e9 + 60, 1.7e9 + 120], abs=0.01)


async def test_the_same_turn_in_two_conversations_is_one_memory(world: ArchiveWorld) -> None:
    said = [
        made.gpt_node("u", "root", "user", ["Hi"]),
        made.gpt_node("a", "u", "assistant", ["Hi!"]),
    ]
    both = [made.gpt_conversation(said, name) for name in ("one", "two")]
    would = await take(world, "chatgpt", made.chatgpt(*both), dry_run=True)
    done = await take(world, "chatgpt", made.chatgpt(*both))
    assert would.report.counts == done.report.counts
    assert done.report.counts["memory_items"].added == 1
    assert done.report.counts["turns"].added == 2


# --- what the client sends


def test_of_a_zip_only_what_is_read_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    path.write_bytes(made.chatgpt())
    _, data = packed(path, "chatgpt")
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["conversations.json", "user.json"]
    assert read("chatgpt", data)


def test_a_zip_that_was_changed_is_refused_in_a_sentence(tmp_path: Path) -> None:
    data = bytearray(made.zipped({"conversations.json": "[]" + " " * 999, "photo.png": "x"}))
    at = zipfile.ZipFile(io.BytesIO(data)).getinfo("conversations.json").header_offset
    start = at + 30 + len("conversations.json")
    data[start : start + 6] = b"\xff" * 6
    path = tmp_path / "export.zip"
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match="export it again"):
        packed(path, "chatgpt")


def test_a_folder_is_sent_as_a_zip(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "note.md").write_text("The pump is red", encoding="utf-8")
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    name, data = packed(tmp_path, "markdown")
    assert name == f"{tmp_path.name}.zip"
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["deep/note.md"]
