"""What one search costs, stage by stage: processor time, wall time, calls to MongoDB and engine.

    python -m tests.bench.search_profile --memories 20000 --users 200 --requests 1000

Runs the HTTP application in this process on a throw-away mongod and engine. Wall times of a busy
machine mean little; processor times and the ratio of one run do. Exit codes: 0 done,
2 bad arguments, 4 a server did not start or refused a call.
"""

import argparse
import asyncio
import cProfile
import gc
import os
import pstats
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import uvloop
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.core.errors import DependencyDown
from rayapp.search.rules.evaluation import percentile
from tests.bench.arguments import not_negative, positive
from tests.bench.search_rig import SearchRig, fill, search_rig
from tests.bench.stage_cpu import StageCpu
from tests.bench.texts import facts

WARM_UP = 200  # requests: caches of words, connections, plans of the server
YARD_EVERY = 10  # requests between two looks at how fast the machine is
SEARCH = "/api/memory/search"
# Reads that are sent again through the thinnest client, to see what the stores alone take.
REPLAYED = 300
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.search_profile", __doc__)
    made.add_argument("--memories", type=positive, default=20_000)
    made.add_argument("--users", type=positive, default=200)
    made.add_argument("--requests", type=positive, default=1_000)
    made.add_argument("--seed", type=int, default=7)
    made.add_argument("--keep", type=Path, help="folder of the data; a filled one is used again")
    made.add_argument(
        "--functions", type=not_negative, default=0, help="also print the N dearest functions"
    )
    return made


