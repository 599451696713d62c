"""What users notice of a reindex: load at a fixed rate before it and while it runs, over HTTP.

    python -m tests.bench.reindex --memories 100000 --users 1000 --data-dir .rayapp --out out.json

Fills with seeded bilingual texts, offers searches and stores at fixed rates, runs
`python -m jobs.reindex` beside them, and asks afterwards for every memory that was stored
meanwhile. `--alone` runs the job without load, too, and compares its rate with what the embedder
and the engine do alone. Arguments after `--` go to the job (`-- --rate 2000`). Exit codes: 0 done,
2 bad arguments, 3 a bar was missed or a write was lost, 4 the service is away.
"""

import argparse
import asyncio
import os
import random
import secrets
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.client import MemoryClient
from rayapp.client.discovery import data_dir_of, service_url
from rayapp.client.progress import Progress, wait_indexed
from rayapp.core.errors import DependencyDown
from rayapp.local.cli.output import number_table
from tests.bench import phases
from tests.bench.arguments import positive, positive_number
from tests.bench.closed_loop import spread
from tests.bench.processes import stack_memory
from tests.bench.reindex_limits import limits, share_of
from tests.bench.texts import facts
from tests.bench.wire import Call, Connection

# The reindex bar: search p95 while it runs over p95 before it.
MAX_P95_RATIO = 1.5
# The other one: items per second of the job alone over those of its slowest part alone.
MIN_SHARE = 0.5
# The slow searches that are asked where they waited: this share of all.
SLOW_SHARE = 0.05
CONNECTIONS = 16  # an open loop needs room for the calls that wait
# A stored memory is asked for this often, with a pause in between, before it counts as lost.
ASKS, ASK_PAUSE_S = 3, 1.0
STORED_SEED = 5  # texts apart from those of the fill


@dataclass(slots=True)
class Seen:
    """What one stretch of load saw. `stored`: (user, memory id, text) of acknowledged stores."""

    search_ms: list[float] = field(default_factory=list)
    store_ms: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    degraded: Counter[str] = field(default_factory=Counter)
    stored: list[tuple[str, str, str]] = field(default_factory=list)
    # Of each answered search: what it took, and what its stages say they took.
    stages: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    seconds: float = 0.0

    def report(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 1),
            "searches": len(self.search_ms),
            "search_ms": spread(self.search_ms),
            "stores": len(self.store_ms),
            "store_ms": spread(self.store_ms),
            "statuses": dict(self.statuses),
            "degraded": dict(self.degraded),
            "slow_ms": self.slow_stages(),
        }

    def slow_stages(self) -> dict[str, float]:
        """Milliseconds in the mean by stage, over the slow searches; `outside` is what passed
        before and after the service's own clock ran: connections and queues."""
        slow = sorted(self.stages, key=lambda row: -row[0])
        slow = slow[: max(1, int(len(slow) * SLOW_SHARE))]
        spent: Counter[str] = Counter()
        for took_ms, stages in slow:
            named = {name.removesuffix("_ms"): ms for name, ms in stages.items()}
            spent.update(named | {"outside": took_ms - named.get("total", took_ms)})
        return {name: round(ms / len(slow), 1) for name, ms in spent.most_common()}


