"""Where a local stack keeps its files, and how it writes them."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from rayapp.core.errors import ConfigError

# A unix socket path holds 107 bytes on Linux and Ray appends about 75 of its own, so sockets live
# in a short private folder and not under the data directory.
SOCKET_ROOT = Path("/tmp")
LOG_TAIL_LINES = 15
LOG_LIMIT_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class StackPaths:
    """Files of the stack of one data directory (absolute)."""

    data: Path

    @classmethod
    def of(cls, data_dir: Path | str) -> StackPaths:
        return cls(Path(data_dir).expanduser().resolve())

    @property
    def stack_id(self) -> str:
        """Ten hex digits, the same for every call about one data directory."""
        return hashlib.sha256(str(self.data).encode()).hexdigest()[:10]

    @property
    def run(self) -> Path:
        return self.data / "run"

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    @property
    def mongo(self) -> Path:
        return self.data / "mongo"

    @property
    def qdrant(self) -> Path:
        return self.data / "qdrant"

    @property
    def state(self) -> Path:
        return self.run / "state.json"

    @property
    def settings(self) -> Path:
        return self.run / "settings.json"

    @property
    def ports(self) -> Path:
        return self.run / "ports.json"

    @property
    def token(self) -> Path:
        return self.run / "ray.token"

    @property
    def deploy_phase(self) -> Path:
        """What the driver that starts the application waits for, or did last."""
        return self.run / "deploy.phase"

    @property
    def sockets(self) -> Path:
        return SOCKET_ROOT / f"rayapp-{self.stack_id}"

    @property
    def ray(self) -> Path:
        return self.sockets / "ray"

    @property
    def ray_session_logs(self) -> Path:
        """Logs of Ray and of the application (`serve/`) while the stack runs."""
        return self.ray / "session_latest" / "logs"

    @property
    def kept_ray_logs(self) -> Path:
        """Their copy of the last session that was stopped."""
        return self.logs / "ray"

    @property
    def valkey_socket(self) -> Path:
        return self.sockets / "valkey.sock"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def create(self) -> None:
        """Make every folder, private to the user.

        Raises:
            ConfigError: the data directory cannot be written, or the socket folder belongs to
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
