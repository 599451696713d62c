"""Command lines, environments, and what a plan starts for which settings."""

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import CONFIG_DIR, load_settings
from rayapp.core.settings.model import Settings
from rayapp.local.stack import programs
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.plan import Plan
from rayapp.serve import environment as serve_env

ALL_GIVEN = {
    "mongo": {"uri": "mongodb://db/"},
    "redis": {"url": "redis://cache"},
    "qdrant": {"url": "http://index"},
    "ray": {"address": "10.0.0.1:6379"},
}
PORTS = {name: 20_000 + at for at, name in enumerate(programs.RAY_PORTS)}


@pytest.fixture
def paths(tmp_path: Path) -> StackPaths:
    made = StackPaths.of(tmp_path)
    made.run.mkdir()
    return made


def settings_with(**overrides: Any) -> Settings:
    return load_settings(env={}, overrides=overrides)


def test_mongod_is_loopback_journaled_and_a_replica_set(paths: StackPaths) -> None:
    settings = settings_with(mongo={"wired_tiger_cache_gb": 0.5})
    command = programs.mongod_command(Path("/bin/mongod"), paths, 20_001, settings)
    options = dict(itertools.pairwise(command))
    assert options["--port"] == "20001"
    assert options["--bind_ip"] == "127.0.0.1"
    assert options["--replSet"] == programs.REPLICA_SET
    assert options["--networkMessageCompressors"] == "disabled"
    assert options["--wiredTigerCacheSizeGB"] == "0.5"
    assert options["--syncdelay"] == str(programs.CHECKPOINT_S)
    assert options["--dbpath"] == str(paths.mongo)
    assert programs.mongodb_uri(20_001) == (
        "mongodb://127.0.0.1:20001/?replicaSet=rayapp&w=majority&journal=true"
    )


def test_valkey_listens_on_its_socket_only_and_keeps_no_file() -> None:
    command = programs.valkey_command(Path("valkey-server"), Path("/tmp/x.sock"))
    options = dict(itertools.pairwise(command))
    assert options["--port"] == "0"
    assert options["--unixsocket"] == "/tmp/x.sock"
    assert options["--save"] == ""
    assert options["--maxmemory"] == "64mb"
    assert options["--maxmemory-policy"] == "allkeys-lru"


def test_ray_gets_every_port_from_us(paths: StackPaths) -> None:
    command = programs.ray_command(paths, PORTS, settings_with(ray={"dashboard": False}))
    text = " ".join(command)
    assert command[:3] == [sys.executable, "-P", "-m"], "not what lies in the current folder"
    assert all(str(port) in text for port in PORTS.values())
    assert "--head" in command
    assert "--block" in command
    assert "--include-dashboard=false" in command
    assert f"--object-store-memory={150 << 20}" in command
    assert f"--temp-dir={paths.ray}" in command


@pytest.mark.parametrize(
    ("asked", "detected", "given"), [(0, 2, 4), (0, 16, 16), (2, 16, 2), (0, None, 4)]
)
def test_admission_cpus(
    paths: StackPaths, monkeypatch: pytest.MonkeyPatch, asked: int, detected: int, given: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: detected)
    command = programs.ray_command(paths, PORTS, settings_with(ray={"num_cpus": asked}))
    assert f"--num-cpus={given}" in command


def test_ray_authentication_is_explicit_in_both_modes(paths: StackPaths) -> None:
    assert programs.ray_auth(paths, settings_with()) == {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(paths.token),
    }
    off = programs.ray_auth(paths, settings_with(ray={"token_auth": False}))
    assert off == {"RAY_AUTH_MODE": "disabled"}


def test_nothing_is_started_when_everything_is_given(paths: StackPaths) -> None:
    plan = Plan(paths, settings_with(**ALL_GIVEN))
    assert plan.children == []
    assert plan.environment() == {
        "MONGODB_URI": "mongodb://db/",
        "REDIS_URL": "redis://cache",
        "QDRANT_URL": "http://index",
        "RAY_ADDRESS": "10.0.0.1:6379",
    }
    assert not paths.token.exists()


def test_only_what_is_missing_is_started(paths: StackPaths) -> None:
    given = {name: value for name, value in ALL_GIVEN.items() if name != "ray"}
    plan = Plan(paths, settings_with(**given, http={"port": 0}))
    assert [child.name for child in plan.children] == ["ray"]
    assert plan.settings.http.port == plan.ports["http"]
    assert plan.settings.ray.address.endswith(f":{plan.ports['ray_gcs']}")
    assert plan.settings.mongo.uri == "mongodb://db/"
    assert plan.environment()["RAY_AUTH_TOKEN_PATH"] == str(paths.token)
    assert paths.token.stat().st_mode & 0o777 == 0o600
    assert len(paths.token.read_text()) == 64
    env = plan.children[0].env
    assert env["RAY_SERVE_ENABLE_HA_PROXY"] == "1"
    assert env["RAY_SERVE_HAPROXY_SOCKET_PATH"].startswith(str(paths.sockets))
    assert len(set(plan.ports.values())) == len(plan.ports)


