"""Latency of prefetch, insights and cold start against a running stack, as a caller sees it.

    python -m tests.bench.load --memories 100000 --users 1000 --out load.json
    python -m tests.bench.context --reuse <run_id of load.json> --out context.json

Fills nothing but what stands before each question (identity, preference, a pinned fact) and some
outcomes for the users that it asks as. Each call is timed twice: over HTTP, and by the service
itself. Exit codes: 0 done, 2 bad arguments, 3 above the bar or refused, 4 the service is away.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.client.discovery import service_url
from rayapp.core.errors import DependencyDown
from rayapp.local.cli.output import number_table
from rayapp.search.rules.evaluation import percentile
from tests.bench.arguments import positive
from tests.bench.texts import facts
from tests.bench.wire import Connection

PREFETCH_P95_MS = 50.0  # our target over HTTP at 100,000 memories
WARM_UP_EACH = 2  # calls of a kind per user: their view, plans of the server, caches of words
MOST_COLD_STARTS = 300  # they differ by the user alone
OUTCOMES_EACH = 3  # judged questions per user, so that the graphs have something to say
STANDING = (
    ("My name is Dana / קוראים לי דנה", ["identity"], False),
    ("אני מעדיפה תשובות קצרות", ["preference"], False),
    ("Never book meetings on Friday", ["context"], True),
)
INSIGHTS, PREFETCH = "/api/memory/context/insights", "/api/memory/context"
COLD_START = "/api/memory/context/cold-start"


@dataclass(slots=True)
class Timed:
    """Milliseconds of one kind of call."""

    http: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)
    degraded: int = 0
    refused: int = 0

    def row(self) -> dict[str, Any]:
        shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
        return {
            "calls": len(self.http),
            "degraded": self.degraded,
            "refused": self.refused,
            **{f"http_{name}": _at(self.http, share) for name, share in shares.items()},
            **{f"inside_{name}": _at(self.inside, share) for name, share in shares.items()},
        }


def _at(values: Sequence[float], share: float) -> float | None:
    return round(percentile(values, share), 3) if values else None


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.context", __doc__)
    made.add_argument("--reuse", metavar="RUN_ID", required=True, help="run of tests.bench.load")
    made.add_argument("--users", type=positive, default=1_000, help="as many as that run has")
    made.add_argument("--asked", type=positive, default=50, help="users to ask as")
    made.add_argument("--heavy", action="store_true", help="ask as the heavy user of that run")
    made.add_argument("--calls", type=positive, default=1_000, help="calls of each kind")
    made.add_argument("--seed", type=int, default=7, help="of that run")
    made.add_argument("--url", help="service; default: the stack of --data-dir")
    made.add_argument("--data-dir", type=Path, help="data directory of the local stack")
    return made


async def prepare(connection: Connection, users: Sequence[str], questions: Sequence[str]) -> None:
    """What stands, and outcomes of a few searches, for each user."""
    for number, user in enumerate(users):
        for text, tags, pinned in STANDING:
            body = {
                "text": text,
                "tier": "memory_bank",
                "tags": tags,
                "always_inject": pinned,
                "importance": 0.8,
                "confidence": 0.8,
            }
            await _post(connection, "/api/memory/store", body, user)
        for turn in range(OUTCOMES_EACH):
            query = questions[(number * OUTCOMES_EACH + turn) % len(questions)]
            found = await _post(connection, "/api/memory/search", {"query": query}, user)
            if found.get("results"):
                outcome = "failed" if turn == 0 else "worked"
                judged = {"receipt_id": found["receipt_id"], "positions": [1], "outcome": outcome}
                await _post(connection, "/api/memory/outcomes", judged, user)


async def _post(connection: Connection, path: str, body: Any, user: str) -> dict[str, Any]:
    status, answer = await connection.call("POST", path, orjson.dumps(body), user)
    if status not in (200, 201):
        raise DependencyDown(
            f"{path} answered {status}: look at the service with `rayapp doctor`.",
            details={"answer": answer[:300].decode(errors="replace")},
        )
    parsed: dict[str, Any] = orjson.loads(answer)
    return parsed


async def timed(
    connection: Connection, path: str, bodies: Sequence[dict[str, Any]], users: Sequence[str]
) -> Timed:
    """One call after another, after a warm-up."""
    found, warm_up = Timed(), WARM_UP_EACH * len(users)
    for number, body in enumerate(bodies):
        content, user = orjson.dumps(body), users[number % len(users)]
        started = time.perf_counter()
        status, answer = await connection.call("POST", path, content, user)
        took = (time.perf_counter() - started) * 1000
        if number < warm_up:
            continue
        if status != 200:
            found.refused += 1
            continue
        parsed = orjson.loads(answer)
        found.http.append(took)
        found.inside.append(parsed.get("latency_ms") or parsed["meta"]["built_ms"])
        found.degraded += bool(parsed["degraded"])
    return found


async def measured(url: str, arguments: argparse.Namespace) -> dict[str, Any]:
    random_ = random.Random(arguments.seed + 11)
    name = f"bench-{arguments.reuse}"
    picked = random_.sample(range(arguments.users), k=min(arguments.asked, arguments.users))
    users = [f"{name}-heavy"] if arguments.heavy else [f"{name}-{number}" for number in picked]
    count = arguments.calls + WARM_UP_EACH * len(users)
    questions = [fact.question(random_) for fact in islice(facts(arguments.seed), count)]
    connection = Connection(url)
    try:
        await prepare(connection, users, questions)
        turns = [
            {
                "query": query,
                "conversation_id": f"c-{number % 20}",
                "recent_messages": [{"role": "user", "content": questions[number - 1]}],
            }
            for number, query in enumerate(questions)
        ]
        full = [{**turn, "include_context": True} for turn in turns]
        return {
            "prefetch": (await timed(connection, PREFETCH, full, users)).row(),
            "insights": (await timed(connection, INSIGHTS, turns, users)).row(),
            "cold start": (
                await timed(connection, COLD_START, [{}] * min(count, MOST_COLD_STARTS), users)
            ).row(),
        }
    finally:
        connection.close()


def table(report: dict[str, Any]) -> Table:
    names = ("calls", "http_p50", "http_p95", "inside_p50", "inside_p95", "degraded", "refused")
    found = report["latency_ms"].items()
    rows = ([what, *(str(row[name]) for name in names)] for what, row in found)
    return number_table("Context, ms", ("what", *names), rows)


def _run(arguments: argparse.Namespace) -> int:
    url = service_url(arguments.url, arguments.data_dir)
    rows = asyncio.run(measured(url, arguments))
    report = {
        "run_id": arguments.reuse,
        "users": 1 if arguments.heavy else arguments.asked,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "bar_p95_ms": {"prefetch": PREFETCH_P95_MS},
        "latency_ms": rows,
    }
    put_json(arguments.out, report)
    Console().print(table(report))
    refused = any(row["refused"] for row in rows.values())
    missed = refused or rows["prefetch"]["http_p95"] > PREFETCH_P95_MS
    return WITH_FAILURES if missed else DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
