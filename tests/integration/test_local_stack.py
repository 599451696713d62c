"""The local stack on real servers: start, crash, side by side, nothing left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pymongo import MongoClient

from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import load_settings
from rayapp.local.stack.paths import StackPaths, write_private
from rayapp.local.stack.plan import Plan
from rayapp.local.stack.processes import Child, members
from rayapp.local.stack.stack import UpResult, down, up
from rayapp.local.stack.state import StackState, read_state

ECHO = "tests.integration.echo_app:build"
# Generous: the machine that runs the tests may be busy.
WAIT_S = 90.0


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not in {WAIT_S:.0f} s: {what}"
        time.sleep(0.1)


def rows(uri: str) -> list[Any]:
    client: MongoClient[dict[str, Any]] = MongoClient(uri)
    with client:
        return [row["_id"] for row in client.test.rows.find().sort("_id")]


def insert(uri: str, row: int) -> None:
    client: MongoClient[dict[str, Any]] = MongoClient(uri)
    with client:
        client.test.rows.insert_one({"_id": row})


def gives_memory_back(uri: str) -> bool:
    client: MongoClient[dict[str, Any]] = MongoClient(uri)
    name = "tcmallocAggressiveMemoryDecommit"
    with client:
        return bool(client.admin.command("getParameter", 1, **{name: 1})[name])


# --- servers without Ray -------------------------------------------------------------------


def plan_without_ray(folder: Path) -> Plan:
    paths = StackPaths.of(folder)
    paths.create()
    settings = load_settings(
        env={},
        overrides={"ray": {"address": "127.0.0.1:1"}, "http": {"port": 0}, "data": {"dir": folder}},
    )
    return Plan(paths, settings)


def start(plan: Plan) -> dict[str, Child]:
    for child in plan.children:
        child.start()
    for child in plan.children:
        for _ in child.wait_ready():
            time.sleep(0.05)
    return {child.name: child for child in plan.children}


@pytest.fixture
def plans(tmp_path: Path) -> Iterator[list[Plan]]:
    """Two stacks side by side, stopped and checked for leftovers at the end."""
    made = [plan_without_ray(tmp_path / name) for name in ("one", "two")]
    yield made
    for plan in made:
        for child in plan.children:
            child.stop()
        assert members(plan.paths.stack_id) == []
        down(plan.paths.data)


@pytest.mark.engine
@pytest.mark.fault
def test_mongod_killed_comes_back_on_its_port_with_its_data(plans: list[Plan]) -> None:
    one, two = (start(plan) for plan in plans)
    uris = [plan.settings.mongo.uri for plan in plans]
    for row, uri in enumerate(uris):
        insert(uri, row)
    mongod = one["mongod"]
    assert mongod.ref is not None
    os.kill(mongod.ref.pid, signal.SIGKILL)
    until(lambda: mongod.restart_due(time.monotonic()), "the restart is due")
    mongod.start()
    for _ in mongod.wait_ready():
        time.sleep(0.05)
    assert [rows(uri) for uri in uris] == [[0], [1]]
    assert all(gives_memory_back(uri) for uri in uris)
    assert two["mongod"].ref is not None, "the other stack was not touched"


@pytest.mark.engine
def test_mongod_moves_to_another_port_when_its_own_is_taken(plans: list[Plan]) -> None:
    first, other = plans
    mongod = start(first)["mongod"]
    insert(first.settings.mongo.uri, 7)
    mongod.stop()
    # Another stack took the port while this one was down.
    taken = first.ports["mongod"]
    write_private(other.paths.ports, json.dumps({"mongod": taken}))
    other.children[:] = plan_without_ray(other.paths.data).children
    start(other)
    moved = plan_without_ray(first.paths.data)
    first.children[:] = moved.children
    assert moved.ports["mongod"] != taken
    start(moved)
    assert rows(moved.settings.mongo.uri) == [7]


# --- the whole stack -----------------------------------------------------------------------


def start_echo(folder: Path, **overrides: Any) -> UpResult:
    tree = {"data": {"dir": folder}, "http": {"port": 0}, "ray": {"dashboard": False}}
    return up(load_settings(env={}, overrides=tree | overrides), app=ECHO)


def state_of(folder: Path) -> StackState:
    state = read_state(StackPaths.of(folder))
    assert state is not None
    return state


def echo(state: StackState) -> dict[str, Any]:
    answer: dict[str, Any] = httpx.get(f"{state.http_url}/echo", timeout=10).json()
    return answer


def leftovers(state: StackState) -> list[str]:
    left = [process.name() for process in members(state.stack_id, leaders=state.children)]
    return left + [ref.name for ref in state.living()]


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """Two running stacks."""
    folders = [tmp_path_factory.mktemp("stack") for _ in range(2)]
    try:
        for folder in folders:
            start_echo(folder)
        yield folders
    finally:
        for folder in folders:
            down(folder)


@pytest.mark.ray
@pytest.mark.engine
@pytest.mark.fault
class TestStack:
    """In this order: the last test stops both stacks."""

    def test_two_stacks_serve_their_own(self, stacks: list[Path]) -> None:
        states = [state_of(folder) for folder in stacks]
        assert [state.phase for state in states] == ["ready", "ready"]
        for state in states:
            assert echo(state)["mongodb_uri"] == state.environment["MONGODB_URI"]
            assert [step.name for step in state.steps][-1] == "application"
        one, two = (set(state.ports.values()) for state in states)
        assert not one & two

    def test_private_files(self, stacks: list[Path]) -> None:
        run = StackPaths.of(stacks[0]).run
        for name in ("state.json", "settings.json", "ray.token"):
            assert (run / name).stat().st_mode & 0o777 == 0o600

    def test_a_second_up_changes_nothing(self, stacks: list[Path]) -> None:
        before = state_of(stacks[0])
        same = start_echo(stacks[0])
        assert not same.started
        assert not same.other_settings
        other = start_echo(stacks[0], search={"min_depth": 21})
        assert not other.started
        assert other.other_settings
        assert state_of(stacks[0]) == before

    def test_a_job_attaches_with_the_state_alone(self, stacks: list[Path]) -> None:
        code = (
            "import sys, rayapp.local.stack.stack as s; made = s.attach(sys.argv[1])\n"
            "import ray; ray.init(address=made.ray.address, log_to_driver=False)\n"
            "print(ray.get(ray.remote(num_cpus=0.1)(lambda: made.mongo.uri).remote()))"
        )
        command = [sys.executable, "-c", code, str(stacks[1])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == state_of(stacks[1]).environment["MONGODB_URI"]

    def test_without_the_token_the_cluster_refuses(self, stacks: list[Path]) -> None:
        code = "import sys, ray; ray.init(address=sys.argv[1])"
        address = state_of(stacks[0]).environment["RAY_ADDRESS"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        env |= {"RAY_AUTH_MODE": "disabled", "RAY_NUM_REDIS_GET_RETRIES": "1"}
        done = subprocess.run(
            [sys.executable, "-c", code, address],
            env=env,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode != 0
        assert "auth" in done.stderr.lower()

    def test_a_killed_mongod_is_restarted(self, stacks: list[Path]) -> None:
        before = state_of(stacks[0])
        uri = before.environment["MONGODB_URI"]
        insert(uri, 1)
        os.kill(next(ref.pid for ref in before.children if ref.name == "mongod"), signal.SIGKILL)
        until(lambda: state_of(stacks[0]).restarts.get("mongod") == 1, "the restart is noted")
        assert rows(uri) == [1]

    def test_a_killed_gcs_brings_the_application_back(self, stacks: list[Path]) -> None:
        before = state_of(stacks[0])
        old = echo(before)["pid"]
        found = members(before.stack_id, "ray")
        gcs = next(process for process in found if process.name().startswith("gcs_server"))
        gcs.kill()

        def served_by_another() -> bool:
            try:
                return bool(echo(state_of(stacks[0]))["pid"] != old)
            except (httpx.HTTPError, ValueError, KeyError):  # a refusal has no pid
                return False

        until(served_by_another, "another replica answers")
        assert state_of(stacks[0]).restarts["ray"] == 1
        assert echo(state_of(stacks[1]))["pid"] != old

    def test_down_after_the_supervisor_was_killed_leaves_nothing(self, stacks: list[Path]) -> None:
        state, other = (state_of(folder) for folder in stacks)
        os.kill(state.supervisor.pid, signal.SIGKILL)
        assert leftovers(state)
        assert down(stacks[0]) is True
        assert leftovers(state) == []
        paths = StackPaths.of(stacks[0])
        assert sorted(os.listdir(paths.run)) == ["ports.json", "supervisor.lock", "up.lock"]
        assert not paths.sockets.exists()
        assert any((paths.kept_ray_logs / "serve").iterdir()), "the application's logs are kept"
        assert down(stacks[0]) is False
        assert echo(other)["mongodb_uri"] == other.environment["MONGODB_URI"]

    def test_an_application_that_does_not_start_says_so(self, stacks: list[Path]) -> None:
        tree = {"data": {"dir": stacks[0]}, "http": {"port": 0}, "ray": {"dashboard": False}}
        with pytest.raises(ConfigError, match=r"application did not start.*no_such_function"):
            up(
                load_settings(env={}, overrides=tree),
                app="tests.integration.echo_app:no_such_function",
            )
        state = state_of(stacks[0])
        assert state.phase == "failed"
        assert leftovers(state) == []

    def test_orderly_down_leaves_nothing(self, stacks: list[Path]) -> None:
        state = state_of(stacks[1])
        assert down(stacks[1]) is True
        assert leftovers(state) == []
        assert read_state(StackPaths.of(stacks[1])) is None
