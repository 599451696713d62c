"""Lists, prompts and deletion of conversations over a real MongoDB, as a caller in process sees it.

    python -m tests.bench.conversations --conversations 1000 --turns 25 --out conversations.json

Starts a mongod of its own and asks the real API without a socket; the vector index is in memory,
and the user is held (decision 0055). Exit codes: 0 done, 2 bad arguments, 3 above a bar, or a row
of a deleted conversation is left, or one of another is gone.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any

import httpx
from rich.console import Console

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put_json
from jobs.suites.runner import SETTLED_S
from rayapp.assistant.conversations.rules import exchange_id
from rayapp.assistant.history.rules import first_words
from rayapp.assistant.ports import KeptTurn, TurnRecord
from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import NewMemory
from rayapp.memory.scope import WriteScope
from rayapp.memory.tiers import Tier
from rayapp.search.rules.evaluation import percentile
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.indexes import CHANGES, DELETIONS, INDEXES, LEASES
from tests.bench.arguments import positive
from tests.bench.texts import facts
from tests.support.mongo_server import running_mongo
from tests.support.mongo_service import MongoService
from tests.unit.api.serving import client_of

USER = "admin"
SCOPE = WriteScope(USER)
LIST = "/api/memory/conversations"
# The bars of the product for a user with 1,000 conversations of 50 messages, milliseconds.
LIST_P95_MS, PROMPT_P95_MS = 15.0, 60.0
CALLS, DELETED = 200, 20
AT_ONCE = 16  # conversations that are filled side by side
HELD = 100_000  # memories of a user that are held: all of them here
BATCH = 500  # memories of one call
# Until a view of so many memories is tried again and made, seconds.
VIEW_S = 15.0
NOT_COUNTED = {CHANGES, DELETIONS, LEASES}


def named(number: int) -> str:
    return f"talk-{number:05d}"


async def fill(service: MongoService, conversations: int, turns: int) -> None:
    """Turns as the hooks keep them: words, session, and a memory each."""
    texts = [one.text for one in islice(facts(7), 2_000)]
    now, stores = service.container.clock.now(), service.container.stores
    memories: list[NewMemory] = []

    async def one(number: int) -> None:
        name = named(number)
        for place in range(turns):
            at = now - timedelta(minutes=number * turns + turns - place)
            text = texts[(number * turns + place) % len(texts)]
            message = f"m-{place}"
            memory_id = exchange_id(USER, name, message)
            question = f"What of case {number}-{place}? {text}"
            kept = KeptTurn(
                user_id=USER,
                conversation_id=name,
                message_id=message,
                question=question,
                answer=f"{text} Noted for {name}.",
                at=at,
                memory_id=memory_id,
                model="dicta-7b",
            )
            await stores.conversations.keep(SCOPE, kept, first_words(question))
            record = TurnRecord(message_id=message, memory_id=memory_id, at=at)
            await stores.sessions.add_turn(SCOPE, name, record)
            source = Source(type=SourceType.ASSISTANT, conversation_id=name, message_id=message)
            memories.append(
                NewMemory(
                    text=f"User: {question}\nAssistant: {kept.answer}",
                    tier=Tier.WORKING,
                    memory_id=memory_id,
                    source=source,
                )
            )

    for first in range(0, conversations, AT_ONCE):
        await asyncio.gather(*map(one, range(first, min(first + AT_ONCE, conversations))))
    for first in range(0, len(memories), BATCH):
        await service.services.memories.store_batch(SCOPE, memories[first : first + BATCH])
    while await service.container.indexing.run_once():
        pass


async def timed(calls: int, call: Callable[[int], Awaitable[httpx.Response]]) -> dict[str, float]:
    """Milliseconds of `calls` calls, after a few that warm up."""
    for number in range(10):
        assert (await call(number)).is_success
    took = []
    for number in range(calls):
        began = time.perf_counter()
        answer = await call(number)
        took.append((time.perf_counter() - began) * 1000)
        assert answer.is_success, answer.text
    return {f"p{round(share * 100)}": percentile(took, share) for share in (0.5, 0.95, 0.99)}


async def rows(database: MongoDatabase, names: Sequence[str]) -> tuple[dict[str, int], int]:
    """Rows of each collection, and those of all that say one of these names."""
    counts, said = {}, 0
    for collection in INDEXES:
        found = 0
        async for doc in database.collection(collection).find({}):
            found += 1
            text = str(doc)
            said += any(name in text for name in names)
        counts[collection] = found
    return counts, said


async def measure(args: Any, console: Console) -> dict[str, Any]:
    with running_mongo() as server:
        service = await MongoService.open(server.settings(), search={"resident_max_items": HELD})
        database = MongoDatabase(server.settings())
        await database.ensure_schema()
        began = time.perf_counter()
        await fill(service, args.conversations, args.turns)
        console.print(f"filled in {time.perf_counter() - began:.0f} s")
        found = await asked(service, database, args)
        await database.close()
        return found


async def asked(service: MongoService, database: MongoDatabase, args: Any) -> dict[str, Any]:
    draw = random.Random(11)
    questions = [one.text for one in islice(facts(9), CALLS)]
    async with client_of(service.services) as api:

        def some() -> str:
            return named(draw.randrange(args.conversations))

        async def prompt(number: int) -> httpx.Response:
            body = {
                "query": f"What did I say of {questions[number % CALLS]}"[:400],
                "conversation_id": some(),
                "model": "llama3.1:8b",
            }
            return await api.post("/api/memory/prompt", json=body)

        async def search(number: int) -> httpx.Response:
            words = questions[number % CALLS].split()[:2]
            return await api.get(LIST, params={"query": " ".join(words), "limit": 50})

        calls = {
            "list": lambda number: api.get(LIST, params={"limit": 50}),
            "messages": lambda number: api.get(f"{LIST}/{some()}/messages"),
            "search": search,
            "prompt": prompt,
        }
        # Of whom much was written a moment ago, the index is asked (decision 0055).
        report: dict[str, Any] = {"prompt_after_import": await timed(CALLS // 5, prompt)}
        for pause_s in (SETTLED_S, VIEW_S):
            await asyncio.sleep(pause_s)
            await prompt(0)
        report |= {name: await timed(CALLS, call) for name, call in calls.items()}
        gone = [named(number) for number in range(0, args.conversations, 50)][:DELETED]
        await service.settle()
        before, _ = await rows(database, gone)
        took = []
        for name in gone:
            began = time.perf_counter()
            assert (await api.delete(f"{LIST}/{name}")).is_success
            took.append((time.perf_counter() - began) * 1000)
        await service.settle()
        after, left = await rows(database, gone)
    # Each turn was a memory and a row of words; the prompts that asked in it left receipts.
    lost = {name: before[name] - after[name] for name in before if name not in NOT_COUNTED}
    expected = {
        "turns": len(gone) * args.turns,
        "memory_items": len(gone) * args.turns,
        "sessions": len(gone),
    }
    others = {
        name: count
        for name, count in lost.items()
        if count != expected.get(name, 0) and name not in ("receipts", "kg_nodes", "kg_edges")
    }
    report["delete"] = {"p50": percentile(took, 0.5), "p95": percentile(took, 0.95)}
    report["rows_left_of_deleted"] = left
    report["rows_of_others_gone"] = others
    return report


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.conversations", __doc__)
    made.add_argument("--conversations", type=positive, default=1_000)
    made.add_argument("--turns", type=positive, default=25, help="each is two messages")
    return made


def _run(args: argparse.Namespace) -> int:
    console = Console()
    report = asyncio.run(measure(args, console))
    for name, row in report.items():
        console.print(name, row)
    put_json(args.out, report)
    missed = report["list"]["p95"] > LIST_P95_MS or report["prompt"]["p95"] > PROMPT_P95_MS
    wrong = report["rows_left_of_deleted"] or report["rows_of_others_gone"]
    return WITH_FAILURES if missed or wrong else DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
