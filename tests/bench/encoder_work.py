"""What an encoder is measured with: texts of known lengths, and the bare forward pass over them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from rayapp.core.batching import plan_batches
from tests.bench.encoder_model import (
    PAIR_TOKENS,
    SPECIAL_TOKENS,
    fact_texts,
    mixed_lengths,
    text_of,
)

MIXED = "mixed"
INPUTS = ("input_ids", "attention_mask")
LONGEST = 512  # tokens of a text among the mixed ones, where no other length is measured
QUERY_TOKENS = 12  # of the question of a rerank


@dataclass(frozen=True, slots=True)
class Work:
    """Texts for the embedder, or one question and documents for the reranker.

    Attributes:
        name: the length, or `mixed`.
        texts: of all kinds, no two of them equal.
        query: empty for the embedder.
        tokens: what the model reads of each text, special tokens and the question included.
    """

    name: str
    texts: tuple[str, ...]
    query: str
    tokens: tuple[int, ...]

    @property
    def places(self) -> range:
        return range(len(self.texts))

    def part(self, places: Sequence[int]) -> Work:
        """The same with the texts at `places` alone."""
        return replace(
            self,
            texts=tuple(self.texts[place] for place in places),
            tokens=tuple(self.tokens[place] for place in places),
        )

    @property
    def inputs(self) -> list[Any]:
        return [(self.query, text) for text in self.texts] if self.query else list(self.texts)


def works(
    folder: Path, lengths: Sequence[str], *, count: Callable[[int], int], pairs: bool, seed: int
) -> Iterator[Work]:
    """One for each of `lengths` (tokens, or `mixed`); `count` texts by the mean length."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    source = fact_texts(seed)
    longest = max((int(length) for length in lengths if length != MIXED), default=LONGEST)
    query = text_of(tokenizer, QUERY_TOKENS, source) if pairs else ""
    spent = QUERY_TOKENS + PAIR_TOKENS if pairs else SPECIAL_TOKENS
    for name in lengths:
        if name == MIXED:
            sample = mixed_lengths(1_000, longest, seed)
            sizes = mixed_lengths(count(sum(sample) // len(sample)), longest, seed)
        else:
            sizes = [int(name)] * count(int(name))
        # Of a pair the document has what the question leaves, but at least a word or two.
        texts = tuple(text_of(tokenizer, max(2, size - spent), source) for size in sizes)
        inputs = [(query, text) for text in texts] if pairs else list(texts)
        yield Work(name, texts, query, tuple(len(e.ids) for e in tokenizer.encode_batch(inputs)))


class Bare:
    """The model and nothing else: tokens lie on the device, batches are sorted by true length."""

    def __init__(self, module: Any) -> None:
        """`module`: the product's, so that both run the same weights, device and format."""
        self._torch = importlib.import_module("torch")
        self._model = transformer_of(module)
        self.device = str(next(self._model.parameters()).device)

    def batches(self, prepare: Callable[[Sequence[Any]], Any], work: Work, size: int) -> list[Any]:
        """As many texts together as the gateway puts, and no padding that sorting avoids."""
        inputs = work.inputs
        planned = plan_batches(work.tokens, size, 1 << 30)
        return [
            {name: value.to(self.device) for name, value in one.feed.items() if name in INPUTS}
            for places in planned
            for one in prepare([inputs[place] for place in places])
        ]

    def seconds(self, batches: Sequence[Any]) -> float:
        begun = time.perf_counter()
        with self._torch.inference_mode():
            for batch in batches:
                self._model(**batch)
        self.wait()
        return time.perf_counter() - begun

    def wait(self) -> None:
        """The device works on after a call returns."""
        if self.device != "cpu":
            self._torch.cuda.synchronize()


def transformer_of(module: Any) -> Any:
    """The model of the transformers package inside a module of sentence-transformers."""
    first = module[0]
    return first.model if hasattr(first, "model") else first.auto_model


@contextmanager
def batches_seen(module: Any, before: Callable[[int, int], None]) -> Iterator[list[int]]:
    """Texts of every forward pass; `before` gets texts and padded tokens, and may raise."""
    seen: list[int] = []

    def hook(_module: Any, args: tuple[Any, ...]) -> None:
        ids = args[0]["input_ids"]
        seen.append(int(ids.shape[0]))
        before(int(ids.shape[0]), int(ids.numel()))

    handle = module.register_forward_pre_hook(hook)
    try:
        yield seen
    finally:
        handle.remove()
