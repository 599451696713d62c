"""A supervisor on a full disk: it stays, and starts no server that would only end once more."""

import errno
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rayapp.core.disk_space import MIB, DiskLimits, DiskSpace
from rayapp.core.settings.load import load_settings
from rayapp.local.stack import supervisor as module
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.plan import Plan
from rayapp.local.stack.processes import BACKOFF_S, Child
from rayapp.local.stack.state import StackState, read_state, write_state
from rayapp.local.stack.supervisor import Supervisor, needed_mb

GIVEN = {"mongo": {"uri": "mongodb://db/"}, "qdrant": {"url": "http://index"}}
LIMITS = DiskLimits(warn_bytes=400 * MIB, min_bytes=200 * MIB)


def a_child(name: str, folder: Path, *, lives: bool = False) -> Child:
    return Child(
        name=name,
        command=["sleep", "60"] if lives else ["false"],
        env={},
        log=folder / "log",
        ready=lambda: True,
        start_timeout_s=1,
        stop_wait_s=1,
        stack_id=uuid.uuid4().hex[:10],
    )


@pytest.fixture
def free() -> list[int]:
    return [1_000]


@pytest.fixture
def supervisor(tmp_path: Path, free: list[int]) -> Supervisor:
    paths = StackPaths.of(tmp_path)
    paths.run.mkdir()
    settings = load_settings("local", env={}, overrides=GIVEN)
    found = Supervisor(paths, settings, "module:app")
    found._disk = DiskSpace(str(tmp_path), LIMITS, lambda: (2_000 * MIB, free[0] * MIB))
    return found


@pytest.fixture
def servers(supervisor: Supervisor, tmp_path: Path) -> Iterator[dict[str, Child]]:
    """Of a stack that was ready: all of them have died."""
    found = {name: a_child(name, tmp_path, lives=True) for name in ("mongod", "valkey")}
    plan = supervisor._plan = Plan(supervisor._paths, supervisor._requested)
    plan.children[:] = found.values()
    supervisor.state.phase = "ready"
    for child in found.values():
        child.start()
        died(child)
    yield found
    for child in found.values():
        child.stop()


def died(child: Child) -> None:
    assert child.process is not None
    child.process.kill()
    child.process.wait()


def test_a_full_disk_costs_no_pause_and_room_is_enough(
    supervisor: Supervisor, servers: dict[str, Child], free: list[int]
) -> None:
    mongod = servers["mongod"]
    for _ in range(len(BACKOFF_S)):
        supervisor._look(mongod)
        died(mongod)  # again and again: without the disk, the next start would wait 30 s
    free[0] = 0
    for _ in range(3):
        supervisor._look(mongod)
    assert mongod.gone
    assert "mongod waits for it" in supervisor.state.error
    free[0] = 1_000
    supervisor._look(mongod)
    assert not mongod.gone
    supervisor._look(mongod)
    assert supervisor.state.error == ""


def test_the_others_are_looked_after_while_one_waits_or_starts(
    supervisor: Supervisor, servers: dict[str, Child], free: list[int]
) -> None:
    mongod, valkey = servers.values()
    mongod.ready = lambda: False
    free[0] = 0
    supervisor._watch()
    assert (mongod.gone, valkey.gone) == (True, False)
    free[0] = 1_000
    supervisor._watch()
    assert mongod.returning
    died(valkey)
    valkey.drop_pause()
    supervisor._watch()
    assert not valkey.gone
    died(valkey)
    valkey.drop_pause()
    supervisor._look_meanwhile(mongod)
    assert not valkey.gone


def test_one_that_never_gets_ready_is_ended_and_tried_again(
    supervisor: Supervisor, servers: dict[str, Child]
) -> None:
    mongod = servers["mongod"]
    mongod.ready = lambda: False
    mongod.again_timeout_s = 1_000.0
    supervisor._look(mongod)
    supervisor._look(mongod)
    assert mongod.returning, "its first start had a second only"
    mongod.started_at -= 2_000
    supervisor._look(mongod)
    assert "mongod was not ready in 1000 s" in supervisor.state.error
    assert (mongod.restarts, mongod.returning) == (2, True)


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
    supervisor: Supervisor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(_paths: StackPaths, _state: StackState) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "write_state", refuse)
    supervisor._save()
    supervisor._save()
    assert capsys.readouterr().out.count("cannot be written") == 1, "every look would say it"
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
    assert needed_mb(paths, settings) == 500
