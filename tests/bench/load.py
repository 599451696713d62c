"""Load test of a running service, over HTTP only.

    python -m tests.bench.load --memories 100000 --users 1000 --data-dir .rayapp --out load.json

Fills with seeded bilingual texts, then measures search, store and indexing delay, and the memory
of every process of the stack. Writes JSON to --out and Markdown beside it. Exit codes: 0 done,
2 bad arguments, 3 calls failed, 4 the service is away.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console

from rayapp.client.discovery import data_dir_of, read_state, service_url
from rayapp.client.progress import Progress
from rayapp.errors import RayappError
from tests.bench import phases
from tests.bench.processes import stack_memory
from tests.bench.report import markdown, table

DONE, BAD_ARGUMENTS, WITH_FAILURES, DEPENDENCY_AWAY = 0, 2, 3, 4
SUCCESS = frozenset({"200", "201"})


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m tests.bench.load",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--memories", type=int, default=100_000)
    made.add_argument("--users", type=int, default=1_000)
    made.add_argument("--heavy", type=int, default=0, help="memories of one further, heavy user")
    made.add_argument("--seconds", type=float, default=15.0, help="length of each phase")
    made.add_argument("--warm-s", type=float, default=3.0, help="warm-up before each phase")
    made.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    made.add_argument("--seed", type=int, default=7)
    made.add_argument("--reuse", metavar="RUN_ID", help="measure what this run filled, no fill")
    made.add_argument("--url", help="service; default: the stack of --data-dir")
    made.add_argument("--data-dir", type=Path, help="data directory of the local stack")
    made.add_argument("--out", type=Path, help="JSON report; Markdown goes beside it")
    return made


def measure(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """All phases in order; the report.

    Raises:
        RayappError: the service is away, or no stack runs in the data directory.
    """
    data_dir = data_dir_of(arguments.data_dir)
    url = service_url(arguments.url, data_dir)
    load = phases.Load(
        url=url,
        run_id=arguments.reuse or secrets.token_hex(4),
        memories=arguments.memories,
        users=arguments.users,
        heavy=arguments.heavy,
        seed=arguments.seed,
        seconds=arguments.seconds,
        warm_s=arguments.warm_s,
    )
    asyncio.run(phases.require_service(url))
    # Only the stack of the data directory can be looked into; another URL is HTTP alone.
    local = read_state(data_dir) is not None and service_url(None, data_dir) == url
    report: dict[str, Any] = {
        "run_id": load.run_id,
        "at": datetime.now(UTC).isoformat(),
        "cores": os.cpu_count(),
        "load": {"memories": load.memories, "users": load.users, "heavy": load.heavy},
    }
    if local:
        report["memory_before"] = _memory(data_dir)
    with Progress(console) as progress:
        if arguments.reuse is None:
            report["fill"] = asyncio.run(phases.fill(load, progress))
        for name, phase in _phases(load, arguments.clients).items():
            with progress.step(name, 1) as bar:
                report[name] = phase()
                bar.advance()
    if local:
        report["memory_after"] = _memory(data_dir)
    return report


def _phases(load: phases.Load, clients: Sequence[int]) -> dict[str, Callable[[], dict[str, Any]]]:
    found: dict[str, Callable[[], dict[str, Any]]] = {
        f"search_{count}": partial(phases.search, load, count) for count in clients
    }
    if load.heavy:
        found["search_heavy"] = partial(phases.search, load, 1, heavy=True)
    found["store_1"] = partial(phases.store, load)
    found["index_delay"] = lambda: asyncio.run(phases.delay(load))
    return found


def _memory(data_dir: Path) -> dict[str, Any]:
    rows = stack_memory(data_dir)
    return {
        "pss_mib": round(sum(row.pss_mib for row in rows), 1),
        "rss_mib": round(sum(row.rss_mib for row in rows), 1),
        "processes": [
            {
                "pid": row.pid,
                "name": row.name,
                "pss_mib": round(row.pss_mib, 1),
                "rss_mib": round(row.rss_mib, 1),
            }
            for row in rows
        ],
    }


def failed(report: dict[str, Any]) -> bool:
    """True when a call was lost, refused, or a memory was rejected or never indexed."""
    for section in report.values():
        if not isinstance(section, dict):
            continue
        if section.get("lost") or section.get("refused") or section.get("not_indexed"):
            return True
        if set(section.get("statuses", ())) - SUCCESS - {"stored", "duplicate"}:
            return True
    return False


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    console = Console()
    started = time.monotonic()
    try:
        report = measure(arguments, console)
    except RayappError as error:
        print(error.message, file=sys.stderr)
        return DEPENDENCY_AWAY if error.retryable else BAD_ARGUMENTS
    report["elapsed_s"] = round(time.monotonic() - started, 1)
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2))
        arguments.out.with_suffix(".md").write_text(markdown(report), encoding="utf-8")
    console.print(table(report))
    return WITH_FAILURES if failed(report) else DONE


if __name__ == "__main__":
    sys.exit(main())
