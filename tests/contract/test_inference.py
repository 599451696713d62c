"""Model backends against real servers, real ONNX models and the bundled artefact."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import numpy as np
import pytest

from rayapp.container.inference import open_embedding_backend, open_rerank_backend
from rayapp.core.batching import OUT_OF_MEMORY
from rayapp.core.breaker import Breaker, BreakerPolicy
from rayapp.core.errors import (
    BadVector,
    ConfigError,
    EmbedderDown,
    InvalidInput,
    RayappError,
    RerankerDown,
    TooLarge,
)
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import EmbeddingSettings, RerankerSettings
from rayapp.inference.backends.http import (
    EmbeddingApi,
    HttpEmbeddingBackend,
    HttpRerankBackend,
    RerankApi,
)
from rayapp.inference.embedding import EmbeddingService
from tests.support.model_server import ModelServer, model_server
from tests.support.models import hash_vector

TEXTS = ["the cat sat", "שלום עולם", "a", "emoji 😀 and \u0000 control"]
Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
async def running() -> AsyncIterator[ModelServer]:
    async with model_server() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    running.reset(dims=16)
    return running


def embedding(server: ModelServer, api: EmbeddingApi, **changes: Any) -> HttpEmbeddingBackend:
    return HttpEmbeddingBackend(server.url, api=api, model="m", **changes)


def service(server: ModelServer, **changes: Any) -> EmbeddingService:
    settings = EmbeddingSettings.model_validate(
        {"backend": "http", "url": server.url, "model": "m", **changes}
    )
    backend, traits = open_embedding_backend(settings)
    breaker = Breaker("embedder", BreakerPolicy(failures=2, open_s=60, successes=2))
    return EmbeddingService(backend, settings, traits, breaker=breaker, metrics=InMemoryMetrics())


@pytest.mark.parametrize("api", ["dicta", "tei", "openai"])
class TestHttpEmbedding:
    async def test_vectors_in_order(self, server: ModelServer, api: EmbeddingApi) -> None:
        backend = embedding(server, api)
        vectors = await backend.encode(TEXTS, "passage")
        for text, vector in zip(TEXTS, vectors, strict=True):
            assert vector == pytest.approx(hash_vector(text, 16), abs=1e-6)
        assert (await backend.info()).dims == 16
        await backend.close()

    async def test_size_is_asked_once(self, server: ModelServer, api: EmbeddingApi) -> None:
        backend = embedding(server, api)
        for _ in range(3):
            await backend.info()
        assert len(server.requests) == 1
        known = embedding(server, api, dims=1024)
        assert (await known.info()).dims == 1024
        assert len(server.requests) == 1

    async def test_bearer_key(self, server: ModelServer, api: EmbeddingApi) -> None:
        server.key = "secret"
        with pytest.raises(EmbedderDown, match="api_key") as caught:
            await embedding(server, api).encode(TEXTS, "query")
        assert "secret" not in str(caught.value)
        assert len(await embedding(server, api, api_key="secret").encode(TEXTS, "query")) == 4

    @pytest.mark.parametrize(
        ("status", "error"),
        [(400, InvalidInput), (413, TooLarge), (422, InvalidInput), (404, EmbedderDown),
         (429, EmbedderDown), (500, EmbedderDown), (502, EmbedderDown), (503, EmbedderDown),
         (307, EmbedderDown), (204, EmbedderDown)],
    )  # fmt: skip
    async def test_status(
        self, server: ModelServer, api: EmbeddingApi, status: int, error: type[RayappError]
    ) -> None:
        server.status = status
        with pytest.raises(error):
            await embedding(server, api).encode(TEXTS, "query")

    @pytest.mark.parametrize(
        "raw",
        [b"", b"<html>", b"null", b"[]", b"{}", b'{"embeddings": 3}', b'{"data": [1]}',
         b'[NaN]', b'{"embeddings": [{}]}', b"\xff\xfe", b"[" * 5_000],
    )  # fmt: skip
    async def test_garbage(self, server: ModelServer, api: EmbeddingApi, raw: bytes) -> None:
        server.raw = raw
        with pytest.raises((EmbedderDown, BadVector)):
            await embedding(server, api).encode(TEXTS, "query")

    async def test_an_endless_reply_is_cut_off(
        self, server: ModelServer, api: EmbeddingApi
    ) -> None:
        server.endless = True
        with pytest.raises(EmbedderDown, match="bytes"):
            await embedding(server, api).encode(["a"], "query")

    async def test_a_slow_server_costs_the_limit(
        self, server: ModelServer, api: EmbeddingApi
    ) -> None:
        server.delay_s = 0.5
        with pytest.raises(EmbedderDown):
            await embedding(server, api, timeout_s=0.1).encode(TEXTS, "query")

    async def test_out_of_memory_has_its_code(self, server: ModelServer, api: EmbeddingApi) -> None:
        server.memory_texts = 1
        with pytest.raises(EmbedderDown) as caught:
            await embedding(server, api).encode(TEXTS, "query")
        assert caught.value.code == OUT_OF_MEMORY

    async def test_a_text_too_long_for_the_server_fails_alone(
        self, server: ModelServer, api: EmbeddingApi
    ) -> None:
        """llama.cpp answers 500, which says nothing of the other texts, nor of the server."""
        server.too_long = "long"
        gateway = service(server, api=api)
        for _ in range(3):
            with pytest.raises(InvalidInput) as caught:
                await gateway.embed(["a", "long", "b"], "passage", timeout_s=5)
            assert caught.value.details["positions"] == [1]
        assert len(await gateway.embed(["a", "b"], "passage", timeout_s=5)) == 2
        await gateway.close()

    async def test_gateway_survives_all_of_it(self, server: ModelServer, api: EmbeddingApi) -> None:
        """One poisoned text and a small memory: every other text gets its vector."""
        server.memory_texts, server.poison = 3, "poison"
        gateway = service(server, api=api)
        jobs = [gateway.embed([t], "passage", timeout_s=5) for t in [*"abcdefgh", "poison"]]
        results = await asyncio.gather(*jobs, return_exceptions=True)
        assert [isinstance(r, InvalidInput) for r in results] == [False] * 8 + [True]
        await gateway.close()


def dense_rows(values: Any) -> Change:
    """Replace the first text's vector in a dicta reply."""

    def change(reply: Any) -> Any:
        reply["embeddings"][0]["dense"] = values
        return reply

    return change


