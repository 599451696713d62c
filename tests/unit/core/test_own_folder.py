"""Folders that end with their process: by themselves, or by the next that makes one."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

import pytest

from rayapp.core.own_folder import own_folder
from tests.support import harness

PREFIX = "rayapp-own-"
# Holds a folder with a file in it until it is killed.
HOLDER = """
import sys
from rayapp.core.own_folder import own_folder
with own_folder(sys.argv[1]) as folder:
    (folder / "words").write_text("left behind")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.glob(f"{PREFIX}*")) == []


def test_nothing_is_left_by_a_block_that_ends_or_fails() -> None:
    with own_folder(PREFIX) as folder:
        (folder / "words").write_text("x")
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()
    with pytest.raises(RuntimeError), own_folder(PREFIX) as folder:
        raise RuntimeError
    assert not folder.exists()


@pytest.mark.process
def test_what_a_killed_process_left_goes_with_the_next_and_nothing_of_a_living_one(
    root: Path,
) -> None:
    other = root / "rayapp-other-1"
    other.mkdir()
    link = root / f"{PREFIX}link"
    link.symlink_to(other)
    holders = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDER, PREFIX],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"TMPDIR": str(root), "PYTHONPATH": ":".join(sys.path)},
            text=True,
        )
        for _ in range(2)
    ]
    try:
        left, held = (Path(one.stdout.readline().strip()) for one in holders if one.stdout)
        holders[0].kill()
        holders[0].wait()
        assert (left / "words").exists()
        with own_folder(PREFIX):
            assert not left.exists()
            assert (held / "words").exists()
            assert other.is_dir()
    finally:
        link.unlink()
        for one in holders:
            one.communicate()
    assert not held.exists()


def test_one_that_is_taken_before_it_is_locked_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make, made = tempfile.mkdtemp, []

    def taken_once(**how: str) -> str:
        made.append(make(**how))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", taken_once)
    with own_folder(PREFIX) as folder:
        assert [str(folder)] == made[1:]


@pytest.mark.process
def test_the_archives_of_a_forked_test_process_go_with_it(root: Path) -> None:
    harness.backup_folder.cache_clear()
    before = list(root.iterdir())
    child = get_context("fork").Process(target=harness.backup_folder)
    child.start()
    child.join()
    assert child.exitcode == 0
    assert list(root.iterdir()) == before


@pytest.mark.process
def test_a_forked_process_leaves_the_folder_of_the_first(root: Path) -> None:
    owned = contextlib.ExitStack()
    folder = owned.enter_context(own_folder(PREFIX))
    child = get_context("fork").Process(target=owned.close)
    child.start()
    child.join()
    assert child.exitcode == 0
    with own_folder(PREFIX):
        assert folder.is_dir()
    owned.close()
    assert not folder.exists()
