"""A supervisor on a full disk: it stays, and starts no server that would only end once more."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from rayapp.adapters.local_stack import supervisor as module
from rayapp.adapters.local_stack.child import Child
from rayapp.adapters.local_stack.paths import StackPaths
from rayapp.adapters.local_stack.room import needed_mb
from rayapp.adapters.local_stack.state import StackState, read_state, write_state
from rayapp.adapters.local_stack.supervisor import Supervisor
from rayapp.resilience.disk_space import MIB, DiskLimits, DiskSpace
from rayapp.settings import load_settings

LIMITS = DiskLimits(warn_bytes=400 * MIB, min_bytes=200 * MIB)


def a_child(name: str, folder: Path) -> Child:
    return Child(
        name=name,
        command=["false"],
        env={},
        log=folder / "log",
        ready=lambda: True,
        start_timeout_s=1,
        stop_wait_s=1,
        stack_id="none",
    )


@pytest.fixture
def free() -> list[int]:
    return [1_000]


@pytest.fixture
def supervisor(tmp_path: Path, free: list[int]) -> Supervisor:
    paths = StackPaths.of(tmp_path)
    paths.run.mkdir()
    found = Supervisor(paths, load_settings("local", env={}), "module:app")
    found._disk = DiskSpace(str(tmp_path), LIMITS, lambda: (2_000 * MIB, free[0] * MIB))
    return found


@pytest.mark.parametrize(
    ("name", "free_mib", "starts"),
    [("mongod", 50, True), ("mongod", 49, False), ("qdrant", 0, False), ("ray", 0, True)],
)
def test_what_writes_waits_for_room(
    supervisor: Supervisor, free: list[int], tmp_path: Path, name: str, free_mib: int, starts: bool
) -> None:
    free[0] = free_mib
    assert supervisor._has_room(a_child(name, tmp_path)) is starts
    told = read_state(StackPaths.of(tmp_path))
    assert (told is None) is starts
    if told is not None:
        assert str(tmp_path) in told.error
        assert told.error.endswith(f"; {name} waits for it.")


def test_a_state_that_cannot_be_written_is_written_later(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_paths: StackPaths, _state: StackState) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write_state", refuse)
    supervisor._save()
    assert read_state(StackPaths.of(tmp_path)) is None
    assert supervisor._unsaved
    writes: Callable[[StackPaths, StackState], None] = write_state
    monkeypatch.setattr(module, "write_state", writes)
    supervisor._save()
    assert read_state(StackPaths.of(tmp_path)) is not None
    assert not supervisor._unsaved


def test_a_store_that_exists_needs_its_reserve_only(tmp_path: Path) -> None:
    paths, settings = StackPaths.of(tmp_path), load_settings("local", env={})
    assert needed_mb(paths, settings) == 1_000
    paths.mongo.mkdir()
    assert needed_mb(paths, settings) == 1_000
    (paths.mongo / "WiredTiger").touch()
    assert needed_mb(paths, settings) == 256
