"""Ray's logs outlive the folder of its sockets."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayapp.core.errors import ConfigError, DependencyDown
from rayapp.core.settings.load import load_settings
from rayapp.local.stack import stack
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.processes import ProcessRef
from rayapp.local.stack.stack import down
from rayapp.local.stack.state import StackState


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[StackPaths]:
    made = StackPaths.of(tmp_path / "data")
    made.create()
    yield made
    down(made.data)


def session(paths: StackPaths, name: str, text: str) -> Path:
    logs = paths.ray / name / "logs"
    (logs / "serve").mkdir(parents=True)
    (logs / "serve" / "replica.log").write_text(text)
    latest = paths.ray / "session_latest"
    latest.unlink(missing_ok=True)
    latest.symlink_to(name)
    return logs


def test_nobody_goes_up_while_a_down_ends(
    paths: StackPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would lose the state and the sockets that it has just made."""

    def somebody_else_would_begin(_: StackPaths) -> None:
        with (paths.run / "up.lock").open("w") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    monkeypatch.setattr(stack, "keep_ray_logs", somebody_else_would_begin)
    down(paths.data)


def test_up_has_its_sockets_when_a_down_ended_before_its_turn(
    paths: StackPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_one = stack._only_one

    @contextlib.contextmanager
    def after_a_down(paths: StackPaths) -> Iterator[None]:
        with only_one(paths):
            shutil.rmtree(paths.sockets)
            yield

    def look(paths: StackPaths, *_: object) -> None:
        assert paths.sockets.is_dir()
        raise ConfigError("seen")

    monkeypatch.setattr(stack, "_only_one", after_a_down)
    monkeypatch.setattr(stack, "check_room", lambda *_: None)
    monkeypatch.setattr(stack, "_spawn", look)
    with pytest.raises(ConfigError, match="seen"):
        stack.up(load_settings(env={}, overrides={"data": {"dir": paths.data}}))
    monkeypatch.undo()


def test_a_start_that_takes_too_long_has_not_stopped(
    paths: StackPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = ProcessRef.of("supervisor", os.getpid())
    monkeypatch.setattr(stack, "START_TIMEOUT_S", 0.0)
    state = StackState(stack_id=paths.stack_id, supervisor=me)
    monkeypatch.setattr(stack, "read_state", lambda _: state)
    news = stack._News(lambda _: None, lambda _: None, 0)
    with pytest.raises(DependencyDown, match="still starting after 0 s: `rayapp status`"):
        stack._wait_started(paths, True, news)
    monkeypatch.undo()


def test_down_keeps_the_logs_of_the_last_session(paths: StackPaths) -> None:
    session(paths, "session_2026_1", "first")
    down(paths.data)
    assert not paths.sockets.exists()
    kept = paths.kept_ray_logs / "serve" / "replica.log"
    assert kept.read_text() == "first"
    paths.create()
    session(paths, "session_2026_2", "second")
    down(paths.data)
    assert kept.read_text() == "second"
    assert sorted(os.listdir(paths.logs)) == ["ray"]


def test_large_files_and_pipes_are_left_out(
    paths: StackPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack, "LARGEST_FILE_BYTES", 10)
    logs = session(paths, "session_2026_1", "short")
    (logs / "long.log").write_text("x" * 11)
    os.mkfifo(logs / "pipe")
    assert stack.keep_ray_logs(paths) == paths.kept_ray_logs
    assert sorted(os.listdir(paths.kept_ray_logs)) == ["serve"]


def test_without_a_session_an_earlier_copy_stays(paths: StackPaths) -> None:
    paths.kept_ray_logs.mkdir()
    (paths.kept_ray_logs / "old.log").write_text("old")
    assert stack.keep_ray_logs(paths) is None
    assert (paths.kept_ray_logs / "old.log").exists()
