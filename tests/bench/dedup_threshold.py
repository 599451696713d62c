"""From which cosine on do two facts say the same? Measured on `dedup_pairs.yaml` and the held out.

Prints, for each language and threshold, how many of the pairs that say the same would merge and
how many of those that do not, by the cosine alone and with the cohesion check of
`rayapp.learning.rules.dedup` on top.

    python -m tests.bench.dedup_threshold            # the bundled static model
    RAYAPP_EMBEDDING__BACKEND=http ... python -m tests.bench.dedup_threshold
"""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from rayapp.container.inference import open_embedding_backend
from rayapp.core.settings.load import load_settings
from rayapp.inference.ports import EmbeddingBackend
from rayapp.learning.rules.dedup import told_apart
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item

PAIRS = Path(__file__).with_name("dedup_pairs.yaml")
HELD_OUT = Path(__file__).with_name("dedup_pairs_held_out.yaml")
SAME = "same"
THRESHOLDS = (0.80, 0.85, 0.90, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995)
# Any cosine passes it: what is left is the check of the words.
NO_DISTANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Pair:
    """`kind` is `same`, or what tells the two apart."""

    lang: str
    kind: str
    texts: tuple[str, str]

    @property
    def same(self) -> bool:
        return self.kind == SAME

    @property
    def coherent(self) -> bool:
        """The cohesion check would let the two merge, were they near enough."""
        one, other = (an_item(tier=Tier.MEMORY_BANK, text=text) for text in self.texts)
        return told_apart(one, other, 1.0, NO_DISTANCE) is None


@dataclass(frozen=True, slots=True)
class Measured:
    pair: Pair
    cosine: float


def load_pairs(*files: Path) -> list[Pair]:
    """Of both files, when none is named."""
    pairs = []
    for file in files or (PAIRS, HELD_OUT):
        for lang, groups in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            for kind, rows in {SAME: groups[SAME], **groups["other"]}.items():
                pairs += [Pair(lang, kind, (one, other)) for one, other in rows]
    return pairs


async def measure(backend: EmbeddingBackend, pairs: Sequence[Pair]) -> list[Measured]:
    measured = []
    for pair in pairs:
        one, other = await backend.encode(pair.texts, "passage")
        cosine = float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
        measured.append(Measured(pair, cosine))
    return measured


def rates(rows: Sequence[Measured], threshold: float, *, coherent: bool) -> tuple[int, int]:
    """(pairs that say the same, pairs that do not) which would merge."""
    merged = [r for r in rows if r.cosine >= threshold and (r.pair.coherent or not coherent)]
    right = sum(row.pair.same for row in merged)
    return right, len(merged) - right


def table(rows: Sequence[Measured]) -> list[str]:
    same = sum(row.pair.same for row in rows)
    lines = [
        f"{same} pairs say the same, {len(rows) - same} do not",
        f"{'cosine':>7} | {'alone: recall, precision, wrong':>32} | "
        f"{'with cohesion: recall, precision, wrong':>40}",
    ]
    for threshold in THRESHOLDS:
        cells = []
        for coherent in (False, True):
            right, wrong = rates(rows, threshold, coherent=coherent)
            precision = f"{right / (right + wrong):.2f}" if right + wrong else "-"
            cells.append(f"{right / same:.2f} {precision:>5} {wrong:>3}")
        lines.append(f"{threshold:>7} | {cells[0]:>32} | {cells[1]:>40}")
    return lines


def spread(rows: Sequence[Measured]) -> str:
    low, middle, high = np.percentile([row.cosine for row in rows], [5, 50, 95])
    return f"5 % {low:.3f}, median {middle:.3f}, 95 % {high:.3f}"


async def main() -> None:
    backend, _ = open_embedding_backend(load_settings(env=dict(os.environ)).embedding)
    rows = await measure(backend, load_pairs())
    print((await backend.info()).model)
    for lang in sorted({row.pair.lang for row in rows}):
        mine = [row for row in rows if row.pair.lang == lang]
        print(f"\n== {lang}")
        print("say the same:", spread([row for row in mine if row.pair.same]))
        print("do not:      ", spread([row for row in mine if not row.pair.same]))
        print("\n".join(table(mine)))
        print("wrong and coherent, nearest first:")
        wrong = [row for row in mine if not row.pair.same and row.pair.coherent]
        for row in sorted(wrong, key=lambda one: -one.cosine):
            print(f"  {row.cosine:.3f} {row.pair.kind}: {' / '.join(row.pair.texts)}")
    await backend.close()


if __name__ == "__main__":
    asyncio.run(main())