def test_a_restart_keeps_addresses(paths: StackPaths) -> None:
    given = {name: value for name, value in ALL_GIVEN.items() if name != "ray"}
    first, second = (Plan(paths, settings_with(**given)) for _ in range(2))
    assert first.settings == second.settings
    assert first.ports == second.ports


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("error while loading shared libraries: libcurl.so.4: cannot open shared object file",
         "apt-get install libcurl4"),
        ("libssl.so.3: cannot open shared object file: No such file", "apt-get install libssl3"),
        ("WiredTiger error: No space left on device", "no disk space"),
        ("SocketException: Address already in use", "port in use"),
        ("first\nlast line", "did not start: last line"),
        ("", "it printed nothing"),
    ],
)  # fmt: skip
def test_why_a_server_did_not_start(output: str, said: str) -> None:
    assert said in programs.explain("mongod", output)


def test_a_binary_that_does_not_run_names_the_missing_package(tmp_path: Path) -> None:
    binary = tmp_path / "mongod"
    binary.write_text("#!/bin/sh\necho 'libcurl.so.4: cannot open shared object' >&2\nexit 127\n")
    binary.chmod(0o755)
    with pytest.raises(ConfigError, match="apt-get install libcurl4"):
        programs.version_of(binary)


def test_the_mongod_on_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = tmp_path / "mongod"
    binary.write_text("#!/bin/sh\necho 'db version v7.0.32'\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.find_mongod() == binary
    assert programs.version_of(binary) == "7.0.32"


def test_python_path_starts_with_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(CONFIG_DIR.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/other", root]))
    assert programs.python_path() == {"PYTHONPATH": os.pathsep.join([root, "/other"])}


class TestServeEnvironment:
    def test_every_row_has_a_reason_and_one_place(self) -> None:
        rows = (*serve_env.FAST, *serve_env.LOCAL)
        assert len({row.name for row in rows}) == len(rows)
        assert all(row.reason for row in rows)

    def test_a_local_head_shares_no_port_or_file_with_another(self) -> None:
        ports = {name: 21_000 + at for at, name in enumerate(serve_env.PORT_NAMES.values())}
        one = serve_env.local_environment(Path("/tmp/one"), ports)
        two = serve_env.local_environment(Path("/tmp/two"), {k: v + 500 for k, v in ports.items()})
        same = {name for name in one if one[name] == two[name]}
        tuned = {row.name for row in (*serve_env.FAST, *serve_env.LOCAL)}
        assert same == tuned | {"RAY_SERVE_HAPROXY_NBTHREAD"}

    @pytest.mark.parametrize(("cores", "threads"), [(None, 1), (1, 1), (2, 1), (4, 2), (64, 4)])
    def test_proxy_threads(
        self, monkeypatch: pytest.MonkeyPatch, cores: int | None, threads: int
    ) -> None:
        monkeypatch.setattr(os, "cpu_count", lambda: cores)
        assert serve_env.fast_environment()["RAY_SERVE_HAPROXY_NBTHREAD"] == str(threads)

    def test_cluster_files_carry_the_same_table(self) -> None:
        table = {row.name: row.value for row in serve_env.FAST}
        # As a shell reads it.
        command = "set -a; . $0; printenv -0"
        given = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        shell = ["sh", "-c", command, str(CONFIG_DIR / "serve.env")]
        found = subprocess.run(shell, env=given, capture_output=True, text=True, check=True)
        pairs = dict(word.split("=", 1) for word in found.stdout.split("\0") if word)
        assert table.items() <= pairs.items()
        cores = int(subprocess.run(["nproc"], capture_output=True, check=True).stdout)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "cpu_count", lambda: cores)
            threads = serve_env.fast_environment()["RAY_SERVE_HAPROXY_NBTHREAD"]
        assert pairs["RAY_SERVE_HAPROXY_NBTHREAD"] == threads
        front = Path(pairs["RAY_SERVE_HAPROXY_BINARY_PATH"])
        assert front == Path(sys.executable).with_name("rayapp-haproxy")
        service = yaml.safe_load((CONFIG_DIR / "k8s" / "rayservice.yaml").read_text())
        cluster = service["spec"]["rayClusterConfig"]
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            env = group["template"]["spec"]["containers"][0]["env"]
            found = {entry["name"]: entry["value"] for entry in env}
            assert found.pop("RAYAPP_BACKUP__DIR") == "/srv/archives"
            assert found.pop("RAY_SERVE_HAPROXY_BINARY_PATH") == "/srv/venv/bin/rayapp-haproxy"
            assert found.pop("RAY_SERVE_HAPROXY_NBTHREAD") == "2"
            assert found == table
