"""The phases of the load test: fill, search, store, indexing delay."""

import asyncio
import random
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson

from rayapp.client import Memory, MemoryClient, RetryPolicy
from rayapp.client.progress import Progress, wait_indexed
from rayapp.core.errors import DependencyDown
from tests.bench.closed_loop import drive_all, spread
from tests.bench.delay import Sample, index_delays
from tests.bench.texts import facts
from tests.bench.wire import Call, Connection

FILL_BATCH = 200  # items per batch call, or all of a user's when they have fewer
FILL_CALLS = 4  # batch calls in flight: keeps both sides of a 2-core machine busy
QUERIES = 4_000  # distinct questions per run; a fast run asks some of them again
ZIPF_QUERIES = 40_000  # more: who is asked for again, and after how long, is what is measured
SEARCH_LIMIT = 10
MOST_STORES_PER_S = 2_000  # of one client
STORES_PER_S = 50.0  # offered rate of the delay phase (the bar is stated at it)
POLL_S = 0.02  # between two looks at the backlog
DRAIN_S = 30.0  # the backlog must be empty this long after the last store
TIER = "history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to load. `heavy` memories go to one further user.

    `zipf`: questions are of the n-th user as often as n ** -zipf; 0: of all alike.
    `mark` is in every text that a phase stores: one that an earlier run stored would be a mention
    of it and no new memory.
    """

    url: str
    run_id: str
    memories: int
    users: int
    heavy: int
    seed: int
    seconds: float
    warm_s: float
    zipf: float = 0.0
    mark: str = field(default_factory=lambda: secrets.token_hex(4))

    def user(self, index: int) -> str:
        return f"bench-{self.run_id}-{index}"

    @property
    def heavy_user(self) -> str:
        return f"bench-{self.run_id}-heavy"

    def batches(self) -> list[tuple[str, int]]:
        """(user, items) per batch call, users taken in turn."""
        each, rest = divmod(self.memories, self.users)
        sizes = [(self.user(i), each + (i < rest)) for i in range(self.users)]
        if self.heavy:
            sizes.append((self.heavy_user, self.heavy))
        return [
            (user, min(FILL_BATCH, size - start))
            for user, size in sizes
            for start in range(0, size, FILL_BATCH)
        ]


async def fill(load: Load, progress: Progress) -> dict[str, Any]:
    """Store everything; items per second acknowledged, then until the index is empty."""
    texts = facts(load.seed)
    queue = load.batches()[::-1]
    total = sum(size for _, size in queue)
    states: Counter[str] = Counter()
    times: list[float] = []
    async with MemoryClient(load.url) as client:
        started = time.perf_counter()
        with progress.step("fill", total) as bar:

            async def worker() -> None:
                while queue:
                    # No await between these two: texts and users pair up alike in every run.
                    user, size = queue.pop()
                    items = [Memory(text=fact.text, tier=TIER) for fact in islice(texts, size)]
                    begin = time.perf_counter()
                    replies = await client.store_batch(items, user_id=user)
                    times.append((time.perf_counter() - begin) * 1000.0)
                    states.update(reply.status for reply in replies)
                    bar.advance(len(replies))

            async with asyncio.TaskGroup() as group:
                for _ in range(FILL_CALLS):
                    group.create_task(worker())
        acknowledged_s = time.perf_counter() - started
        await wait_indexed(client, progress, "index")
        indexed_s = time.perf_counter() - started
    return {
        "memories": total,
        "statuses": dict(states),
        "items_per_s": round(total / acknowledged_s, 1),
        "acknowledged_s": round(acknowledged_s, 1),
        "indexed_s": round(indexed_s, 1),
        "batch_ms": spread(times),
    }


def search(load: Load, clients: int, *, heavy: bool = False) -> dict[str, Any]:
    """Closed loop of searches for a fixed time, client processes of their own."""
    calls = search_calls(load, heavy=heavy)
    return drive_all(load.url, clients, calls, warm_s=load.warm_s, measure_s=load.seconds)


def store(load: Load) -> dict[str, Any]:
    """One client stores single memories one after the other."""
    random_ = random.Random(load.seed + 2)
    # More than a service of today takes, so that none is stored twice.
    most = int((load.warm_s + load.seconds) * MOST_STORES_PER_S)
    fresh = islice(facts(random_.getrandbits(62)), most)
    calls = [
        Call(
            "/api/memory/store",
            orjson.dumps({"text": f"{fact.text} <{load.mark} s{i}>", "tier": TIER}),
            load.user(random_.randrange(load.users)),
        )
        for i, fact in enumerate(fresh)
    ]
    return drive_all(load.url, 1, calls, warm_s=load.warm_s, measure_s=load.seconds)


async def delay(load: Load) -> dict[str, Any]:
    """Stores at a fixed rate while the backlog is watched."""
    fresh = facts(load.seed + 3)
    count = int(STORES_PER_S * load.seconds)
    acknowledged: list[float] = []
    samples: list[Sample] = []
    failures: Counter[int] = Counter()
    stop = asyncio.Event()
    pool: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(8):
        pool.put_nowait(Connection(load.url))
    random_ = random.Random(load.seed + 4)

    async def one(index: int, at: float, text: str, user: str) -> None:
        await asyncio.sleep(max(0.0, at - time.perf_counter()))
        connection = await pool.get()
        body = orjson.dumps({"text": f"{text} <{load.mark} d{index}>", "tier": TIER})
        status, _ = await connection.call("POST", "/api/memory/store", body, user)
        pool.put_nowait(connection)
        if status == 201:
            acknowledged.append(time.perf_counter())
        else:
            failures[status] += 1

    begin = time.perf_counter() + 0.2
    # One group: when the service is gone, neither the watcher nor a store waits on.
    async with asyncio.TaskGroup() as watching:
        watching.create_task(_watch(load.url, samples, stop))
        async with asyncio.TaskGroup() as group:
            for index in range(count):
                user = load.user(random_.randrange(load.users))
                at = begin + index / STORES_PER_S
                group.create_task(one(index, at, next(fresh).text, user))
        if acknowledged:
            await _drained(samples, acknowledged)
        stop.set()
    delays = index_delays(acknowledged, samples)
    if not delays:
        raise DependencyDown("No store was acknowledged: look at GET /api/memory/diagnostics.")
    polls = [(sample.answered_at - sample.asked_at) * 1000.0 for sample in samples]
    return {
        "stores": len(acknowledged),
        "failed": {str(status): n for status, n in failures.items()},
        "not_indexed": len(acknowledged) - len(delays),
        "delay_ms": spread([seconds * 1000.0 for seconds in delays]),
        "poll_ms": spread(polls),
        "method": " ".join((index_delays.__doc__ or "").split()),
    }


async def _watch(url: str, samples: list[Sample], stop: asyncio.Event) -> None:
    connection = Connection(url)
    while not stop.is_set():
        asked = time.perf_counter()
        status, body = await connection.call("GET", "/api/memory/diagnostics")
        if status == 200:
            pending = int(orjson.loads(body)["index"]["pending"])
            samples.append(Sample(asked, time.perf_counter(), pending))
        await asyncio.sleep(POLL_S)
    connection.close()


async def _drained(samples: Sequence[Sample], acknowledged: Sequence[float]) -> None:
    """Until a look that was asked after the last acknowledgement found nothing pending."""
    limit = time.perf_counter() + DRAIN_S
    last = max(acknowledged, default=0.0)
    while time.perf_counter() < limit:
        if samples and samples[-1].pending == 0 and samples[-1].asked_at > last:
            return
        await asyncio.sleep(POLL_S)


def search_calls(load: Load, *, heavy: bool) -> list[Call]:
    """Distinct questions about the stored facts, each asked for the user who has the fact."""
    random_ = random.Random(load.seed + 1)
    batches = load.batches()
    wanted = [(user == load.heavy_user) == heavy for user, _ in batches]
    total = sum(size for (_, size), ok in zip(batches, wanted, strict=True) if ok)
    chance = min(1.0, 1.5 * QUERIES / total)
    often = _often(load, random_) if load.zipf and not heavy else None
    texts = facts(load.seed)
    calls = []
    for (user, size), ok in zip(batches, wanted, strict=True):
        mine = list(islice(texts, size))
        if often is not None:
            asked = random_.choices(mine, k=often.pop(user, 0))
        else:
            asked = [fact for fact in mine if ok and random_.random() < chance]
        for fact in asked:
            body = {"query": fact.question(random_), "limit": SEARCH_LIMIT}
            calls.append(Call("/api/memory/search", orjson.dumps(body), user))
    random_.shuffle(calls)
    return calls if often is not None else calls[:QUERIES]


def _often(load: Load, random_: random.Random) -> Counter[str]:
    """How many questions are asked of each user that is asked at all, about one batch of theirs."""
    weights = [rank**-load.zipf for rank in range(1, load.users + 1)]
    return Counter(
        load.user(index) for index in random_.choices(range(load.users), weights, k=ZIPF_QUERIES)
    )


async def require_service(url: str) -> None:
    """Raises DependencyDown with one sentence when the service does not answer."""
    async with MemoryClient(url, retry=RetryPolicy(attempts=2)) as client:
        await client.backlog()
