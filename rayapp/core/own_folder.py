"""Folders under the system's temp folder that end with their process, however it ends."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@contextlib.contextmanager
def own_folder(prefix: str) -> Iterator[Path]:
    """A new folder that only its owner may enter, gone at the end of the block.

    A killed process leaves its folder behind, but not the lock on it: whoever makes the next one
    with this prefix removes it.
    """
    _remove_abandoned(prefix)
    owner = os.getpid()
    # Somebody may take it for abandoned before it is locked.
    while (lock := _lock(folder := Path(tempfile.mkdtemp(prefix=prefix)))) is None:
        continue
    try:
        yield folder
    finally:
        # A forked process that lets go of its copy of this block leaves the folder alone.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_abandoned(prefix: str) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if (lock := _lock(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """The descriptor that holds the lock; None: another's, or the folder is gone."""
    try:
        opened = os.open(folder, OPENED)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(opened), os.lstat(folder)):
            return opened
    except OSError:
        pass
    os.close(opened)
    return None
