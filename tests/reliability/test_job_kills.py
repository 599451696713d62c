"""Real jobs killed -9 at random moments: the next run goes on and ends where an unhurt one does."""

import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from pymongo import MongoClient

from tests.running import RunningService, output_of, started, until
from tests.support.harness import without_encoder

pytestmark = [pytest.mark.ray, pytest.mark.fault, pytest.mark.takes(55)]

# Who is killed, one after the other. A job goes on by itself when it loses a worker, so that comes
# last: the drivers before it leave one and the same job.
INGEST_VICTIMS = ("driver", "worker")
REINDEX_VICTIMS = ("driver",)
# Only a job that hangs takes as long: workers run at low priority, so with both cores kept busy
# by others a reindex takes minutes.
JOB_LIMIT_S = 900
# A killed process may leave a transaction, which MongoDB ends after a minute, and a lease of half a
# minute: with shorter ones the tests wait less for their end.
TRANSACTION_S = 15
LEASE_S = 10.0
# The longest wait from the moment a driver has its job to the kill, seconds: about what the work
# takes. It is halved after each kill that came too late.
KILL_WITHIN_S = 5.0
# Longest time in which no answer is whole while a job runs.
WHOLE_S = 10.0
TRIES = 6


@pytest.fixture(scope="module")
def own() -> Iterator[RunningService]:
    with tempfile.TemporaryDirectory(prefix="rayapp-k-") as name:
        running = started(Path(name), jobs={"lease_s": LEASE_S}, embedding=without_encoder())
        try:
            admin = database(running).client.admin
            admin.command("setParameter", 1, transactionLifetimeLimitSeconds=TRANSACTION_S)
            yield running
        finally:
            running.down()


