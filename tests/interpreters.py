"""The interpreters that the project supports: which of them this machine has, and how one more of
them is set up as the README says.

`python -m tests.interpreters PYTHON FOLDER` sets one up.
"""

import hashlib
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import findpython
from uv import find_uv_bin

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
# What `requires-python` and the classifiers promise; a test compares them.
SUPPORTED = ("3.11", "3.12", "3.13")
# The one that the README's commands start on Debian.
SYSTEM_PYTHON = Path("/usr/bin/python3")
# Beside what was installed for the running one.
FOLDER = Path(sys.prefix) / "interpreters"
INSTALLED_LOCK = "installed-lock.sha256"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`version` has three parts."""

    python: Path
    version: str

    @property
    def minor(self) -> str:
        return self.version.rpartition(".")[0]

    @property
    def folder(self) -> Path:
        """Its virtual environment."""
        return FOLDER / self.version


def find_interpreters() -> list[Interpreter]:
    """One for each supported minor version and the system's own, without the one that runs this."""
    found = [
        Interpreter(Path(each.executable), str(each.version))
        for minor in SUPPORTED
        for each in findpython.find_all(*map(int, minor.split(".")), pre=False)
        if not Path(each.executable).is_relative_to(sys.prefix)
    ]
    return choose_interpreters(found, running=platform.python_version())


def choose_interpreters(found: Sequence[Interpreter], *, running: str) -> list[Interpreter]:
    """The system's own, and of each minor version that neither it nor `running` is the newest."""
    system = [each for each in found if each.python == SYSTEM_PYTHON and each.version != running]
    chosen = {running.rpartition(".")[0]: None, **{each.minor: each for each in system}}
    newest_first = sorted(found, key=lambda each: parse_version(each.version), reverse=True)
    for each in newest_first:
        chosen.setdefault(each.minor, each)
    return sorted(
        (each for each in chosen.values() if each), key=lambda each: parse_version(each.version)
    )


def parse_version(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def missing_versions(found: Sequence[Interpreter], *, running: str) -> list[str]:
    """The supported minor versions that nothing here is of."""
    here = {running.rpartition(".")[0], *(each.minor for each in found)}
    return [minor for minor in SUPPORTED if minor not in here]


def install(python: Path, folder: Path) -> None:
    """What the README's commands before the check install; nothing when `folder` has it of this
    lock."""
    lock = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    installed = folder / INSTALLED_LOCK
    if installed.is_file() and installed.read_text() == lock:
        return
    subprocess.run([str(python), "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "-q", "--no-compile"]
    # In seconds, where pip takes minutes; the running interpreter was installed by pip.
    uv = [find_uv_bin(), "pip", "install", "-q", "--system-certs"]
    uv += ["--python", str(folder / "bin" / "python")]
    wanted = ["--require-hashes", "-r", str(LOCK)]
    if subprocess.run([*uv, *wanted], check=False).returncode:
        # A mirror or a certificate that only pip was told of.
        subprocess.run([*pip, *wanted], check=True)
    subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)
    installed.write_text(lock)


if __name__ == "__main__":
    install(Path(sys.argv[1]), Path(sys.argv[2]))
