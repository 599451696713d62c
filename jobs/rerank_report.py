"""What the feature reranker gains over no reranker, question by question, in the lab.

    python -m jobs.rerank_report --data DIR [--model NAME] [--recipe NAME] [--out report.json]

LoCoMo is judged by the shipped weights, which never saw it; two constants of their build were
chosen by a look at it. HeQ, the questions about open data and
our own texts are part of what they learned from: these rows are cross-validated, with all questions
of one article, dataset or memory in the same fold. A gain is the mean of the differences per
question with its 95 % bootstrap interval. Exit codes: 0 done, 2 bad arguments.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from jobs.build.reranker import (
    RECIPE,
    STATIC_MODEL,
    Example,
    blended,
    examples_of,
    fit,
    source_of,
)
from jobs.build.reranker_examples import load_examples
from jobs.recipe_names import known_recipes
from jobs.suites.heq import FILE as HEQ_FILE
from jobs.suites.locomo import load_locomo
from jobs.suites.outputs import check_files, put
from jobs.suites.suite import read_json, rows_of
from rayapp.container import bootstrap
from rayapp.core.errors import RayappError
from rayapp.inference.backends.static_model import find_model, load_static_model
from rayapp.local.cli.output import report_console
from rayapp.search.feature_reranker import BUNDLED, read_rerank_model
from rayapp.search.rules.evaluation import METRICS, Estimate, Judged, estimate
from rayapp.search.rules.recipes import Recipe, RerankBlend

FOLDS = 5
DIGITS = 4  # of a reported number
DONE, BAD_ARGUMENTS = 0, 2
SHOWN = ("R@1", "hit@5", "hit@10", "MRR")
LOCOMO, ADVERSARIAL = "LoCoMo 1-4", "LoCoMo 5"
Pairs = list[tuple[Judged, Judged]]


def fold_of(name: str) -> int:
    return zlib.crc32(name.encode("utf-8")) % FOLDS


def articles(data: Path) -> dict[str, str]:
    """Question of HeQ to its article."""
    tree = read_json(data / HEQ_FILE, "HeQ")
    with rows_of(data / HEQ_FILE, "HeQ"):
        return {
            str(row["id"]): str(article["title"])
            for article in tree["data"]
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


def measure(pairs: Pairs) -> dict[str, tuple[Estimate, Estimate, Estimate]]:
    """Metric to before, after, and the gain per question."""
    found = {}
    for metric in SHOWN:
        before = [METRICS[metric](one) for one, _ in pairs]
        after = [METRICS[metric](one) for _, one in pairs]
        gains = [b - a for a, b in zip(before, after, strict=True)]
        found[metric] = (estimate(before), estimate(after), estimate(gains))
    return found


def table(name: str, pairs: Pairs) -> str:
    """One line per metric: before, after, and the gain with its interval."""
    lines = [f"{name}: {len(pairs)} questions"]
    for metric, (before, after, gain) in measure(pairs).items():
        lines.append(
            f"  {metric:<7} {before.mean:.4f} -> {after.mean:.4f}"
            f"   {gain.mean:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]"
        )
    return "\n".join(lines)


def as_json(report: Mapping[str, Pairs], model: str, recipe: str) -> bytes:
    """The same numbers for a program, without any text of a set."""
    sets = {
        name: {
            "questions": len(pairs),
            **{
                metric: {
                    "before": round(before.mean, DIGITS),
                    "after": round(after.mean, DIGITS),
                    "gain": [round(value, DIGITS) for value in (gain.mean, gain.low, gain.high)],
                }
                for metric, (before, after, gain) in measure(pairs).items()
            },
        }
        for name, pairs in report.items()
    }
    made = {"model": model, "recipe": recipe, "sets": sets}
    return orjson.dumps(made, option=orjson.OPT_INDENT_2)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m jobs.rerank_report", description=__doc__)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("--data", type=Path, required=True, help="folder of the sets")
    made.add_argument("--model", default=STATIC_MODEL, help="static model of both arms")
    made.add_argument("--recipe", default=RECIPE, help="recipe of the ranking before")
    made.add_argument("--weights", type=Path, default=BUNDLED, help="weights of the reranker")
    made.add_argument("--out", type=Path, help="JSON report")
    return made


def compare(options: argparse.Namespace, recipe: Recipe) -> dict[str, Pairs]:
    """Before and after per set; every file is read before the first question is ranked.

    Raises:
        ConfigError: a set, the model or the weights are missing or cannot be read.
    """
    static = load_static_model(find_model(options.model))
    weights = read_rerank_model(options.weights)
    suite = load_locomo(options.data)
    corpora, titles = load_examples(options.data), articles(options.data)
    report: dict[str, Pairs] = {LOCOMO: [], ADVERSARIAL: []}
    for one in examples_of(suite.corpora, static, recipe):
        headline = suite.headline is None or one.judged.category in suite.headline
        after = blended(one, weights, recipe.rerank)
        report[LOCOMO if headline else ADVERSARIAL].append((one.judged, after))
    examples = [one for corpus in corpora for one in examples_of([corpus], static, recipe)]
    report |= cross_validated(examples, titles, recipe.rerank)
    return {name: pairs for name, pairs in report.items() if pairs}


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, and turn every expected failure into one sentence and its exit code."""
    options = parser().parse_args(argv)
    console = report_console()
    try:
        (recipe,) = known_recipes(bootstrap.load_texts().recipes, [options.recipe])
        if options.out is not None:
            check_files([options.out])
        report = compare(options, recipe)
        for name, pairs in report.items():
            console.print(table(name, pairs), soft_wrap=True)
        if options.out is not None:
            put(options.out, as_json(report, Path(options.model).name, recipe.name))
    except RayappError as error:
        print(error.message, file=sys.stderr)
        return BAD_ARGUMENTS
    return DONE


if __name__ == "__main__":
    sys.exit(main())
