"""Where a local stack keeps its files, and its ports, which stay the same."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import socket
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rayapp.core.errors import ConfigError

# A unix socket path holds 107 bytes on Linux and Ray appends about 75 of its own, so sockets live
# in a short private folder and not under the data directory.
SOCKET_ROOT = Path("/tmp")
LOG_TAIL_LINES = 15
LOG_LIMIT_BYTES = 16 << 20


class _Under:
    """A path below another one of the same stack."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder, self._name = folder, name

    def __get__(self, paths: StackPaths, _: type[StackPaths]) -> Path:
        folder: Path = getattr(paths, self._folder)
        return folder / self._name


@dataclass(frozen=True, slots=True)
class StackPaths:
    """Files of the stack of one data directory (absolute)."""

    data: Path

    @classmethod
    def of(cls, data_dir: Path | str) -> StackPaths:
        return cls(Path(data_dir).expanduser().resolve())

    run = _Under("data", "run")
    logs = _Under("data", "logs")
    mongo = _Under("data", "mongo")
    qdrant = _Under("data", "qdrant")
    state = _Under("run", "state.json")
    settings = _Under("run", "settings.json")
    ports = _Under("run", "ports.json")
    token = _Under("run", "ray.token")
    # What the driver that starts the application waits for, or did last.
    deploy_phase = _Under("run", "deploy.phase")
    ray = _Under("sockets", "ray")
    # Logs of Ray and of the application (`serve/`) while the stack runs; below, their copy of the
    # last session that was stopped.
    ray_session_logs = _Under("ray", "session_latest/logs")
    kept_ray_logs = _Under("logs", "ray")
    valkey_socket = _Under("sockets", "valkey.sock")

    @property
    def stack_id(self) -> str:
        """Ten hex digits, the same for every call about one data directory."""
        return hashlib.sha256(str(self.data).encode()).hexdigest()[:10]

    @property
    def sockets(self) -> Path:
        return SOCKET_ROOT / f"rayapp-{self.stack_id}"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def create(self) -> None:
        """Make every folder, private to the user.

        Raises ConfigError: the data directory cannot be written, or the socket folder belongs to
        somebody else.
        """
        for folder in (self.data, self.run, self.logs):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise unwritable(folder, error.strerror or str(error)) from None
            check_writable(folder)
        self.run.chmod(0o700)
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        info = self.sockets.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise ConfigError(
                f"{self.sockets} belongs to another user: remove it or use --data-dir."
            )
        self.sockets.chmod(0o700)


def check_writable(folder: Path) -> None:
    """Raises ConfigError when no file can be made in the folder, or it is none."""
    if not folder.is_dir():
        raise unwritable(folder, "Not a directory")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise unwritable(folder, "Permission denied")


def unwritable(folder: Path, why: str) -> ConfigError:
    """The sentence about a data directory that is of no use."""
    return ConfigError(
        f"{folder} cannot be written ({why}): make it writable for this user, or use another "
        "place with --data-dir."
    )


def write_private(path: Path, text: str) -> None:
    """Replace `path` in one step; nobody but the user may read it (0600)."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def tail(path: Path, lines: int = LOG_TAIL_LINES) -> str:
    """The last lines of a log, or an empty text."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 16_384))
        text = file.read().decode("utf-8", errors="replace")
    return "\n".join(text.splitlines()[-lines:])


def rotate(path: Path, limit_bytes: int = LOG_LIMIT_BYTES) -> None:
    """Move a log above the limit to `<name>.1`, over the one from the last time."""
    if path.exists() and path.stat().st_size > limit_bytes:
        path.replace(path.with_name(f"{path.name}.1"))


# Below Linux's ephemeral ports (32768+), above those that Ray's workers take (10002-19999).
FIRST_PORT, LAST_PORT = 20_000, 29_900
ATTEMPTS = 500


def is_free(port: int, host: str = "") -> bool:
    """True when nothing listens on the port; the empty host asks for every address.

    Raises ConfigError: nobody could bind it: an unknown host, another machine's address, a port
    below 1024 without the right to it.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # Servers set this too: without it a port in TIME_WAIT looks taken after a restart.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
            probe.listen(1)
        except OSError as error:
            if reason := _never(error, port, host):
                raise ConfigError(reason) from None
            return False
    return True


def _never(error: OSError, port: int, host: str) -> str:
    """Why the bind can never work; empty when the port is only taken."""
    if isinstance(error, socket.gaierror):
        return f"No host {host!r} is known: set RAYAPP_HTTP__HOST to an address of this machine."
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"{host} is no address of this machine: set RAYAPP_HTTP__HOST to 127.0.0.1, 0.0.0.0 "
            "or one of its own."
        )
    if error.errno == errno.EACCES:
        return f"Port {port} needs special rights: set RAYAPP_HTTP__PORT to one above 1023."
    return ""


class PortBook:
    """Name -> port of one stack, kept in a JSON file."""

    def __init__(self, path: Path, seed: str) -> None:
        self._path = path
        self._random = random.Random(seed)
        self.ports: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}

    def take(self, names: Sequence[str], *, width: int = 1) -> None:
        """Give each name a port: its old one while that is free, else a new one.

        `width`: ports in a row that must be free, from the one returned on. Raises ConfigError: no
        port is.
        """
        before = dict(self.ports)
        for name in names:
            old = self.ports.get(name)
            if old is None or not is_free(old):
                self.ports[name] = self._find(width)
        if self.ports != before:
            write_private(self._path, json.dumps(self.ports, indent=1, sort_keys=True))

    def _find(self, width: int) -> int:
        taken = set(self.ports.values())
        for _ in range(ATTEMPTS):
            port = self._random.randrange(FIRST_PORT, LAST_PORT)
            wanted = range(port, port + width)
            if taken.isdisjoint(wanted) and all(map(is_free, wanted)):
                return port
        raise ConfigError(f"No free port between {FIRST_PORT} and {LAST_PORT}: stop a server.")
