"""What the death of each process costs under load: failed calls, seconds, missing memories.

    python -m tests.bench.faults --out faults.json
    python -m tests.bench.faults --kind haproxy --kind raylet --data-dir .rayapp

Starts a stack of its own in a temporary folder, or takes the running one of --data-dir. For every
kind: 30 s of stores and searches, a process killed -9 after five, more load until the service is
back; then every acknowledged memory is read. Exit codes: 0 done, 2 bad arguments, 3 a memory is
missing or a kind was worse than it may be, 4 the stack did not start.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.core.errors import ConfigError, DependencyDown
from rayapp.local.cli.output import number_table
from rayapp.local.stack.paths import StackPaths, tail
from rayapp.local.stack.processes import members
from rayapp.local.stack.state import read_state
from tests.bench.arguments import positive_number
from tests.bench.fault_load import CALM_S, LONGEST_S, FaultLoad, Verdict, missing
from tests.running import REPLICA, VECTOR_ENGINE, RunningService, started, until

KILL_AT_S = 5.0
SETTLE_S = 240.0
LAST_LINES = 20  # of the supervisor's log, where a stack does not settle
# Seconds from the kill to the end of the last failed call. Source: decision 0045.
RAYLET_BACK_S = 40.0
HAPROXY_BACK_S = 10.0
SEARCH_BACK_S = 10.0
# Reads and writes go on without these; a server that comes back by itself has a few seconds.
UNSEEN_BACK_S = 0.0
MONGOD_BACK_S = 10.0
# No answer says that an existing route is not there, or that the caller is wrong.
FINAL = frozenset({"400", "401", "403", "404", "405", "422"})

Find = Callable[[RunningService], list[psutil.Process]]


def actor(title: str) -> Find:
    return lambda service: service.actors(title)


def program(name: str) -> Find:
    """A program of the stack by the name of its binary; the youngest one first."""

    def find(service: RunningService) -> list[psutil.Process]:
        state = service.state()
        found = members(state.stack_id, leaders=state.children)
        named = [process for process in found if _name(process).startswith(name)]
        return sorted(named, key=lambda process: -process.create_time())

    return find


def child(name: str) -> Find:
    return lambda service: [service.child(name)]


def _name(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return process.name()
    return ""


@dataclass(frozen=True, slots=True)
class Fault:
    """`back_s`: the bar of this kind; None: it is only measured."""

    find: Find
    back_s: float | None = None


USUAL: dict[str, Fault] = {
    "search": Fault(actor(f"{REPLICA}search"), SEARCH_BACK_S),
    # Maintenance is in its process: the local profile.
    "indexer": Fault(actor(f"{REPLICA}indexer"), UNSEEN_BACK_S),
    "vector_engine": Fault(actor(VECTOR_ENGINE), UNSEEN_BACK_S),
    "mongod": Fault(child("mongod"), MONGOD_BACK_S),
    "haproxy": Fault(program("haproxy"), HAPROXY_BACK_S),
    "proxy_manager": Fault(actor("HAProxyManager"), HAPROXY_BACK_S),
    "raylet": Fault(program("raylet"), RAYLET_BACK_S),
}
FURTHER: dict[str, Fault] = {
    "cache": Fault(child("valkey"), UNSEEN_BACK_S),
    "fallback_proxy": Fault(actor("ProxyActor"), UNSEEN_BACK_S),
    "controller": Fault(actor("ServeController"), UNSEEN_BACK_S),
    "gcs": Fault(program("gcs_server"), RAYLET_BACK_S),
}
FAULTS = USUAL | FURTHER


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.faults", __doc__)
    made.add_argument(
        "--kind", action="append", choices=[*FAULTS], help=f"default: {', '.join(USUAL)}"
    )
    made.add_argument("--seconds", type=positive_number, default=30.0, help="load of each kind")
    made.add_argument("--replicas", type=int, choices=[1, 2], default=1, help="of search")
    made.add_argument("--data-dir", type=Path, help="a running stack; default: one of its own")
    return made


async def measured(
    service: RunningService, name: str, user_id: str, seconds: float
) -> dict[str, Any]:
    """One row of the report: a load, one kill, and what is missing afterwards."""
    victims = FAULTS[name].find(service)
    if not victims:
        raise DependencyDown(f"No process of the kind {name} runs: see `rayapp status`.")
    earlier = service.state().restarts
    load = FaultLoad(service.url, user_id)
    begun = time.monotonic()
    running = asyncio.create_task(load.run())
    await asyncio.sleep(KILL_AT_S)
    before = os.getloadavg()[0]
    victims[0].kill()
    killed_at = time.monotonic()
    while (now := time.monotonic()) < begun + LONGEST_S:
        if now > max(begun + seconds, killed_at + CALM_S) and load.seen.calm(now):
            break
        await asyncio.sleep(0.5)
    load.stop()
    await running
    verdict = Verdict.of(load.seen, killed_at)
    await asyncio.to_thread(settled, service)
    lost = await missing(service.url, user_id, load.seen.acknowledged)
    return {
        "kind": name,
        **asdict(verdict),
        "missing": len(lost),
        "missing_ids": lost[:20],
        "bar_s": FAULTS[name].back_s,
        # By the supervisor; more than one of a server says that a restart failed.
        "restarts": dict(Counter(service.state().restarts) - Counter(earlier)),
        "load_average": [round(before, 1), round(os.getloadavg()[0], 1)],
    }


def misses(row: dict[str, Any]) -> Iterator[str]:
    """What a row has that it may not have, one sentence each."""
    kind = row["kind"]
    if row["missing"]:
        yield f"{kind}: {row['missing']} acknowledged memories are missing."
    if final := sorted(FINAL & set(row["failed"])):
        yield f"{kind}: {', '.join(final)} on routes that exist."
    if row["bare"]:
        yield f"{kind}: {row['bare']} answers 503 without Retry-After."
    last_s, bar_s = row["last_s"] or 0.0, row["bar_s"]
    if bar_s is not None and last_s > bar_s:
        yield f"{kind}: calls failed until {last_s} s after the kill, above {bar_s:g}."


def table(rows: Sequence[dict[str, Any]]) -> Table:
    seconds = ("first, s", "last, s", "at most, s")
    heads = ("killed", "calls", "failed", *seconds, "missing", "load")
    made = number_table("What each death costs", heads)
    made.columns[heads.index("failed")].justify = "left"
    for row in rows:
        failed = ", ".join(f"{how}: {count}" for how, count in row["failed"].items()) or "none"
        bar = "" if row["bar_s"] is None else f"{row['bar_s']:g}"
        made.add_row(
            row["kind"],
            str(row["calls"]),
            failed,
            *("" if row[name] is None else f"{row[name]:.1f}" for name in ("first_s", "last_s")),
            bar,
            f"{row['missing']} of {row['acknowledged']}",
            f"{row['load_average'][0]:g}",
        )
    return made


@contextlib.contextmanager
def stack_of(arguments: argparse.Namespace) -> Iterator[RunningService]:
    """The running stack of --data-dir, or one of its own that ends with the bench."""
    if arguments.data_dir is not None:
        state = read_state(StackPaths.of(arguments.data_dir))
        if state is None or not state.running:
            raise ConfigError(f"No stack runs in {arguments.data_dir}: start one with `rayapp up`.")
        yield RunningService(arguments.data_dir, state.http_url)
        return
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        service = started(Path(folder), serve={"search": {"replicas": arguments.replicas}})
        try:
            yield service
        finally:
            service.down()


def settled(service: RunningService) -> None:
    """Wait until the stack is as after its start, so that the next kind finds all its processes.

    Raises:
        DependencyDown: it does not come back; what it lacks, and its log's last lines.
    """
    try:
        until(lambda: not _lacks(service), SETTLE_S)
        service.indexed(SETTLE_S)
    except AssertionError:
        said = tail(StackPaths.of(service.folder).log("supervisor"), LAST_LINES)
        raise DependencyDown(
            f"The stack was not whole {SETTLE_S:.0f} s after a kill: it lacks "
            f"{_lacks(service) or ['an empty backlog']}.\n{said}"
        ) from None


def _lacks(service: RunningService) -> list[str]:
    """Kinds without a process, and `ready` unless it says so."""
    lacks = [name for name, fault in FAULTS.items() if not _found(fault, service)]
    with contextlib.suppress(httpx.HTTPError):
        if service.ready():
            return lacks
    return [*lacks, "ready"]


def _found(fault: Fault, service: RunningService) -> bool:
    with contextlib.suppress(psutil.Error, StopIteration):
        return bool(fault.find(service))
    return False


def _run(arguments: argparse.Namespace) -> int:
    console = Console()
    rows: list[dict[str, Any]] = []
    run_id = f"{time.time_ns():x}"
    with stack_of(arguments) as service:
        for name in arguments.kind or [*USUAL]:
            settled(service)
            user_id = f"fault-{name}-{run_id}"
            rows.append(asyncio.run(measured(service, name, user_id, arguments.seconds)))
            console.print(f"{name}: {rows[-1]['failed'] or 'nothing failed'}", highlight=False)
            # After every kind, so that those that ended are kept whatever comes.
            put_json(arguments.out, report_of(arguments, rows))
    console.print(table(rows))
    bad = [line for row in rows for line in misses(row)]
    for line in bad:
        console.print(line)
    return WITH_FAILURES if bad else DONE


def report_of(arguments: argparse.Namespace, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(),
        "cores": os.cpu_count(),
        "search_replicas": arguments.replicas,
        "kinds": list(rows),
    }


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
