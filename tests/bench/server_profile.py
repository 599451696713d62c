"""The index on a real Qdrant server: graphs and quantisation against exact search.

    python -m tests.bench.server_profile --items 100000 --users 1000 --queries 300 --out out.json
    python -m tests.bench.server_profile --items 5000 --users 50 --graph-from 200

Starts the server once per build, fills it through the service's own adapter, waits for its graphs
and asks it: the dense sub-query (recall against exact scores) of light users, of a heavy user and
of everybody, and the call of a whole search beside the embedded engine with the same points.
A server builds no graph below about 10,000 points per segment: `--graph-from` is for quick looks.
Exit codes: 0 done, 2 bad arguments, 4 a server or the embedder is away.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop
from rich.console import Console

from jobs.ending import DONE, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.client.progress import Bar, Progress
from rayapp.core.errors import ConfigError
from rayapp.core.settings.model import QdrantSettings
from rayapp.index.ports import VectorIndex
from rayapp.index.records import ScoredPoint, SubQuery
from rayapp.local.cli.output import report_console
from rayapp.search.rules.evaluation import TOP, percentile
from rayapp.storage.qdrant import server_convert as convert
from rayapp.storage.qdrant.errors import qdrant_errors
from rayapp.storage.qdrant.predicate import Predicate, count_predicate, predicate_of
from tests.bench import server_points
from tests.bench.arguments import not_negative, positive
from tests.bench.search_profile import cpu_of
from tests.bench.server_builds import (
    ALIAS,
    BUILDS,
    READ_LIMIT_S,
    WRITE_LIMIT_S,
    Build,
    Built,
    Mode,
    built,
    load,
    pss_mib,
)
from tests.bench.server_embedded import Embedded, embedded
from tests.bench.server_report import agreement, recall, tables, without_graph

USUAL = ("exact", "hnsw", "int8")
LEAST_EACH = 10  # items of a user, so that a search has something to choose from
MANY = 8  # clients of the second throughput
WARM = 20  # questions asked before those that are timed

Ask = Callable[[server_points.Question], Awaitable[list[list[str]]]]


@dataclass(frozen=True, slots=True)
class Timed:
    answers: list[list[list[str]]]
    speed: dict[str, float]


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.server_profile", __doc__)
    made.add_argument("--items", type=positive, default=20_000)
    made.add_argument("--users", type=positive, default=200)
    made.add_argument("--queries", type=positive, default=300, help="questions per audience")
    made.add_argument("--builds", nargs="+", choices=list(BUILDS), default=list(USUAL))
    made.add_argument(
        "--graph-from", type=not_negative, default=0, metavar="KB", help="0: as the server"
    )
    made.add_argument("--seed", type=int, default=7)
    return made


async def timed(ask: Ask, questions: Sequence[server_points.Question], pid: int, bar: Bar) -> Timed:
    """One client's latencies, throughput and processor time, here and in the engine's process;
    then the throughput of many."""
    for question in questions[:WARM]:
        await ask(question)
    answers, latencies = list[list[list[str]]](), list[float]()
    cpu, engine_cpu = time.process_time(), cpu_of(pid)
    begun = time.perf_counter()
    for question in questions:
        at = time.perf_counter()
        answers.append(await ask(question))
        latencies.append((time.perf_counter() - at) * 1000.0)
    alone_s = time.perf_counter() - begun
    cpu, engine_cpu = time.process_time() - cpu, cpu_of(pid) - engine_cpu
    bar.advance(len(questions))
    left = iter(questions)
    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(MANY):
            group.create_task(_all_of(ask, left))
    many_s = time.perf_counter() - begun
    bar.advance(len(questions))
    return Timed(
        answers,
        {
            "p50_ms": round(percentile(latencies, 0.5), 3),
            "p95_ms": round(percentile(latencies, 0.95), 3),
            "per_s": round(len(questions) / alone_s, 1),
            "per_s_many": round(len(questions) / many_s, 1),
            "client_cpu_ms": round(cpu * 1000.0 / len(questions), 3),
            "engine_cpu_ms": round(engine_cpu * 1000.0 / len(questions), 3),
        },
    )


async def _all_of(ask: Ask, questions: Any) -> None:
    for question in questions:
        await ask(question)


def dense_ask(one: Built, mode: Mode, audience: str) -> Ask:
    """The dense sub-query as the adapter renders it, over all tiers, in the mode."""

    async def ask(question: server_points.Question) -> list[list[str]]:
        sub_query = SubQuery(name="dense", limit=TOP, dense=question.dense)
        request = convert.query_of(sub_query, convert.filter_of(_predicate(question, audience)))
        request.params = mode.params
        async with qdrant_errors(READ_LIMIT_S):
            [answer] = await one.client.query_batch_points(ALIAS, [request])
        return [[str(hit.id) for hit in answer.points]]

    return ask


def _predicate(question: server_points.Question, audience: str) -> Predicate:
    """The conditions of a search; without that on the user for everybody's points."""
    return (
        count_predicate(None, server_points.WHERE)
        if audience == server_points.ALL
        else predicate_of(question.scope, server_points.WHERE)
    )


