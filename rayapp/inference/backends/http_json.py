"""JSON over HTTP to a model server: one table from replies to errors, bounded reply size."""

from __future__ import annotations

from typing import Any

import httpx
import orjson

from rayapp.core.batching import OUT_OF_MEMORY
from rayapp.core.errors import ConfigError, DependencyDown, InvalidInput, TooLarge

CONNECT_TIMEOUT_S = 2.0
MAX_CONNECTIONS = 16
# The server says that this request is wrong, not that it is in trouble.
REFUSED = frozenset({400, 413, 422})
BUSY = frozenset({429, 503})
# What torch, CUDA and llama.cpp servers pass on in the text of a 5xx.
OOM_MARK = b"out of memory"
ERROR_BYTES = 64 * 1024


class JsonServer:
    """One model server. `down` is the error class of its trouble."""

    def __init__(
        self, url: str, *, api_key: str, timeout_s: float, down: type[DependencyDown], setting: str
    ) -> None:
        """`timeout_s` bounds each wait for bytes; `setting` is the section that messages name."""
        try:
            valid = httpx.URL(url).scheme in ("http", "https")
        except httpx.InvalidURL:
            valid = False
        if not valid:
            raise ConfigError(f"{setting}.url must be an http:// or https:// address.")
        self._url = url.rstrip("/")
        self._down = down
        self._setting = setting
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
            limits=httpx.Limits(max_connections=MAX_CONNECTIONS),
            # A redirect would carry texts and key to a place nobody configured.
            follow_redirects=False,
            # Addresses come from settings alone, not from proxy variables of the environment.
            trust_env=False,
        )

    async def post(self, path: str, body: dict[str, Any], *, max_bytes: int) -> Any:
        """The decoded reply.

        Raises:
            DependencyDown: as `down`: no connection, slow, 429, 5xx, refused key, wrong path,
                a reply above `max_bytes` or not JSON.
            InvalidInput: the server refuses these texts (400, 422); TooLarge for 413.
        """
        try:
            async with self._client.stream(
                "POST",
                self._url + path,
                content=orjson.dumps(body),
                headers={"Content-Type": "application/json"},
            ) as response:
                await self._check(response, path)
                raw = await self._read(response, max_bytes)
        except httpx.HTTPError as error:
            raise self._down(
                f"No answer from the model server ({type(error).__name__}): check "
                f"{self._setting}.url and that the server runs."
            ) from error
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise self._down(
                f"The model server's reply is not JSON: check {self._setting}.url and "
                f"{self._setting}.api."
            ) from error

    async def close(self) -> None:
        await self._client.aclose()

    async def _check(self, response: httpx.Response, path: str) -> None:
        status = response.status_code
        if status == 200:
            return
        if status == 413:
            raise TooLarge("The model server refuses so much text; shorten it.")
        if status in REFUSED:
            raise InvalidInput(f"The model server refuses the text (status {status}); change it.")
        if status in (401, 403):
            raise self._down(
                f"The model server refuses the key (status {status}): set {self._setting}.api_key."
            )
        if status in BUSY:
            raise self._down(
                f"The model server is busy (status {status}); retry later.",
                retry_after_s=_retry_after_s(response),
            )
        if status >= 500 and OOM_MARK in (await self._read(response, ERROR_BYTES)).lower():
            raise self._down("The batch did not fit the server's memory.", code=OUT_OF_MEMORY)
        raise self._down(
            f"The model server answers {status} at {path}: check {self._setting}.url, "
            f"{self._setting}.api and the server's log."
        )

    async def _read(self, response: httpx.Response, max_bytes: int) -> bytes:
        raw = bytearray()
        async for part in response.aiter_bytes():
            raw += part
            if len(raw) > max_bytes:
                raise self._down(
                    f"The model server's reply is above {max_bytes} bytes: check "
                    f"{self._setting}.url and {self._setting}.api."
                )
        return bytes(raw)


def _retry_after_s(response: httpx.Response) -> float | None:
    """The header in seconds; its date form is not used by model servers."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
