"""The files that an evaluation writes: looked at before the run, so that none of it is lost."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from rayapp.core.errors import ConfigError


def check_files(*named: Path | None) -> None:
    """Folders that are not there yet are made when a file is written; None is not written.

    Raises ConfigError: a path cannot be written as a file, or two reports would go to one.
    """
    paths = [path for path in named if path is not None]
    for number, path in enumerate(paths):
        with _usable(path):
            if path.is_dir():
                raise ConfigError(f"{path} is a folder: name a file in it.")
            if path.exists() and not os.access(path, os.W_OK):
                raise ConfigError(f"{path} may not be written: name another file.")
            if path.resolve() in [other.resolve() for other in paths[:number]]:
                raise ConfigError(f"{path} is given for two reports: name a file for each.")
        check_folder(path.parent)


def check_folder(folder: Path) -> None:
    """It is there, or can be made.

    Raises ConfigError: it is a file, is below one, or may not be written.
    """
    there = folder.absolute()
    with _usable(folder):
        while not there.exists():
            there = there.parent
    if not there.is_dir():
        raise ConfigError(f"{there} is a file, and {folder} has to be a folder: name another path.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"{there} may not be written: name another path.")


def put(path: Path, content: bytes) -> None:
    """Write the file whole or not at all: the one before stays until then. Its folder is made.

    Raises ConfigError: it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            unfinished.write_bytes(content)
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written ({error.strerror}): make room or name another path."
        ) from None


def put_json(path: Path | None, report: Any) -> None:
    """The report, if a file was named for it. Raises ConfigError as `put`."""
    if path is not None:
        put(path, as_json(report))


def as_json(report: Any) -> bytes:
    return orjson.dumps(report, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """A name that is too long, or a folder that may not be looked into, is a bad argument."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{path} cannot be used ({error.strerror}): name another path.") from None
