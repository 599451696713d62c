"""What the feature reranker gains over no reranker, question by question, in the lab.

    python -m jobs.rerank_report --data DIR [--model NAME] [--recipe NAME]

LoCoMo is judged by the shipped weights, which never saw it; two constants of their build were
chosen by a look at it. HeQ, the questions about open data and
our own texts are part of what they learned from: these rows are cross-validated, with all questions
of one article, dataset or memory in the same fold. A gain is the mean of the differences per
question with its 95 % bootstrap interval.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence
from pathlib import Path

from jobs.suites.heq import FILE as HEQ_FILE
from jobs.suites.locomo import load_locomo
from jobs.suites.suite import read_json
from rayapp import bootstrap
from rayapp.adapters.inference.features_rerank import BUNDLED, read_rerank_model
from rayapp.adapters.inference.static_model import find_model, load_static_model
from rayapp.domain.evaluation import METRICS, Judged, estimate
from rayapp.domain.retrieval.recipes import RerankBlend
from rayapp.models.build_reranker import (
    RECIPE,
    STATIC_MODEL,
    Example,
    blended,
    examples_of,
    fit,
    source_of,
)
from rayapp.models.reranker_examples import load_examples

FOLDS = 5
SHOWN = ("R@1", "hit@5", "hit@10", "MRR")
LOCOMO, ADVERSARIAL = "LoCoMo 1-4", "LoCoMo 5"
Pairs = list[tuple[Judged, Judged]]


def fold_of(name: str) -> int:
    return zlib.crc32(name.encode("utf-8")) % FOLDS


def articles(data: Path) -> dict[str, str]:
    """Question of HeQ to its article."""
    return {
        str(row["id"]): str(article["title"])
        for article in read_json(data / HEQ_FILE, "HeQ")["data"]
        for paragraph in article["paragraphs"]
        for row in paragraph["qas"]
    }


def cross_validated(
    examples: Sequence[Example], titles: dict[str, str], blend: RerankBlend
) -> dict[str, Pairs]:
    """Before and after per source, each example reranked by a model that never saw its group."""
    fold = [fold_of(titles.get(one.judged.question_id, one.judged.gold[0])) for one in examples]
    pairs: dict[str, Pairs] = {}
    for out in range(FOLDS):
        model = fit([one for one, at in zip(examples, fold, strict=True) if at != out], blend)
        for one, at in zip(examples, fold, strict=True):
            if at == out:
                after = blended(one, model, blend)
                pairs.setdefault(source_of(one), []).append((one.judged, after))
    return pairs


def table(name: str, pairs: Pairs) -> str:
    """One line per metric: before, after, and the gain with its interval."""
    lines = [f"{name}: {len(pairs)} questions"]
    for metric in SHOWN:
        before = [METRICS[metric](one) for one, _ in pairs]
        after = [METRICS[metric](one) for _, one in pairs]
        gain = estimate([b - a for a, b in zip(before, after, strict=True)])
        lines.append(
            f"  {metric:<7} {estimate(before).mean:.4f} -> {estimate(after).mean:.4f}"
            f"   {gain.mean:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--model", default=STATIC_MODEL, help="static model of both arms")
    parser.add_argument("--recipe", default=RECIPE)
    parser.add_argument("--weights", type=Path, default=BUNDLED)
    arguments = parser.parse_args()
    recipe = bootstrap.load_texts().recipes[arguments.recipe]
    static = load_static_model(find_model(arguments.model))
    weights = read_rerank_model(arguments.weights)
    suite = load_locomo(arguments.data)
    report: dict[str, Pairs] = {LOCOMO: [], ADVERSARIAL: []}
    for one in examples_of(suite.corpora, static, recipe):
        headline = suite.headline is None or one.judged.category in suite.headline
        after = blended(one, weights, recipe.rerank)
        report[LOCOMO if headline else ADVERSARIAL].append((one.judged, after))
    corpora = load_examples(arguments.data)
    examples = [one for corpus in corpora for one in examples_of([corpus], static, recipe)]
    report |= cross_validated(examples, articles(arguments.data), recipe.rerank)
    for name, pairs in report.items():
        print(table(name, pairs))


if __name__ == "__main__":
    main()
