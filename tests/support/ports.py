"""Loopback ports for servers that tests start."""

import random
import socket
from contextlib import ExitStack

# Above what a stack takes for itself, below the ephemeral ports: between a choice and its use lie
# seconds, in which Linux gives ports of that range to connections that go out.
FIRST_PORT, LAST_PORT = 30_000, 32_700


def free_ports(count: int) -> list[int]:
    """Distinct ports that were free a moment ago: all are held while they are chosen."""
    candidates = range(FIRST_PORT, LAST_PORT)
    ports: list[int] = []
    with ExitStack() as held:
        # Not seeded: another test run on this machine must not choose the same ones.
        for port in random.SystemRandom().sample(candidates, len(candidates)):
            if len(ports) == count:
                return ports
            taken = held.enter_context(socket.socket())
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
    raise OSError(f"No {count} free ports from {FIRST_PORT} to {LAST_PORT}.")


def free_port() -> int:
    return free_ports(1)[0]
