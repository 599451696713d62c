"""What users take with them and bring back: export of all kinds, erasure, import, compared.

    python -m tests.bench.round_trip [--memories 100000] [--users 1000] [--questions 500]

On a real mongod and the real embedded engine, through the routes. Each user has something of every
kind, and conversations as an import from elsewhere leaves them. Then every field of every row is
compared, but those that the manifest lists as made anew, and so is what a search answers. Exit
codes: 0 all is as it was, 2 bad arguments, 3 something differs.
"""

import argparse
import asyncio
import io
import operator
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from rayapp.memory.ports import Event
from rayapp.memory.scope import WriteScope
from rayapp.portability.rules.collections import BY_NAME
from rayapp.portability.rules.kinds import Kind, Origin
from tests.bench.arguments import positive
from tests.bench.erasure_proof import MEMORY, Stack, erase, stack
from tests.bench.portability import Table, conversations
from tests.bench.texts import facts
from tests.support.archive_contract import opened, rows_of
from tests.support.archive_world import ArchiveWorld, fill

BACKUP = f"{MEMORY}/backup"
ALL = ",".join(Kind)
# An outcome is due for promotion after a minute by default, which takes a mark from its row: what
# was exported before that minute was over would differ.
AT_ONCE = {"settle_s": 0.0}
# Users who are erased at a time.
ERASED = 8
# Memories that `fill` leaves of each user.
FILLED = 7
# Rows that differ, in words.
TOLD = 20
TRIES = 20
Answer = list[tuple[str, str]]
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


