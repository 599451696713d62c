"""Cache layers and coalescing in front of an embedder."""

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from rayapp.core.breaker import Breaker, BreakerPolicy
from rayapp.core.errors import BadVector, CacheDown, EmbedderDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.model import EmbeddingSettings
from rayapp.core.vectors import Vector
from rayapp.inference.embedding import CachedEmbedder, CacheLayer, cache_key, pack, unpack
from rayapp.inference.ports import TextKind
from rayapp.storage.process_cache import InMemoryCache
from tests.support.models import HashEmbedder, hash_vector

DIMS = 32


class SlowEmbedder(HashEmbedder):
    """Blames given texts by position, as the gateway does."""

    def __init__(self, delay_s: float = 0.0, bad: frozenset[str] = frozenset()) -> None:
        super().__init__(DIMS)
        self._delay_s = delay_s
        self._bad = bad

    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        vectors = await super().embed(texts, kind, timeout_s=timeout_s)
        await asyncio.sleep(self._delay_s)
        blamed = [position for position, text in enumerate(texts) if text in self._bad]
        if blamed:
            raise BadVector("zero", details={"positions": blamed})
        return vectors


class BrokenCache:
    """A cache server that is away."""

    def __init__(self) -> None:
        self.calls = 0

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        self.calls += 1
        raise CacheDown("away")

    async def set_many(self, values: Mapping[str, bytes], ttl_s: int) -> None:
        self.calls += 1
        raise CacheDown("away")

    async def ping(self) -> float:
        raise CacheDown("away")

    async def close(self) -> None:
        return None


class Bench:
    def __init__(self, inner: HashEmbedder, *layers: CacheLayer, **settings: str) -> None:
        self.inner = inner
        self.metrics = InMemoryMetrics()
        rules = EmbeddingSettings.model_validate(settings)
        self.embedder = CachedEmbedder(inner, layers, rules, metrics=self.metrics)

    async def embed(
        self, *texts: str, kind: TextKind = "query", timeout_s: float = 5.0
    ) -> list[Vector]:
        return await self.embedder.embed(texts, kind, timeout_s=timeout_s)

    def counted(self, name: str, **labels: str) -> float:
        return self.metrics.counters[name, tuple(sorted(labels.items()))]


def lru(name: str = "lru") -> CacheLayer:
    return CacheLayer(name, InMemoryCache(1_000, SystemClock()))


async def settled() -> None:
    """The fill writes the cache after it has answered its callers."""
    await asyncio.sleep(0.01)


class TestPacking:
    def test_there_and_back(self) -> None:
        vector = hash_vector("cat", DIMS)
        unpacked = unpack(pack(vector), DIMS)
        assert unpacked is not None
        assert np.array_equal(unpacked, vector)

    @pytest.mark.parametrize(
        "value",
        [b"", b"\0" * DIMS * 4, b"\xff" * DIMS * 4, pack(hash_vector("a", DIMS))[:-4],
         pack(hash_vector("a", DIMS) * np.float32(2))],
        ids=["empty", "zero", "nan", "short", "not-unit"],
    )  # fmt: skip
    def test_damaged_values_are_misses(self, value: bytes) -> None:
        assert unpack(value, DIMS) is None

    def test_key_depends_on_model_and_text(self) -> None:
        keys = {cache_key(model, text) for model in ("m1", "m2") for text in ("a", "b")}
        assert len(keys) == 4
        assert cache_key("m1", "a").startswith("embedding:v1:m1:")


