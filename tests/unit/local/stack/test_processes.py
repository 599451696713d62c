"""Who is ours: pid with creation time, session, mark."""

import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator

import psutil
import pytest

from rayapp.local.stack.processes import ProcessRef, mark_of, members, stop_all

Process = subprocess.Popen[bytes]


@pytest.fixture
def stack_id() -> Iterator[str]:
    """A stack nobody else has; whatever carries its mark is gone afterwards."""
    name = uuid.uuid4().hex[:10]
    yield name
    stop_all(members(name), wait_s=1)


def sleeper(stack_id: str, service: str, command: str = "exec sleep 60") -> Process:
    env = os.environ | mark_of(stack_id, service)
    process = subprocess.Popen(["sh", "-c", command], env=env, start_new_session=True)
    deadline = time.monotonic() + 5
    while not members(stack_id, service) and time.monotonic() < deadline:
        time.sleep(0.01)
    return process


def settled(look: Callable[[], object], wanted: object) -> object:
    """What `look` says once it is `wanted`, or after 5 s: a process that is just becoming another
    program shows no environment and an old command line for a moment."""
    deadline = time.monotonic() + 5
    while (seen := look()) != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    return seen


def test_a_ref_finds_its_process_until_it_is_gone(stack_id: str) -> None:
    process = sleeper(stack_id, "mongod")
    ref = ProcessRef.of("mongod", process.pid)
    assert ref.find() == psutil.Process(process.pid)
    process.kill()
    # A zombie holds its pid, but runs no more.
    deadline = time.monotonic() + 5
    while ref.find() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ref.find() is None
    process.wait()
    assert ref.find() is None


def test_a_reused_pid_is_somebody_else() -> None:
    mine = ProcessRef.of("me", os.getpid())
    earlier = mine.model_copy(update={"started_s": mine.started_s - 60})
    assert mine.find() is not None
    assert earlier.find() is None
    assert members("no such stack", leaders=[earlier]) == []


def test_a_clock_that_is_set_makes_nobody_another(
    stack_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = sleeper(stack_id, "mongod")
    ref = ProcessRef.of("mongod", process.pid)
    moved = psutil.boot_time() + 3_600
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: moved)
    assert psutil.Process(process.pid).create_time() > moved
    assert ref.find() is not None
    assert [found.pid for found in members("no such stack", leaders=[ref])] == [process.pid]


def test_of_an_earlier_boot_nothing_is_left(stack_id: str) -> None:
    process = sleeper(stack_id, "mongod")
    earlier = ProcessRef.of("mongod", process.pid).model_copy(update={"boot": "earlier"})
    assert earlier.find() is None
    assert members("no such stack", leaders=[earlier]) == []


def test_a_session_led_by_a_later_process_is_not_ours(stack_id: str) -> None:
    process = sleeper(stack_id, "mongod")
    ref = ProcessRef.of("mongod", process.pid)
    earlier = ref.model_copy(update={"started_s": ref.started_s - 60})
    assert [found.pid for found in members("no such stack", leaders=[ref])] == [process.pid]
    assert members("no such stack", leaders=[earlier]) == []


def test_the_session_of_the_kernel_is_nobodys() -> None:
    # getsid answers 0 for kernel threads, and for a leader outside this pid namespace.
    session = ProcessRef.of("x", os.getpid()).model_copy(update={"pid": 0})
    assert members("no such stack", leaders=[session]) == []


def test_members_are_told_apart_by_stack_and_service(stack_id: str) -> None:
    mongod, ray = sleeper(stack_id, "mongod"), sleeper(stack_id, "ray")
    both = {mongod.pid, ray.pid}
    assert settled(lambda: {process.pid for process in members(stack_id)}, both) == both
    assert [process.pid for process in members(stack_id, "ray")] == [ray.pid]
    assert members(stack_id[:-1] + "z") == []


def test_a_descendant_without_the_mark_is_found_by_its_session(stack_id: str) -> None:
    leader = sleeper(stack_id, "ray", "env -i sleep 61 & exec sleep 60")
    ref = ProcessRef.of("ray", leader.pid)
    programs = [["sleep", "60"], ["sleep", "61"]]

    def running() -> list[list[str]]:
        return sorted(process.cmdline() for process in members(stack_id, "ray", [ref]))

    assert settled(running, programs) == programs
    leader.kill()
    leader.wait()
    assert running() == [["sleep", "61"]]
    assert stop_all(members(stack_id, "ray", [ref]), wait_s=2) == 0


def test_what_ignores_sigterm_is_killed(stack_id: str) -> None:
    process = sleeper(stack_id, "stubborn", "trap '' TERM; while :; do sleep 0.05; done")
    while not psutil.Process(process.pid).children():
        time.sleep(0.01)  # the trap is set before the first sleep
    assert stop_all([psutil.Process(process.pid)], wait_s=0.3) == 1
    assert process.wait(timeout=5) is not None
    assert stop_all([], wait_s=1) == 0
