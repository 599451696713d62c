"""Backups that only the holder of a key can read: age (age-encryption.org), by pyrage.

Who makes backups needs the public half alone; the secret one is for who verifies or restores.
"""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pyrage

from rayapp.core.errors import ConfigError
from rayapp.portability.rules.archive import BadArchive

SECRET, PUBLIC = "AGE-SECRET-KEY-", "age1"


class BackupKeys:
    """The public keys that backups are encrypted for, and the secret ones that read them.

    Args:
        recipient: `age1…`; empty: backups are not encrypted, unless the key file has a key.
        key_file: as `age-keygen` writes it. Raises ConfigError: there is none, or no key in it.
    """

    def __init__(self, recipient: str = "", key_file: Path | None = None) -> None:
        self._file = key_file
        self._identities = [] if key_file is None else _identities(key_file)
        try:
            known = pyrage.x25519.Recipient.from_str(recipient) if recipient else None
        except pyrage.RecipientError:
            raise ConfigError(
                "backup.recipient is no public key of age: it begins with age1, and `age-keygen` "
                "prints it."
            ) from None
        self._recipients = [known] if known else [one.to_public() for one in self._identities]

    @property
    def encrypts(self) -> bool:
        return bool(self._recipients)

    @contextmanager
    def sealed(self, target: IO[bytes]) -> Iterator[IO[bytes]]:
        """What is written to the answer arrives encrypted; a piece at a time in memory."""
        ends = os.pipe()
        reading, writing = os.fdopen(ends[0], "rb"), os.fdopen(ends[1], "wb")
        failed: list[BaseException] = []
        noted = _Noted(target)

        def encrypt() -> None:
            try:
                with reading:
                    pyrage.encrypt_io(reading, noted, self._recipients)
            except BaseException as error:  # noqa: BLE001 - raised again below
                failed.append(noted.raised or error)

        thread = threading.Thread(target=encrypt, name="backup-encryption")
        thread.start()
        try:
            with writing:
                yield writing
        except BrokenPipeError:
            thread.join()  # the pipe is closed before it is known why
            if not failed:
                raise
        finally:
            thread.join()
        if failed:
            raise failed[0]

    def opened(self, source: IO[bytes], name: str) -> IO[bytes]:
        """All of it, decrypted, in a file without a name. Raises BadArchive; OSError: there is no
        room for it, or `source` cannot be read."""
        if not self._identities:
            raise BadArchive(
                f"{name} is encrypted: name the file with its secret key "
                "(backup.key_file); without that key nobody can read it."
            )
        plain = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        read, noted = _Noted(source), _Noted(plain)
        try:
            pyrage.decrypt_io(read, noted, self._identities)
            noted.flush()
        except (pyrage.DecryptError, OSError):
            with suppress(OSError):  # of the same full disk
                plain.close()
            if (full := noted.raised) is not None:
                raise OSError(full.errno, full.strerror, tempfile.gettempdir()) from None
            if read.raised is not None:
                raise read.raised from None
            raise BadArchive(
                f"{name} is encrypted for another key than that of {self._file}, or is "
                "broken; name the right key, or use another backup."
            ) from None
        plain.seek(0)
        return plain


class _Noted:
    """A file that keeps what it raised: pyrage raises an error of its own instead."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.raised: OSError | None = None

    def read(self, size: int = -1) -> bytes:
        with self._noting():
            return self._file.read(size)

    def write(self, data: bytes) -> int:
        with self._noting():
            return self._file.write(data)

    def flush(self) -> None:
        with self._noting():
            self._file.flush()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.raised = error
            raise


def _identities(path: Path) -> list[pyrage.x25519.Identity]:
    try:
        lines = path.read_text(encoding="utf-8").split()
        found = [pyrage.x25519.Identity.from_str(one) for one in lines if one.startswith(SECRET)]
    except (OSError, UnicodeDecodeError, pyrage.IdentityError):
        found = []
    if not found:
        raise ConfigError(
            f"backup.key_file: {path} holds no secret key of age; make one with `rayapp job backup "
            "keygen`, or name the right file."
        )
    return found


def new_key(path: Path) -> str:
    """Write a new secret key to a file that nobody else may read; its public half.

    Raises ConfigError: the file is there.
    """
    identity = pyrage.x25519.Identity.generate()
    public = str(identity.to_public())
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ConfigError(f"{path} is there already; name another file.") from None
    with os.fdopen(file, "w") as out:
        out.write(f"# public key: {public}\n{identity}\n")
    return public
