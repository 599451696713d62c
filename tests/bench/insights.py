"""Latency of context insights and graph pictures inside the service, on a real MongoDB.

    python -m tests.bench.insights --memories 100000 --users 1000 --out insights.json

Starts a throw-away mongod, fills it with users who have learned (one of them with graphs at
their caps), then asks one call after another. Exit codes: 0 done, 2 bad arguments, 3 above the
bar, 4 the server did not start.
"""

import argparse
import gc
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import uvloop
from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.client.progress import Progress
from rayapp.container import bootstrap
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.graphs.records import InsightsRequest
from rayapp.graphs.service import GraphsService
from rayapp.learning.insights import InsightsService
from rayapp.local.cli.output import number_table
from rayapp.memory.scope import ReadScope
from rayapp.search.rules.evaluation import percentile
from rayapp.storage.mongo.database import MongoDatabase
from tests.bench.arguments import positive
from tests.bench.learned import CONVERSATION, Asked, Filler, Learner
from tests.bench.texts import facts
from tests.support.mongo_server import running_mongo

INSIGHTS_P95_MS = 10.0  # learning design: "under 10 ms at the 95th percentile inside the service"
HEAVY_SHARE = 0.1  # of the memories belongs to the user whose graphs are at their caps
WARM_UP = 100  # calls: caches of words, connections, plans of the server


@dataclass(slots=True)
class World:
    """Services on the filled database, and what to ask."""

    insights: InsightsService
    graphs: GraphsService
    asked: list[Asked] = field(default_factory=list)
    heavy: list[Asked] = field(default_factory=list)


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.insights", __doc__)
    made.add_argument("--memories", type=positive, default=100_000)
    made.add_argument("--users", type=positive, default=1_000)
    made.add_argument("--calls", type=positive, default=1_000, help="insights to measure")
    made.add_argument("--pictures", type=positive, default=200, help="graph pictures to measure")
    made.add_argument("--seed", type=int, default=7)
    return made


def learners(memories: int, users: int, settings: Settings) -> list[Learner]:
    """The heavy user first, then all others with equal shares."""
    heavy = int(memories * HEAVY_SHARE)
    each = max(4, (memories - heavy) // max(1, users - 1))
    caps = (settings.graph.max_nodes, settings.graph.max_edges)
    others = [Learner(user_id=f"bench-{at}", memories=each) for at in range(1, users)]
    return [Learner(user_id="bench-heavy", memories=heavy, graph_caps=caps), *others]


async def filled(
    database: MongoDatabase, settings: Settings, arguments: argparse.Namespace, console: Console
) -> World:
    texts = bootstrap.load_texts()
    runtime = bootstrap.runtime_of(settings, InMemoryMetrics())
    stores = bootstrap.Stores(settings)
    world = World(
        InsightsService(
            stores.graphs,
            stores.items,
            stores.outcomes,
            stores.receipts,
            texts=texts,
            runtime=runtime,
        ),
        GraphsService(stores.graphs, stores.items, texts=texts, runtime=runtime),
    )
    await database.ensure_schema()
    filler = Filler(database, texts.expansions, arguments.seed)
    source, users = facts(arguments.seed), learners(arguments.memories, arguments.users, settings)
    with Progress(console) as progress, progress.step("fill", len(users)) as bar:
        for learner in users:
            asked = await filler.fill(learner, source)
            (world.heavy if learner is users[0] else world.asked).extend(asked)
            bar.advance()
    random_ = random.Random(arguments.seed)
    random_.shuffle(world.asked)
    random_.shuffle(world.heavy)
    return world


async def spread(
    call: Callable[[Asked], Awaitable[Any]], asked: Sequence[Asked], count: int
) -> dict[str, float]:
    """Milliseconds of `count` calls, one after another, after a warm-up on other questions.

    `cpu` is the mean processor time of this process per call: a busy machine moves it little.
    """
    for one in asked[-WARM_UP:]:
        await call(one)
    gc.collect()
    took, cpu = [], time.process_time()
    for at in range(count):
        started = time.perf_counter()
        await call(asked[at % len(asked)])
        took.append((time.perf_counter() - started) * 1000)
    cpu_ms = (time.process_time() - cpu) * 1000 / count
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {name: round(percentile(took, share), 3) for name, share in shares.items()} | {
        "cpu": round(cpu_ms, 3),
        "calls": float(count),
    }


async def measured(world: World, arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    async def insights(one: Asked) -> Any:
        request = InsightsRequest(query=one.query, conversation_id=CONVERSATION, recent=one.recent)
        return await world.insights.insights(ReadScope(one.user_id), request)

    async def nobody(one: Asked) -> Any:
        return await world.insights.insights(ReadScope("nobody"), InsightsRequest(query=one.query))

    async def picture(one: Asked) -> Any:
        return await world.graphs.picture(ReadScope(one.user_id), "both")

    found = [await insights(one) for one in world.asked[:50]]
    if not any(one.patterns and one.directives for one in found):
        raise AssertionError("The filled users have learned nothing: the numbers would say so.")
    few = max(1, arguments.pictures // 4)
    return {
        "insights": await spread(insights, world.asked, arguments.calls),
        "insights, graphs at their caps": await spread(insights, world.heavy, arguments.calls),
        "insights, no graph": await spread(nobody, world.asked, arguments.calls),
        "picture": await spread(picture, world.asked, arguments.pictures),
        "picture, graphs at their caps": await spread(picture, world.heavy[:WARM_UP], few),
    }


async def run(uri: str, arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    settings = load_settings(env={}, overrides={"mongo": {"uri": uri, "database": "bench"}})
    database = MongoDatabase(settings.mongo)
    try:
        world = await filled(database, settings, arguments, console)
        rows = await measured(world, arguments)
    finally:
        await database.close()
    return {
        "memories": arguments.memories,
        "users": arguments.users,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "bar_p95_ms": {"insights": INSIGHTS_P95_MS},
        "latency_ms": rows,
    }


def table(report: dict[str, Any]) -> Table:
    heads = ("what", "calls", "p50", "p95", "p99", "cpu", "bar p95")
    made = number_table(f"{report['memories']} memories of {report['users']} users, ms", heads)
    for name, row in report["latency_ms"].items():
        bar = report["bar_p95_ms"].get(name, "")
        values = (f"{row['calls']:.0f}", *(f"{row[p]:.2f}" for p in ("p50", "p95", "p99", "cpu")))
        made.add_row(name, *values, str(bar))
    return made


def _run(arguments: argparse.Namespace) -> int:
    console = Console()
    with running_mongo() as server:
        report = uvloop.run(run(server.uri, arguments, console))
    put_json(arguments.out, report)
    console.print(table(report))
    missed = report["latency_ms"]["insights"]["p95"] > INSIGHTS_P95_MS
    return WITH_FAILURES if missed else DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
