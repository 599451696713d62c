"""A local encoder and cross-encoder behind their gateways: `python -m tests.bench.encoder`.

An XLM-RoBERTa with random weights stands for bge-m3 and its reranker, so nothing is fetched. What
the gateways give is a ratio to the bare forward pass: the same module, device and number format,
tokens ready on the device, batches as large and sorted by length. A round takes every way in turn,
so that a busy machine slows all of them. Then memory is made short and both gateways must answer
all the same. Needs `rayapp[gpu]`; without a GPU it measures a smaller model. Exit codes: 0 done,
2 bad arguments or no `rayapp[gpu]`, 3 a gateway did not answer with little memory, 4 a gateway is
away.
"""

import argparse
import asyncio
import importlib
import importlib.util
import statistics
import sys
import tempfile
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from jobs.ending import DONE, WITH_FAILURES, run_command
from jobs.suites.outputs import put_json
from rayapp.core.errors import ConfigError
from rayapp.inference.backends.model_thread import torch_device
from tests.bench.arguments import positive
from tests.bench.encoder_gateways import Embedding, Product, Reranking
from tests.bench.encoder_memory import recovery
from tests.bench.encoder_model import SIZES, write_cross_encoder, write_encoder
from tests.bench.encoder_work import MIXED, Bare, Work, works

LENGTHS = ("16", "64", "256", "512", MIXED)
ROUNDS = 5
SEED = 7
# Tokens of one measurement: about a second of a 2-core CPU with `small`, of a GPU with `bge-m3`.
TOKENS = {"cpu": 8_192, "cuda": 262_144}
# Texts of one measurement: several batches where a batch is quick.
FEWEST, MOST = {"cpu": 16, "cuda": 256}, 4_096
MOST_OF_A_BATCH = 4_096  # the bound of the setting embedding.batch.max_size
OOM_TEXTS = 64
OOM_TOKENS = {"cpu": "32", "cuda": "512"}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--size", choices=list(SIZES), help="default: bge-m3 on a GPU, else small")
    made.add_argument(
        "--lengths", nargs="+", type=length, default=list(LENGTHS), help="tokens, or mixed"
    )
    made.add_argument("--tokens", type=positive, help="tokens of one measurement")
    made.add_argument("--batch", type=batch_size, default=64, help="texts of a batch (embedder)")
    made.add_argument("--rerank-batch", type=batch_size, default=32)
    made.add_argument(
        "--precision", default="auto", choices=["auto", "float32", "float16", "bfloat16"]
    )
    made.add_argument("--rounds", type=positive, default=ROUNDS)
    made.add_argument("--keep", type=Path, help="folder of the models, kept for the next run")
    made.add_argument("--out", type=Path, help="report as JSON")
    return made


def length(text: str) -> str:
    """Tokens of a text, or a mixture."""
    return text if text == MIXED else str(positive(text))


def batch_size(text: str) -> int:
    """As many texts as the settings take for a batch."""
    value = positive(text)
    if value > MOST_OF_A_BATCH:
        raise argparse.ArgumentTypeError(f"use {MOST_OF_A_BATCH} or less, not {text!r}")
    return value


async def measure(
    product: Product, work: Work, batch: int, rounds: int, tick: Any
) -> list[dict[str, Any]]:
    """A row per way of calling: rates, the ratio to the bare pass, and where the time went."""
    bare = Bare(product.module)
    batches = bare.batches(product.prepare, work, batch)
    taken: dict[str, list[float]] = {"bare": [], **{way: [] for way in product.ways}}
    spent: dict[tuple[str, str], float] = defaultdict(float)
    for number in range(rounds + 1):  # the first one warms up
        bare_s = await asyncio.to_thread(bare.seconds, batches)
        if number:
            taken["bare"].append(bare_s)
        for name, way in product.ways.items():
            product.spent.clear()
            begun = asyncio.get_running_loop().time()
            answers = await way(work)
            if len(answers) != len(work.texts):
                raise AssertionError(f"{name}: {len(answers)} answers of {len(work.texts)}")
            if number:
                taken[name].append(asyncio.get_running_loop().time() - begun)
                for step, step_s in product.spent.items():
                    spent[name, step] += step_s
        tick()
    return _rows(work, taken, spent)


def _rows(
    work: Work, taken: dict[str, list[float]], spent: dict[tuple[str, str], float]
) -> list[dict[str, Any]]:
    rows = []
    for name, seconds in taken.items():
        middle = statistics.median(seconds)
        ratios = [b / s for b, s in zip(taken["bare"], seconds, strict=True)]
        rows.append(
            {
                "length": work.name,
                "way": name,
                "texts": len(work.texts),
                "texts_per_s": round(len(work.texts) / middle, 1),
                "tokens_per_s": round(sum(work.tokens) / middle, 1),
                "ratio": round(statistics.median(ratios), 3),
                "tokenizer_share": round(spent[name, "prepare"] / sum(seconds), 3),
                "model_share": round(spent[name, "compute"] / sum(seconds), 3),
            }
        )
    return rows


