"""Processes killed -9 under load: nothing acknowledged is lost, everything comes back by itself."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.running import REPLICA, VECTOR_ENGINE, RunningService, until

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.fault]


class Load:
    """One writer and one reader of one user; what was acknowledged and what was answered."""

    def __init__(self, service: RunningService, user: str) -> None:
        self.service = service
        self.user = user
        self.acknowledged: list[str] = []
        self.reads: Counter[int] = Counter()
        self.degraded: Counter[str] = Counter()
        self.writes: Counter[int] = Counter()
        self._stop = threading.Event()

    @contextmanager
    def running(self) -> Iterator[Load]:
        threads = [threading.Thread(target=t) for t in (self._write, self._read)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _write(self) -> None:
        number = 0
        with self.service.client(self.user) as http:
            while not self._stop.is_set():
                number += 1
                body = {"text": f"load note {number} of {self.user}", "tier": "history"}
                try:
                    answer = http.post("/api/memory/store", json=body)
                except httpx.HTTPError:
                    self.writes[0] += 1
                    continue
                self.writes[answer.status_code] += 1
                if answer.status_code == 201:
                    self.acknowledged.append(answer.json()["memory_id"])
                time.sleep(0.01)

    def _read(self) -> None:
        with self.service.client(self.user) as http:
            while not self._stop.is_set():
                try:
                    answer = http.post("/api/memory/search", json={"query": "load note"})
                except httpx.HTTPError:
                    self.reads[0] += 1
                    continue
                self.reads[answer.status_code] += 1
                if answer.status_code == 200:
                    self.degraded.update(answer.json()["degraded"])
                time.sleep(0.01)

    def nothing_lost(self) -> None:
        """Every acknowledged id is there exactly once, and in the index."""
        self.service.indexed()
        with self.service.client(self.user) as http:
            seen: list[str] = []
            cursor: str | None = None
            while True:
                params = {"limit": "200", **({"cursor": cursor} if cursor else {})}
                page = http.get("/api/memory/items", params=params).json()
                seen += [item["memory_id"] for item in page["items"]]
                cursor = page["next_cursor"]
                if cursor is None:
                    break
        assert len(seen) == len(set(seen))
        assert set(self.acknowledged) <= set(seen)


def test_the_vector_engine_dies_under_load(service: RunningService) -> None:
    """Reads go on without a 5xx; writes go on pending; both recover.

    A user whom a replica holds needs no engine, so whether a read was flagged is chance here.
    """
    load = Load(service, "kill-vector")
    with load.running():
        time.sleep(2)
        service.kill(VECTOR_ENGINE)
        time.sleep(5)
    assert set(load.reads) == {200}
    assert set(load.writes) == {201}
    # Hundreds of writes in seconds: the encoder is behind, and says so.
    assert set(load.degraded) <= {"index", "encoder_backlog"}
    load.nothing_lost()

    def healed() -> bool:
        with service.client("kill-vector") as http:
            return bool(
                http.post("/api/memory/search", json={"query": "x"}).json()["degraded"] == []
            )

    until(healed, 45)


def test_the_indexer_dies_and_its_claims_are_taken_over(service: RunningService) -> None:
    load = Load(service, "kill-indexer")
    with load.running():
        time.sleep(1)
        service.kill(REPLICA + "indexer")
        time.sleep(3)
    assert set(load.writes) == {201}
    assert set(load.reads) == {200}
    # The claim of the dead process lives up to CLAIM_S of the stack.
    service.indexed(120)
    load.nothing_lost()


def test_a_search_replica_dies_and_no_acknowledged_write_is_lost(service: RunningService) -> None:
    load = Load(service, "kill-search")
    with load.running():
        time.sleep(2)
        service.kill(REPLICA + "search")
        time.sleep(8)
    until(lambda: httpx.get(f"{service.url}/readyz").status_code == 200)
    assert load.writes[201] > 0
    load.nothing_lost()


def test_mongod_dies_and_comes_back(service: RunningService) -> None:
    """503 with Retry-After while it is away; then everything goes on without a restart of ours."""
    load = Load(service, "kill-mongo")
    with load.running():
        time.sleep(2)
        service.child("mongod").kill()
        time.sleep(8)
    assert set(load.writes) <= {201, 503}
    assert set(load.reads) <= {200, 503}
    until(lambda: httpx.get(f"{service.url}/readyz").status_code == 200)
    with service.client("kill-mongo") as http:
        until(lambda: http.post("/api/memory/store", json={"text": "after"}).status_code == 201)
    load.nothing_lost()


def test_a_lost_index_folder_is_filled_again_from_the_truth(service: RunningService) -> None:
    """Every search meanwhile answers from the truth and says so; nothing has to be restarted."""
    with service.client("lost-index") as http:
        for number in range(50):
            body = {"text": f"ledger line {number}", "tier": "history"}
            assert http.post("/api/memory/store", json=body).status_code == 201
        service.indexed()
        # At once: what is deleted file by file the engine writes to meanwhile.
        (service.folder / "qdrant").rename(service.folder / "lost")
        service.kill(VECTOR_ENGINE)

        def healed() -> bool:
            answer = http.post("/api/memory/search", json={"query": "ledger line 7"})
            assert answer.status_code == 200
            body = answer.json()
            assert body["results"] or body["degraded"]
            if body["degraded"]:
                return False
            diagnostics = http.get("/api/memory/diagnostics").json()
            active = sum(row["mongoCount"] for row in diagnostics["by_tier"])
            return bool(diagnostics["qdrant_points_total"] == active)

        until(healed, 90)
        body = http.post("/api/memory/search", json={"query": "ledger line 7"}).json()
        assert body["results"][0]["score_summary"]["vector_rank"] is not None
