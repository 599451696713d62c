"""Embedder and Reranker over real Serve handles, and the table of errors at that door."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import ray
from ray import serve
from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError, RayTaskError
from ray.serve.exceptions import BackPressureError

from rayapp.container.inference import open_embedding_backend
from rayapp.core.batching import BackendTraits
from rayapp.core.breaker import Breaker, BreakerPolicy, BreakerState
from rayapp.core.errors import (
    BadVector,
    DeadlineExceeded,
    EmbedderDown,
    InvalidInput,
    Overloaded,
    RayappError,
    RerankerDown,
)
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import EmbeddingSettings, RerankerSettings
from rayapp.inference.embedding import EmbeddingService
from rayapp.inference.reranking import RerankService
from rayapp.serve.deployments.gateways import EmbeddingDeployment, RerankerDeployment
from rayapp.serve.handles import HandleEmbedder, HandleReranker, to_rayapp_error
from tests.support.models import HashBackend, OverlapRerankBackend

ROOT = Path(__file__).resolve().parents[2]
RERANK_S = 0.2
POLICY = BreakerPolicy(failures=2, open_s=60, successes=2)


def build_embedding() -> EmbeddingService:
    settings = EmbeddingSettings()
    backend, traits = open_embedding_backend(settings)
    breaker = Breaker("embedder", POLICY)
    return EmbeddingService(backend, settings, traits, breaker=breaker, metrics=InMemoryMetrics())


def build_tripped() -> EmbeddingService:
    """One whose breaker opened before anybody called."""
    service = build_embedding()
    breaker = service.breaker
    for _ in range(POLICY.failures):
        ticket = breaker.admit(time.monotonic())
        assert ticket is not None
        breaker.fail(ticket, "EmbedderDown: away", time.monotonic())
    return service


def build_reranker() -> RerankService:
    return RerankService(
        OverlapRerankBackend(delay_s=RERANK_S),
        RerankerSettings(),
        BackendTraits(max_tokens=16_384),
        breaker=Breaker("reranker", POLICY),
        metrics=InMemoryMetrics(),
    )


def in_replica(cause: Exception) -> Exception:
    """What a caller sees of an error raised in a replica."""
    make: Any = RayTaskError
    wrapped: Exception = make("embed", "trace", cause)
    return wrapped


class TestErrorTable:
    @pytest.mark.parametrize(
        ("error", "wanted", "code"),
        [
            (BackPressureError(num_queued_requests=9, max_queued_requests=9), Overloaded, None),
            (TimeoutError(), EmbedderDown, "handle_timeout"),
            (GetTimeoutError("late"), EmbedderDown, "handle_timeout"),
            (ActorDiedError(), EmbedderDown, "replica_died"),
            (ActorUnavailableError("gone", None), EmbedderDown, "replica_died"),
            (BadVector("zero", details={"positions": [1]}), BadVector, "bad_vector"),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
    )
    def test_rows(self, error: Exception, wanted: type[RayappError], code: str | None) -> None:
        mapped = to_rayapp_error(error, EmbedderDown)
        assert type(mapped) is wanted
        assert code in (None, mapped.code)

    def test_a_replicas_own_error_comes_out_as_it_went_in(self) -> None:
        cause = BadVector("zero", details={"positions": [1]}, retry_after_s=2.0)
        assert to_rayapp_error(in_replica(cause), EmbedderDown) is cause

    def test_a_bug_in_the_replica(self) -> None:
        mapped = to_rayapp_error(in_replica(ValueError("x")), RerankerDown)
        assert type(mapped) is RerankerDown
        assert "ValueError" in mapped.message


class TestDeployments:
    """The plain classes, without Ray."""

    async def test_one_array_crosses_the_handle(self) -> None:
        deployment = EmbeddingDeployment(build_embedding)
        await deployment.check_health()
        array = await deployment.embed(["a cat", "a dog"], "query", 5.0)
        assert array.shape == (2, 256)
        assert array.dtype == np.float32
        assert (await deployment.embed([], "query", 5.0)).size == 0

    async def test_health_check_warms_up_once_and_needs_nobody(self) -> None:
        backend = HashBackend()
        backend.failures = [EmbedderDown("away")]
        service = EmbeddingService(
            backend,
            EmbeddingSettings(),
            BackendTraits(max_tokens=16_384),
            breaker=Breaker("embedder", POLICY),
            metrics=InMemoryMetrics(),
        )
        deployment = EmbeddingDeployment(lambda: service)
        for _ in range(3):
            await deployment.check_health()
        assert backend.calls == [["warm up"]]

    async def test_reranker(self) -> None:
        deployment = RerankerDeployment(build_reranker)
        await deployment.check_health()
        assert await deployment.rerank("cat", ["cat", "dog"], 5.0) == pytest.approx(
            [0.953, 0.047], abs=1e-3
        )


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    started = not ray.is_initialized()
    if started:
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}},
        )
    serve.start(proxy_location="Disabled")
    # Any: the stubs of serve.deployment lose the class it decorates.
    deployment: Any = serve.deployment
    options = {"ray_actor_options": {"num_cpus": 0.1}, "graceful_shutdown_wait_loop_s": 0.05}
    embedding = deployment(EmbeddingDeployment, name="embedding", **options)
    reranker = deployment(
        RerankerDeployment,
        name="reranker",
        max_ongoing_requests=1,
        max_queued_requests=1,
        **options,
    )
    serve.run(embedding.bind(build_embedding), name="handles-embedding", route_prefix=None)
    serve.run(reranker.bind(build_reranker), name="handles-reranker", route_prefix=None)
    tripped = embedding.options(num_replicas=2)
    serve.run(tripped.bind(build_tripped), name="handles-tripped", route_prefix=None)
    yield
    for name in ("handles-embedding", "handles-reranker", "handles-tripped"):
        serve.delete(name)
    if started:
        for stop in (serve.shutdown, ray.shutdown):
            end: Any = stop
            end()


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; none of one that has ended and waits for its parent."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # a zombie is one, too
        return []


def replica_pids(title: str) -> list[int]:
    """Replicas of this test's own Ray: its processes descend from this one."""
    children = psutil.Process().children(recursive=True)
    return [child.pid for child in children if any(title in part for part in words_of(child))]