async def run(arguments: argparse.Namespace, folder: Path, progress: Progress) -> dict[str, Any]:
    device = torch_device()
    size = SIZES[arguments.size]
    parts: dict[str, tuple[type[Embedding] | type[Reranking], Any, int]] = {
        "embedding": (Embedding, write_encoder, arguments.batch),
        "reranking": (Reranking, write_cross_encoder, arguments.rerank_batch),
    }
    total = len(parts) * (len(arguments.lengths) * (arguments.rounds + 1) + 2)
    task = progress.add_task("models", total=total)
    report: dict[str, Any] = {
        "device": _device_name(device),
        "size": arguments.size,
        "batch": {"embedding": arguments.batch, "reranking": arguments.rerank_batch},
        "versions": _versions(),
    }

    def tick() -> None:
        progress.advance(task)

    def count(mean: int) -> int:
        return max(FEWEST[device], min(MOST, (arguments.tokens or TOKENS[device]) // mean))

    for number, (part, (kind, write, batch)) in enumerate(parts.items()):
        progress.update(task, description=f"{part}: model")
        path = folder / f"{part}-{arguments.size}"
        if not (path / "config.json").is_file():
            write(path, size, SEED + number)
        tick()
        pairs = kind is Reranking
        product = kind(path, batch, arguments.precision)
        report["precision"] = str(next(product.module.parameters()).dtype).removeprefix("torch.")
        report[part] = []
        for work in works(path, arguments.lengths, count=count, pairs=pairs, seed=SEED):
            progress.update(task, description=f"{part}: {work.name} tokens")
            report[part] += await measure(product, work, batch, arguments.rounds, tick)
        await product.close()
        progress.update(task, description=f"{part}: short memory")
        (work,) = works(
            path, [OOM_TOKENS[device]], count=lambda _: OOM_TEXTS, pairs=pairs, seed=SEED + 1
        )
        del product  # before the next one is loaded
        report[f"{part}_out_of_memory"] = await recovery(
            kind, path, work, arguments.precision, limit=device != "cpu"
        )
        tick()
    return report


def _device_name(device: str) -> str:
    torch = importlib.import_module("torch")
    if device == "cpu":
        return f"cpu, {torch.get_num_threads()} threads"
    return str(torch.cuda.get_device_name(0))


def _versions() -> dict[str, str]:
    names = ("torch", "transformers", "sentence_transformers")
    return {name: str(importlib.import_module(name).__version__) for name in names}


def tables(report: dict[str, Any]) -> list[Table]:
    made = []
    for part in ("embedding", "reranking"):
        table = Table(
            *("tokens", "who calls", "texts/s", "tokens/s", "÷ bare", "tokenizer", "model"),
            title=f"{part}: {report['size']}, {report['precision']}, {report['device']}",
            title_justify="left",
        )
        for row in report[part]:
            table.add_row(
                *(row["length"], row["way"], f"{row['texts_per_s']:.1f}"),
                *(f"{row['tokens_per_s']:.0f}", f"{row['ratio']:.2f}"),
                *(f"{row['tokenizer_share']:.0%}", f"{row['model_share']:.0%}"),
            )
        made.append(table)
    how = report["embedding_out_of_memory"]["how"]
    memory = Table("", "answered", "batches", "next time", "furthest", "recovered",
                   title=f"Out of memory, by {how}", title_justify="left")  # fmt: skip
    for part in ("embedding", "reranking"):
        row = report[f"{part}_out_of_memory"]
        memory.add_row(
            *(part, f"{row['answered']} of {row['texts']}"),
            *(" ".join(map(str, row[key])) for key in ("batches", "batches_next_time")),
            *(f"{row['furthest']:.1e}", "yes" if row["recovered"] else "NO"),
        )
    return [*made, memory]


def ready(arguments: argparse.Namespace) -> None:
    """Fill in the size. Raises ConfigError where the bench cannot run."""
    if importlib.util.find_spec("sentence_transformers") is None:
        raise ConfigError("Install rayapp[gpu]: the encoder runs in torch.")
    arguments.size = arguments.size or ("small" if torch_device() == "cpu" else "bge-m3")
    most = SIZES[arguments.size].positions
    if any(name != MIXED and int(name) > most for name in arguments.lengths):
        raise ConfigError(f"{arguments.size} reads up to {most} tokens: pass smaller --lengths.")


def _run(arguments: argparse.Namespace) -> int:
    ready(arguments)
    console = Console()
    importlib.import_module("transformers").utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory(prefix="rayapp-encoder-") as made:
        folder = arguments.keep or Path(made)
        with Progress(console=console) as progress:
            report = asyncio.run(run(arguments, folder, progress))
    put_json(arguments.out, report)
    for table in tables(report):
        console.print(table)
    recovered = [
        report[f"{part}_out_of_memory"]["recovered"] for part in ("embedding", "reranking")
    ]
    return DONE if all(recovered) else WITH_FAILURES


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
