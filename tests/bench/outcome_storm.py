"""Concurrent outcomes on a few hot memories, a search replica killed midway: is anything lost?

    python -m tests.bench.outcome_storm --outcomes 10000 --clients 8

Starts a stack of its own with two search replicas. Every client repeats an outcome that got no
answer under the same idempotency key. At the end the counters of every memory must be exactly the
accepted outcomes. Exit codes: 0 they are, 2 bad arguments, 3 they are not, 4 the stack did not
start.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.progress import Progress

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.local.cli.output import number_table
from rayapp.memory.item import Outcome
from rayapp.memory.rules.lifecycle import SUCCESS_VALUE
from rayapp.search.rules.evaluation import percentile
from tests.bench.arguments import positive
from tests.running import REPLICA, RunningService, started

MEMORIES = 20  # few, so that every one is hot
KINDS = tuple(Outcome)
TRIES = 200  # per outcome; with the pause, longer than a replica takes to come back
PAUSE_S = 0.1


@dataclass(slots=True)
class Storm:
    """What was accepted, by memory and outcome."""

    accepted: dict[str, Counter[Outcome]] = field(default_factory=dict)
    repeated: int = 0
    duplicates: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    elapsed_s: float = 0.0

    @property
    def total(self) -> int:
        return sum(counter.total() for counter in self.accepted.values())


async def run_storm(
    url: str,
    user_id: str,
    *,
    outcomes: int,
    clients: int,
    at_half: Callable[[], None],
    advance: Callable[[], None] = lambda: None,
) -> Storm:
    """Record `outcomes` outcomes over MEMORIES memories; `at_half` is called once, midway."""
    storm, queue = Storm(), iter(range(outcomes))
    ids = [f"hot-{number}" for number in range(MEMORIES)]
    storm.accepted = {memory_id: Counter() for memory_id in ids}
    async with httpx.AsyncClient(
        base_url=url, headers={"X-User-Id": user_id}, timeout=30, trust_env=False
    ) as http:
        items = [{"memory_id": one, "text": f"hot memory {one}", "tier": "patterns"} for one in ids]
        (await http.post("/api/memory/store/batch", json={"items": items})).raise_for_status()

        async def client() -> None:
            for number in queue:
                if number == outcomes // 2:
                    at_half()
                memory_id, outcome = ids[number % MEMORIES], KINDS[number % 7 % len(KINDS)]
                body = {
                    "memory_ids": [memory_id],
                    "outcome": outcome.value,
                    "idempotency_key": f"storm-{number}",
                }
                await _until_accepted(http, body, storm)
                storm.accepted[memory_id][outcome] += 1
                advance()

        begun = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        storm.elapsed_s = time.perf_counter() - begun
    return storm


async def _until_accepted(http: httpx.AsyncClient, body: dict[str, Any], storm: Storm) -> None:
    for _ in range(TRIES):
        begun = time.perf_counter()
        try:
            answer = await http.post("/api/memory/outcomes", json=body)
        except httpx.TransportError:
            answer = None
        if answer is not None and answer.status_code == 200:
            storm.duplicates += bool(answer.json()["duplicate"])
            storm.latencies_ms.append((time.perf_counter() - begun) * 1000)
            return
        if answer is not None and answer.status_code not in (409, 429, 500, 502, 503, 504):
            raise AssertionError(f"{answer.status_code}: {answer.text}")
        storm.repeated += 1
        await asyncio.sleep(PAUSE_S)
    raise AssertionError(f"{body['idempotency_key']} was never accepted")


def differences(url: str, user_id: str, storm: Storm) -> list[str]:
    """Where the counters of a memory are not what was accepted."""
    found = []
    with httpx.Client(base_url=url, headers={"X-User-Id": user_id}, timeout=30) as http:
        for memory_id, counter in storm.accepted.items():
            stats = http.get(f"/api/memory/items/{memory_id}").json()["memory"]["stats"]
            wanted: dict[str, float] = {f"{kind.value}_count": counter[kind] for kind in KINDS}
            wanted["uses"] = counter.total()
            wanted["success_count"] = sum(SUCCESS_VALUE[kind] * counter[kind] for kind in KINDS)
            found += [
                f"{memory_id}: {name} is {stats[name]}, wanted {value}"
                for name, value in wanted.items()
                if abs(stats[name] - value) > 1e-9
            ]
    return found


def _report(storm: Storm, found: list[str]) -> dict[str, Any]:
    return {
        "accepted": storm.total,
        "repeated": storm.repeated,
        "answered_as_duplicate": storm.duplicates,
        "elapsed_s": round(storm.elapsed_s, 1),
        "per_s": round(storm.total / storm.elapsed_s, 1),
        "p50_ms": round(percentile(storm.latencies_ms, 0.5), 1),
        "p95_ms": round(percentile(storm.latencies_ms, 0.95), 1),
        "differences": found,
    }


def _stormed(service: RunningService, arguments: argparse.Namespace, console: Console) -> list[str]:
    with Progress(console=console) as progress:
        task = progress.add_task("outcomes", total=arguments.outcomes)
        storm = asyncio.run(
            run_storm(
                service.url,
                "storm",
                outcomes=arguments.outcomes,
                clients=arguments.clients,
                at_half=lambda: service.kill(f"{REPLICA}search"),
                advance=lambda: progress.advance(task),
            )
        )
    found = differences(service.url, "storm", storm)
    report = _report(storm, found)
    cells = [str(len(found) if name == "differences" else v) for name, v in report.items()]
    console.print(number_table("outcome storm", report, [cells], words=0))
    put_json(arguments.out, report)
    return found


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.outcome_storm", __doc__)
    made.add_argument("--outcomes", type=positive, default=10_000)
    made.add_argument("--clients", type=positive, default=8)
    return made


def _run(arguments: argparse.Namespace) -> int:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="storm-") as folder:
        service = started(Path(folder), serve={"search": {"replicas": 2}})
        try:
            found = _stormed(service, arguments, console)
        finally:
            service.down()
    for line in found:
        console.print(line)
    return WITH_FAILURES if found else DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
