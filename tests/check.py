"""The one check: with paths while working, without before a commit, `--all` before calling it done.

`python -m tests.check PATH...`: format and lint of the named files and folders, types (a daemon:
the first time as long as ever, then a second or two), and the tests of what is named.
Without paths: format, lint, types, layers and all tests that need no engine (2 to 3 minutes on two
cores, by how busy they are).
`--all`: the same and the tests on real engines, Ray, real HTTP and killed processes. What this
machine cannot run is named before the first step and after the last.
"""

from __future__ import annotations

import argparse
import os
import re
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


# From so many files on, starting a process for every core pays.
MANY_FILES = 6


def steps_of(paths: Sequence[Path]) -> list[tuple[str, Sequence[str]]]:
    """The steps for some files and folders alone."""
    python = [sys.executable, "-m"]
    names = [str(path) for path in paths]
    files = [str(path) for path in find_tests(paths)]
    cores = EVERY_CORE if len(files) >= MANY_FILES else ("-p", "no:xdist")
    found: list[tuple[str, Sequence[str]]] = [
        ("format", [*python, "ruff", "format", "--check", *names]),
        ("lint", [*python, "ruff", "check", *names]),
        ("types", [str(Path(sys.executable).parent / "dmypy"), "run"]),
    ]
    if files:
        found.append(("tests", [*python, "pytest", "-m", NEEDS_NOTHING, *cores, *files]))
    return found


def find_tests(paths: Sequence[Path]) -> list[Path]:
    """The test files of what is named: of tests themselves, of a folder those of the folder that
    mirrors it, of a module those that import it."""
    found: set[Path] = set()
    modules: list[str] = []
    for path in paths:
        mirror = path if path.parts[0] == "tests" else mirror_of(path)
        if mirror.is_dir():
            found.update(mirror.rglob("test_*.py"))
        elif mirror == path:
            found.update({path} if path.name.startswith("test_") else ())
        else:
            modules += map(module_of, path.rglob("*.py") if path.is_dir() else [path])
    if modules:
        imports = re.compile("|".join(map(_import_of, modules)))
        found.update(
            file
            for file in Path("tests").rglob("test_*.py")
            if imports.search(file.read_text(encoding="utf-8"))
        )
    return sorted(found)


def _import_of(module: str) -> str:
    """A pattern of its import, by its whole name or out of its package."""
    package, _, name = map(re.escape, module.rpartition("."))
    return rf"\b{re.escape(module)} import|from {package} import (?:\([^)]*|.*)\b{name}\b"


def mirror_of(path: Path) -> Path:
    """Where the tests of a folder are: of `rayapp/domain/text` in `tests/unit/domain/text`."""
    return Path("tests", "unit", *(path.parts[1:] if path.parts[0] == "rayapp" else path.parts))


def module_of(file: Path) -> str:
    """The name that imports a file of the project."""
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


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
    options = _options()
    notes = left_out() if options.all else []
    print(*notes, sep="\n", end="\n" if notes else "", flush=True)
    for name, command in steps_of(options.paths) if options.paths else steps(options.all):
        print(f"== {name}: {' '.join(command[1:])}", flush=True)
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=surroundings(), check=False)
        print(f"== {name}: {time.monotonic() - started:.1f} s", flush=True)
        if done.returncode:
            print(f"check failed at {name}; run that command alone to see it.", file=sys.stderr)
            return done.returncode
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
