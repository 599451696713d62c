"""How texts are cut into model calls. A padded batch costs its longest text times its size."""

from collections.abc import Sequence
from dataclasses import dataclass

# `code` of a DependencyDown raised by a backend whose batch did not fit in memory.
OUT_OF_MEMORY = "out_of_memory"
GIB = 1 << 30
# Share of the free GPU memory that batches may plan with; the rest is fragmentation and the
# allocator's own workspace.
GPU_SHARE = 0.8
# Hebrew runs at 2.5 to 2.9 characters per token in multilingual vocabularies and English at
# 4 or more (our measurement), so this overestimates both.
CHARS_PER_TOKEN = 2.5
# Places at which `parts_by_length` may cut a batch: exact for a small one, and half a millisecond.
MOST_PARTS = 32
# Room for the begin and end marks that most tokenizers add.
SPECIAL_TOKENS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendTraits:
    """What a gateway must know of a model backend before its first call.

    Attributes:
        max_tokens: padded tokens of one call (`token_budget`).
        concurrency: calls in flight at once.
        text_tokens: where the model cuts a text, None when it takes any length.
        gathers: one call for many texts is cheaper than many calls, so a batch may wait for more.
    """

    max_tokens: int
    concurrency: int = 1
    text_tokens: int | None = None
    gathers: bool = True


def estimate_tokens(texts: Sequence[str], text_tokens: int | None = None) -> list[int]:
    """Tokens per text from its characters, on the high side, at most `text_tokens` each.

    An estimate, because counting runs the tokenizer a second time (2 ms for 20,000 characters).
    """
    counts = [int(len(text) / CHARS_PER_TOKEN) + SPECIAL_TOKENS for text in texts]
    return counts if text_tokens is None else [min(count, text_tokens) for count in counts]


def plan_batches(token_counts: Sequence[int], max_size: int, max_tokens: int) -> list[list[int]]:
    """Positions of the texts of each batch: neighbours in length, short batches first.

    Every position occurs once. A batch holds at most `max_size` texts and its padded cost is at
    most `max_tokens`; a text above the budget on its own is a batch of one.
    """
    order = sorted(range(len(token_counts)), key=lambda position: token_counts[position])
    if 0 < len(order) <= max_size and token_counts[order[-1]] * len(order) <= max_tokens:
        return [order]
    batches: list[list[int]] = []
    current: list[int] = []
    for position in order:
        # Ascending order: the newest text is the longest of its batch.
        too_dear = token_counts[position] * (len(current) + 1) > max_tokens
        if current and (too_dear or len(current) >= max_size):
            batches.append(current)
            current = []
        current.append(position)
    if current:
        batches.append(current)
    return batches


def parts_by_length(lengths: Sequence[int], pass_tokens: int) -> list[list[int]]:
    """Positions of each forward pass of one batch, by true lengths, short passes first.

    Every position occurs once. The padded tokens of all passes are the fewest possible, where a
    pass costs `pass_tokens` of its own; of more than 32 texts, the fewest over 32 places to cut.
    """
    count = len(lengths)
    order = sorted(range(count), key=lambda position: lengths[position])
    steps = min(count, MOST_PARTS)
    ends = [count * step // steps for step in range(1, steps + 1)]
    # For the first `end` texts: the lowest cost, and where its last pass begins.
    best = {0: (0, 0)}
    for end in ends:
        longest = lengths[order[end - 1]]
        best[end] = min(
            (cost + longest * (end - start) + pass_tokens, start)
            for start, (cost, _) in best.items()
        )
    parts: list[list[int]] = []
    end = count
    while end:
        start = best[end][1]
        parts.append(order[start:end])
        end = start
    return parts[::-1]


def padded_tokens(token_counts: Sequence[int]) -> int:
    return max(token_counts, default=0) * len(token_counts)


def token_budget(free_gpu_bytes: int | None, *, cpu_tokens: int, tokens_per_free_gib: int) -> int:
    """Padded tokens per batch: from free GPU memory, or `cpu_tokens` when None (no GPU)."""
    if free_gpu_bytes is None:
        return cpu_tokens
    return max(1, int(free_gpu_bytes / GIB * GPU_SHARE * tokens_per_free_gib))


def after_out_of_memory(size: int) -> int:
    """The new cap after a batch of `size` (texts or tokens) did not fit."""
    return max(1, size // 2)
