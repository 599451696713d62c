"""The process of one peer: `python -m tests.bench.peer_worker JOB OUT`, both JSON lines.

Stores each part, waits until it is settled, asks its questions one after the other, and writes
ids and times. The texts are embedded inside the timed calls.
"""

import sys
import time
from collections.abc import Sequence
from io import RawIOBase
from pathlib import Path
from typing import Any

import orjson

from tests.bench.peer_protocol import Job, Plan, Row, read_job
from tests.bench.peer_systems import ON_QDRANT, SYSTEMS, System, versions

BATCH = 1_000  # rows between two lines of progress
ONE_BY_ONE = 50  # the same where a peer takes one item per call
SLOW = ON_QDRANT  # these do: only the first `plan.adds` are timed


class Worker:
    """Runs the parts of one system and writes what it sees."""

    def __init__(self, plan: Plan, system: System, out: RawIOBase) -> None:
        self._plan, self._system, self._out, self._done = plan, system, out, 0

    def run(self, jobs: Sequence[Job]) -> None:
        about = {"versions": versions(self._system), "note": self._system.note}
        self._write("about", **about)
        for job in jobs:
            self._system.open(job.name)
            self._store(job)
            self._ask(job)
        self._write("end")

    def _store(self, job: Job) -> None:
        slow = self._plan.system in SLOW
        timed = min(len(job.documents), self._plan.adds) if slow else len(job.documents)
        seconds = 0.0
        for batch in batches(job.documents[:timed], ONE_BY_ONE if slow else BATCH):
            begin = time.perf_counter()
            self._system.add(batch)
            seconds += time.perf_counter() - begin
            self._advance(len(batch))
        for batch in batches(job.documents[timed:], BATCH):
            self._system.fill(batch)
            self._advance(len(batch))
        begin = time.perf_counter()
        self._system.settle()
        if self._system.waits:
            seconds += time.perf_counter() - begin
        items = len(job.documents)
        self._write("stored", part=job.name, items=items, timed=timed, seconds=seconds)

    def _ask(self, job: Job) -> None:
        for row in job.questions:
            begin = time.perf_counter()
            ranked = self._system.search(row.user, row.text, job.limit)
            ms = (time.perf_counter() - begin) * 1000.0
            self._write("answer", part=job.name, name=row.name, ranked=list(ranked), ms=ms)
            self._advance(1)

    def _advance(self, rows: int) -> None:
        self._done += rows
        self._write("done", rows=self._done)

    def _write(self, kind: str, **row: Any) -> None:
        self._out.write(orjson.dumps({"kind": kind, **row}) + b"\n")


def batches(rows: Sequence[Row], size: int) -> list[Sequence[Row]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def main(argv: Sequence[str]) -> int:
    job, out = map(Path, argv)
    plan, jobs = read_job(job)
    with out.open("wb", buffering=0) as file:
        try:
            Worker(plan, SYSTEMS[plan.system](plan), file).run(jobs)
        # Broad: whatever a peer raises is the answer to "does it run here".
        except Exception as error:  # noqa: BLE001
            reason = f"{type(error).__name__}: {error}"
            file.write(orjson.dumps({"kind": "failed", "reason": reason}) + b"\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