def driver(service: RunningService, kind: str, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"jobs.{kind}", "--data-dir", str(service.folder), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finished(service: RunningService, kind: str, out: Path, *options: str) -> dict[str, Any]:
    process = driver(service, kind, *options, "--out", str(out))
    text = output_of(process, JOB_LIMIT_S)
    assert process.returncode == 0, text
    report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return report


def cut_short(service: RunningService, kind: str, victim: str, *options: str) -> None:
    """Start a driver and kill it, or one of its workers, at some moment of its unfinished work."""
    within_s = KILL_WITHIN_S
    for _ in range(TRIES):
        before = (row_of(service, kind) or {"fence": -1})["fence"]
        process = driver(service, kind, *options)
        until(lambda process=process, n=before: begun(service, kind, process, n), JOB_LIMIT_S)
        # It may hold what others wait for.
        assert psutil.Process(process.pid).nice() == psutil.Process().nice()
        if victim == "worker":
            until(lambda: workers(service, kind) or not runs(service, kind), JOB_LIMIT_S)
        time.sleep(random.uniform(0, within_s))
        kill = kill_driver if victim == "driver" else kill_worker
        landed = kill(service, kind, process)
        text = output_of(process, JOB_LIMIT_S)
        if landed:
            # A driver that lost a worker goes on with another one.
            assert process.returncode == (-signal.SIGKILL if victim == "driver" else 0), text
            return
        within_s /= 2
    raise AssertionError(f"no kill of a {victim} came before the end of {kind}")


def begun(service: RunningService, kind: str, process: subprocess.Popen[bytes], fence: int) -> bool:
    """The driver has its job, whose fence is a higher one then."""
    row = row_of(service, kind)
    taken = row is not None and row["fence"] > fence
    assert taken or process.poll() is None, process.communicate()[0].decode()
    return taken


def kill_driver(service: RunningService, kind: str, process: subprocess.Popen[bytes]) -> bool:
    """True when it died with its job unfinished."""
    process.kill()
    process.wait()
    return runs(service, kind)


def kill_worker(service: RunningService, kind: str, process: subprocess.Popen[bytes]) -> bool:
    """True when one was there and there were partitions left to work on."""
    killed = False
    for worker in workers(service, kind)[:1]:
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.kill()
            killed = True
    return killed and runs(service, kind, "partitions")


def workers(service: RunningService, kind: str) -> list[psutil.Process]:
    """By their titles: what they do, or who they are."""
    return service.actors(f"ray::{kind}") or service.actors("ray::PartitionWorker")


def runs(service: RunningService, kind: str, stage: str | None = None) -> bool:
    row = row_of(service, kind)
    assert row is not None
    return row["state"] == "running" and stage in (None, row["stage"])


def row_of(service: RunningService, kind: str) -> dict[str, Any] | None:
    """The newest job of a kind."""
    row: dict[str, Any] | None = database(service).jobs.find_one(
        {"kind": kind}, sort=[("created_at", -1), ("job_id", -1)]
    )
    return row


def database(service: RunningService) -> Any:
    settings = service.settings
    return MongoClient(settings.mongo.uri)[settings.mongo.database]


def shared_rows(service: RunningService) -> dict[str, tuple[int, str, str]]:
    """Version, status and text hash of every shared item."""
    rows = database(service).memory_items.find({"user_id": "system"})
    return {row["memory_id"]: (row["version"], row["status"], row["content_hash"]) for row in rows}


@pytest.mark.realdata
def test_an_ingest_that_is_killed_again_and_again_ends_whole(
    own: RunningService, realdata: Path, tmp_path: Path
) -> None:
    options = ("--source", str(realdata / "datagov"))
    for victim in INGEST_VICTIMS:
        cut_short(own, "datagov_ingest", victim, *options)
    whole = finished(own, "datagov_ingest", tmp_path / "whole.json", *options)
    after = shared_rows(own)
    assert len(after) == whole["total"] == whole["done"]
    assert {(version, status) for version, status, _ in after.values()} == {(1, "active")}
    again = finished(own, "datagov_ingest", tmp_path / "again.json", "--no-resume", *options)
    kinds = again["report"]["kinds"].values()
    assert sum(row["inserted"] + row["updated"] + row["retired"] for row in kinds) == 0
    assert again["report"]["graph"]["written"] == 0
    assert shared_rows(own) == after


class Edits:
    """Memories of one user that are stored, edited and deleted all the time."""

    def __init__(self, service: RunningService, user: str) -> None:
        self._service, self._user = service, user
        self._stop = threading.Event()
        self.texts: dict[str, str] = {}
        self.deleted: dict[str, str] = {}
        self.refused: list[int] = []

    @contextmanager
    def going_on(self) -> Iterator[None]:
        thread = threading.Thread(target=self._go_on)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _go_on(self) -> None:
        """Of three that are stored one is edited and one deleted, mostly after a while."""
        number = 0
        with self._service.client(self._user) as http:
            while not self._stop.is_set():
                number += 1
                text = f"note {number} הערה {number}"
                if (answer := self._asked(http, "POST", "store", text)) is None:
                    continue
                self.texts[answer["memory_id"]] = text
                chosen = random.choice(list(self.texts))
                if number % 3 == 1 and self._asked(http, "DELETE", f"items/{chosen}", None):
                    self.deleted[chosen] = self.texts.pop(chosen)
                elif number % 3 == 2:
                    text = f"edited {number} נערך {number}"
                    if self._asked(http, "PATCH", f"items/{chosen}", text):
                        self.texts[chosen] = text
                time.sleep(0.05)

    def _asked(
        self, http: httpx.Client, method: str, path: str, text: str | None
    ) -> dict[str, Any] | None:
        body = None if text is None else {"text": text}
        answer = http.request(method, f"/api/memory/{path}", json=body)
        if answer.is_success:
            found: dict[str, Any] = answer.json()
            return found
        self.refused.append(answer.status_code)
        return None

    def all_there(self) -> None:
        """As they were written last; what was deleted is gone, for reads and for searches."""
        assert self.refused == []
        assert len(self.texts) > 10
        assert len(self.deleted) > 5
        with self._service.client(self._user) as http:
            for memory_id, text in self.texts.items():
                item = http.get(f"/api/memory/items/{memory_id}").json()["memory"]
                assert item["text"] == text
            for memory_id in self.deleted:
                assert http.get(f"/api/memory/items/{memory_id}").status_code == 404
            for text in random.sample(list(self.texts.values()), 10):
                assert text in searched(http, text)
            for text in random.sample(list(self.deleted.values()), 5):
                assert text not in searched(http, text)


def searched(http: httpx.Client, text: str) -> list[str]:
    """As of a client that asks again where the answer says that it is not whole: with both cores
    kept busy a stage may run out of its time."""

    hits: list[str] = []

    def whole() -> bool:
        answer = http.post("/api/memory/search", json={"query": text, "limit": 20}).json()
        hits[:] = [hit["content"] for hit in answer["results"]]
        return not answer["degraded"]

    until(whole, WHOLE_S)
    return hits


def points(http: httpx.Client) -> int:
    return int(http.get("/api/memory/diagnostics").json()["qdrant_points_total"])


def test_a_reindex_that_is_killed_again_and_again_while_people_write_loses_nothing(
    own: RunningService, tmp_path: Path
) -> None:
    with own.client("dana") as http:
        for start in range(0, 3_000, 100):
            memories = [{"text": f"fact {n} עובדה {n}"} for n in range(start, start + 100)]
            body = {"items": memories}
            assert http.post("/api/memory/store/batch", json=body).status_code in (200, 201)
        own.indexed()
        before = points(http)
        edits = Edits(own, "noa")
        with edits.going_on():
            for n, victim in enumerate(REINDEX_VICTIMS):
                cut_short(own, "reindex", victim)
                assert f"fact {n} עובדה {n}" in searched(http, f"fact {n}")
            report = finished(own, "reindex", tmp_path / "reindex.json")
        assert report["report"]["switched"]
        own.indexed()
        assert points(http) == before + len(edits.texts)
    edits.all_there()
