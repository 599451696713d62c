"""Real jobs killed -9 at random moments: the next run goes on and ends where an unhurt one does."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pymongo import MongoClient

from rayapp.adapters.local_stack import stack
from tests.running import RunningService, started

pytestmark = [pytest.mark.ray, pytest.mark.fault]

KILLS = 2
JOB_LIMIT_S = 180
# From the start of a driver to its first step, and the length of its work, about, seconds.
KILL_FROM_S, KILL_TO_S = 3.0, 9.0


@pytest.fixture(scope="module")
def own() -> Iterator[RunningService]:
    with tempfile.TemporaryDirectory(prefix="rayapp-k-") as name:
        running = started(Path(name))
        try:
            yield running
        finally:
            running.down()


def driver(service: RunningService, kind: str, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"jobs.{kind}", "--data-dir", str(service.folder), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finished(service: RunningService, kind: str, out: Path, *options: str) -> dict[str, Any]:
    process = driver(service, kind, *options, "--out", str(out))
    text, _ = process.communicate(timeout=JOB_LIMIT_S)
    assert process.returncode == 0, text.decode()
    report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return report


def cut_short(service: RunningService, kind: str, victim: str, *options: str) -> None:
    """Start a driver and kill it, or one of its workers, somewhere in its work."""
    process = driver(service, kind, *options)
    time.sleep(random.uniform(KILL_FROM_S, KILL_TO_S))
    if victim == "driver":
        process.kill()
    else:
        workers = service.actors(f"{kind}-worker") or service.actors("PartitionWorker")
        for worker in workers[:1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()
    process.communicate(timeout=JOB_LIMIT_S)


def database(service: RunningService) -> Any:
    settings = stack.attach(service.folder)
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
    for n in range(KILLS):
        cut_short(own, "datagov_ingest", "driver" if n % 2 == 0 else "worker", *options)
    whole = finished(own, "datagov_ingest", tmp_path / "whole.json", *options)
    after = shared_rows(own)
    assert len(after) == whole["total"] == whole["done"]
    assert {(version, status) for version, status, _ in after.values()} == {(1, "active")}
    again = finished(own, "datagov_ingest", tmp_path / "again.json", "--no-resume", *options)
    kinds = again["report"]["kinds"].values()
    assert sum(row["inserted"] + row["updated"] + row["retired"] for row in kinds) == 0
    assert again["report"]["graph"]["written"] == 0
    assert shared_rows(own) == after


def test_a_reindex_that_is_killed_again_and_again_loses_nothing(
    own: RunningService, tmp_path: Path
) -> None:
    with own.client("dana") as http:
        for start in range(0, 3_000, 100):
            memories = [{"text": f"fact {n} עובדה {n}"} for n in range(start, start + 100)]
            body = {"items": memories}
            assert http.post("/api/memory/store/batch", json=body).status_code in (200, 201)
        own.indexed()
        before = http.get("/api/memory/diagnostics").json()["qdrant_points_total"]
        for n in range(KILLS):
            cut_short(own, "reindex", "driver" if n % 2 == 0 else "worker")
            found = http.post("/api/memory/search", json={"query": f"fact {n}", "limit": 1}).json()
            assert len(found["results"]) == 1
            assert not found["degraded"]
        report = finished(own, "reindex", tmp_path / "reindex.json")
        assert report["report"]["switched"]
        own.indexed()
        assert http.get("/api/memory/diagnostics").json()["qdrant_points_total"] == before
