"""The contract of `Cache`, for the in-process LRU and for a real server on a unix socket."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from rayapp.core.errors import CacheDown
from rayapp.inference.ports import Cache
from rayapp.storage.process_cache import InMemoryCache
from rayapp.storage.redis import RedisCache
from tests.support.clock import FakeClock
from tests.support.valkey_server import UnixValkey, unix_valkey

TIMEOUT_S = 0.5


@pytest.fixture(scope="module")
def server() -> Iterator[UnixValkey]:
    # A path of pytest's own would be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="vk") as folder, unix_valkey(Path(folder)) as valkey:
        yield valkey


class Aged:
    """A cache and a way to let its time pass."""

    def __init__(self, cache: Cache, clock: FakeClock | None) -> None:
        self.cache = cache
        self._clock = clock

    async def wait(self, seconds: float) -> None:
        if self._clock is None:
            await asyncio.sleep(seconds)
        else:
            self._clock.advance(seconds)


@pytest.fixture(params=["lru", pytest.param("valkey", marks=pytest.mark.engine)])
async def aged(request: pytest.FixtureRequest) -> AsyncIterator[Aged]:
    if request.param == "lru":
        clock = FakeClock()
        yield Aged(InMemoryCache(100, clock, refresh_ttl_s=2), clock)
        return
    server: UnixValkey = request.getfixturevalue("server")
    cache = RedisCache(server.url, timeout_s=TIMEOUT_S, refresh_ttl_s=2)
    client = Redis.from_url(server.url)
    await client.flushall()
    await client.aclose()
    yield Aged(cache, None)
    await cache.close()


class TestContract:
    async def test_values_come_back_in_order_with_gaps(self, aged: Aged) -> None:
        await aged.cache.set_many({"a": b"1", "b": b"\x00\xff\r\n"}, 60)
        assert await aged.cache.get_many(["b", "missing", "a", "b"]) == [
            b"\x00\xff\r\n",
            None,
            b"1",
            b"\x00\xff\r\n",
        ]

    async def test_the_last_value_wins(self, aged: Aged) -> None:
        await aged.cache.set_many({"a": b"1"}, 60)
        await aged.cache.set_many({"a": b"2"}, 60)
        assert await aged.cache.get_many(["a"]) == [b"2"]

    async def test_nothing_asked(self, aged: Aged) -> None:
        await aged.cache.set_many({}, 60)
        assert await aged.cache.get_many([]) == []

    async def test_a_value_ends_after_its_lifetime(self, aged: Aged) -> None:
        await aged.cache.set_many({"short": b"1"}, 1)
        await aged.wait(1.1)
        assert await aged.cache.get_many(["short"]) == [None]

    async def test_a_hit_refreshes_the_lifetime(self, aged: Aged) -> None:
        await aged.cache.set_many({"a": b"1"}, 1)
        await aged.wait(0.6)
        assert await aged.cache.get_many(["a"]) == [b"1"]
        await aged.wait(1.2)
        assert await aged.cache.get_many(["a"]) == [b"1"]

    async def test_a_large_batch(self, aged: Aged) -> None:
        values = {f"k{number}": bytes([number]) * 1_024 for number in range(100)}
        await aged.cache.set_many(values, 60)
        assert await aged.cache.get_many(list(values)) == list(values.values())

    async def test_ping_is_a_time(self, aged: Aged) -> None:
        assert 0.0 <= await aged.cache.ping() < TIMEOUT_S


class TestLeastRecentlyUsed:
    async def test_the_unused_one_goes_first(self) -> None:
        cache = InMemoryCache(2, FakeClock())
        await cache.set_many({"a": b"1", "b": b"2"}, 60)
        await cache.get_many(["a"])
        await cache.set_many({"c": b"3"}, 60)
        assert await cache.get_many(["a", "b", "c"]) == [b"1", None, b"3"]

    async def test_size_zero_keeps_nothing(self) -> None:
        cache = InMemoryCache(0, FakeClock())
        await cache.set_many({"a": b"1"}, 60)
        assert await cache.get_many(["a"]) == [None]


@pytest.mark.engine
class TestServerTrouble:
    async def test_no_server(self, tmp_path: Path) -> None:
        cache = RedisCache(f"unix://{tmp_path}/none.sock", timeout_s=TIMEOUT_S)
        with pytest.raises(CacheDown):
            await cache.get_many(["a"])
        with pytest.raises(CacheDown):
            await cache.set_many({"a": b"1"}, 60)
        with pytest.raises(CacheDown):
            await cache.ping()

    async def test_a_hanging_server_costs_the_limit(self, server: UnixValkey) -> None:
        admin = Redis.from_url(server.url)
        cache = RedisCache(server.url, timeout_s=0.05)
        await cache.set_many({"a": b"1", "b": b"2"}, 60)
        await admin.client_pause(300)
        with pytest.raises(CacheDown):
            await cache.get_many(["a"])
        await asyncio.sleep(0.4)
        # A late reply of the given-up call must not become the answer of the next one.
        assert await cache.get_many(["b"]) == [b"2"]
        await admin.aclose()
        await cache.close()

    async def test_a_cancelled_call_leaves_no_reply_behind(self, server: UnixValkey) -> None:
        admin = Redis.from_url(server.url)
        cache = RedisCache(server.url, timeout_s=1.0, refresh_ttl_s=60)
        await cache.set_many({f"k{number}": str(number).encode() for number in range(20)}, 60)
        await admin.client_pause(100)
        tasks = [asyncio.ensure_future(cache.get_many([f"k{n}"])) for n in range(10)]
        await asyncio.sleep(0.03)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        answers = await asyncio.gather(*(cache.get_many([f"k{n}"]) for n in range(10, 20)))
        assert answers == [[str(n).encode()] for n in range(10, 20)]
        await admin.aclose()
        await cache.close()

    async def test_heals_after_a_restart(self, server: UnixValkey) -> None:
        cache = RedisCache(server.url, timeout_s=TIMEOUT_S)
        await cache.set_many({"a": b"1"}, 60)
        server.stop()
        with pytest.raises(CacheDown):
            await cache.get_many(["a"])
        server.start()
        assert await cache.get_many(["a"]) == [None]
        await cache.close()
