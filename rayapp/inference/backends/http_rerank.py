"""Reranking backend over a model server: `/v1/rerank` (dicta-retrieval) and TEI `/rerank`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from rayapp.core.errors import RerankerDown
from rayapp.inference.backends.http_json import JsonServer

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
