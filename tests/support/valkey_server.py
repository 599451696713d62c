"""A real Valkey server on a unix socket, the one that the local stack starts."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rayapp.local.stack.programs import find_valkey
from rayapp.serve.haproxy_launch import listens

START_TIMEOUT_S = 10.0


class UnixValkey:
    """One server process; `stop` and `start` play an outage with an empty server afterwards."""

    def __init__(self, folder: Path) -> None:
        """`folder` must have a short path: a socket's is at most 100 bytes."""
        self._folder = folder
        self._socket = folder / "valkey.sock"
        self._program = find_valkey()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"

    def start(self) -> None:
        if self._program is None:
            raise RuntimeError("No cache server: install rayapp[local].")
        options = ["--port", "0", "--unixsocket", str(self._socket), "--save", "", "--dir"]
        self._process = subprocess.Popen(
            [str(self._program), *options, str(self._folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        give_up = time.monotonic() + START_TIMEOUT_S
        # The file is there before anybody listens on it.
        while not listens(self._socket):
            if self._process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError("valkey-server did not start: run it by hand to see why.")
            time.sleep(0.01)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self._socket.unlink(missing_ok=True)


@contextmanager
def unix_valkey(folder: Path) -> Iterator[UnixValkey]:
    """A running server, stopped at the end."""
    server = UnixValkey(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
