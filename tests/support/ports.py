"""Loopback ports for servers that tests start."""

import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """Distinct ports that were free a moment ago: all are held while they are chosen."""
    with ExitStack() as held:
        ports = []
        for _ in range(count):
            taken = held.enter_context(socket.socket())
            taken.bind(("127.0.0.1", 0))
            ports.append(int(taken.getsockname()[1]))
        return ports


def free_port() -> int:
    return free_ports(1)[0]
