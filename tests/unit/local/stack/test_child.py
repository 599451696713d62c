"""One supervised process: readiness, backoff, and the checks before anything starts."""

import itertools
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import load_settings
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.processes import BACKOFF_S, STABLE_S, Child
from rayapp.local.stack.stack import (
    attach,
    check_room,
    down,
    not_joined,
    stack_environment,
    without_local_cluster,
)
from rayapp.local.stack.supervisor import reachable, settings_hash


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    made = Child(
        name="server",
        command=["sleep", "60"],
        env={},
        log=tmp_path / "server.log",
        ready=lambda: True,
        start_timeout_s=5,
        stop_wait_s=2,
        stack_id=uuid.uuid4().hex[:10],
    )
    yield made
    made.stop()


def wait(child: Child) -> None:
    for _ in child.wait_ready():
        time.sleep(0.01)


def test_start_stop_and_identity(child: Child) -> None:
    assert child.ref is None
    child.start()
    first = child.ref
    assert first is not None
    assert first.find() is not None
    child.start()
    assert first.find() is None, "a second start leaves nothing of the first"
    assert child.stop() == 0
    assert child.ref is None


def test_what_outlives_its_leader_is_ended_without_being_asked(
    child: Child, tmp_path: Path
) -> None:
    """Seconds that the next start of Ray would wait for processes nobody ends in order."""
    ready, asked = tmp_path / "ready", tmp_path / "asked"
    orphan = f"trap 'touch {asked}; exit' TERM; touch {ready}; while :; do sleep 0.05; done"
    child.command = ["sh", "-c", f'sh -c "{orphan}" & wait']
    child.ready = ready.exists
    child.start()
    wait(child)
    assert child.process is not None
    child.process.kill()
    child.process.wait()
    assert child.stop() >= 1
    assert not asked.exists()


def test_waits_until_ready(child: Child) -> None:
    answers = iter([False, False, True])
    child.ready = lambda: next(answers)
    child.start()
    assert len(list(child.wait_ready())) == 2


def test_an_end_before_ready_says_why(child: Child) -> None:
    child.command = ["sh", "-c", "echo 'libcurl.so.4: cannot open shared object' >&2; exit 1"]
    child.ready = lambda: False
    child.start()
    with pytest.raises(ConfigError, match="apt-get install libcurl4"):
        wait(child)


def test_never_ready_names_the_log(child: Child) -> None:
    child.ready, child.start_timeout_s = (lambda: False), 0.05
    child.start()
    with pytest.raises(ConfigError, match=r"server\.log"):
        wait(child)


def test_pauses_grow_while_it_keeps_dying(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    child.command = ["true"]
    now = itertools.count(0)
    clock = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    pauses = []
    for _ in range(len(BACKOFF_S) + 2):
        child.start()
        assert child.process is not None
        child.process.wait()
        died = clock
        while not child.restart_due(clock):
            clock += 0.25
            assert next(now) < 10_000
        pauses.append(clock - died)
    assert pauses == [*BACKOFF_S, BACKOFF_S[-1], BACKOFF_S[-1]]
    # One that lived long starts over without a pause.
    child.start()
    assert child.process is not None
    child.process.wait()
    clock += STABLE_S + 1
    assert child.restart_due(clock)


def test_a_living_one_is_not_restarted(child: Child) -> None:
    assert not child.restart_due(time.monotonic())
    child.start()
    assert not child.restart_due(time.monotonic() + 1_000)


def test_a_busy_http_port_names_port_and_setting(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        settings = load_settings(env={}, overrides={"http": {"port": port}})
        with pytest.raises(ConfigError, match=rf"Port {port} .*RAYAPP_HTTP__PORT"):
            check_room(StackPaths.of(tmp_path), settings)
    check_room(StackPaths.of(tmp_path), settings)


def test_too_little_disk_or_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(env={}, overrides={"http": {"port": 0}})
    stack = "rayapp.local.stack.stack"
    monkeypatch.setattr(f"{stack}.MIN_MEMORY_MB", 1 << 40)
    with pytest.raises(ConfigError, match="memory are available"):
        check_room(StackPaths.of(tmp_path), settings)
    monkeypatch.setattr(f"{stack}.needed_mb", lambda *_: 1 << 40)
    with pytest.raises(ConfigError, match="--data-dir on another disk"):
        check_room(StackPaths.of(tmp_path), settings)


def test_without_a_stack(tmp_path: Path) -> None:
    assert down(tmp_path) is False
    with pytest.raises(ConfigError, match="rayapp up"):
        stack_environment(tmp_path)
    with pytest.raises(ConfigError, match="rayapp up"):
        attach(tmp_path)


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("10.1.2.3",) * 2],
)
def test_reachable_address(host: str, address: str) -> None:
    assert reachable(host) == address


def test_settings_hash_sees_every_change() -> None:
    one = load_settings(env={})
    two = load_settings(env={"RAYAPP_SEARCH__MIN_DEPTH": "21"})
    assert settings_hash(one) == settings_hash(load_settings(env={}))
    assert settings_hash(one) != settings_hash(two)


def test_the_address_of_a_local_stack_is_not_joined(tmp_path: Path) -> None:
    """`eval "$(rayapp env)"` leaves it in the shell: its own, or that of another stack."""
    paths = StackPaths.of(tmp_path)
    paths.run.mkdir()
    paths.ports.write_text('{"ray_gcs": 20001}')
    own, other, client, real = (
        load_settings(env={"RAY_ADDRESS": address}, overrides={"data": {"dir": tmp_path}})
        for address in (
            "127.0.0.2:20001",
            "127.0.0.2:20123",
            "ray://127.0.0.2:10001",
            "10.0.0.1:6379",
        )
    )
    for one in (own, other, client):
        assert without_local_cluster(one).ray.address == ""
    assert without_local_cluster(real) == real
    assert "another local stack (127.0.0.2:20123)" in not_joined(other)
    assert (not_joined(own), not_joined(real)) == ("", "")


def test_without_a_data_directory_another_stack_is_not_joined(tmp_path: Path) -> None:
    tree = {"data": {"dir": tmp_path / "empty"}}
    given = load_settings(env={"RAY_ADDRESS": "127.0.0.2:20123"}, overrides=tree)
    assert without_local_cluster(given) == load_settings(env={}, overrides=tree)
