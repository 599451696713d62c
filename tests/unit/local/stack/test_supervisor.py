"""What the supervisor survives, and what it says of a start that failed."""

import errno
import os
import socket
from pathlib import Path

import pytest

from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.local.stack.front import Front
from rayapp.local.stack.paths import PortBook, StackPaths
from rayapp.local.stack.plan import Plan
from rayapp.local.stack.processes import Child
from rayapp.local.stack.supervisor import DEFAULT_APP, Supervisor, forget_clusters

GIVEN = {
    "mongo": {"uri": "mongodb://db/"},
    "redis": {"url": "redis://cache"},
    "qdrant": {"url": "http://index"},
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(env={}, overrides={"data": {"dir": str(tmp_path)}, **GIVEN})


@pytest.fixture
def supervisor(settings: Settings, tmp_path: Path) -> Supervisor:
    paths = StackPaths.of(tmp_path)
    for folder in (paths.run, paths.logs):
        folder.mkdir()
    made = Supervisor(paths, settings, DEFAULT_APP)
    made._plan = Plan(paths, settings)
    return made


class FullDisk(Front):
    def look(self) -> int | None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_haproxy_that_cannot_be_started_does_not_end_the_stack(
    supervisor: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    supervisor._keep_front(FullDisk(StackPaths.of(tmp_path), tmp_path / "haproxy"))
    assert "haproxy cannot be started: [Errno 28] No space left" in capsys.readouterr().out
    assert "haproxy" not in supervisor.state.restarts


def test_a_start_that_ray_cut_short_says_what_ray_said(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    """The driver is ended then, and has printed nothing."""
    paths = StackPaths.of(tmp_path)
    paths.log("deploy").write_text("")
    paths.log("ray").write_text("Some Ray subprocesses exited unexpectedly: raylet\n")
    said = supervisor._why_not_deployed(paths.log("deploy"))
    assert said.startswith("Ray ended while the application started: Some Ray subprocesses")


def test_a_ray_that_ended_while_it_started_is_started_once_more(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarted: list[Child] = []
    monkeypatch.setattr(supervisor, "_restart_ray", restarted.append)
    supervisor._start_ray_again(ConfigError("Ray ended."))
    assert [child.name for child in restarted] == ["ray"]
    assert supervisor.state.restarts == {"ray": 1}


def test_a_port_of_ray_that_somebody_took_meanwhile_is_exchanged(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    """Another stack chose it while Ray was down: the same port again would fail for ever."""
    plan, ray = supervisor._plan, supervisor._ray_child()
    assert plan is not None
    assert ray is not None
    old = dict(plan.ports)
    plan.renew_ray(ray)
    assert plan.ports == old
    with socket.create_server(("127.0.0.1", old["ray_gcs"])):
        plan.renew_ray(ray)
    assert {name for name in old if plan.ports[name] != old[name]} == {"ray_gcs"}
    assert f"--port={plan.ports['ray_gcs']}" in ray.command
    assert plan.settings.ray.address.endswith(f":{plan.ports['ray_gcs']}")
    assert PortBook(StackPaths.of(tmp_path).ports, "").ports == plan.ports


def test_a_port_that_is_taken_is_named(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_ray_child", lambda: None)
    log = StackPaths.of(tmp_path).log("deploy")
    log.write_text("[ALERT] : cannot bind socket (Address already in use) for [0.0.0.0:1]\nEnd.\n")
    assert "for [0.0.0.0:1]" in supervisor._why_not_deployed(log)


def test_a_start_that_failed_for_another_reason_is_not_repeated(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_ray_ended", lambda: False)
    with pytest.raises(ConfigError, match=r"no application\.$"):
        supervisor._start_ray_again(ConfigError("There is no application."))
    assert supervisor.state.restarts == {}


def test_the_cluster_of_a_shell_does_not_reach_the_processes_of_an_own_ray(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS", "RAY_AUTH_TOKEN")
    for name in names:
        monkeypatch.setenv(name, "127.0.0.2:20123")
    forget_clusters()
    assert not [name for name in names if name in os.environ]
