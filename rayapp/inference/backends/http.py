"""Embedding and reranking over a model server: one table of errors, replies of bounded size."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
import numpy as np
import orjson

from rayapp.core.batching import OUT_OF_MEMORY
from rayapp.core.errors import (
    BadVector,
    ConfigError,
    DependencyDown,
    EmbedderDown,
    InvalidInput,
    RerankerDown,
    TooLarge,
)
from rayapp.core.vectors import Vector
from rayapp.inference.ports import EmbedderInfo, TextKind

CONNECT_TIMEOUT_S = 2.0
# The server says that this request is wrong, not that it is in trouble.
REFUSED = frozenset({400, 413, 422})
BUSY = frozenset({429, 503})
# What torch, CUDA and llama.cpp servers pass on in the text of a 5xx.
OOM_MARK = b"out of memory"
# What llama.cpp says, with status 500, of one text that is longer than its physical batch.
TOO_LONG_MARK = b"too large to process"
ERROR_BYTES = 64 * 1024
# Of what a server says about its refusal.
QUOTED_CHARS = 300


class JsonServer:
    """One model server. `down` is the error class of its trouble."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str,
        timeout_s: float,
        down: type[DependencyDown],
        setting: str,
        address: str = "",
        quotes: bool = False,
    ) -> None:
        """`timeout_s` bounds each wait for bytes; `setting` is the section that messages name, and
        `address` the one setting in it that says whom to ask and how, where it has no `url` and
        `api`; `quotes`: a refusal repeats what the server says of it."""
        self._address = address or f"{setting}.url"
        self._form = address or f"{setting}.url and {setting}.api"
        try:
            valid = httpx.URL(url).scheme in ("http", "https")
        except httpx.InvalidURL:
            valid = False
        if not valid:
            raise ConfigError(f"{self._address} must be an http:// or https:// address.")
        self._url = url.rstrip("/")
        self._down = down
        self._setting = setting
        self._quotes = quotes
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
            # Every caller limits its calls itself (models.concurrency, http.max_in_flight, the
            # traits of a gateway): a lower limit here would let them wait as if for the server.
            limits=httpx.Limits(max_connections=None),
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
        return await self._json("POST", path, body, max_bytes)

    async def get(self, path: str, *, max_bytes: int) -> Any:
        """The decoded reply. Raises as `post`."""
        return await self._json("GET", path, None, max_bytes)

    @asynccontextmanager
    async def opened(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """A reply of status 200 whose body is still to come. Raises as `post`, while it is read
        too."""
        try:
            async with self._client.stream(
                method,
                self._url + path,
                content=_written(body) if body is not None else None,
                headers={"Content-Type": "application/json"} if body is not None else {},
            ) as response:
                await self._check(response, path)
                yield response
        except httpx.HTTPError as error:
            raise self._down(
                f"No answer from the model server ({type(error).__name__}): check "
                f"{self._address} and that the server runs."
            ) from error

    async def _json(
        self, method: str, path: str, body: dict[str, Any] | None, max_bytes: int
    ) -> Any:
        async with self.opened(method, path, body) as response:
            raw = await self._read(response, max_bytes)
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise self._down(
                f"The model server's reply is not JSON: check {self._form}."
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
            said = self._said(await self._read(response, ERROR_BYTES))
            raise InvalidInput(
                f"The model server refuses the text (status {status}); change it.{said}"
            )
        if status in (401, 403):
            raise self._down(
                f"The model server refuses the key (status {status}): set {self._setting}.api_key."
            )
        if status in BUSY:
            raise self._down(
                f"The model server is busy (status {status}); retry later.",
                retry_after_s=_retry_after_s(response),
            )
        raw = await self._read(response, ERROR_BYTES) if status >= 500 or self._quotes else b""
        if status >= 500 and OOM_MARK in raw.lower():
            raise self._down("The batch did not fit the server's memory.", code=OUT_OF_MEMORY)
        if status >= 500 and TOO_LONG_MARK in raw.lower():
            raise TooLarge("The model server refuses so much text; shorten it.")
        raise self._down(
            f"The model server answers {status} at {path}: check {self._form}, and the server's "
            f"log.{self._said(raw)}"
        )

    def _said(self, raw: bytes) -> str:
        if not self._quotes:
            return ""
        try:
            error = orjson.loads(raw)["error"]
            text = str(error["message"] if isinstance(error, dict) else error)
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return ""
        return f" It says: {' '.join(text.split())[:QUOTED_CHARS]}"

    async def _read(self, response: httpx.Response, max_bytes: int) -> bytes:
        raw = bytearray()
        async for part in response.aiter_bytes():
            raw += part
            if len(raw) > max_bytes:
                raise self._down(
                    f"The model server's reply is above {max_bytes} bytes: check {self._form}."
                )
        return bytes(raw)


def _written(body: dict[str, Any]) -> bytes:
    """As JSON. Half an emoji, where a program cut a text, has no form in UTF-8: it becomes "?"."""
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        return json.dumps(body, ensure_ascii=False).encode(errors="replace")


def _retry_after_s(response: httpx.Response) -> float | None:
    """The header in seconds; its date form is not used by model servers."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None


EmbeddingApi = Literal["dicta", "tei", "openai"]
# 8,192 values of 25 characters and an echo of the text: larger replies are a fault or an attack.
REPLY_BYTES_PER_TEXT = 512 * 1024


class HttpEmbeddingBackend:
    """`EmbeddingBackend`. A vector that is no list of numbers comes back empty: a bad vector."""

    def __init__(
        self,
        url: str,
        *,
        api: EmbeddingApi,
        model: str,
        api_key: str = "",
        dims: int = 0,
        timeout_s: float = 10.0,
    ) -> None:
        """`dims` 0: the size is asked with one text, once, when `info` is first called."""
        self._api = api
        self._model = model
        self._dims = dims
        # An OpenAI base URL is written with and without its version.
        base = url.rstrip("/").removesuffix("/v1") if api == "openai" else url
        self._server = JsonServer(
            base, api_key=api_key, timeout_s=timeout_s, down=EmbedderDown, setting="embedding"
        )

    async def info(self) -> EmbedderInfo:
        """EmbedderDown while the size is not known and the server is away."""
        if self._dims == 0:
            (vector,) = await self.encode(["dimensions"], "query")
            if vector.size == 0:
                raise EmbedderDown("The model server gives no usable vector: check embedding.api.")
            self._dims = int(vector.size)
        return EmbedderInfo(backend=f"http-{self._api}", model=self._model, dims=self._dims)

    async def encode(self, texts: Sequence[str], kind: TextKind) -> list[Vector]:
        """One request. EmbedderDown; BadVector: not one vector per text; InvalidInput: refused."""
        path, body = self._request(list(texts))
        max_bytes = REPLY_BYTES_PER_TEXT * (len(texts) + 1)
        reply = await self._server.post(path, body, max_bytes=max_bytes)
        try:
            found = self._vectors(reply)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise EmbedderDown(
                "The model server's reply has another shape: check embedding.api."
            ) from error
        if len(found) != len(texts):
            raise BadVector(f"The model server gave {len(found)} vectors for {len(texts)} texts.")
        return [_to_vector(values) for values in found]

    async def close(self) -> None:
        await self._server.close()

    def _request(self, texts: list[str]) -> tuple[str, dict[str, Any]]:
        if self._api == "dicta":
            wanted = {"include_dense": True, "include_sparse": False, "include_colbert": False}
            return "/embeddings", {"texts": texts, **wanted}
        if self._api == "tei":
            return "/embed", {"inputs": texts, "truncate": True}
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        return "/v1/embeddings", body

    def _vectors(self, reply: Any) -> list[Any]:
        if self._api == "dicta":
            return [entry["dense"] for entry in reply["embeddings"]]
        if self._api == "tei":
            if not isinstance(reply, list):
                raise TypeError("expected a list")
            return reply
        rows = {int(entry["index"]): entry["embedding"] for entry in reply["data"]}
        return [rows[position] for position in range(len(reply["data"]))]


def _to_vector(values: Any) -> Vector:
    """float32 `[d]`, or an empty vector for anything but a flat list of numbers."""
    empty: Vector = np.empty(0, dtype=np.float32)
    if not isinstance(values, list):
        return empty
    try:
        array = np.asarray(values)
    except ValueError:  # ragged nesting
        return empty
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        return empty
    with np.errstate(over="ignore"):  # becomes infinity, which the gateway refuses
        return array.astype(np.float32)


RerankApi = Literal["rerank", "tei"]
# A score needs 100 bytes; some servers echo the document, at most 4,000 characters of it, escaped.
REPLY_BYTES_PER_DOCUMENT = 64 * 1024


class HttpRerankBackend:
    """`RerankBackend`. Scores are passed on as they come: logits by the contract."""

    def __init__(
        self, url: str, *, api: RerankApi, model: str, api_key: str = "", timeout_s: float = 2.0
    ) -> None:
        self.name = f"http-{api}"
        self._api = api
        self._model = model
        self._server = JsonServer(
            url.rstrip("/").removesuffix("/v1"),
            api_key=api_key,
            timeout_s=timeout_s,
            down=RerankerDown,
            setting="reranker",
        )

    async def logits(self, query: str, documents: Sequence[str]) -> list[float]:
        """One request. RerankerDown: away, or not one score per document; InvalidInput: refused."""
        path, body = self._request(query, list(documents))
        max_bytes = REPLY_BYTES_PER_DOCUMENT * (len(documents) + 1)
        reply = await self._server.post(path, body, max_bytes=max_bytes)
        try:
            rows = reply if self._api == "tei" else reply["results"]
            key = "score" if self._api == "tei" else "relevance_score"
            scores = {int(row["index"]): float(row[key]) for row in rows}
            if len(rows) != len(documents):
                raise IndexError("not one score per document")
            return [scores[position] for position in range(len(documents))]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise RerankerDown(
                "The rerank server did not give one score per document: check reranker.api."
            ) from error

    async def close(self) -> None:
        await self._server.close()

    def _request(self, query: str, documents: list[str]) -> tuple[str, dict[str, Any]]:
        if self._api == "tei":
            return "/rerank", {
                "query": query,
                "texts": documents,
                "raw_scores": True,
                "truncate": True,
            }
        body = {"query": query, "documents": documents, "top_n": len(documents)}
        return "/v1/rerank", {**body, "model": self._model} if self._model else body