class TestHits:
    async def test_the_second_time_the_embedder_is_not_asked(self) -> None:
        bench = Bench(HashEmbedder(DIMS), lru())
        first = await bench.embed("cat", "dog")
        await settled()
        again = await bench.embed("dog", "cat")
        assert bench.inner.calls == [["cat", "dog"]]
        assert np.array_equal(again[1], first[0])
        assert bench.counted("embed_cache_hits", layer="lru") == 2
        assert bench.counted("embed_cache_misses") == 2

    async def test_spacing_and_compatibility_forms_share_an_entry(self) -> None:
        bench = Bench(HashEmbedder(DIMS), lru())
        await bench.embed("fine cat")
        await settled()
        await bench.embed("  ﬁne \n cat ")
        assert len(bench.inner.calls) == 1

    async def test_only_misses_are_asked(self) -> None:
        bench = Bench(HashEmbedder(DIMS), lru())
        await bench.embed("cat")
        await settled()
        vectors = await bench.embed("dog", "cat", "dog")
        assert bench.inner.calls == [["cat"], ["dog"]]
        assert np.array_equal(vectors[0], vectors[2])

    async def test_prefixes_keep_queries_and_passages_apart(self) -> None:
        bench = Bench(HashEmbedder(DIMS), lru(), query_prefix="query: ")
        await bench.embed("cat")
        await settled()
        await bench.embed("cat", kind="passage")
        assert len(bench.inner.calls) == 2

    async def test_a_far_hit_is_copied_to_the_near_layer(self) -> None:
        far = lru("redis")
        await Bench(HashEmbedder(DIMS), far).embed("cat")
        await settled()
        bench = Bench(HashEmbedder(DIMS), lru(), far)
        for _ in range(2):
            await bench.embed("cat")
        assert bench.inner.calls == []
        assert bench.counted("embed_cache_hits", layer="redis") == 1
        assert bench.counted("embed_cache_hits", layer="lru") == 1

    async def test_a_damaged_value_is_computed_again(self) -> None:
        layer = lru()
        bench = Bench(HashEmbedder(DIMS), layer)
        await layer.cache.set_many({cache_key("hash", "cat"): b"\xff" * DIMS * 4}, 60)
        (vector,) = await bench.embed("cat")
        assert np.array_equal(vector, hash_vector("cat", DIMS))


class TestCoalescing:
    async def test_equal_texts_in_flight_are_asked_once(self) -> None:
        bench = Bench(SlowEmbedder(0.03), lru())
        answers = await asyncio.gather(*(bench.embed("cat") for _ in range(20)))
        assert bench.inner.calls == [["cat"]]
        assert all(np.array_equal(answer[0], answers[0][0]) for answer in answers)
        assert bench.counted("embed_coalesced") == 19

    async def test_one_who_leaves_does_not_take_the_others_along(self) -> None:
        bench = Bench(SlowEmbedder(0.05), lru())
        leaver = asyncio.ensure_future(bench.embed("cat"))
        stayer = asyncio.ensure_future(bench.embed("cat"))
        await asyncio.sleep(0.01)
        leaver.cancel()
        assert len(await stayer) == 1
        assert bench.inner.calls == [["cat"]]

    async def test_an_impatient_caller_gets_its_vector_next_time(self) -> None:
        bench = Bench(SlowEmbedder(0.05), lru())
        with pytest.raises(EmbedderDown) as caught:
            await bench.embed("cat", timeout_s=0.01)
        assert caught.value.code == "embedder_timeout"
        await asyncio.sleep(0.06)
        await bench.embed("cat", timeout_s=0.01)
        assert bench.inner.calls == [["cat"]]


class TestErrors:
    async def test_bad_texts_fail_alone_and_are_not_cached(self) -> None:
        bench = Bench(SlowEmbedder(0.01, frozenset({"bad"})), lru())
        good, bad = await asyncio.gather(
            bench.embed("cat"), bench.embed("dog", "bad"), return_exceptions=True
        )
        assert not isinstance(good, BaseException)
        assert isinstance(bad, BadVector)
        assert bad.details == {"positions": [1]}
        await settled()
        bench.inner.calls.clear()
        assert len(await bench.embed("dog")) == 1
        assert bench.inner.calls == []
        with pytest.raises(BadVector):
            await bench.embed("bad")
        assert bench.inner.calls == [["bad"]]

    async def test_an_outage_is_not_cached(self) -> None:
        bench = Bench(HashEmbedder(DIMS), lru())
        bench.inner.down = True
        with pytest.raises(EmbedderDown):
            await bench.embed("cat")
        bench.inner.down = False
        assert len(await bench.embed("cat")) == 1

    async def test_hits_survive_an_outage(self) -> None:
        bench = Bench(HashEmbedder(DIMS), lru())
        await bench.embed("cat")
        await settled()
        bench.inner.down = True
        assert len(await bench.embed("cat")) == 1

    async def test_a_dead_cache_is_bypassed_then_left_alone(self) -> None:
        cache = BrokenCache()
        breaker = Breaker("cache", BreakerPolicy(failures=3, open_s=60, successes=1))
        bench = Bench(HashEmbedder(DIMS), CacheLayer("redis", cache, breaker))
        for number in range(5):
            assert len(await bench.embed(f"text {number}")) == 1
            await settled()
        assert cache.calls == 3
        assert bench.counted("embed_cache_errors") == 10
