"""A local model without enough memory, and calls that overtake each other, on a real tiny model."""

import asyncio
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from rayapp.container.inference import open_embedding_backend, open_rerank_backend
from rayapp.core.batching import OUT_OF_MEMORY
from rayapp.core.breaker import Breaker, BreakerPolicy
from rayapp.core.errors import EmbedderDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import BatchSettings, EmbeddingSettings, RerankerSettings
from rayapp.inference.backends import model_thread
from rayapp.inference.backends.model_thread import ModelThread
from rayapp.inference.embedding import EmbeddingService
from rayapp.inference.reranking import RerankService, sigmoid
from tests.contract.test_local_models import TABLE, write_model, write_tokenizer

PETS = ["cat", "dog", "חתול", "כלב", "house"]
BREAKER = BreakerPolicy(failures=2, open_s=60.0, successes=1)


class ShortSession:
    """An ONNX session that fails as ONNX Runtime does, above so many padded tokens."""

    def __init__(self, session: Any, most: int) -> None:
        self.session = session
        self.most = most
        self.calls: list[int] = []

    def run(self, names: None, feed: dict[str, Any]) -> Any:
        tokens = feed["input_ids"].size
        self.calls.append(tokens)
        if tokens > self.most:
            raise RuntimeError("Failed to allocate memory for requested buffer of size 4194304")
        return self.session.run(names, feed)


async def test_a_device_that_cannot_be_tidied_leaves_no_caller_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(error: BaseException) -> None:
        raise RuntimeError("CUDA error: unspecified launch failure")

    def short() -> None:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(model_thread, "release", broken)
    thread = ModelThread("model", EmbedderDown)
    with pytest.raises(EmbedderDown) as refused:
        await asyncio.wait_for(thread.run(short), 10)
    assert refused.value.code == OUT_OF_MEMORY
    assert await asyncio.wait_for(thread.run(lambda: 1), 10) == 1
    thread.close()


def shortened(model: Any, most: int) -> ShortSession:
    session = ShortSession(model._session, most)
    model._session = session
    return session


def texts_of(count: int) -> list[str]:
    """Each with as many tokens as any other, so that they could share one forward pass."""
    return [f"{PETS[n % 5]} {PETS[n // 5 % 5]} {PETS[n // 25 % 5]}" for n in range(count)]


@pytest.mark.parametrize("most", [5, 40, 90])
async def test_embeddings_are_the_same_with_little_memory(tmp_path: Path, most: int) -> None:
    write_tokenizer(tmp_path)
    write_model(tmp_path, TABLE, labels=False, inputs=["input_ids", "attention_mask"])
    settings = EmbeddingSettings(
        backend="local", model=str(tmp_path), batch=BatchSettings(max_size=64)
    )
    backend, traits = open_embedding_backend(settings)
    metrics = InMemoryMetrics()
    breaker = Breaker("embedder", BREAKER)
    service = EmbeddingService(backend, settings, traits, breaker=breaker, metrics=metrics)
    texts = texts_of(40)
    wanted = await service.embed(texts, "passage", timeout_s=10)
    session = shortened(backend.encoder.model, most)
    for _ in range(2):
        found = await service.embed(texts, "passage", timeout_s=10)
        for vector, other in zip(found, wanted, strict=True):
            assert vector == pytest.approx(other, abs=1e-6)
    # The first round finds what fits, the second one knows.
    failed = [tokens for tokens in session.calls if tokens > most]
    assert len(failed) == metrics.counters["embed_oom", ()] > 0
    assert failed[0] == 200 == session.calls[0]
    assert all(tokens <= most for tokens in session.calls[len(session.calls) // 2 :])
    await service.close()


async def test_scores_are_the_same_with_little_memory(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    inputs = ["input_ids", "attention_mask"]
    write_model(tmp_path, TABLE[:, :1].copy(), labels=True, inputs=inputs)
    settings = RerankerSettings(backend="local", model=str(tmp_path), timeout_s=30)
    backend, traits = open_rerank_backend(settings)
    assert backend is not None
    metrics = InMemoryMetrics()
    breaker = Breaker("reranker", BREAKER)
    service = RerankService(backend, settings, traits, breaker=breaker, metrics=metrics)
    texts = texts_of(30)
    wanted = [sigmoid(logit) for logit in await backend.logits("cat", texts)]
    session = shortened(backend.model.model, 60)
    assert await service.rerank("cat", texts, timeout_s=10) == pytest.approx(wanted)
    assert metrics.counters["rerank_oom", ()] > 0
    assert max(session.calls) > 60
    await service.close()


async def test_memory_of_a_failed_call_is_free_while_its_error_lives() -> None:
    class Activations:
        pass

    kept: list[weakref.ref[Activations]] = []

    def call() -> None:
        activations = Activations()
        kept.append(weakref.ref(activations))
        raise RuntimeError("CUDA out of memory. Tried to allocate 20 MiB")

    thread = ModelThread("m", EmbedderDown)
    with pytest.raises(EmbedderDown) as caught:
        await thread.run(call)
    assert caught.value.code == OUT_OF_MEMORY
    assert kept[0]() is None
    thread.close()


async def test_a_question_overtakes_batches_that_wait() -> None:
    thread = ModelThread("m", EmbedderDown)
    free = threading.Event()
    order: list[str] = []

    def slow() -> None:
        free.wait(10)
        order.append("running")

    running = asyncio.create_task(thread.run(slow))
    await asyncio.sleep(0)
    bulk = [asyncio.create_task(thread.run(lambda: order.append("bulk"))) for _ in range(2)]
    await asyncio.sleep(0)
    question = asyncio.create_task(thread.run(lambda: order.append("question"), urgent=True))
    await asyncio.sleep(0)
    free.set()
    await asyncio.gather(running, *bulk, question)
    assert order == ["running", "question", "bulk", "bulk"]
    thread.close()


async def test_tokens_are_made_while_the_model_computes() -> None:
    thread = ModelThread("m", EmbedderDown)
    prepared, computed = threading.Event(), threading.Event()

    def first(_tokens: str) -> bool:
        # Ends only when the tokens of the next batch are there.
        ended = prepared.wait(10)
        computed.set()
        return ended

    def tokens() -> str:
        prepared.set()
        return "tokens"

    one = asyncio.create_task(thread.batch(lambda: "tokens", first))
    two = asyncio.create_task(thread.batch(tokens, lambda _tokens: computed.is_set()))
    assert await asyncio.gather(one, two) == [True, True]
    thread.close()


async def test_a_call_given_up_is_never_run() -> None:
    thread = ModelThread("m", EmbedderDown)
    free = threading.Event()
    ran: list[str] = []
    running = asyncio.create_task(thread.run(lambda: free.wait(10)))
    await asyncio.sleep(0)
    late = asyncio.create_task(thread.run(lambda: ran.append("late")))
    await asyncio.sleep(0)
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    free.set()
    await running
    await thread.run(lambda: ran.append("next"))
    assert ran == ["next"]
    thread.close()
