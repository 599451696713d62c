"""Ray Serve as it comes against the one with `rayapp.serve.environment`, on a tiny application.

    python -m tests.bench.serve_options --seconds 5 --out serve.md

For each of the two environments a Ray head of its own is started in a subprocess, because Ray
reads them at import. It serves an echo route and a route with one hop over a handle; one client
and then eight ask it. Only that head is stopped at the end. Exit codes: 0 done, 2 bad arguments,
4 Ray Serve did not start or failed.
"""

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, command_parser, run_command
from rayapp.core.errors import DependencyDown
from rayapp.local.cli.output import markdown_table, number_table
from rayapp.serve.environment import PORT_NAMES, local_environment
from tests.bench.arguments import positive_number
from tests.bench.closed_loop import drive_all
from tests.bench.wire import Call
from tests.support.ports import free_port

ROUTES = ("/echo", "/hop")
CLIENTS = (1, 8)
HEAD = ("route", "clients", "p50 ms before", "after", "requests/s before", "after")
WARM_S = 1.0
READY = "ready"  # what the child prints when it serves
STOP_LIMIT_S = 60.0
INGRESS_BASE = 21_000  # a range of 50 ports from here, moved by the process id


@dataclass(frozen=True, slots=True)
class Measured:
    """One route at one number of clients."""

    route: str
    clients: int
    p50_ms: float
    per_s: float


def measure(environment: Mapping[str, str], seconds: float) -> list[Measured]:
    """Start a head with this environment, measure all routes, stop it.

    Raises:
        DependencyDown: it did not start.
    """
    found = []
    with _served(environment) as url:
        for route in ROUTES:
            for clients in CLIENTS:
                call = Call(route, b'{"text": "hello"}', "bench")
                seen = drive_all(url, clients, [call] * clients, warm_s=WARM_S, measure_s=seconds)
                if seen["lost"] or set(seen["statuses"]) != {"200"}:
                    raise DependencyDown(f"{route} failed: {seen['statuses']}, look at Ray's logs.")
                p50 = seen["latency_ms"]["p50"]
                found.append(Measured(route, clients, p50, seen["per_s"]))
    return found


@contextmanager
def _served(environment: Mapping[str, str]) -> Iterator[str]:
    with ExitStack() as stack:
        # Short: Ray's unix sockets lie below it and a socket path holds 107 bytes.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rsb-"))
        token = Path(folder) / "token"
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32), encoding="ascii")
        auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        port = free_port()
        command = [sys.executable, "-m", __spec__.name, "--child", str(port), "--folder", folder]
        log = stack.enter_context((Path(folder) / "log").open("w+", encoding="utf-8"))
        child = subprocess.Popen(
            command,
            env={**os.environ, **environment, **auth},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        stack.callback(_stop, child)
        assert child.stdout is not None
        if not any(line.strip() == READY for line in child.stdout):
            log.seek(0)
            tail = log.read().strip().splitlines()[-1:] or ["no output"]
            raise DependencyDown(f"Ray Serve did not start: {tail[0]}")
        yield f"http://127.0.0.1:{port}"


def _stop(child: subprocess.Popen[str]) -> None:
    """Closing its input asks it to stop; its Ray processes end with it."""
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _tuned(folder: Path) -> dict[str, str]:
    ports = {name: free_port() for name in PORT_NAMES.values()}
    ports["ingress_first"] = INGRESS_BASE + os.getpid() % 100 * 50
    return local_environment(folder, ports)


def _child(port: int, folder: str) -> None:
    """The subprocess: a head with one application, until the input is closed."""
    import ray  # only here: the environment must be read first
    from ray import serve

    from tests.bench.serve_echo import application

    ray.init(
        address="local",
        include_dashboard=False,
        num_cpus=4,
        object_store_memory=100 << 20,
        _temp_dir=folder,
        log_to_driver=False,
    )
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(application(), name="bench", route_prefix="/")
    print(READY, flush=True)
    sys.stdin.read()
    stop: Any = serve.shutdown  # not annotated in Ray
    stop()
    ray.shutdown()


def table(before: Sequence[Measured], after: Sequence[Measured]) -> Table:
    return number_table("Ray Serve, before and after the options", HEAD, _cells(before, after))


def markdown(before: Sequence[Measured], after: Sequence[Measured]) -> str:
    return "\n".join(markdown_table(HEAD, _cells(before, after))) + "\n"


def _cells(before: Sequence[Measured], after: Sequence[Measured]) -> list[list[str]]:
    return [
        [
            one.route,
            str(one.clients),
            f"{one.p50_ms:.2f}",
            f"{two.p50_ms:.2f}",
            f"{one.per_s:.0f}",
            f"{two.per_s:.0f}",
        ]
        for one, two in zip(before, after, strict=True)
    ]


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.serve_options", __doc__, out=False)
    made.add_argument(
        "--seconds", type=positive_number, default=5.0, help="length of each measurement"
    )
    made.add_argument("--out", type=Path, help="Markdown report")
    made.add_argument("--child", type=int, help=argparse.SUPPRESS)
    made.add_argument("--folder", default="", help=argparse.SUPPRESS)
    return made


def _run(arguments: argparse.Namespace) -> int:
    if arguments.child is not None:
        _child(arguments.child, arguments.folder)
        return DONE
    console = Console()
    started = time.monotonic()
    before = measure({}, arguments.seconds)
    with tempfile.TemporaryDirectory(prefix="rsh-") as folder:
        after = measure(_tuned(Path(folder)), arguments.seconds)
    console.print(table(before, after))
    console.print(f"{time.monotonic() - started:.0f} s on {os.cpu_count()} cores.")
    if arguments.out is not None:
        arguments.out.write_text(markdown(before, after), encoding="utf-8")
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
