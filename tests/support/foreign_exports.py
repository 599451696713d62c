"""Exports of other systems, made as they make them: in English and Hebrew."""

import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

TEA, TEA_HE = "Dana drinks jasmine tea without sugar", "דנה שותה תה יסמין בלי סוכר"


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, (2024, 5, 6, 7, 8, 10))
            made.writestr(info, data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


# --- mem0


def mem0(rows: list[Any] | None = None, **more: Any) -> bytes:
    rows = mem0_rows() if rows is None else rows
    return json.dumps({"results": rows, **more}).encode()


def mem0_rows() -> list[Any]:
    return [
        {
            "id": "6c1b9e4e-1f0b-4d0e-9a53-0c2f7f1d3b10",
            "memory": TEA,
            "user_id": "dana",
            "hash": "8f1b3c",
            "metadata": {"category": "food"},
            "categories": ["personal_details"],
            "created_at": "2024-03-01T10:20:30.123456-07:00",
            "updated_at": "2024-04-02T08:00:00-07:00",
        },
        {
            "id": "6c1b9e4e-1f0b-4d0e-9a53-0c2f7f1d3b11",
            "memory": TEA_HE,
            "user_id": "dana",
            "metadata": None,
            "categories": None,
            "created_at": "2024-03-02T10:20:30Z",
            "updated_at": None,
        },
    ]


# --- ChatGPT


def gpt_node(
    name: str, parent: str | None, role: str, parts: list[Any], **more: Any
) -> dict[str, Any]:
    kind = "multimodal_text" if any(isinstance(one, dict) for one in parts) else "text"
    message = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": 1_714_990_000.5,
        "content": {"content_type": kind, "parts": parts},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {"model_slug": "gpt-4o"} if role == "assistant" else {},
        "recipient": "all",
    } | more
    return {"id": name, "message": message, "parent": parent, "children": []}


def gpt_conversation(
    nodes: Iterable[dict[str, Any]], name: str = "c-gpt-1", **more: Any
) -> dict[str, Any]:
    mapping: dict[str, dict[str, Any]] = {
        "root": {"id": "root", "message": None, "parent": None, "children": []}
    }
    for node in nodes:
        mapping[node["id"]] = node
        if node["parent"] in mapping:
            mapping[node["parent"]]["children"].append(node["id"])
    return {
        "title": "Watering the lemon tree",
        "create_time": 1_714_990_000.0,
        "update_time": 1_714_999_000.0,
        "mapping": mapping,
        "moderation_results": [],
        "current_node": next(reversed(mapping)),
        "conversation_id": name,
        "id": name,
    } | more


def gpt_nodes() -> list[dict[str, Any]]:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    code = {"content": {"content_type": "code", "text": "print(1)"}, "recipient": "python"}
    nodes = [
        gpt_node("s", "root", "system", [""]),
        gpt_node("u1", "s", "user", [image, "How often does the lemon tree on the balcony drink?"]),
        gpt_node("old", "u1", "assistant", ["Every day."]),
        gpt_node("t1", "u1", "assistant", [""], **code),
        gpt_node("t2", "t1", "tool", ["1"]),
        gpt_node("a1", "t2", "assistant", ["Twice a week\ue200cite\ue202turn0\ue201 in summer."]),
        gpt_node("u2", "a1", "user", ["כמה מים מקבל עץ הלימון במרפסת?"]),
        gpt_node("a2", "u2", "assistant", ["שני ליטר בכל פעם."]),
    ]
    for second, node in enumerate(nodes):
        node["message"]["create_time"] = 1_714_990_000.5 + second
    return nodes


def chatgpt(*conversations: Any) -> bytes:
    found = list(conversations) or [gpt_conversation(gpt_nodes())]
    files: dict[str, bytes | str] = {
        "conversations.json": json.dumps(found),
        "chat.html": "<html></html>",
        "user.json": json.dumps({"id": "user-1", "email": "dana@example.com"}),
        "file-1.png": b"\x89PNG",
    }
    return zipped(files)


# --- Claude


def claude_message(name: str, sender: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": name,
        "text": text,
        "content": [{"type": "text", "text": text, "citations": []}],
        "sender": sender,
        "created_at": f"2025-02-03T04:05:{len(name):02}.000000Z",
        "updated_at": "2025-02-03T04:06:00Z",
        "attachments": [],
        "files": [],
    } | more