@pytest.mark.ray
@pytest.mark.usefixtures("cluster")
class TestHandles:
    @pytest.fixture
    def embedder(self) -> HandleEmbedder:
        return HandleEmbedder(serve.get_app_handle("handles-embedding"))

    @pytest.fixture
    def reranker(self) -> HandleReranker:
        return HandleReranker(serve.get_app_handle("handles-reranker"))

    async def test_vectors(self, embedder: HandleEmbedder) -> None:
        texts = ["a cat", "שלום עולם", "a dog"]
        vectors = await embedder.embed(texts, "query", timeout_s=5)
        local = await build_embedding().embed(texts, "query", timeout_s=5)
        for far, near in zip(vectors, local, strict=True):
            assert np.array_equal(far, near)
        assert (await embedder.info()).dims == 256
        assert (await embedder.health())["healthy"] is True
        assert await embedder.embed([], "query", timeout_s=5) == []
        assert [row.name for row in await embedder.breakers()] == ["embedder"]
        assert await embedder.reset_breakers() == []

    async def test_a_reset_reaches_every_replica(self) -> None:
        embedder = HandleEmbedder(serve.get_app_handle("handles-tripped"))
        before = await embedder.breakers()
        assert [(row.state, row.last_error) for row in before] == [
            (BreakerState.OPEN, "EmbedderDown: away")
        ] * 2
        assert await embedder.reset_breakers() == ["embedder"]
        assert {row.state for row in await embedder.breakers()} == {BreakerState.CLOSED}

    async def test_errors_keep_class_and_details(self, embedder: HandleEmbedder) -> None:
        with pytest.raises(InvalidInput) as caught:
            await embedder.embed(["fine", " "], "query", timeout_s=5)
        assert caught.value.details == {"positions": [1]}
        with pytest.raises(DeadlineExceeded):
            await embedder.embed(["fine"], "query", timeout_s=0)

    async def test_scores(self, reranker: HandleReranker) -> None:
        scores = await reranker.rerank("the cat", ["the cat", "a dog"], timeout_s=5)
        assert scores == pytest.approx([0.953, 0.047], abs=1e-3)

    async def test_a_late_answer(self, reranker: HandleReranker) -> None:
        with pytest.raises(RerankerDown) as caught:
            await reranker.rerank("the cat", ["the cat"], timeout_s=RERANK_S / 4)
        assert caught.value.code in ("reranker_timeout", "handle_timeout")

    async def test_a_full_queue(self, reranker: HandleReranker) -> None:
        calls = [reranker.rerank("the cat", ["the cat"], timeout_s=5) for _ in range(8)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        refused = [result for result in results if isinstance(result, BaseException)]
        assert refused
        assert all(isinstance(result, Overloaded) for result in refused)
        assert len(refused) < len(results)

    @pytest.mark.fault
    async def test_a_killed_replica_fails_no_call(self, embedder: HandleEmbedder) -> None:
        async def ask(number: int) -> int:
            answered = 0
            for step in range(40):
                vectors = await embedder.embed([f"{number} {step}"], "query", timeout_s=20)
                answered += len(vectors)
                await asyncio.sleep(0.02)
            return answered

        asking = [asyncio.ensure_future(ask(number)) for number in range(3)]
        await asyncio.sleep(0.2)
        (pid,) = replica_pids("handles-embedding")
        os.kill(pid, signal.SIGKILL)
        assert await asyncio.gather(*asking) == [40, 40, 40]

    async def test_a_deleted_application(self, reranker: HandleReranker) -> None:
        await reranker.rerank("the cat", ["the cat"], timeout_s=5)
        await asyncio.to_thread(serve.delete, "handles-reranker")
        assert "handles-reranker" not in serve.status().applications
        with pytest.raises(RerankerDown):
            await reranker.rerank("the cat", ["the cat"], timeout_s=1)
        with pytest.raises(RerankerDown):
            await reranker.reset_breakers()
