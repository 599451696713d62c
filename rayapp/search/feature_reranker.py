"""Reranking backend over features and a linear model: no server, no GPU, a few milliseconds."""

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path

import rayapp.inference.models
from rayapp.core.errors import ConfigError, RerankerDown
from rayapp.inference.backends.static_model import find_model, load_static_model
from rayapp.search.rules.rerank_features import Features, RerankModel, parse_rerank_model
from rayapp.search.rules.rerank_words import WordTable

BUNDLED = Path(rayapp.inference.models.__file__).with_name("reranker_features.json")
# Up to here reading the texts for the first time takes about 10 ms (measured, 30 paragraphs),
# which is what a thread costs while other requests run; longer texts would hold up the event loop.
INLINE_CHARS = 40_000


class FeaturesRerankBackend:
    """`InlineRerankBackend`. One call compares the candidates with each other."""

    def __init__(self, static_model: str = "", weights: Path = BUNDLED) -> None:
        """Loads weights and word vectors (0.1 s). `static_model` empty: the one of the weights.

        Raises ConfigError: weights or vectors are missing, broken or made for another version.
        """
        self._model = read_rerank_model(weights)
        vectors = load_static_model(find_model(static_model or self._model.static_model))
        self._table = WordTable(vectors.sums)
        self._features = Features(self._table)
        # An abandoned call goes on in its thread while the next one comes.
        self._one_at_a_time = threading.Lock()
        self.name = self._model.name

    async def logits(self, query: str, documents: Sequence[str]) -> list[float]:
        found = self.at_once(query, documents)
        if found is not None:
            return found
        return await asyncio.to_thread(self._waited_for, query, documents)

    def at_once(self, query: str, documents: Sequence[str]) -> list[float] | None:
        """None: the texts are long, or a call in a thread has the table."""
        small = sum(map(len, documents)) <= INLINE_CHARS
        if not small or not self._one_at_a_time.acquire(blocking=False):
            return None
        try:
            return self._logits(query, documents)
        finally:
            self._one_at_a_time.release()

    def _waited_for(self, query: str, documents: Sequence[str]) -> list[float]:
        with self._one_at_a_time:
            return self._logits(query, documents)

    def _logits(self, query: str, documents: Sequence[str]) -> list[float]:
        try:
            return self._model.logits(self._features.of(query, documents))
        # Broad: a search must not fail for its last touch.
        except Exception as error:
            self._table.clear()  # it may be half written
            raise RerankerDown(f"The feature reranker failed ({error!r}).") from error

    async def close(self) -> None:
        return None


def read_rerank_model(path: Path) -> RerankModel:
    """The weights in a file. ConfigError when there are none or they are not valid."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path.name} of the reranker cannot be read ({error}): make it again with "
            "`python -m jobs.build.reranker`."
        ) from error
    return parse_rerank_model(tree)