class TestWrongVectors:
    @pytest.mark.parametrize(
        "values",
        [None, [], [1.0], [1.0] * 17, [0.0] * 16, ["1.0"] * 16, [[1.0]] * 16, "x" * 16,
         [1e300] * 16, [None] * 16, {"a": 1}, [True] * 16, [1.0, [2.0]]],
        ids=str,
    )  # fmt: skip
    async def test_one_bad_vector_fails_one_text(self, server: ModelServer, values: Any) -> None:
        server.change = dense_rows(values)
        gateway = service(server, dims=16)
        with pytest.raises(BadVector) as caught:
            await gateway.embed(["a", "b"], "passage", timeout_s=5)
        assert caught.value.details == {"positions": [0]}
        await gateway.close()

    @pytest.mark.parametrize("rows", [0, 1, 3])
    async def test_wrong_count(self, server: ModelServer, rows: int) -> None:
        server.change = lambda reply: {"embeddings": (reply["embeddings"] * 2)[:rows]}
        with pytest.raises(BadVector):
            await embedding(server, "dicta").encode(["a", "b"], "passage")

    @pytest.mark.parametrize("indices", [[0, 0], [1, 2], [-1, 0], ["x", 0]])
    async def test_openai_indices(self, server: ModelServer, indices: list[Any]) -> None:
        def change(reply: Any) -> Any:
            for row, index in zip(reply["data"], indices, strict=True):
                row["index"] = index
            return reply

        server.change = change
        with pytest.raises((EmbedderDown, BadVector)):
            await embedding(server, "openai").encode(["a", "b"], "passage")

    async def test_retry_after_is_passed_on(self, server: ModelServer) -> None:
        server.status, server.headers = 429, [(b"retry-after", b"7")]
        with pytest.raises(EmbedderDown) as caught:
            await embedding(server, "tei").encode(["a"], "query")
        assert caught.value.retry_after_s == 7.0

    async def test_nobody_listens(self) -> None:
        backend = HttpEmbeddingBackend("http://127.0.0.1:9", api="tei", model="m")
        with pytest.raises(EmbedderDown, match="url"):
            await backend.encode(["a"], "query")

    @pytest.mark.parametrize("url", ["", "127.0.0.1:80", "file:///etc/passwd", "http://[::1"])
    def test_bad_address(self, url: str) -> None:
        with pytest.raises(ConfigError):
            HttpEmbeddingBackend(url, api="tei", model="m")

    @pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
    async def test_openai_base_url(self, server: ModelServer, suffix: str) -> None:
        backend = HttpEmbeddingBackend(server.url + suffix, api="openai", model="m")
        assert len(await backend.encode(["a"], "query")) == 1
        assert server.requests[0][0] == "/v1/embeddings"
        assert server.requests[0][2]["model"] == "m"


