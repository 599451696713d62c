"""Paths, private files, state."""

import os
import stat
from pathlib import Path

import pytest

from rayapp.core.errors import ConfigError
from rayapp.local.stack.paths import StackPaths, rotate, tail, write_private
from rayapp.local.stack.processes import ProcessRef
from rayapp.local.stack.state import StackState, Step, read_state, remove_state, write_state

UNIX_SOCKET_LIMIT_BYTES = 107
# What Ray appends to its temporary folder, with the longest pid.
RAY_SUFFIX = "session_2026-11-21_22-37-22_522814_4194304/sockets/plasma_store.sock"


def state_of(paths: StackPaths) -> StackState:
    return StackState(
        stack_id=paths.stack_id,
        supervisor=ProcessRef.of("supervisor", os.getpid()),
        steps=[Step(name="mongod", seconds=0.5)],
        environment={"MONGODB_URI": "mongodb://127.0.0.1:20000"},
    )


def test_sockets_stay_short_for_any_data_directory(tmp_path: Path) -> None:
    paths = StackPaths.of(tmp_path / ("long" * 40))
    assert len(str(paths.ray / RAY_SUFFIX).encode()) <= UNIX_SOCKET_LIMIT_BYTES


def test_one_data_directory_has_one_id_and_two_have_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    absolute = StackPaths.of(tmp_path / "a")
    assert StackPaths.of("a") == absolute
    assert StackPaths.of("b/../a").stack_id == absolute.stack_id
    assert StackPaths.of("b").stack_id != absolute.stack_id


def test_folders_are_private(tmp_path: Path) -> None:
    paths = StackPaths.of(tmp_path / "data")
    paths.create()
    try:
        assert stat.S_IMODE(paths.run.stat().st_mode) == 0o700
        assert stat.S_IMODE(paths.sockets.stat().st_mode) == 0o700
    finally:
        paths.sockets.rmdir()


def test_a_socket_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    paths = StackPaths.of(tmp_path / "data")
    paths.sockets.symlink_to(tmp_path)
    try:
        with pytest.raises(ConfigError, match="belongs to another"):
            paths.create()
    finally:
        paths.sockets.unlink()


def test_private_file_is_0600_even_over_an_open_one(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret.json"]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.json"
    write_private(path, "old")

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_private(path, "new")
    assert path.read_text() == "old"


def test_state_round_trip_and_removal(tmp_path: Path) -> None:
    paths = StackPaths.of(tmp_path)
    paths.run.mkdir()
    assert read_state(paths) is None
    state = state_of(paths)
    write_state(paths, state)
    write_private(paths.settings, "{}")
    write_private(paths.ports, "{}")
    assert read_state(paths) == state
    assert state.running
    assert state.living() == [state.supervisor]
    remove_state(paths)
    remove_state(paths)
    assert [entry.name for entry in paths.run.iterdir()] == ["ports.json"]


def test_damaged_state_says_what_to_do(tmp_path: Path) -> None:
    paths = StackPaths.of(tmp_path)
    paths.run.mkdir()
    paths.state.write_text('{"stack_id": 1')
    with pytest.raises(ConfigError, match="rayapp down"):
        read_state(paths)


def test_tail_and_rotation(tmp_path: Path) -> None:
    log = tmp_path / "mongod.log"
    assert tail(log) == ""
    log.write_text("\n".join(str(number) for number in range(100)))
    assert tail(log, 3) == "97\n98\n99"
    rotate(log, limit_bytes=1_000)
    assert log.exists()
    rotate(log, limit_bytes=10)
    assert not log.exists()
    assert (tmp_path / "mongod.log.1").exists()
