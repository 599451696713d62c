"""A folder of Markdown files, as a zip: one memory for each, with its front matter."""

import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import yaml

from rayapp.portability.rules.archive import BadArchive
from rayapp.portability.rules.foreign import (
    NO_WORDS,
    Files,
    ForeignMemory,
    Found,
    LeftOut,
    digest,
    labels_of,
    text_of,
    time_of,
)

ENDS = (".md", ".markdown")
_FRONT = re.compile(
    r"\A---[ \t]*\r?\n(.{0,10000}?)\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
CREATED, CHANGED = ("created", "date", "created_at"), ("updated", "modified", "updated_at")


def read(files: Files) -> Iterator[Found]:
    names = list(files.named("*"))
    notes = [one for one in names if one.lower().endswith(ENDS)]
    if not notes:
        raise BadArchive("There is no .md file in it; send a zip of the folder.")
    if others := len(names) - len(notes):
        yield LeftOut(what="file", why="no Markdown", count=others)
    for name in notes:
        yield _note(files, name)


def _note(files: Files, name: str) -> Found:
    data = files.whole(name)
    try:
        said = None if data is None else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        said = None
    if said is None:
        return LeftOut(what="file", why="no text in UTF-8, or too long")
    front, body = _split(said)
    text = text_of(body)
    if not text:
        return LeftOut(what="file", why=NO_WORDS)
    title = text_of(front.get("title")) or text_of(name.rpartition("/")[2].rpartition(".")[0])
    if title and not text.lstrip("# ").startswith(title):
        text = f"{title}\n\n{text}"
    created = next((at for one in CREATED if (at := _time(front.get(one)))), None)
    changed = next((at for one in CHANGED if (at := _time(front.get(one)))), files.at(name))
    return ForeignMemory(
        key=digest(name, text),
        text=text,
        at=created or changed,
        changed_at=changed,
        tags=labels_of(front.get("tags")),
    )


def _split(said: str) -> tuple[dict[str, Any], str]:
    """Front matter and body. What cannot be read stays in the body."""
    found = _FRONT.match(said)
    if found is None:
        return {}, said
    try:
        front = yaml.safe_load(found[1])
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}, said
    return (front, said[found.end() :]) if isinstance(front, dict) else ({}, said)


def _time(value: Any) -> datetime | None:
    return time_of(value.isoformat() if isinstance(value, date) else value)
