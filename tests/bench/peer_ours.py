"""The service in the same measurement: stored, indexed and asked over HTTP by its own client."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from jobs.suites.suite import Document
from rayapp.client import Memory, MemoryClient
from rayapp.client.progress import Bar, Progress, wait_indexed
from rayapp.core.errors import DependencyDown
from tests.bench.peer_protocol import Answer, Part, PartRun, Stored, SystemRun
from tests.bench.wire import Connection

OURS = "ours"
NOTE = (
    "over HTTP with rayapp.client; ingest timed until everything is indexed, 4 batch calls in "
    "flight; bare HTTP = further questions without the client library"
)
TIER = "history"  # dialogue turns; no write guard and no capacity limit
BATCH_ITEMS = 200  # items per batch call, or all of a user's when they have fewer
CALLS = 4  # batch calls in flight, as in the load test


@dataclass(frozen=True, slots=True)
class Service:
    """One running service; `run_id` keeps the users of this run apart from any other's."""

    client: MemoryClient
    run_id: str
    progress: Progress

    async def run(self, parts: Sequence[Part]) -> SystemRun:
        """All parts.

        Raises:
            RayappError: the service is away, or refuses the caller.
        """
        run = SystemRun(OURS, note=NOTE)
        for part in parts:
            measured = run.parts[part.name] = PartRun()
            await self._store(part, measured)
            await self._ask(part, measured)
        return run

    async def bare(self, part: Part, stored: Part, run: SystemRun) -> PartRun:
        """Further questions about a part that is stored already, over one bare connection."""
        measured = PartRun(same=run.parts[stored.name].same)
        connection = Connection(self.client.url)
        for user, question in part.questions:
            begin = time.perf_counter()
            body = orjson.dumps({"query": question.text, "limit": part.limit})
            whose = self.user(stored, user)
            status, got = await connection.call("POST", "/api/memory/search", body, whose)
            if status != 200:
                raise DependencyDown(f"A search answered {status}: look at `rayapp doctor`.")
            ids = tuple(row["memory_id"] for row in orjson.loads(got)["results"])
            ms = (time.perf_counter() - begin) * 1000.0
            measured.answers.append(Answer(question.question_id, ids, ms))
        connection.close()
        return measured

    def user(self, part: Part, user: str) -> str:
        return f"peers-{self.run_id}-{part.name}-{user}"

    async def _store(self, part: Part, run: PartRun) -> None:
        begin = time.perf_counter()
        with self.progress.step(f"ours: store {part.name}", part.documents) as bar:
            store = _Storing(self, part, run, bar, list(_calls(part))[::-1])
            async with asyncio.TaskGroup() as group:
                for _ in range(CALLS):
                    group.create_task(store.work())
        acknowledged = time.perf_counter() - begin
        await wait_indexed(self.client, self.progress, f"ours: index {part.name}", encoded=True)
        seconds = time.perf_counter() - begin
        run.stored = Stored(part.documents, part.documents, seconds, acknowledged)

    async def _ask(self, part: Part, run: PartRun) -> None:
        asked = part.questions
        with self.progress.step(f"ours: ask {part.name}", len(asked)) as bar:
            for user, question in asked:
                begin = time.perf_counter()
                reply = await self.client.search(
                    question.text, limit=part.limit, user_id=self.user(part, user)
                )
                ms = (time.perf_counter() - begin) * 1000.0
                run.answers.append(Answer(question.question_id, reply.ids, ms))
                bar.advance()


@dataclass(slots=True)
class _Storing:
    """Several batch calls in flight over one list of them."""

    service: Service
    part: Part
    run: PartRun
    bar: Bar
    calls: list[tuple[str, Sequence[Document]]]

    async def work(self) -> None:
        while self.calls:
            user, batch = self.calls.pop()
            memories = [
                Memory(text=doc.text, tier=TIER, memory_id=doc.doc_id, created_at=doc.created_at)
                for doc in batch
            ]
            whose = self.service.user(self.part, user)
            replies = await self.service.client.store_batch(memories, user_id=whose)
            for doc, reply in zip(batch, replies, strict=True):
                if reply.memory_id is None:
                    raise DependencyDown(f"A memory was refused: {reply.error or reply.code}.")
                self.run.same[user, doc.doc_id] = reply.memory_id
            self.bar.advance(len(batch))


def _calls(part: Part) -> Iterator[tuple[str, Sequence[Document]]]:
    for corpus in part.corpora:
        for start in range(0, len(corpus.documents), BATCH_ITEMS):
            yield corpus.name, corpus.documents[start : start + BATCH_ITEMS]