@pytest.mark.parametrize("api", ["rerank", "tei"])
class TestHttpRerank:
    @staticmethod
    def backend(server: ModelServer, api: RerankApi) -> HttpRerankBackend:
        return HttpRerankBackend(server.url, api=api, model="m")

    async def test_logits_in_document_order(self, server: ModelServer, api: RerankApi) -> None:
        documents = ["a dog", "the cat", "cat"]
        logits = await self.backend(server, api).logits("the cat", documents)
        assert logits == [-3.0, 3.0, 0.0]

    @pytest.mark.parametrize("fault", ["short", "double", "text", "missing"])
    async def test_wrong_scores(
        self,
        server: ModelServer,
        api: RerankApi,
        fault: Literal["short", "double", "text", "missing"],
    ) -> None:
        def change(reply: Any) -> Any:
            rows = reply if api == "tei" else reply["results"]
            if fault == "short":
                rows.pop()
            elif fault == "double":
                rows[0]["index"] = rows[1]["index"]
            elif fault == "missing":
                rows[0].pop("index")
            else:
                rows[0]["score" if api == "tei" else "relevance_score"] = "high"
            return reply

        server.change = change
        with pytest.raises(RerankerDown, match="api"):
            await self.backend(server, api).logits("the cat", ["a", "b", "c"])

    @pytest.mark.parametrize("status", [429, 500, 503])
    async def test_status(self, server: ModelServer, api: RerankApi, status: int) -> None:
        server.status = status
        with pytest.raises(RerankerDown):
            await self.backend(server, api).logits("the cat", ["a"])


class TestStatic:
    @pytest.fixture(scope="class")
    @staticmethod
    def backend() -> Any:
        return open_embedding_backend(EmbeddingSettings())[0]

    async def test_info(self, backend: Any) -> None:
        info = await backend.info()
        assert (info.model, info.dims, info.langs) == ("bilingual-static-1", 256, ("en", "he"))

    async def test_near_texts_are_near(self, backend: Any) -> None:
        texts = ["The dog barked all night.", "A puppy was barking loudly.", "Interest rates rose."]
        dog, puppy, rates = [v / np.linalg.norm(v) for v in await backend.encode(texts, "query")]
        assert dog @ puppy > 0.5
        assert dog @ rates < 0.2

    @pytest.mark.parametrize("text", ["שלום עולם", "😀", "日本語", "\u200f", "q", "\u0000", "?"])
    async def test_every_text_has_a_vector_of_the_model(self, backend: Any, text: str) -> None:
        (vector,) = await backend.encode([text], "passage")
        assert np.linalg.norm(vector) > 1.0

    async def test_unknown_words_change_nothing(self, backend: Any) -> None:
        plain, emoji = await backend.encode(["a good dog", "a good 😀 dog"], "passage")
        assert plain == pytest.approx(emoji)

    async def test_alone_and_in_a_batch_are_equal(self, backend: Any) -> None:
        texts = [f"word {number} " * (number + 1) for number in range(60)]
        batch = await backend.encode(texts, "passage")
        for text, vector in zip(texts, batch, strict=True):
            (alone,) = await backend.encode([text], "query")
            assert np.array_equal(alone, vector)

    async def test_a_long_text_does_not_hold_the_loop(self, backend: Any) -> None:
        wakes: list[float] = []

        async def watch() -> None:
            while True:
                await asyncio.sleep(0.001)
                wakes.append(time.perf_counter())

        watcher = asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        await backend.encode(["many words of a long text " * 4_000] * 8, "passage")
        watcher.cancel()
        # A blocked loop would have woken the watcher once or twice.
        assert len(wakes) > 20

    def test_a_missing_model_names_those_there(self) -> None:
        with pytest.raises(ConfigError, match="bilingual-static-1"):
            open_embedding_backend(EmbeddingSettings(model="no-such-model"))


def test_no_reranker_configured() -> None:
    assert open_rerank_backend(RerankerSettings(backend="none"))[0] is None
