"""An index of another model is refused with the command that repairs it; the command repairs it.

The second model is a server over real HTTP, so its bad moods are tried here as well.
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from rayapp.core.errors import ConfigError
from rayapp.local.stack import stack
from rayapp.local.stack.paths import StackPaths
from tests.running import RunningService, output_of, started, until
from tests.support.model_server import ModelServer
from tests.support.ports import free_port

pytestmark = [pytest.mark.ray, pytest.mark.engine]
DIMS = 16


@contextmanager
def serving(app: ModelServer) -> Iterator[str]:
    """The model server on a thread of its own."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started, 10)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    server = ModelServer(DIMS)
    with serving(server) as url:
        server.url = url
        yield server


@pytest.fixture(scope="module")
def moved(model: ModelServer) -> Iterator[RunningService]:
    """A service that was filled with the bundled model and now runs with another one."""
    with tempfile.TemporaryDirectory(prefix="rayapp-m-") as name:
        folder = Path(name)
        first = started(folder)
        with first.client("moved") as http:
            for text in ("the harbour master drinks tea", "the lighthouse needs paint"):
                assert http.post("/api/memory/store", json={"text": text}).status_code == 201
        first.indexed()
        first.down()
        embedding: dict[str, Any] = {
            "backend": "http",
            "api": "dicta",
            "url": model.url,
            "model": "other-model",
            "query_timeout_s": 0.5,
            "batch_timeout_s": 1.0,
        }
        reranker = {"backend": "http", "url": model.url, "timeout_s": 0.5}
        with pytest.raises(ConfigError, match="rayapp job reindex"):
            started(folder, embedding=embedding, reranker=reranker)
        job = [sys.executable, "-m", "jobs.reindex", "--data-dir", str(folder), "--drop-old"]
        service = RunningService(folder, stack.url_of(folder))
        try:
            driver = subprocess.Popen(job, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said = output_of(driver, 180)
            assert driver.returncode == 0, said
            until(lambda: service.ready())
            yield service
        finally:
            service.down()


def test_after_the_reindex_the_new_model_serves(moved: RunningService) -> None:
    with moved.client("moved") as http:
        body = http.post("/api/memory/search", json={"query": "who drinks tea"}).json()
        assert body["results"][0]["content"] == "the harbour master drinks tea"
        assert body["results"][0]["score_summary"]["vector_rank"] is not None
        config = http.get("/api/memory/diagnostics").json()["embedding_config"]
        assert (config["model"], config["dimension"]) == ("other-model", DIMS)


def test_a_replica_that_waited_for_the_reindex_left_no_connection_open(
    moved: RunningService,
) -> None:
    logs = StackPaths.of(moved.folder).ray_session_logs / "serve"
    said = [path.read_text(errors="replace") for path in logs.glob("replica_*_indexer_*.log")]
    assert said
    assert not any("Task was destroyed" in text for text in said)


@pytest.mark.parametrize(
    "mood",
    [{"delay_s": 3.0}, {"dims": DIMS + 1}, {"status": 500}, {"raw": b'{"embeddings": ['}],
    ids=["hanging", "wrong size", "failing", "truncated"],
)
def test_a_bad_model_degrades_reads_and_delays_writes(
    moved: RunningService, model: ModelServer, mood: dict[str, Any]
) -> None:
    user = f"mood-{next(iter(mood))}"
    with moved.client(user) as http:
        for name, value in mood.items():
            setattr(model, name, value)
        stored = http.post("/api/memory/store", json={"text": f"the {user} bell rings"})
        assert stored.status_code == 201
        answer = http.post("/api/memory/search", json={"query": f"which {user} bell"})
        assert answer.status_code == 200
        assert answer.elapsed.total_seconds() < 2.5  # the query limit is 0.5 s, not the model's 3 s
        body = answer.json()
        assert body["results"][0]["memory_id"] == stored.json()["memory_id"]
        assert body["degraded"] == ["embedder"]
        assert body["results"][0]["score_summary"]["vector_rank"] is None
        model.reset(DIMS)

        def recovered() -> bool:
            found = http.post("/api/memory/search", json={"query": f"which {user} bell"}).json()
            hit = found["results"][0]
            return not found["degraded"] and hit["score_summary"]["vector_rank"] is not None

        until(recovered, 150)


def test_a_reset_reaches_the_embedder_and_the_reranker(
    moved: RunningService, model: ModelServer
) -> None:
    path = "/api/memory/ops/circuit-breaker"
    with moved.client("breakers") as http:
        # A model reads them only where there are more than two candidates for each place.
        for grain in ("corn", "rye", "oats", "barley", "wheat"):
            text = f"the miller grinds the {grain} of farm {len(grain)}"
            assert http.post("/api/memory/store", json={"text": text}).status_code == 201
        moved.indexed(150)

        def opened(*names: str) -> bool:
            # A new question each time: the vector of an old one is in the cache.
            body = {"query": f"which miller {time.monotonic()}", "limit": 1}
            http.post("/api/memory/search", json=body)
            rows = http.get(path).json()["breakers"]
            return all(rows[name]["state"] == "open" for name in names)

        # The reranker first: without a vector there is less for it to read.
        model.broken_paths = {"/v1/rerank"}
        until(lambda: opened("reranker"))
        model.broken_paths = {"/v1/rerank", "/embeddings"}
        until(lambda: opened("reranker", "embedding"))
        rows = http.get("/api/memory/diagnostics").json()["circuit_breakers"]
        assert {"qdrant", "models", "cache", "embedding", "reranker"} <= rows.keys()
        for name in ("embedding", "reranker"):
            assert rows[name]["lastError"]
            assert rows[name]["nextProbeS"] > 1

        refused = http.post(path, json={"action": "reset"})
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        until(lambda: opened("reranker", "embedding"))
        model.broken_paths = set()
        answer = http.post(path, json={"action": "reset"})
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert {body["breakers"][name]["state"] for name in ("embedding", "reranker")} == {"closed"}
        assert body["message"].startswith("Closed by hand:")
        # At once, though the next probe was many seconds away.
        found = http.post("/api/memory/search", json={"query": "who grinds the rye"}).json()
        assert found["degraded"] == []
        assert found["results"][0]["score_summary"]["vector_rank"] is not None
