"""Exports of Claude: `conversations.json`, with `projects.json` and `memories.json` where they are.

Newer exports have a file per project and per account, in `projects/` and `memories/`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rayapp.memory.tiers import Tier
from rayapp.portability.rules.archive import BadArchive
from rayapp.portability.rules.foreign import (
    NO_WORDS,
    Files,
    ForeignMemory,
    ForeignMessage,
    Found,
    LeftOut,
    Role,
    conversation,
    digest,
    key_of,
    rows_of,
    text_of,
    time_of,
)

ROLES: Mapping[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}
# A memory file is prose in paragraphs, under headings; each paragraph is a fact of its own.
_PARAGRAPHS = re.compile(r"\n\s*\n")
_HEADING = re.compile(r"^(?:#{1,6}\s+.*|\*\*[^*\n]{1,100}\*\*:?)$")


def read(files: Files) -> Iterator[Found]:
    names = list(files.named("*.json"))
    said = list(files.named("conversations.json")) or (names if len(names) == 1 else [])
    memories = list(files.named("memories.json", "memories/*.json"))
    projects = list(files.named("projects.json", "projects/*.json"))
    said = [one for one in said if one not in {*memories, *projects}]
    if not (said or memories or projects):
        raise BadArchive("There is no conversations.json in it; send the zip of the export.")
    for name in memories:
        yield from _memories(files.json(name))
    for name in projects:
        found = files.json(name)
        for row in rows_of(found if isinstance(found, list) else [found]):
            yield from _project(row)
    for name in said:
        for one in files.entries(name):
            yield from _conversation(one)


# --- conversations


def _conversation(row: Any) -> Iterator[Found]:
    messages = row.get("chat_messages") if isinstance(row, dict) else None
    if not isinstance(messages, list):
        yield LeftOut(what="conversation", why="no messages can be read in it")
        return
    found = [_message(one) for one in rows_of(messages)]
    files = sum(_files(one) for one in rows_of(messages))
    if files:
        yield LeftOut(what="file", why="the export holds its name only", count=files)
    at = time_of(row.get("created_at"))
    yield conversation(row.get("uuid"), row.get("name"), at, [one for one in found if one])


def _message(row: dict[str, Any]) -> ForeignMessage | None:
    role = ROLES.get(str(row.get("sender")))
    blocks = [one.get("text") for one in rows_of(row.get("content")) if one.get("type") == "text"]
    text = text_of("\n\n".join(one for one in blocks if isinstance(one, str)))
    text = text or text_of(row.get("text"))
    pasted = [text_of(one.get("extracted_content")) for one in rows_of(row.get("attachments"))]
    text = "\n\n".join(filter(None, [text, *pasted]))
    if role is None or not text:
        return None
    at = time_of(row.get("created_at"))
    return ForeignMessage(key=key_of(row.get("uuid"), text, at), role=role, text=text, at=at)


def _files(row: dict[str, Any]) -> int:
    empty = [one for one in rows_of(row.get("attachments")) if not one.get("extracted_content")]
    return len(rows_of(row.get("files"))) + len(empty)


# --- what it remembers, and projects


def _memories(found: Any) -> Iterator[Found]:
    for row in rows_of(found if isinstance(found, list) else [found]):
        yield from _facts(row.get("conversations_memory"), ())
        projects = row.get("project_memories")
        for text in projects.values() if isinstance(projects, dict) else ():
            yield from _facts(text, ("project",))


def _facts(text: Any, tags: tuple[str, ...]) -> Iterator[Found]:
    heading = ""
    for part in _PARAGRAPHS.split(text if isinstance(text, str) else ""):
        clean = text_of(part)
        if _HEADING.fullmatch(clean):
            heading = clean.strip("#*: ")
        elif clean:
            fact = f"{heading}: {clean}" if heading else clean
            yield ForeignMemory(key=digest(fact), text=fact, tier=Tier.MEMORY_BANK, tags=tags)


def _project(row: dict[str, Any]) -> Iterator[Found]:
    if row.get("is_starter_project"):
        return
    name = text_of(row.get("name"))
    tags = ("project", *([name[:100]] if name else []))
    at, changed = time_of(row.get("created_at")), time_of(row.get("updated_at"))
    said = [text_of(row.get(one)) for one in ("description", "prompt_template")]
    about = "\n\n".join(filter(None, [name, *said]))
    if any(said):
        key = key_of(row.get("uuid"), about)
        yield ForeignMemory(key=key, text=about, at=at, changed_at=changed, tags=tags)
    for one in rows_of(row.get("docs")):
        title, words = text_of(one.get("filename")), text_of(one.get("content"))
        if not words:
            yield LeftOut(what="file", why=NO_WORDS)
            continue
        text = f"{title}\n\n{words}" if title else words
        key = key_of(one.get("uuid"), text)
        yield ForeignMemory(key=key, text=text, at=time_of(one.get("created_at")) or at, tags=tags)