def claude(conversations: list[Any] | None = None, **files: Any) -> bytes:
    said = [
        claude_message(
            "h-1",
            "human",
            "Where is the spare key of the cabin?",
            attachments=[{"file_name": "a.txt", "extracted_content": "Plan of the cabin"}],
            files=[{"file_name": "photo.png"}],
        ),
        claude_message(
            "a-1",
            "assistant",
            "",
            content=[
                {"type": "thinking", "thinking": "hidden"},
                {"type": "text", "text": "Under the blue flower pot."},
                {"type": "tool_use", "name": "search", "input": {}},
            ],
        ),
        claude_message("h-11", "human", "מתי פותחים את הבריכה?"),
        claude_message("a-11", "assistant", "הבריכה נפתחת בשבע בבוקר."),
    ]
    found = [
        {
            "uuid": "0f0e0d0c-1111-4222-8333-444455556666",
            "name": "The cabin",
            "created_at": "2025-02-03T04:05:00.000000Z",
            "updated_at": "2025-02-03T04:06:00Z",
            "account": {"uuid": "acc"},
            "chat_messages": said,
        }
    ]
    project = {
        "uuid": "9f0e0d0c-1111-4222-8333-444455556666",
        "name": "Renovation",
        "description": "The kitchen is renovated in June",
        "prompt_template": "",
        "is_starter_project": False,
        "created_at": "2025-01-01T00:00:00Z",
        "docs": [
            {
                "uuid": "8f0e0d0c-1111-4222-8333-444455556666",
                "filename": "budget.md",
                "content": "The tiles cost 4,000 shekels",
                "created_at": "2025-01-02T00:00:00Z",
            }
        ],
    }
    memory = {
        "conversations_memory": "**Work**\n\nDana restores old wooden boats.\n\nדנה גרה בעכו.",
        "project_memories": {project["uuid"]: "The kitchen has two windows."},
        "account_uuid": "acc",
    }
    parts = {
        "users.json": [{"uuid": "acc", "full_name": "Dana"}],
        "conversations.json": found if conversations is None else conversations,
        "projects.json": [project],
        "memories.json": [memory],
    } | files
    return zipped({name: json.dumps(one) for name, one in parts.items()})


# --- Markdown


def markdown() -> bytes:
    front = "---\ntitle: Boat\ntags: [sea, wood]\ncreated: 2023-07-08\n---\n"
    return zipped(
        {
            "notes/boat.md": f"{front}The boat is painted with green varnish.",
            "notes/סירה.md": "את הסירה צובעים בכל אביב.",
            "notes/empty.md": "\n \n",
            "notes/photo.png": b"\x89PNG",
            "notes/.obsidian/app.md": "settings",
            "notes/latin.md": "caf\xe9".encode("latin-1"),
        }
    )


# --- Roampal


def chroma(rows: Iterable[tuple[str, str, Mapping[str, Any]]]) -> bytes:
    """Collection, id and values of each memory, as its vector store keeps them."""
    database = sqlite3.connect(":memory:")
    database.executescript(
        """
        CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL, dimension INTEGER);
        CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT, scope TEXT, collection TEXT);
        CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT, embedding_id TEXT,
            seq_id BLOB, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
        CREATE TABLE embedding_metadata (id INTEGER, key TEXT, string_value TEXT,
            int_value INTEGER, float_value REAL, bool_value INTEGER, PRIMARY KEY (id, key));
        """
    )
    for number, (collection, name, values) in enumerate(rows, 1):
        database.execute("INSERT OR IGNORE INTO collections VALUES (?, ?, 768)", (collection,) * 2)
        segment = (f"s-{collection}", "urn:chroma:segment/metadata/sqlite", "METADATA", collection)
        database.execute("INSERT OR IGNORE INTO segments VALUES (?, ?, ?, ?)", segment)
        stored = (number, segment[0], name, b"")
        database.execute(
            "INSERT INTO embeddings (id, segment_id, embedding_id, seq_id) VALUES (?, ?, ?, ?)",
            stored,
        )
        for key, value in values.items():
            kinds = [
                value if isinstance(value, kind) and not isinstance(value, bool) else None
                for kind in (str, int, float)
            ]
            put = (number, key, *kinds, value if isinstance(value, bool) else None)
            database.execute("INSERT INTO embedding_metadata VALUES (?, ?, ?, ?, ?, ?)", put)
    database.commit()
    return database.serialize()


def roampal(database: bytes | None = None, session: str | None = None) -> bytes:
    bank = {
        "text": "Dana repairs accordions",
        "chroma:document": "Dana repairs accordions",
        "tags": '["identity", "work"]',
        "importance": 0.9,
        "confidence": 0.8,
        "status": "active",
        "created_at": "2025-10-01T09:00:00",
        "updated_at": "2025-10-02T09:00:00",
    }
    gone = bank | {"text": "Dana repairs pianos", "status": "archived"}
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("roampal_memory_bank", "memory_bank_1", bank),
        ("roampal_memory_bank", "memory_bank_2", gone),
        ("roampal_patterns", "patterns_1", {"text": "אקורדיון מנגבים במטלית יבשה", "score": 0.9}),
        ("roampal_working", "working_1", {"text": "", "score": 0.5}),
        ("roampal_books", "books_1", {"text": "A chapter", "book_id": "b"}),
    ]
    said = [
        {"role": "user", "content": "Which bellows fit?", "timestamp": "2025-10-03T10:00:00"},
        {
            "role": "assistant",
            "content": "Those of 1962.",
            "timestamp": "2025-10-03T10:00:05",
            "metadata": {"model_name": "qwen2.5:7b", "title": "Bellows"},
        },
    ]
    lines = "\n".join(json.dumps(one) for one in said)
    return zipped(
        {
            "backup_info.json": json.dumps({"backup_version": "1.1", "backup_type": "full"}),
            "chromadb/chroma.sqlite3": chroma(rows) if database is None else database,
            "chromadb/0a/data_level0.bin": b"\0" * 8,
            "sessions/s-1.jsonl": lines if session is None else session,
            "knowledge_graph.json": "{}",
            "outcomes.db": b"",
        }
    )


SAMPLES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "mem0": ("mem0.json", mem0),
    "chatgpt": ("chatgpt.zip", chatgpt),
    "claude": ("data-batch-0000.zip", claude),
    "markdown": ("notes.zip", markdown),
    "roampal": ("roampal_backup_20251004.zip", roampal),
}
