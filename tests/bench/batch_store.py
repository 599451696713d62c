"""The phase of the load test that stores new memories in batches."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson

from rayapp.client import MemoryClient
from rayapp.core.errors import DependencyDown
from tests.bench.closed_loop import spread
from tests.bench.phases import TIER, Load
from tests.bench.texts import facts
from tests.bench.wire import PAUSE_S, REFUSED, Call, Connection

CLIENTS = 2
BATCH = 100  # texts of a call
SEED = 6  # texts apart from those of the fill and the other phases
PATH = "/api/memory/store/batch"
STORED = "stored"  # what the answer says of a new memory


@dataclass(slots=True)
class _Seen:
    """What the clients saw, and the calls that still wait for one of them."""

    waiting: list[Call]
    times_ms: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    refused: int = 0


async def batch_store(load: Load, items: int) -> dict[str, Any]:
    """`items` new memories; items per second acknowledged, then until all are indexed.

    A refused batch is counted and not sent again.

    Raises:
        DependencyDown: no batch was taken.
    """
    seen = _Seen(batch_calls(load, items))
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(_client(load.url, seen))
    acknowledged_s = time.perf_counter() - started
    if not seen.times_ms:
        raise DependencyDown("No batch was stored: look at the service with `rayapp doctor`.")
    async with MemoryClient(load.url) as client:
        await client.wait_indexed()
    return {
        "clients": CLIENTS,
        "items": items,
        "statuses": dict(seen.statuses),
        "refused": seen.refused,
        "items_per_s": round(seen.statuses[STORED] / acknowledged_s, 1),
        "indexed_s": round(time.perf_counter() - started, 1),
        "batch_ms": spread(seen.times_ms),
    }


def batch_calls(load: Load, items: int) -> list[Call]:
    """Each for a user of its own: those who are searched stay as large as they are."""
    fresh = enumerate(islice(facts(load.seed + SEED), items))
    calls: list[Call] = []
    while part := list(islice(fresh, BATCH)):
        texts = [f"{fact.text} <{load.mark} b{number}>" for number, fact in part]
        body = {"items": [{"text": text, "tier": TIER} for text in texts]}
        user = f"bench-{load.run_id}-{load.mark}-{len(calls)}"
        calls.append(Call(PATH, orjson.dumps(body), user))
    return calls


async def _client(url: str, seen: _Seen) -> None:
    connection = Connection(url)
    while seen.waiting:
        call = seen.waiting.pop()
        begin = time.perf_counter()
        status, answer = await connection.call("POST", call.path, call.body, call.user_id)
        if status == 200:
            seen.times_ms.append((time.perf_counter() - begin) * 1000.0)
            seen.statuses.update(row["status"] for row in orjson.loads(answer)["results"])
        elif status == REFUSED:
            seen.refused += 1
            await asyncio.sleep(PAUSE_S)
        else:
            seen.statuses[str(status)] += 1
    connection.close()
