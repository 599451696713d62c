"""Cache over Redis or Valkey, TCP or unix socket."""

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from rayapp.core.errors import CacheDown, ConfigError

T = TypeVar("T")

# A pooled connection may be stale after a server restart: one fresh try heals it.
RECONNECTS = 1


class RedisCache:
    """Every call is one round trip and takes at most `timeout_s`.

    A hit refreshes the lifetime to `refresh_ttl_s` when that is set (GETEX, Redis 6.2 or newer).
    """

    def __init__(self, url: str, *, timeout_s: float, refresh_ttl_s: int | None = None) -> None:
        """`url`: `redis://host:port/db`, `rediss://...` or `unix:///path/to.sock`. Raises
        ConfigError: it is no such URL."""
        self._timeout_s = timeout_s
        self._refresh_ttl_s = refresh_ttl_s
        self._client: Redis = _client(url, timeout_s)

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Values in order. CacheDown."""
        if not keys:
            return []
        if self._refresh_ttl_s is None:
            found = await self._bound(self._client.mget(keys))
            return cast("list[bytes | None]", found)
        pipeline = self._client.pipeline(transaction=False)
        for key in keys:
            pipeline.getex(key, ex=self._refresh_ttl_s)
        return cast("list[bytes | None]", await self._bound(pipeline.execute()))

    async def set_many(self, values: Mapping[str, bytes], ttl_s: int) -> None:
        """Store all values for `ttl_s` seconds. CacheDown."""
        if not values:
            return
        pipeline = self._client.pipeline(transaction=False)
        for key, value in values.items():
            pipeline.set(key, value, ex=ttl_s)
        await self._bound(pipeline.execute())

    async def ping(self) -> float:
        """Seconds of one round trip. CacheDown."""
        start = time.perf_counter()
        await self._bound(self._client.ping())
        return time.perf_counter() - start

    async def close(self) -> None:
        await self._client.aclose()

    async def _bound(self, call: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await call
        except (RedisError, OSError, TimeoutError) as error:
            raise CacheDown(
                f"The cache did not answer ({type(error).__name__}): check redis.url."
            ) from error


def _client(url: str, timeout_s: float) -> Redis:
    try:
        return Redis.from_url(
            url,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), RECONNECTS),
        )
    except ValueError:
        # Its own text repeats the URL, which may hold a password.
        raise ConfigError(
            "redis.url is no cache address: write redis://host:port/db, rediss://... or unix://PATH."
        ) from None
