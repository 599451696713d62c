"""The shards in the folder of the embedded engine: opened, made, set aside, flushed, closed.

Any engine error closes the shard; the next call opens it again (the write-ahead log is replayed)
or, when it does not open, sets it aside and starts empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from rayapp.core.errors import IndexDown, NotFound
from rayapp.index.rules.points import checked_collection, collection_name
from rayapp.storage.qdrant import edge_convert as convert
from rayapp.storage.qdrant.edge_state import (
    CollectionState,
    EdgeState,
    FolderLock,
    load_state,
    save_state,
    set_aside,
)

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