def search_ask(index: VectorIndex) -> Ask:
    """The call that a search makes."""

    async def ask(question: server_points.Question) -> list[list[str]]:
        answers: list[list[ScoredPoint]] = await index.query(
            question.scope, server_points.WHERE, question.sub_queries()
        )
        return [[hit.point_id for hit in answer] for answer in answers]

    return ask


async def dense_rows(
    build: Build, one: Built, corpus: server_points.Corpus, progress: Progress
) -> Any:
    rows: dict[str, dict[str, Any]] = {}
    total = 2 * sum(map(len, corpus.questions.values())) * len(build.modes)
    with progress.step(f"{build.name}: dense", total) as bar:
        for mode in build.modes:
            for audience in server_points.AUDIENCES:
                asked = corpus.questions[audience]
                seen = await timed(dense_ask(one, mode, audience), asked, one.pid, bar)
                shares = [
                    recall(
                        corpus.truth.scores(question, ids),
                        corpus.truth.best(question, audience, TOP),
                    )
                    for question, [ids] in zip(asked, seen.answers, strict=True)
                ]
                row = {"recall": round(sum(shares) / len(shares), 4), **seen.speed}
                rows.setdefault(mode.name, {})[audience] = row
    return rows


async def search_rows(
    build: Build, one: Built, beside: Embedded, corpus: server_points.Corpus, progress: Progress
) -> dict[str, Any]:
    """The server's search call, and right after it the embedded engine's."""
    rows: dict[str, Any] = {}
    audiences = (server_points.LIGHT, server_points.HEAVY_USER)
    total = 4 * sum(len(corpus.questions[audience]) for audience in audiences)
    with progress.step(f"{build.name}: search", total) as bar:
        for audience in audiences:
            asked = corpus.questions[audience]
            server = await timed(search_ask(one.index), asked, one.pid, bar)
            near = await timed(search_ask(beside.index), asked, beside.pid, bar)
            same = [
                agreement(left, right)
                for left, right in zip(server.answers, near.answers, strict=True)
            ]
            rows[audience] = {
                "server": server.speed,
                "embedded": near.speed,
                "same_ids": round(sum(same) / len(same), 4),
                "p50_ratio": round(server.speed["p50_ms"] / near.speed["p50_ms"], 2),
            }
    return rows


async def measure(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """The whole run; the report.

    Raises:
        RayappError: a server does not start, or an index refuses a point.
    """
    limits = QdrantSettings(timeout_s=READ_LIMIT_S, write_timeout_s=WRITE_LIMIT_S)
    with Progress(console) as progress, TemporaryDirectory(prefix="server-profile-") as name:
        scratch = Path(name)
        corpus = await server_points.make_corpus(arguments, progress)
        async with embedded(scratch / "embedded", limits) as beside:
            await beside.index.open(corpus.schema)
            begun = time.perf_counter()
            await load(beside.index, corpus.points, "embedded: load", progress)
            load_s = time.perf_counter() - begun
            report = _about(arguments, corpus)
            report["embedded"] = {
                "load_s": round(load_s, 1),
                "cpu_s": round(cpu_of(beside.pid), 1),
                "pss_mib": pss_mib(beside.pid),
            }
            for build in map(BUILDS.__getitem__, arguments.builds):
                folder = scratch / build.name
                async with built(build, corpus, folder, arguments.graph_from, progress) as one:
                    report["server"] = one.version
                    report["builds"][build.name] = one.facts | {
                        "dense": await dense_rows(build, one, corpus, progress),
                        "search": await search_rows(build, one, beside, corpus, progress),
                        "pss_mib": pss_mib(one.pid),
                    }
                # After each build: a run that is ended early keeps what it has measured.
                put_json(arguments.out, report)
    return report


def _about(arguments: argparse.Namespace, corpus: server_points.Corpus) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(),
        "cores": os.cpu_count(),
        "items": arguments.items,
        "users": arguments.users,
        "heavy": sum(point.payload["user_id"] == server_points.HEAVY for point in corpus.points),
        "queries": arguments.queries,
        "graph_from_kb": arguments.graph_from,
        "model": corpus.schema.model,
        "dims": corpus.schema.dims,
        "top": TOP,
        "clients": MANY,
        "builds": {},
    }


def _run(arguments: argparse.Namespace) -> int:
    if arguments.items < LEAST_EACH * arguments.users:
        raise ConfigError(f"Pass at least {LEAST_EACH} --items for each of --users.")
    console = report_console()
    report = uvloop.run(measure(arguments, console))
    for table in tables(report):
        console.print(table)
    for name in without_graph(report):
        console.print(f"{name}: no graph was built; pass more --items, or --graph-from.")
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
