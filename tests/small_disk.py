"""A disk of a few hundred megabytes that tests fill: a tmpfs of their own.

Mounting needs the right to do so. Whoever lacks it runs the test again in a mount namespace of its
own (`in_namespace`), which most kernels grant to everybody; where that is refused too, the test
says so and is not run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

MIB = 1 << 20
# Set in a run that is in a namespace already, so that it is entered once.
INSIDE = "RAYAPP_TEST_NAMESPACE"


class SmallDisk:
    """`ballast` is what somebody else wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def free_bytes(self) -> int:
        return shutil.disk_usage(self.folder).free

    def leave(self, free_bytes: int) -> None:
        """Take all room but so much."""
        self._take(self.free_bytes - free_bytes)

    def fill(self) -> None:
        """Take what is left, to the last byte."""
        with (self.folder / "ballast-last").open("wb") as file, suppress(OSError):
            while True:
                file.write(bytes(MIB))
                file.flush()

    def release(self) -> None:
        """Give back what `leave` took."""
        for ballast in self.folder.glob("ballast-*"):
            ballast.unlink()

    def _take(self, size: int) -> None:
        number = len(list(self.folder.glob("ballast-*")))
        with (self.folder / f"ballast-{number}").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, size))


def may_mount(folder: Path) -> bool:
    """Whether this process may mount: tried, and undone."""
    tried = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(tried, capture_output=True).returncode:
        return False
    subprocess.run(["umount", str(folder)], check=True)
    return True


def may_unshare() -> bool:
    """Whether a namespace of its own lets this user mount."""
    tried = ["unshare", "--map-root-user", "--mount", "true"]
    return (
        shutil.which("unshare") is not None
        and not subprocess.run(tried, capture_output=True).returncode
    )


def in_namespace(test: str) -> subprocess.CompletedProcess[str]:
    """Run `test` (a pytest node) once more where it may mount."""
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-m", "pytest", "-q", test]
    env = os.environ | {INSIDE: "1"}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def on_small_disk(size_mb: int, test: str, work: Callable[[SmallDisk], None]) -> None:
    """Do `work` of `test` (a pytest node) on a disk of that size, wherever one may be mounted."""
    with tempfile.TemporaryDirectory(prefix="rayapp-d-") as name:
        if may_mount(Path(name)):
            with small_disk(Path(name), size_mb) as disk:
                work(disk)
        elif INSIDE not in os.environ and may_unshare():
            done = in_namespace(test)
            assert done.returncode == 0, done.stdout[-4_000:]
        else:
            pytest.skip("neither mounting nor a mount namespace is permitted here: run it as root")


@contextmanager
def small_disk(folder: Path, size_mb: int) -> Iterator[SmallDisk]:
    """A tmpfs of that size at `folder`."""
    size = f"size={size_mb}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
