"""Where backups and datasets lie: a folder, or any store that fsspec reaches."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from fsspec.core import url_to_fs

from rayapp.core.errors import ConfigError, DependencyDown, RayappError
from rayapp.portability.files import UNFINISHED, Files, private_file, synced

# Stores without folders: making one would make a bucket of a name that was misspelt.
BUCKETS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az"})


def open_backups(where: str | Path) -> Files:
    """A folder by its path; else an address such as `s3://bucket/path`. Raises ConfigError."""
    if isinstance(where, Path) or "://" not in where:
        return FolderBackups(Path(where))
    return UrlBackups(where)


class FolderBackups:
    """Implements `portability.files.Files`; nobody else may read the files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.where = str(folder)

    def listed(self) -> list[tuple[str, int]]:
        found = self._folder.iterdir() if self._folder.is_dir() else ()
        return [(path.name, size) for path in found if (size := _size_of(path)) is not None]

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self._folder / (name + UNFINISHED)
        try:
            with private_file(unfinished) as file:
                with suppress(OSError):  # of a file system that has no locks
                    fcntl.flock(file, fcntl.LOCK_EX)
                yield file
                synced(file)
                os.replace(unfinished, self._folder / name)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise

    def reading(self, name: str) -> IO[bytes]:
        return (self._folder / name).open("rb")

    def remove(self, name: str) -> None:
        """But one that another process is writing."""
        path = self._folder / name
        if not (name.endswith(UNFINISHED) and _is_written(path)):
            path.unlink(missing_ok=True)


def _size_of(path: Path) -> int | None:
    """None: it went meanwhile, or is a link to what is gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _is_written(path: Path) -> bool:
    """A death gives the lock back."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


class UrlBackups:
    """Implements `portability.files.Files` by fsspec; keys come from the environment."""

    def __init__(self, url: str) -> None:
        self.where = url
        try:
            # Of its own: a file system has one transaction, and the keys of users are written
            # within that of their backup, maybe to the same store.
            self._fs, root = url_to_fs(url, skip_instance_cache=True)
        except (ImportError, ValueError) as error:
            raise ConfigError(
                f"{url} cannot be opened ({error}): check the address, and install what it needs "
                "(s3://: pip install 'rayapp[s3]')."
            ) from None
        self._root = root.rstrip("/")

    def listed(self) -> list[tuple[str, int]]:
        with self._talking():
            self._fs.invalidate_cache()
            found = self._fs.ls(self._root, detail=True) if self._fs.exists(self._root) else []
        return [(one["name"].rpartition("/")[2], one["size"] or 0) for one in found]

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """It is there when all of it is: a transaction (of S3: a multipart upload)."""
        raised: Exception | None = None
        with self._talking():
            if BUCKETS.isdisjoint(_protocols(self._fs)):
                self._fs.makedirs(self._root, exist_ok=True)
            try:
                with self._fs.transaction, self._fs.open(f"{self._root}/{name}", "wb") as file:
                    try:
                        yield file
                    except Exception as error:  # raised again: it is the caller's
                        raised = error
                        raise
            except Exception as error:  # raised again, here or below
                if error is not raised or isinstance(error, OSError):
                    raise  # of the store
        if raised is not None:
            raise raised

    def reading(self, name: str) -> IO[bytes]:
        with self._talking():
            file: IO[bytes] = self._fs.open(f"{self._root}/{name}", "rb")
            return file

    def remove(self, name: str) -> None:
        with self._talking():
            self._fs.rm_file(f"{self._root}/{name}")

    @contextmanager
    def _talking(self) -> Iterator[None]:
        try:
            yield
        except (RayappError, GeneratorExit):
            raise
        except Exception as error:  # each protocol has its own: they are translated here
            raise DependencyDown(
                f"{self.where} cannot be used ({type(error).__name__}: {_short(error)}); check "
                "the address and its credentials."
            ) from error


def _protocols(fs: Any) -> set[str]:
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)


def _short(error: Any) -> str:
    return str(error).partition("\n")[0][:200].rstrip(".")
