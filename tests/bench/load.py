"""Load test of a running service, over HTTP only.

    python -m tests.bench.load --memories 100000 --users 1000 --data-dir .rayapp --out load.json

Fills with seeded bilingual texts, then measures search, store, indexing delay and batch store, and
the memory of every process of the stack. Writes JSON to --out and Markdown beside it. A service
with too much to do refuses calls: they are counted apart and are no failures, unless the phase
offers stores at a fixed rate. Exit codes: 0 done, 2 bad arguments, 3 calls failed, 4 the service is
away.
"""

import argparse
import asyncio
import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.client.discovery import data_dir_of, read_state, service_url
from rayapp.client.progress import Progress
from tests.bench import phases
from tests.bench.arguments import not_negative, not_negative_number, positive, positive_number
from tests.bench.batch_store import batch_store
from tests.bench.closed_loop import knee
from tests.bench.processes import stack_cpu, stack_memory
from tests.bench.report import markdown, table

SUCCESS = frozenset({"200", "201", "stored", "duplicate"})
IDLE_S = 10.0  # after the fill, in which the idle stack is watched


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.load", __doc__, out=False)
    made.add_argument("--memories", type=positive, default=100_000)
    made.add_argument("--users", type=positive, default=1_000)
    made.add_argument(
        "--heavy", type=not_negative, default=0, help="memories of one further, heavy user"
    )
    made.add_argument(
        "--zipf", type=not_negative_number, default=0.0, help="few users ask most: exponent"
    )
    made.add_argument("--seconds", type=positive_number, default=15.0, help="length of each phase")
    made.add_argument(
        "--warm-s", type=not_negative_number, default=3.0, help="warm-up before each phase"
    )
    made.add_argument("--clients", type=positive, nargs="+", default=[1, 8, 32])
    made.add_argument(
        "--batch", type=positive, default=5_000, help="memories that the batch phase stores"
    )
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
    url = service_url(arguments.url, arguments.data_dir)
    load = phases.Load(
        url=url,
        run_id=arguments.reuse or secrets.token_hex(4),
        memories=arguments.memories,
        users=arguments.users,
        heavy=arguments.heavy,
        seed=arguments.seed,
        seconds=arguments.seconds,
        warm_s=arguments.warm_s,
        zipf=arguments.zipf,
    )
    asyncio.run(phases.require_service(url))
    # Only the stack of the data directory can be looked into; another URL is HTTP alone.
    local = read_state(data_dir) is not None and service_url(None, arguments.data_dir) == url
    report: dict[str, Any] = {
        "run_id": load.run_id,
        "at": datetime.now(UTC).isoformat(),
        "cores": os.cpu_count(),
        "load": {"memories": load.memories, "users": load.users, "heavy": load.heavy},
        "zipf": load.zipf,
    }
    if local:
        report["memory_before"] = _memory(data_dir)
    with Progress(console) as progress:
        if arguments.reuse is None:
            report["fill"] = asyncio.run(phases.fill(load, progress))
        if local:
            before = stack_cpu(data_dir)
            time.sleep(IDLE_S)
            report["idle_cpu"] = _cpu(data_dir, before, IDLE_S, "percent_of_a_core", 100.0)
            report["memory_idle"] = _memory(data_dir)
        for name, phase in _phases(load, arguments).items():
            with progress.step(name, 1) as bar:
                before = stack_cpu(data_dir) if local else {}
                report[name] = phase()
                # Of the warm-up as well, which asks as often in its time.
                share = load.seconds / (load.seconds + load.warm_s)
                if local and (requests := report[name].get("requests")):
                    report[name] |= _cpu(data_dir, before, requests / share, "cpu_ms", 1_000.0)
                bar.advance()
    if len(set(arguments.clients)) > 1:
        per_s = {count: report[f"search_{count}"]["per_s"] for count in arguments.clients}
        report["knee"] = {"clients": knee(per_s), "most": max(per_s)}
    if local:
        report["memory_after"] = _memory(data_dir)
    return report


def _phases(
    load: phases.Load, arguments: argparse.Namespace
) -> dict[str, Callable[[], dict[str, Any]]]:
    found: dict[str, Callable[[], dict[str, Any]]] = {
        f"search_{count}": partial(phases.search, load, count) for count in arguments.clients
    }
    if load.heavy:
        found["search_heavy"] = partial(phases.search, load, 1, heavy=True)
    found["store_1"] = partial(phases.store, load)
    found["index_delay"] = lambda: asyncio.run(phases.delay(load))
    # The last one: it waits until what it stored is indexed.
    found["batch_store"] = lambda: asyncio.run(batch_store(load, arguments.batch))
    return found


def _cpu(
    data_dir: Path, before: Mapping[str, float], per: float, name: str, scale: float
) -> dict[str, Any]:
    """What the stack computed since `before`, by process: `scale` times seconds, over `per`."""
    spent = {who: now - before.get(who, 0.0) for who, now in stack_cpu(data_dir).items()}
    by_process = {
        who: round(scale * spent[who] / per, 2)
        for who in sorted(spent, key=lambda who: -spent[who])
        if spent[who] > 0
    }
    total = round(scale * sum(spent.values()) / per, 2)
    return {name: total, f"{name}_by_process": by_process}


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
    """True when a call was lost or failed, or a memory was rejected or never indexed."""
    for section in report.values():
        if not isinstance(section, dict):
            continue
        if section.get("lost") or section.get("failed") or section.get("not_indexed"):
            return True
        if set(section.get("statuses", ())) - SUCCESS:
            return True
    return False


def _run(arguments: argparse.Namespace) -> int:
    console = Console()
    started = time.monotonic()
    report = measure(arguments, console)
    report["elapsed_s"] = round(time.monotonic() - started, 1)
    put_json(arguments.out, report)
    if arguments.out is not None:
        arguments.out.with_suffix(".md").write_text(markdown(report), encoding="utf-8")
    console.print(table(report))
    return WITH_FAILURES if failed(report) else DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