class Offered:
    """Searches and stores at fixed rates: a late answer delays no other call."""

    def __init__(self, load: phases.Load, searches_per_s: float, stores_per_s: float) -> None:
        self._load = load
        self._rates = (searches_per_s, stores_per_s)
        self._calls = phases.search_calls(load, heavy=False)
        self._texts = facts(load.seed + STORED_SEED)
        self._serial, self._random = count(), random.Random(load.seed + STORED_SEED)
        self._pool: asyncio.Queue[Connection] = asyncio.Queue()
        for _ in range(CONNECTIONS):
            self._pool.put_nowait(Connection(load.url))

    async def until(self, over: asyncio.Event) -> Seen:
        """Load until `over` is set."""
        seen, began = Seen(), time.perf_counter()
        searches, stores = self._rates
        async with asyncio.TaskGroup() as group:
            for rate, one in ((searches, self._search), (stores, self._store)):
                group.create_task(self._at_rate(rate, one, seen, over))
        seen.seconds = time.perf_counter() - began
        return seen

    async def _at_rate(
        self, rate: float, one: Callable[[Seen], Awaitable[None]], seen: Seen, over: asyncio.Event
    ) -> None:
        if rate <= 0:
            return
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in count():
                await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
                if over.is_set():
                    return
                group.create_task(_run(one, seen))

    async def _search(self, seen: Seen) -> None:
        call = self._random.choice(self._calls)
        status, body, spent_ms = await self._call(call)
        seen.search_ms.append(spent_ms)
        seen.statuses[f"search {status}"] += 1
        if status == 200:
            answer = orjson.loads(body)
            seen.degraded.update(answer.get("degraded") or ())
            stages = (answer.get("debug") or {}).get("stage_timings_ms") or {}
            seen.stages.append((spent_ms, stages))

    async def _store(self, seen: Seen) -> None:
        user = self._load.user(self._random.randrange(self._load.users))
        text = f"{next(self._texts).text} <{self._load.mark} r{next(self._serial)}>"
        body = orjson.dumps({"text": text, "tier": phases.TIER})
        status, answer, spent_ms = await self._call(Call("/api/memory/store", body, user))
        seen.store_ms.append(spent_ms)
        seen.statuses[f"store {status}"] += 1
        if status in (200, 201):
            seen.stored.append((user, orjson.loads(answer)["memory_id"], text))

    async def _call(self, call: Call) -> tuple[int, bytes, float]:
        # From the moment it was due: waiting for a free connection is part of what users notice.
        began = time.perf_counter()
        connection = await self._pool.get()
        try:
            status, body = await connection.call("POST", call.path, call.body, call.user_id)
        except DependencyDown:
            status, body = 0, b""
        finally:
            self._pool.put_nowait(connection)
        return status, body, (time.perf_counter() - began) * 1000.0

    async def lost(self, stored: Sequence[tuple[str, str, str]]) -> list[str]:
        """Memories that a search for their own words does not find in the index."""
        missing = []
        for user, memory_id, text in stored:
            if not await self._is_found(user, memory_id, text):
                missing.append(memory_id)
        return missing

    async def _is_found(self, user: str, memory_id: str, text: str) -> bool:
        """An answer that had to skip a stage says nothing of what is stored: it is asked again."""
        body = orjson.dumps({"query": text, "limit": 10})
        for _ in range(ASKS):
            status, answer, _ms = await self._call(Call("/api/memory/search", body, user))
            hits = orjson.loads(answer).get("results", []) if status == 200 else []
            mine = [hit for hit in hits if hit["memory_id"] == memory_id]
            if mine and mine[0]["score_summary"]["vector_rank"] is not None:
                return True
            await asyncio.sleep(ASK_PAUSE_S)
        return False


async def _run(one: Callable[[Seen], Awaitable[None]], seen: Seen) -> None:
    await one(seen)


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.reindex", __doc__)
    made.add_argument("--memories", type=positive, default=100_000)
    made.add_argument("--users", type=positive, default=1_000)
    made.add_argument("--searches-per-s", type=positive_number, default=20.0)
    made.add_argument("--stores-per-s", type=positive_number, default=10.0)
    made.add_argument("--before-s", type=positive_number, default=20.0, help="load before the job")
    made.add_argument("--seed", type=int, default=7)
    made.add_argument("--reuse", metavar="RUN_ID", help="measure what this run filled, no fill")
    made.add_argument("--alone", action="store_true", help="run the job without load first")
    made.add_argument("--data-dir", type=Path, help="data directory of the local stack")
    made.add_argument("job", nargs="*", help="arguments of the job, after --")
    return made


