"""Free ports, remembered so that a stack comes back on the same ones."""

from __future__ import annotations

import errno
import json
import random
import socket
from collections.abc import Sequence
from pathlib import Path

from rayapp.core.errors import ConfigError
from rayapp.local.stack.paths import write_private

# Below Linux's ephemeral ports (32768+), above those that Ray's workers take (10002-19999).
FIRST_PORT, LAST_PORT = 20_000, 29_900
ATTEMPTS = 500


def is_free(port: int, host: str = "") -> bool:
    """True when nothing listens on the port; the empty host asks for every address.

    Raises:
        ConfigError: nobody could bind it: an unknown host, another machine's address, a port
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

        Args:
            width: ports in a row that must be untaken by this stack, from the one returned on.

        Raises:
            ConfigError: no port is free.
        """
        for name in names:
            old = self.ports.get(name)
            if old is None or not is_free(old):
                self.ports[name] = self._find(width)
        write_private(self._path, json.dumps(self.ports, indent=1, sort_keys=True))

    def _find(self, width: int) -> int:
        taken = set(self.ports.values())
        for _ in range(ATTEMPTS):
            port = self._random.randrange(FIRST_PORT, LAST_PORT)
            if not taken & set(range(port, port + width)) and is_free(port):
                return port
        raise ConfigError(f"No free port between {FIRST_PORT} and {LAST_PORT}: stop a server.")