class RoundTrip:
    """One of them; archives lie in `folder` between export and import."""

    def __init__(self, on: Stack, folder: Path, users: int) -> None:
        self._stack, self._folder = on, folder
        self._names = [f"user-{number}" for number in range(users)]
        self._memories = 0
        self.table = Table()

    async def plant(self, memories: int) -> None:
        turns = max(1, memories // len(self._names) - FILLED)
        with self.table.line("stored and indexed, memories") as add:
            for number, name in enumerate(self._names):
                await fill(self._world(name), f"Haifa {number}")
                data, scope = io.BytesIO(conversations(turns, number)), WriteScope(name, "local")
                foreign = self._stack.world.container.foreign_imports
                await foreign.run(scope, Origin.CHATGPT, data, "c.zip", dry_run=False)
                told = Event(event_id=f"{name}-1", user_id=name, kind="told", at=datetime.now(UTC))
                await self._stack.world.stores.events.add(told)
                await self._stack.work()
                add(turns + FILLED)
                self._memories += turns + FILLED

    async def ask(self, questions: int) -> list[Answer]:
        """Of users in turn, about facts of theirs: id and text of each hit, in order. The index
        answers the first round, by the words of all users; then each of them is held."""
        await self._round(questions)
        return await self._round(questions)

    async def _round(self, questions: int) -> list[Answer]:
        found = []
        rolled = random.Random(7)
        with self.table.line("questions") as add:
            for number in range(questions):
                at = number % len(self._names)
                fact = next(islice(facts(at), number // len(self._names), None))
                query = {"query": fact.question(rolled), "limit": 10}
                found.append(await self._answer(self._names[at], query))
                add(1)
        await self._stack.world.container.receipts.flush()
        return found

    async def _answer(self, name: str, query: Mapping[str, Any]) -> Answer:
        """One with no stage skipped, as a machine with other work does when the time is up."""
        async with self._world(name).http() as http:
            for _ in range(TRIES):
                answer = await http.post(f"{MEMORY}/search", json=query)
                if answer.is_success and not (found := answer.json())["degraded"]:
                    return [(one["memory_id"], one["content"]) for one in found["results"]]
        raise AssertionError(f"No search was whole; the last one: {answer.status_code}")

    async def export(self, when: str) -> Counter[str]:
        """Rows by collection."""
        rows: Counter[str] = Counter()
        with self.table.line(f"export of all kinds, {when}") as add:
            for name in self._names:
                async with self._world(name).http() as http:
                    query = {"format": "zip", "include": ALL}
                    answer = await http.get(f"{BACKUP}/export", params=query)
                assert answer.is_success, answer.text
                self._file(name, when).write_bytes(answer.content)
                parts = opened(answer.content).manifest.parts
                rows.update({part.collection: part.rows for part in parts})
                add(sum(part.rows for part in parts))
        return rows

    async def erase(self, rows: int) -> None:
        """Until each certificate says that nothing is left."""
        with self.table.line("erased") as add:
            for start in range(0, len(self._names), ERASED):
                many = self._names[start : start + ERASED]
                await asyncio.gather(*(erase(self._stack, name) for name in many))
            add(rows)

    async def bring_back(self, rows: int) -> None:
        with self.table.line("import, checked as a whole") as add:
            for name in self._names:
                file = {"file": ("export.zip", self._file(name, "before").read_bytes())}
                async with self._world(name).http() as http:
                    answer = await http.post(f"{BACKUP}/upload", files=file)
                assert answer.is_success, answer.text
            add(rows)
        with self.table.line("indexed anew, memories") as add:
            await self._stack.work()
            add(self._memories)

    def differing(self) -> list[tuple[str, str]]:
        """Rows that are not as they were, by collection, in words."""
        found: list[tuple[str, str]] = []
        for name in self._names:
            rows = [rows_of(self._file(name, when).read_bytes()) for when in ("before", "after")]
            found += [(one, f"{name} {one} {key}") for one, key in different_rows(*rows)]
        return found

    def _world(self, name: str) -> ArchiveWorld:
        return ArchiveWorld(self._stack.world.container, name)

    def _file(self, name: str, when: str) -> Path:
        return self._folder / f"{name}-{when}.zip"


def different_rows(before: Rows, after: Rows) -> list[tuple[str, str]]:
    """Collection and key of those that changed, are missing or are new."""
    found = []
    for collection in sorted(before.keys() | after.keys()):
        names = BY_NAME[collection].key
        old, new = (
            {" ".join(str(row[name]) for name in names): row for row in rows.get(collection, ())}
            for rows in (before, after)
        )
        keys = sorted(old.keys() | new.keys())
        found += [(collection, key) for key in keys if old.get(key) != new.get(key)]
    return found


async def prove(folder: Path, memories: int, users: int, questions: int) -> bool:
    async with stack(folder / "stack", promotion=AT_ONCE) as on:
        trip = RoundTrip(on, folder, users)
        await trip.plant(memories)
        answers = await trip.ask(questions)
        before = await trip.export("before")
        await trip.erase(before.total())
        await trip.bring_back(before.total())
        after = await trip.export("after")
        other = await asyncio.to_thread(trip.differing)
        equal = sum(map(operator.eq, answers, await trip.ask(questions)))
    print(f"\n{'kind':<16}{'rows before':>12}{'rows after':>12}{'different':>12}")
    kinds = {name: BY_NAME[name].kind for name in before}
    for kind in Kind:
        counts = [sum(one[n] for n in kinds if kinds[n] is kind) for one in (before, after)]
        counts.append(sum(kinds[name] is kind for name, _ in other))
        print(f"{kind:<16}" + "".join(f"{count:>12,}" for count in counts))
    for _, row in other[:TOLD]:
        print(row)
    print(f"{equal:,} of {questions:,} questions have the same answer")
    return not other and equal == questions


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.round_trip", __doc__, out=False)
    made.add_argument("--memories", type=positive, default=100_000)
    made.add_argument("--users", type=positive, default=1_000)
    made.add_argument("--questions", type=positive, default=500)
    return made


def _run(given: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="rayapp-trip-") as name:
        same = asyncio.run(prove(Path(name), given.memories, given.users, given.questions))
    return DONE if same else WITH_FAILURES


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
