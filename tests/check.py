"""The one check: `python -m tests.check` before every commit, `--all` before calling work done.

Without `--all`: format, lint, types, layers and the tests that need no engine (2 to 3 minutes on
two cores, by how busy they are).
With it: the same and the tests on real engines, Ray, real HTTP and killed processes. What this
machine cannot run is named before the first step and after the last.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.local_models import missing_packages

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [name for name in ("rayapp", "jobs", "tests", "examples") if (ROOT / name).is_dir()]
NEEDS_NOTHING = "not engine and not ray and not realdata and not fault"
NO_COMPILED_FILES = "PYTHONDONTWRITEBYTECODE"
ONE_THREAD = "OMP_NUM_THREADS"
EVERY_CORE = ("-n", "auto", "--dist", "loadfile")


def steps(everything: bool) -> list[tuple[str, Sequence[str]]]:
    """Name and arguments of each step, in order of cheapness."""
    python = [sys.executable, "-m"]
    fast = [
        ("format", [*python, "ruff", "format", "--check", *SOURCES]),
        ("lint", [*python, "ruff", "check", *SOURCES]),
        ("types", [*python, "mypy"]),
        ("layers", [str(Path(sys.executable).parent / "lint-imports")]),
        # A file to a process: its tests may share what they made.
        ("tests", [*python, "pytest", "-m", NEEDS_NOTHING, "--durations=5", *EVERY_CORE]),
    ]
    if not everything:
        return fast
    real = "ray or fault or realdata"
    running = real if os.environ.get("RAYAPP_REALDATA") else "(ray or fault) and not realdata"
    return [
        *fast,
        (
            "engines",
            [
                *(*python, "pytest", "-m", "engine and not ray and not fault and not realdata"),
                *EVERY_CORE,
            ],
        ),
        # One session, so that the tests share one running stack.
        ("running", [*python, "pytest", "-m", running, "--durations=10"]),
    ]


def left_out() -> list[str]:
    """What `--all` cannot run here, and what it needs; one line each."""
    lines = []
    if not os.environ.get("RAYAPP_REALDATA"):
        lines.append("RAYAPP_REALDATA is not set: the tests on evaluation sets are left out.")
    if missing := missing_packages():
        names = ", ".join(missing)
        lines.append(f"tests/local_models is left out ({names} missing): install rayapp[gpu].")
    return lines


def surroundings() -> dict[str, str]:
    """The environment of every step."""
    # Without compiled files every test process, Ray worker and job compiles the sources again:
    # measured 26 s instead of 13 s to collect the tests, 5 s instead of 2.7 s to import a service.
    kept = {name: value for name, value in os.environ.items() if name != NO_COMPILED_FILES}
    # A process to a core: threads of the array library would wait for each other, spinning.
    return {ONE_THREAD: "1", **kept}


def main() -> int:
    begun = time.monotonic()
    everything = "--all" in sys.argv[1:]
    notes = left_out() if everything else []
    print(*notes, sep="\n", end="\n" if notes else "", flush=True)
    for name, command in steps(everything):
        print(f"== {name}: {' '.join(command[1:])}", flush=True)
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=surroundings(), check=False)
        print(f"== {name}: {time.monotonic() - started:.1f} s", flush=True)
        if done.returncode:
            print(f"check failed at {name}; run that command alone to see it.", file=sys.stderr)
            return done.returncode
    print(*notes, f"check passed in {time.monotonic() - begun:.0f} s", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
