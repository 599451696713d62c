"""Embedding backend over a model server: dicta-retrieval, text-embeddings-inference, OpenAI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rayapp.core.errors import BadVector, EmbedderDown
from rayapp.core.vectors import Vector
from rayapp.inference.backends.http_json import JsonServer
from rayapp.inference.ports import EmbedderInfo, TextKind

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