async def measure(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Fill, load alone, load beside the job, then look for every stored memory."""
    data_dir = data_dir_of(arguments.data_dir)
    url = service_url(None, arguments.data_dir)
    load = phases.Load(
        url=url,
        run_id=arguments.reuse or secrets.token_hex(4),
        memories=arguments.memories,
        users=arguments.users,
        heavy=0,
        seed=arguments.seed,
        seconds=arguments.before_s,
        warm_s=0.0,
    )
    await phases.require_service(url)
    report: dict[str, Any] = {
        "run_id": load.run_id,
        "at": datetime.now(UTC).isoformat(),
        "cores": os.cpu_count(),
        "load": {
            "memories": load.memories,
            "users": load.users,
            "searches_per_s": arguments.searches_per_s,
            "stores_per_s": arguments.stores_per_s,
        },
    }
    with Progress(console) as progress:
        if arguments.reuse is None:
            report["fill"] = await phases.fill(load, progress)
        if arguments.alone:
            report["alone"] = await _alone(data_dir, arguments, progress)
        offered = Offered(load, arguments.searches_per_s, arguments.stores_per_s)
        # One-second warm-up: connections, caches and the first searches of a replica.
        await offered.until(_after(1.0))
        with progress.step("before", 1) as bar:
            before = await offered.until(_after(arguments.before_s))
            bar.advance()
        with progress.step("reindex", 1) as bar:
            during, job = await _beside_the_job(offered, data_dir, arguments.job)
            bar.advance()
        async with MemoryClient(url) as client:
            await wait_indexed(client, progress, "index")
        stored = before.stored + during.stored
        lost = await offered.lost(stored)
    report |= {"before": before.report(), "during": during.report(), "job": job}
    report["stored"], report["lost"] = len(stored), lost
    p95 = (before.report()["search_ms"]["p95"], during.report()["search_ms"]["p95"])
    report["p95_ratio"] = round(p95[1] / p95[0], 3) if p95[0] else None
    report["memory_after_mib"] = round(sum(row.pss_mib for row in stack_memory(data_dir)), 1)
    return report


async def _alone(
    data_dir: Path, arguments: argparse.Namespace, progress: Progress
) -> dict[str, Any]:
    """The job without load, between two looks at its parts; the better look of each counts."""
    with progress.step("alone", 3) as bar:
        looks = [await limits(data_dir, arguments.seed)]
        bar.advance()
        job = await _the_job(data_dir, arguments.job)
        bar.advance()
        looks.append(await limits(data_dir, arguments.seed))
        bar.advance()
    best = {name: max(look[name] for look in looks) for name in looks[0]}
    rate = (job["report"].get("report") or {}).get("items_per_s")
    return {"job": job, "items_per_s": rate, "limits": best, "share": share_of(rate, best)}


def _after(seconds: float) -> asyncio.Event:
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, over.set)
    return over


async def _beside_the_job(
    offered: Offered, data_dir: Path, arguments: Sequence[str]
) -> tuple[Seen, dict[str, Any]]:
    over = asyncio.Event()

    async def job() -> dict[str, Any]:
        try:
            return await _the_job(data_dir, arguments)
        finally:
            over.set()

    running = asyncio.create_task(job())
    seen = await offered.until(over)
    return seen, await running


async def _the_job(data_dir: Path, arguments: Sequence[str]) -> dict[str, Any]:
    with TemporaryDirectory(prefix="rayapp-bench-") as folder:
        out, began = Path(folder) / "report.json", time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "jobs.reindex", "--data-dir", str(data_dir)),
            *("--out", str(out), *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        text = output.decode(errors="replace")
        report = orjson.loads(out.read_bytes()) if out.exists() else {"output": text[-2_000:]}
    spent_s = round(time.perf_counter() - began, 1)
    return {"exit_code": process.returncode, "wall_s": spent_s, "report": report}


def table(report: dict[str, Any]) -> Table:
    """What was measured, and the bar where there is one."""
    heads = ("what", "before", "during", "bar")
    made = number_table(f"Reindex, run {report['run_id']}", heads)
    before, during = report["before"], report["during"]
    for name in ("search_ms", "store_ms"):
        for share in ("p50", "p95", "p99", "max"):
            values = [f"{one[name][share]:.2f}" for one in (before, during)]
            made.add_row(f"{name} {share}", *values, "")
    made.add_row("search p95 ratio", "", f"{report['p95_ratio']}", f"{MAX_P95_RATIO}")
    made.add_row("stores looked for / lost", "", f"{report['stored']} / {len(report['lost'])}", "0")
    made.add_row("degraded answers", *(str(sum(r["degraded"].values())) for r in (before, during)))
    made.add_row("failed calls", *(str(_failed_calls(r)) for r in (before, during)), "0")
    made.add_row("slow searches wait in, ms", *(_slow(one) for one in (before, during)))
    if "alone" in report:
        alone = report["alone"]
        made.add_row("job alone, items/s", "", f"{alone['items_per_s']}", "")
        made.add_row("its parts alone, items/s", "", str(alone["limits"]), "")
        made.add_row("share of the slower part", "", f"{alone['share']}", f"{MIN_SHARE}")
    job = report["job"]
    done = job["report"].get("report") or {}
    made.add_row("job, s", "", f"{job['wall_s']}", "")
    for name in ("items", "copied", "embedded", "followed", "items_per_s", "seconds", "switched"):
        made.add_row(f"job {name}", "", str(done.get(name)), "")
    return made


def _slow(seen: dict[str, Any]) -> str:
    return ", ".join(f"{name} {ms:.0f}" for name, ms in seen.get("slow_ms", {}).items() if ms >= 1)


def _failed_calls(seen: dict[str, Any]) -> int:
    # 200: a text of an earlier run, when its memories are measured again.
    good = {"search 200", "store 200", "store 201"}
    return sum(n for name, n in seen["statuses"].items() if name not in good)


def failed(report: dict[str, Any]) -> bool:
    """A missed bar, a lost write, a refused call, or a job that did not end well."""
    alone = report.get("alone")
    return bool(
        report["job"]["exit_code"]
        or (alone is not None and (alone["share"] or 0.0) < MIN_SHARE)
        or report["lost"]
        or report["p95_ratio"] is None
        or report["p95_ratio"] > MAX_P95_RATIO
        or sum(report["during"]["degraded"].values())
        or _failed_calls(report["before"])
        or _failed_calls(report["during"])
    )


def _measured(arguments: argparse.Namespace) -> int:
    console = Console()
    report = asyncio.run(measure(arguments, console))
    put_json(arguments.out, report)
    console.print(table(report))
    return WITH_FAILURES if failed(report) else DONE


main = partial(run_command, parser, _measured)

if __name__ == "__main__":
    sys.exit(main())
