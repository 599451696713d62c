"""Promotion over many items on a real MongoDB: time, items per second, and what a second run costs.

python -m tests.bench.promotion --items 100000 --out promotion.json

Exit codes: 0 done, 2 bad arguments, 4 the server did not start.
"""

import argparse
import asyncio
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.container.bootstrap import runtime_of
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.load import load_settings
from rayapp.learning.promotion import PromotionService
from rayapp.local.cli.output import number_table
from rayapp.memory.item import IndexState, MemoryItem, Source, Stats, SyncState
from rayapp.memory.tiers import Tier
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import EVENTS, ITEMS, VERSIONS
from rayapp.storage.mongo.jobs import MongoLeaseStore
from rayapp.storage.mongo.lifecycle import MongoLifecycleStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore
from tests.bench.arguments import positive
from tests.support.builders import an_item
from tests.support.mongo_server import running_mongo

USERS = 1_000
BATCH = 1_000
WRITTEN = (ITEMS, VERSIONS, EVENTS)
WRITES = ("insert", "update", "remove")
READY = Stats(uses=3, success_count=2.5, worked_count=2, score=0.85, tier_uses=3)
PROVEN = Stats(uses=9, success_count=9.0, worked_count=9, score=1.0, tier_uses=6, tier_success=6.0)
WORN = replace(PROVEN, failed_count=3, uses=12, score=0.25)
BAD = Stats(uses=2, failed_count=2, score=0.05, tier_uses=2)
# Of 1,000 items: 100 are due in the proportions below, half of the rest was judged once.
DUE: dict[str, tuple[int, dict[str, Any]]] = {
    "promote working": (40, {"tier": Tier.WORKING, "stats": READY}),
    "promote history": (18, {"tier": Tier.HISTORY, "stats": PROVEN}),
    "demote patterns": (10, {"tier": Tier.PATTERNS, "stats": WORN}),
    "expired": (20, {"tier": Tier.WORKING, "expired": True}),
    "garbage": (10, {"tier": Tier.HISTORY, "stats": BAD}),
    "merge": (2, {"tier": Tier.WORKING, "stats": READY, "twin": True}),
}
JUDGED_ONCE = Stats(uses=1, success_count=1.0, worked_count=1, score=0.7, tier_uses=1)
TEXT = "הערה מספר {n}: the service restarts cleanly after the {n} th deploy"


def corpus(count: int, now: datetime) -> Iterator[MemoryItem]:
    """`count` indexed items; a twin is one more item, of the same text in the tier above."""
    kinds = [fields for share, fields in DUE.values() for _ in range(share)]
    made = 0
    while made < count:
        number = made
        fields = dict(kinds[number % 1_000]) if number % 1_000 < len(kinds) else {}
        twin, expired = fields.pop("twin", False), fields.pop("expired", False)
        quiet = JUDGED_ONCE if number % 2 else Stats()
        tier = fields.get("tier") or (Tier.WORKING, Tier.HISTORY, Tier.MEMORY_BANK)[number % 3]
        ends = None if tier in (Tier.PATTERNS, Tier.MEMORY_BANK) else now + timedelta(hours=20)
        one = an_item(
            **{"stats": quiet, **fields, "tier": tier},
            user_id=f"user-{number % USERS}",
            memory_id=f"m-{number}",
            text=TEXT.format(n=number),
            stored_at=now - timedelta(days=number % 20, hours=1),
            expires_at=now - timedelta(hours=1) if expired else ends,
            source=Source(conversation_id=f"c-{number % 50}"),
            index=IndexState(sync_state=SyncState.SYNCED),
        )
        yield one
        made += 1
        if twin and made < count:
            other = an_item(
                user_id=one.user_id,
                memory_id=f"m-{number}-twin",
                text=one.text,
                tier=Tier.HISTORY,
                stored_at=one.stored_at,
                expires_at=ends,
                index=one.index,
            )
            yield other
            made += 1


async def filled(database: MongoDatabase, count: int) -> float:
    """Seconds that storing took."""
    store, started = MongoMemoryStore(database), time.perf_counter()
    batch: list[MemoryItem] = []
    for item in corpus(count, SystemClock().now()):
        batch.append(item)
        if len(batch) == BATCH:
            await store.insert_many(batch)
            batch = []
    await store.insert_many(batch)
    return time.perf_counter() - started


async def written(database: MongoDatabase) -> Counter[str]:
    """Writes that the server has counted per collection, and documents it looked at."""
    totals = (await database.client.admin.command("top"))["totals"]
    counted: Counter[str] = Counter()
    for name in WRITTEN:
        rows = totals.get(f"{database.settings.database}.{name}", {})
        for kind in WRITES:
            counted[f"{name} {kind}"] = int(rows.get(kind, {}).get("count", 0))
    status = await database.client.admin.command("serverStatus")
    counted["documents read"] = int(status["metrics"]["queryExecutor"]["scannedObjects"])
    return counted


async def one_run(database: MongoDatabase, policy: str) -> dict[str, Any]:
    settings = load_settings(env={}, overrides={"promotion": {"policy": policy}})
    service = PromotionService(
        MongoLifecycleStore(database),
        MongoLeaseStore(database),
        runtime=runtime_of(settings, InMemoryMetrics()),
    )
    before, started = await written(database), time.perf_counter()
    report = await service.run(None)
    seconds = time.perf_counter() - started
    after = await written(database)
    moved = report.promoted + report.demoted + report.archived + report.merged
    costs = {name: after[name] - before[name] for name in after}
    return {
        "seconds": round(seconds, 3),
        "transitions": moved,
        "transitions_per_s": round(moved / seconds, 1),
        "writes": sum(number for name, number in costs.items() if name != "documents read"),
        "documents_read": costs["documents read"],
        "costs": costs,
        "report": asdict(report),
    }


async def rows_left(database: MongoDatabase) -> dict[str, int]:
    return {
        name: await database.collection(name).count_documents({}) for name in (VERSIONS, EVENTS)
    }


async def measured(count: int, policy: str) -> dict[str, Any]:
    with running_mongo() as server:
        database = MongoDatabase(server.settings("bench"))
        await database.ensure_schema()
        fill_s = await filled(database, count)
        first = await one_run(database, policy)
        second = await one_run(database, policy)
        rows = await rows_left(database)
        await database.close()
    return {
        "items": count,
        "users": USERS,
        "policy": policy,
        "machine": {"python": platform.python_version(), "platform": platform.platform()},
        "fill_items_per_s": round(count / fill_s, 1),
        "first": first,
        "second": second,
        "rows": rows,
    }


def table(report: dict[str, Any]) -> Table:
    title = f"Promotion over {report['items']:,} items of {report['users']:,} users"
    shown = number_table(title, ("", "first run", "second run"))
    for name in ("seconds", "transitions", "transitions_per_s", "writes", "documents_read"):
        shown.add_row(name, str(report["first"][name]), str(report["second"][name]))
    for name in ("examined", "promoted", "demoted", "archived", "merged", "errors"):
        shown.add_row(name, *(str(report[run]["report"][name]) for run in ("first", "second")))
    return shown


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.promotion", __doc__)
    made.add_argument("--items", type=positive, default=100_000)
    made.add_argument("--policy", choices=("score", "wilson"), default="score")
    return made


def _run(options: argparse.Namespace) -> int:
    report = asyncio.run(measured(options.items, options.policy))
    Console().print(table(report))
    put_json(options.out, report)
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