def batches(arguments: argparse.Namespace) -> tuple[list[tuple[str, list[str]]], list[Any]]:
    """Texts by user, and (user, body of a question about one of them) in random order."""
    source, random_ = facts(arguments.seed), random.Random(arguments.seed + 1)
    each = max(1, arguments.memories // arguments.users)
    texts, calls = [], []
    for at in range(arguments.users):
        mine = list(islice(source, each))
        texts.append((f"bench-{at}", [fact.text for fact in mine]))
        for fact in random_.sample(mine, min(20, each)):
            body = {"query": fact.question(random_), "limit": 10}
            calls.append((f"bench-{at}", orjson.dumps(body)))
    random_.shuffle(calls)
    return texts, calls


def metered(rig: SearchRig) -> StageCpu:
    """The stages of a search, measured where they are; tells of names that are gone by failing."""
    meter = StageCpu()
    search = rig.services.search
    retrievers = search.retrievers
    for owner, attribute, name in (
        (search, "search", "search"),
        (search.priors, "gather", "priors"),
        (retrievers.views, "of", "view"),
        (retrievers, "_pending", "pending"),
        (retrievers, "_embed", "embed"),
        (retrievers, "_query", "index"),
        (retrievers, "_hydrate", "hydrate"),
        (search, "ranked", "rank"),
        (search, "_rerank", "rerank"),
        (search, "_with_receipt", "receipt"),
    ):
        meter.meter(owner, attribute, name)
    meter.meter_call(search, "prepare", "plan")
    meter.meter_call(search, "_answer", "answer")
    meter.meter_call(rig.engine, "call", "engine")
    return meter


async def measure(rig: SearchRig, calls: Sequence[Any], count: int) -> dict[str, Any]:
    """`count` searches one after the other, after a warm-up on other questions."""
    for user_id, body in calls[-WARM_UP:]:
        await rig.post(SEARCH, body, user_id)
    meter = metered(rig)
    gc.collect()
    pid = rig.mongo.pid
    wall: list[float] = []
    yard: list[float] = []
    rig.commands.clear()
    mongo_cpu, cpu = cpu_of(pid), time.process_time()
    for at in range(count):
        user_id, body = calls[at % len(calls)]
        if at % YARD_EVERY == 0:
            yard.append(yardstick())
        begun = time.perf_counter()
        status, _ = await rig.post(SEARCH, body, user_id)
        wall.append(time.perf_counter() - begun)
        if status != 200:
            raise DependencyDown(f"A search was answered with {status}: read the log above.")
    spent, mongo_spent = time.process_time() - cpu - sum(yard), cpu_of(pid) - mongo_cpu
    stages = {
        name: {
            "wall_p50_ms": _ms(percentile(meter.wall[name], 0.5)),
            "cpu_ms": _ms(meter.seconds[name] / count),
        }
        for name in meter.wall
    }
    return {
        "requests": count,
        "wall_p50_ms": _ms(percentile(wall, 0.5)),
        "wall_p95_ms": _ms(percentile(wall, 0.95)),
        "wall_least_ms": _ms(percentile(wall, 0.05)),
        "cpu_ms": _ms(spent / count),
        "yardstick_ms": _ms(sum(yard) / len(yard)),
        "mongod_cpu_ms": _ms(mongo_spent / count),
        "stages": stages,
    }


async def calls_of(rig: SearchRig, calls: Sequence[Any], count: int) -> dict[str, Any]:
    """Commands per search, and what the stores alone take for the same commands."""
    engine_calls: list[tuple[str, tuple[Any, ...]]] = []
    inner = rig.engine.call

    def seen(operation: str, args: tuple[Any, ...]) -> Any:
        engine_calls.append((operation, args))
        return inner(operation, args)

    rig.engine.call = seen  # type: ignore[method-assign]  # a bench looks on
    rig.commands.clear()
    rig.commands.counting = True
    for user_id, body in calls[:count]:
        await rig.post(SEARCH, body, user_id)
    rig.commands.counting = False
    rig.engine.call = inner  # type: ignore[method-assign]
    begun = time.perf_counter()
    for operation, args in engine_calls:
        inner(operation, args)
    engine_s = time.perf_counter() - begun
    replayed = await asyncio.to_thread(replay, rig.mongo.uri, rig.commands.kept)
    return {
        "mongo_calls": {n: round(c / count, 2) for n, c in Counter(rig.commands.names).items()},
        "engine_calls": round(len(engine_calls) / count, 2),
        "engine_alone_ms": _ms(engine_s / count),
        "mongo_alone_ms": {name: _ms(taken / count) for name, taken in replayed.items()},
    }


def replay(uri: str, commands: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Seconds of the same commands through a blocking client that decodes nothing."""
    taken: defaultdict[str, float] = defaultdict(float)
    options: CodecOptions[RawBSONDocument] = CodecOptions(document_class=RawBSONDocument)
    with MongoClient[dict[str, Any]](uri) as client:
        for command in commands:
            name, collection = next(iter(command.items()))
            if name == "getMore":
                continue  # its cursor is gone
            sent = {
                key: value
                for key, value in command.items()
                if not key.startswith("$") and key not in ("lsid", "txnNumber")
            }
            if name == "insert":
                rows = [{k: v for k, v in row.items() if k != "_id"} for row in sent["documents"]]
                rows = [{**row, "receipt_id": f"again-{len(taken)}-{id(row)}"} for row in rows]
                sent["documents"] = rows
            begun = time.perf_counter()
            client[command["$db"]].command(sent, codec_options=options)
            taken[f"{name} {collection}"] += time.perf_counter() - begun
    return dict(taken)


def yardstick() -> float:
    """Processor seconds of a fixed piece of work: it grows when other processes share the cores'
    caches and clock, as the measured code does. Compare runs by what they cost in yardsticks."""
    begun = time.process_time()
    kept = {f"{number}": (number, str(number)) for number in range(2_000)}
    sorted(kept.values(), key=lambda pair: pair[1])
    return time.process_time() - begun


def cpu_of(pid: int) -> float:
    """Processor seconds of a process, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def _ms(seconds: float) -> float:
    return round(seconds * 1000.0, 3)


def tables(report: dict[str, Any]) -> list[Table]:
    stages = Table("stage", "wall p50 ms", "CPU ms", title="Search, one client, in one process")
    for name, row in report["stages"].items():
        stages.add_row(name, f"{row['wall_p50_ms']:.2f}", f"{row['cpu_ms']:.2f}")
    stages.add_row("request", f"{report['wall_p50_ms']:.2f}", f"{report['cpu_ms']:.2f}")
    stages.add_row("(yardstick)", "", f"{report['yardstick_ms']:.2f}")
    stores = Table("store", "calls per search", "alone, ms", title="MongoDB and engine")
    for name, taken in report["mongo_alone_ms"].items():
        stores.add_row(name, "", f"{taken:.2f}")
    calls = ", ".join(f"{n} {c}" for n, c in report["mongo_calls"].items())
    stores.add_row("mongo", calls, f"{sum(report['mongo_alone_ms'].values()):.2f}")
    stores.add_row("engine", str(report["engine_calls"]), f"{report['engine_alone_ms']:.2f}")
    stores.add_row("mongod CPU", "", f"{report['mongod_cpu_ms']:.2f}")
    stores.add_row("request ÷ stores", "", f"{report['overhead']:.2f}")
    return [stages, stores]


async def run(arguments: argparse.Namespace) -> dict[str, Any]:
    texts, calls = batches(arguments)
    async with search_rig(arguments.keep) as rig:
        if (await rig.container.index.count()) < sum(len(mine) for _, mine in texts):
            await fill(rig, texts)
        await rig.settle()
        report = await calls_of(rig, calls, min(REPLAYED, arguments.requests))
        report |= await measure(rig, calls, arguments.requests)
        stores = report["engine_alone_ms"] + sum(report["mongo_alone_ms"].values())
        report["overhead"] = round(report["wall_p50_ms"] / stores, 2)
        if arguments.functions:
            await _functions(rig, calls, arguments)
    return report


async def _functions(rig: SearchRig, calls: Sequence[Any], arguments: argparse.Namespace) -> None:
    profile = cProfile.Profile()
    profile.enable()
    for user_id, body in calls[: arguments.requests]:
        await rig.post(SEARCH, body, user_id)
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(arguments.functions)
    pstats.Stats(profile).sort_stats("cumtime").print_stats(arguments.functions)


def _run(arguments: argparse.Namespace) -> int:
    report = uvloop.run(run(arguments))
    put_json(arguments.out, report)
    for table in tables(report):
        Console().print(table)
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
