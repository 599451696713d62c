"""Out-of-memory recovery: a batch that cannot fit is halved until it does, and all are answered."""

import gc
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rayapp.inference.backends.model_thread import Precision
from tests.bench.encoder_gateways import Embedding, Product, Reranking
from tests.bench.encoder_work import Work, batches_seen

# Padded tokens that the gateway may plan with: as good as none, so that it has to learn.
NO_BUDGET = 1 << 30
FITS = 4  # the memory is for this part of the texts at once
MARGIN = 1.5  # over what that part needs: blocks of the allocator are not exactly full
# Answers of batches of another size differ by rounding, less than the formats do: float16 is .004
# from float32 and bfloat16 .04, where two texts are .4 apart (measured, 24 layers of 1024).
TOLERANCE = {"float32": 1e-3, "float16": 3e-2, "bfloat16": 1e-1}


async def recovery(
    kind: type[Embedding] | type[Reranking],
    folder: Path,
    work: Work,
    precision: Precision,
    *,
    limit: bool,
) -> dict[str, Any]:
    """Sizes of the forward passes that were launched (a GPU replays some, unseen), and how far
    the answers are from those of single texts.

    `limit`: the GPU really has too little memory; otherwise the model raises torch's error.
    """
    product = kind(folder, len(work.texts), precision, max_tokens=NO_BUDGET)
    torch = importlib.import_module("torch")
    try:
        wanted = [(await product.at_once(work.part([place])))[0] for place in work.places]
        with (
            _short_memory(torch, product, work, limit) as before,
            batches_seen(product.module, before) as seen,
        ):
            answers = await product.at_once(work)
            first, failed = list(seen), _did_not_fit(product)
            again = await product.at_once(work)
            later = list(seen)[len(first) :]
        form = str(next(product.module.parameters()).dtype).removeprefix("torch.")
        furthest = max(_distance(answers, wanted), _distance(again, wanted))
        return {
            "how": "a memory limit" if limit else "an injected torch.OutOfMemoryError",
            "texts": len(work.texts),
            "answered": len(answers),
            "did_not_fit": failed,
            "batches": first,
            "batches_next_time": later,
            "did_not_fit_next_time": _did_not_fit(product) - failed,
            "furthest": furthest,
            "tolerance": TOLERANCE[form],
            "recovered": failed > 0
            and _did_not_fit(product) == failed
            and len(answers) == len(again) == len(work.texts)
            and furthest <= TOLERANCE[form],
        }
    finally:
        await product.close()


def _did_not_fit(product: Product) -> int:
    counters = product.metrics.counters
    return int(counters["embed_oom", ()] + counters["rerank_oom", ()])


def _distance(answers: Sequence[Any], wanted: Sequence[Any]) -> float:
    """Largest difference of a vector or a score from the one it should be."""
    pairs = zip(answers, wanted, strict=True)
    return max(float(np.linalg.norm(np.subtract(one, two))) for one, two in pairs)


Before = Callable[[int, int], None]


def _short_memory(
    torch: Any, product: Product, work: Work, limit: bool
) -> AbstractContextManager[Before]:
    """While it is open, a forward pass over all texts does not fit and one over a part does."""
    part = work.part(work.places[: max(1, len(work.texts) // FITS)])
    return _limited_gpu(torch, product, part) if limit else _injected(torch, part)


@contextmanager
def _limited_gpu(torch: Any, product: Product, part: Work) -> Iterator[Before]:
    """The allocator may not take more than the weights and `part` need."""
    cuda = torch.cuda
    gc.collect()  # a model that is no longer used would leave later, and with it the shortage
    cuda.empty_cache()
    held = cuda.memory_reserved()
    cuda.reset_peak_memory_stats()
    product.compute(product.prepare(part.inputs))
    needed = cuda.max_memory_reserved() - held
    cuda.empty_cache()
    total = cuda.get_device_properties(0).total_memory
    cuda.set_per_process_memory_fraction(min(1.0, (held + MARGIN * needed) / total))
    try:
        yield lambda _texts, _tokens: None
    finally:
        cuda.set_per_process_memory_fraction(1.0)


@contextmanager
def _injected(torch: Any, part: Work) -> Iterator[Before]:
    """The error a GPU gives, from the forward pass, above the padded tokens of `part`."""
    most = MARGIN * max(part.tokens) * len(part.texts)

    def refuse(_texts: int, tokens: int) -> None:
        if tokens > most:
            raise torch.OutOfMemoryError(f"Injected: {tokens} padded tokens, {most:.0f} fit.")

    yield refuse
