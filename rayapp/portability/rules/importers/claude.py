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
    OTHER_FORM,
    Files,
    ForeignMemory,
    ForeignMessage,
    Found,
    LeftOut,
    Role,
    conversation,
    digest,
    key_of,
    path_to,
    rows_of,
    text_of,
    time_of,
)

# The parent of a first message.
NO_PARENT = "00000000-0000-4000-8000-000000000000"
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
    rows = rows_of(messages)
    shown = _shown(rows, row.get("current_leaf_message_uuid"))
    found = [_message(one) for one in shown]
    others = sum(_message(one) is not None for one in rows) - sum(map(bool, found))
    if others:
        yield LeftOut(what="message", why=OTHER_FORM, count=others)
    files = sum(_files(one) for one in shown)
    if files:
        yield LeftOut(what="file", why="the export holds its name only", count=files)
    at = time_of(row.get("created_at"))
    yield conversation(row.get("uuid"), row.get("name"), at, [one for one in found if one])


def _shown(rows: list[dict[str, Any]], last: Any) -> list[dict[str, Any]]:
    """Along the links between messages to the one that was shown last; as they stand in a file
    without links, or whose links lead out of it."""
    named = {one["uuid"]: one for one in rows if isinstance(one.get("uuid"), str)}
    links = {name: one.get("parent_message_uuid") for name, one in named.items()}
    parents = {
        name: parent
        for name, parent in links.items()
        if isinstance(parent, str) and parent in named
    }
    begins = [parent for parent in links.values() if parent not in named]
    linked = len(begins) == 1 or set(begins) == {NO_PARENT}
    inner = set(parents.values())
    leaf = (
        last
        if last in named
        else next((name for name in reversed(named) if name not in inner), None)
    )
    if len(named) < len(rows) or not linked or leaf is None:
        return rows
    return [named[name] for name in path_to(leaf, parents)]


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
