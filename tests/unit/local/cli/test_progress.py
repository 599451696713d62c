"""What a start waits for: a live line on a terminal, lines that never fall silent elsewhere."""

import io
import threading
from collections.abc import Callable
from pathlib import Path

from rayapp.local.cli.output import Console, StartProgress
from rayapp.local.stack import stack
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.processes import ProcessRef
from rayapp.local.stack.state import APPLICATION, StackState, remove_state
from rayapp.serve.deploy_phase import DeployPhase

LIMIT_S = 60.0


class Clock:
    """Seconds that the test decides."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


class Heard(io.StringIO):
    """Sets an event once it holds what `wanted` looks for."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        super().__init__()
        self.event = threading.Event()
        self._wanted = wanted

    def write(self, text: str) -> int:
        written = super().write(text)
        if self._wanted(self.getvalue()):
            self.event.set()
        return written


def test_elsewhere_a_change_is_a_line_and_seconds_count_from_the_first_word_on_a_part() -> None:
    out, clock = io.StringIO(), Clock()
    with StartProgress(Console(file=out, width=40), now=clock, every_s=LIMIT_S) as progress:
        progress.waiting("ray: starting")
        clock.at += 7
        progress.waiting("application: starting Ray Serve")
        clock.at += 12
        progress.waiting("application: 1 of 5 deployments run, starting search")
    assert out.getvalue().splitlines() == [
        "ray: starting … 0 s",
        "application: starting Ray Serve … 0 s",
        "application: 1 of 5 deployments run, starting search … 12 s",
    ]


def test_elsewhere_it_is_said_again_while_nothing_changes() -> None:
    out = Heard(lambda text: text.count("ray: starting") >= 4)
    with StartProgress(Console(file=out), every_s=0.001) as progress:
        progress.waiting("ray: starting")
        assert out.event.wait(LIMIT_S)


def test_on_a_terminal_the_line_is_live_and_leaves_nothing_behind() -> None:
    clock = Clock()
    out = Heard(lambda text: "ray: starting … 9 s" in text)
    console = Console(file=out, force_terminal=True, width=80)
    with StartProgress(console, now=clock) as progress:
        progress.waiting("ray: starting")
        clock.at += 9
        assert out.event.wait(LIMIT_S)
    assert out.getvalue().endswith("\x1b[2K"), "the line is erased"


def test_the_phase_of_the_driver_is_what_up_tells(tmp_path: Path) -> None:
    paths = StackPaths.of(tmp_path)
    paths.run.mkdir()
    state = StackState(stack_id="x", supervisor=ProcessRef(name="s", pid=1, started_s=0.0))
    assert stack.describe_wait(paths, state).startswith("supervisor: ")
    state.awaited = "mongod"
    assert stack.describe_wait(paths, state).startswith("mongod: waiting until it is the primary")
    state.awaited = APPLICATION
    assert stack.describe_wait(paths, state) == "application: importing it"
    DeployPhase(paths.deploy_phase).say("starting Ray Serve")
    assert stack.describe_wait(paths, state) == "application: starting Ray Serve"
    remove_state(paths)
    assert not paths.deploy_phase.exists()
    state.phase = "ready"
    assert stack.describe_wait(paths, state) == ""
