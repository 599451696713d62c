"""What the embedded engine's folder holds: aliases, schemas and rebuild marks, in one file.

<folder>/state.json            written whole: temporary file, fsync, rename
<folder>/lock                  held while a process has the folder open
<folder>/<collection>/         one engine shard
<folder>/<name>.broken-<time>  set aside because it could not be read
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from rayapp.core.errors import IndexDown
from rayapp.core.vectors import IndexSchema

STATE_FILE = "state.json"
LOCK_FILE = "lock"
BROKEN_MARK = ".broken-"
# Enough to look into the last failure and the one before; more would fill the disk.
BROKEN_KEPT = 2


@dataclass(frozen=True, slots=True)
class CollectionState:
    schema: IndexSchema
    needs_rebuild: bool


@dataclass(slots=True)
class EdgeState:
    """`aliases` maps an alias to a collection name."""

    aliases: dict[str, str] = field(default_factory=dict)
    collections: dict[str, CollectionState] = field(default_factory=dict)

    def mark_rebuild(self, name: str, needs_rebuild: bool) -> None:
        self.collections[name] = replace(self.collections[name], needs_rebuild=needs_rebuild)


class FolderLock:
    """Exclusive for the life of the process: a second engine on the folder would ruin it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file: TextIO = (folder / LOCK_FILE).open("w")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise IndexDown(
                f"The vector folder {folder} is open in another process: stop that process, "
                "or set QDRANT_URL to share a server.",
                retry_after_s=1.0,
            ) from error

    def release(self) -> None:
        self._file.close()


def load_state(folder: Path) -> EdgeState:
    """The state on disk; an unreadable file is set aside and gives an empty state."""
    path = folder / STATE_FILE
    if not path.exists():
        return EdgeState()
    try:
        return _state_of(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError):
        set_aside(path)
        return EdgeState()


def save_state(folder: Path, state: EdgeState) -> None:
    """Durable before it returns; readers see the old file or the new one, never a mix."""
    temporary = folder / f"{STATE_FILE}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(asdict(state), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / STATE_FILE)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_aside(path: Path) -> None:
    """Rename a broken file or folder out of the way and forget the oldest ones."""
    if not path.exists():
        return
    stamp = datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")
    path.rename(path.with_name(f"{path.name}{BROKEN_MARK}{stamp}"))
    broken = [p for p in path.parent.iterdir() if BROKEN_MARK in p.name]
    for old in sorted(broken, key=lambda p: p.name.rpartition(BROKEN_MARK)[2])[:-BROKEN_KEPT]:
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink()


def _state_of(data: dict[str, Any]) -> EdgeState:
    collections = {
        name: CollectionState(IndexSchema(**row["schema"]), bool(row["needs_rebuild"]))
        for name, row in data["collections"].items()
    }
    return EdgeState(aliases=dict(data["aliases"]), collections=collections)
