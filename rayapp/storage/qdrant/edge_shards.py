"""The folder of the embedded engine: its state file, its lock and its shards."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import qdrant_edge as edge

from rayapp.core.errors import IndexDown, NotFound
from rayapp.core.vectors import IndexSchema
from rayapp.index.rules.points import checked_collection, collection_name
from rayapp.storage.qdrant import edge_convert as convert

# What the embedded engine's folder holds:
# - state.json: aliases, schemas and rebuild marks, written whole: temporary file, fsync, rename
# - lock: held while a process has the folder open
# - <collection>/: one engine shard
# - <name>.broken-<time>: set aside because it could not be read

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

    def as_json(self) -> dict[str, Any]:
        collections = {
            name: {"schema": row.schema.as_json(), "needs_rebuild": row.needs_rebuild}
            for name, row in self.collections.items()
        }
        return {"aliases": self.aliases, "collections": collections}

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
        json.dump(state.as_json(), file, indent=1)
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


RETRY_AFTER_S = 1.0


class EdgeShards:
    """What `EdgeEngine` works on.

    Args:
        folder: everything the engine keeps; made when missing.
        alias: the name that reads and writes without a collection go to.
    """

    def __init__(self, folder: Path, alias: str) -> None:
        self._folder = folder
        self._alias = alias
        self._lock: FolderLock | None = None
        self._known = EdgeState()
        self._shards: dict[str, edge.EdgeShard] = {}
        self._dirty: set[str] = set()
        self._last_failure = ""

    @property
    def is_open(self) -> bool:
        """Whether a shard is open: opening one writes to the disk."""
        return bool(self._shards)

    def flush_dirty(self) -> None:
        """Make acknowledged writes durable against power loss (the log alone survives a kill)."""
        for name in list(self._dirty):
            self.flush(name)

    def flush(self, name: str) -> None:
        """`flush_dirty` of one collection; harmless when it has no new writes."""
        if name not in self._dirty:
            return
        self._dirty.discard(name)
        with self._engine(name) as shard:
            shard.flush()

    def dirty(self) -> tuple[list[str], list[str]]:
        """Collections with writes to flush: behind the alias, and others."""
        target = self._known.aliases.get(self._alias)
        names = sorted(self._dirty)
        return [n for n in names if n == target], [n for n in names if n != target]

    def close(self) -> None:
        """Flush, close every shard and give the folder back; a later call opens it again."""
        if self._lock is None:
            return
        try:
            self.flush_dirty()
        finally:
            for name in list(self._shards):
                self._close(name)
            self._lock.release()
            self._lock = None

    def _state(self) -> EdgeState:
        if self._lock is None:
            self._lock = FolderLock(self._folder)
            self._known = load_state(self._folder)
        return self._known

    def _target(self, collection: str | None) -> str:
        """The collection meant, open; a broken one is set aside (and replaced behind the alias)."""
        state = self._state()
        name = state.aliases.get(self._alias) if collection is None else collection
        if name is None:
            raise IndexDown("The vector index is empty: open it with a schema first.")
        if name not in state.collections:
            raise NotFound(f"There is no collection {name}: create it first.")
        if name in self._shards or self._load(name):
            return name
        self._replace_broken(name)
        return self._target(collection)

    def _load(self, name: str) -> bool:
        try:
            shard = edge.EdgeShard.load(str(self._folder / name))
        except BaseException as error:  # noqa: BLE001 - the engine raises bare errors and panics
            _pass_on_exits(error)
            self._last_failure = f"{name} did not open and was set aside: {error}"
            return False
        self._shards[name] = shard
        # What the log replayed is not on disk yet.
        self._dirty.add(name)
        return True

    def _replace_broken(self, name: str) -> None:
        state = self._state()
        lost = state.collections.pop(name)
        set_aside(self._folder / name)
        if state.aliases.get(self._alias) == name:
            fresh = collection_name(self._alias, lost.schema, datetime.now(UTC))
            state.aliases[self._alias] = fresh
            self._create(fresh, CollectionState(lost.schema, needs_rebuild=True))
        else:
            save_state(self._folder, state)

    def _create(self, name: str, row: CollectionState) -> None:
        path = self._folder / checked_collection(name)
        # A folder that the state does not know is left from a crash or a lost state file.
        set_aside(path)
        try:
            path.mkdir(parents=True)
            shard = edge.EdgeShard.create(str(path), convert.shard_config(row.schema))
            for operation in convert.field_indexes():
                shard.update(operation)
            shard.flush()
        except BaseException as error:
            raise _down("create", error) from error
        self._shards[name] = shard
        state = self._state()
        state.collections[name] = row
        save_state(self._folder, state)

    @contextmanager
    def _engine(self, name: str) -> Iterator[edge.EdgeShard]:
        """The shard; on an engine error it is closed, so that the next call opens it again."""
        try:
            yield self._shards[name]
        except BaseException as error:
            _pass_on_exits(error)
            self._last_failure = f"{name}: {error}"
            self._close(name)
            raise _down("answer", error) from error

    def _close(self, name: str) -> None:
        self._dirty.discard(name)
        shard: Any = self._shards.pop(name, None)
        if shard is None:
            return
        try:
            shard.close()
        except BaseException as error:  # noqa: BLE001 - a shard that fails to close is gone anyway
            _pass_on_exits(error)


def _pass_on_exits(error: BaseException) -> None:
    """Panics of the engine are BaseExceptions too; only real exits go on."""
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error


def _down(what: str, error: BaseException) -> IndexDown:
    _pass_on_exits(error)
    return IndexDown(
        f"The embedded vector engine could not {what}: it is opened again on the next call.",
        details={"error": str(error)},
        retry_after_s=RETRY_AFTER_S,
    )
