"""What the feature reranker gains on sets that it did not learn from, question by question.

    python -m jobs.rerank_report --data DIR [--model NAME] [--recipe NAME] [--out report.json]

Leave one set out: LoCoMo, BEAM and ParaShoot are judged by the shipped weights, which never saw
them; HeQ, open data and our own texts by weights that learned from the others alone, the store of
all of them included. Beside each stand plain BM25 and the better of both retrievers by itself. A
gain is the mean of the differences per question with its 95 % bootstrap interval. It runs in one
process without a server. Exit codes: 0 done, 2 bad arguments.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jobs.build.reranker import (
    OWN,
    RECIPE,
    STATIC_MODEL,
    Example,
    blended,
    examples_of,
    fit,
    source_of,
    training,
)
from jobs.build.reranker_examples import CHATS, HEBREW, OPEN_DATA, load_examples
from jobs.ending import DONE, command_parser, run_command
from jobs.recipe_names import known_recipes
from jobs.suites.beam import load_beam, load_beam_exchanges
from jobs.suites.bm25 import PlainBm25
from jobs.suites.locomo import load_locomo
from jobs.suites.mixed import load_mixed
from jobs.suites.outputs import check_files, put_json
from jobs.suites.parashoot import load_parashoot
from jobs.suites.suite import Corpus, Suite
from rayapp.client.progress import Progress
from rayapp.container import bootstrap
from rayapp.inference.backends.static_model import StaticModel, find_model, load_static_model
from rayapp.local.cli.output import report_console, table_of
from rayapp.search.feature_reranker import BUNDLED, read_rerank_model
from rayapp.search.rules.evaluation import METRICS, Judged, estimate
from rayapp.search.rules.recipes import Recipe
from rayapp.search.rules.rerank_features import RerankModel

DIGITS = 4  # of a reported number
SHOWN = ("R@1", "hit@10", "MRR")
# What a set must be above, of hit@10 and MRR: plain BM25 by this much, and not below our better
# retriever by more than that.
OVER_BM25, UNDER_RETRIEVER = 0.02, 0.01
# Sets that the weights learn from, by source.
LEARNED = {"HeQ": HEBREW, "open data": OPEN_DATA, "our texts": OWN, "our chats": CHATS}
MIXED_SOURCE = {"heq": HEBREW}  # by the category of a question of the mixed store


@dataclass(frozen=True, slots=True)
class Answered:
    """One question: what plain BM25, each retriever alone, the ranking and the reranker answer."""

    plain: Judged
    alone: tuple[Judged, Judged]
    before: Judged
    after: Judged


@dataclass(frozen=True, slots=True)
class Asked:
    """`source`: what the weights must not have learned from; None = they never do."""

    example: Example
    plain: Judged
    source: str | None = None


class Weights:
    """Weights that never saw a source: fitted once each, at first use."""

    def __init__(
        self, shipped: RerankModel, corpora: Sequence[Corpus], static: StaticModel, recipe: Recipe
    ) -> None:
        self._static, self._recipe, self._corpora = static, recipe, corpora
        self._known: dict[str | None, RerankModel] = {None: shipped}

    def without(self, source: str | None) -> RerankModel:
        if source not in self._known:
            others = [one for one in self._corpora if source_of(one.name) != source]
            learned: list[Example] = []
            for store in training(others):
                learned += examples_of([store], self._static, self._recipe)
            self._known[source] = fit(learned)
        return self._known[source]


def asked_of(corpora: Sequence[Corpus], static: StaticModel, recipe: Recipe) -> Iterator[Asked]:
    """Each question of the corpora, beside plain BM25 over the same documents."""
    for corpus in corpora:
        plain = PlainBm25(corpus.documents)
        text_of = {one.question_id: one.text for one in corpus.questions}
        for example in examples_of([corpus], static, recipe):
            judged = example.judged
            ranked = plain.rank(text_of[judged.question_id], len(corpus.documents))
            yield Asked(example, replace(judged, ranked=ranked))


def left_out(
    sets: Mapping[str, Sequence[Asked]], weights: Weights, recipe: Recipe, console: Console
) -> dict[str, list[Answered]]:
    """Each set as weights order it that never saw it."""
    with Progress(console) as progress, progress.step("sets left out", len(sets)) as bar:
        report = {}
        for name, asked in sets.items():
            report[name] = [_answered(one, weights.without(one.source), recipe) for one in asked]
            bar.advance(1)
    return {name: answers for name, answers in report.items() if answers}


def _answered(asked: Asked, model: RerankModel, recipe: Recipe) -> Answered:
    example = asked.example
    after = blended(example, model, recipe.rerank)
    return Answered(asked.plain, example.alone, example.judged, after)


def measure(answers: Sequence[Answered]) -> dict[str, dict[str, Any]]:
    """Metric to the means of plain BM25, the better retriever alone, before and after, and the gain
    per question with its interval."""
    found = {}
    for metric in SHOWN:
        value = METRICS[metric]
        retrievers = [_mean(value(one.alone[at]) for one in answers) for at in (0, 1)]
        before = [value(one.before) for one in answers]
        after = [value(one.after) for one in answers]
        gain = estimate([new - old for old, new in zip(before, after, strict=True)])
        found[metric] = {
            "plain_bm25": round(_mean(value(one.plain) for one in answers), DIGITS),
            "best_retriever": round(max(retrievers), DIGITS),
            "before": round(_mean(before), DIGITS),
            "after": round(_mean(after), DIGITS),
            "gain": [round(number, DIGITS) for number in (gain.mean, gain.low, gain.high)],
        }
    return found


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)


def below(found: Mapping[str, Any]) -> bool:
    """Whether a row misses a bar: it does not hold where it was not fitted."""
    return bool(
        found["after"] < found["plain_bm25"] + OVER_BM25
        or found["after"] < found["best_retriever"] - UNDER_RETRIEVER
    )


def table(report: Mapping[str, Sequence[Answered]]) -> Table:
    heads = ("set (questions)", "metric", "plain BM25", "best retriever", "before", "after", "gain")
    made = table_of(*heads, title="leave one set out")
    for name, answers in report.items():
        lead = f"{name} ({len(answers)})"
        for metric, found in measure(answers).items():
            mark = " !" if metric != "R@1" and below(found) else ""
            gain, low, high = found["gain"]
            made.add_row(
                lead,
                metric,
                f"{found['plain_bm25']:.3f}",
                f"{found['best_retriever']:.3f}",
                f"{found['before']:.3f}",
                f"{found['after']:.3f}{mark}",
                f"{gain:+.3f} [{low:+.3f}, {high:+.3f}]",
            )
            lead = ""
        made.add_section()
    made.caption = "! = not above plain BM25, or below our better retriever"
    return made


def report_of(report: Mapping[str, Sequence[Answered]], model: str, recipe: str) -> dict[str, Any]:
    """The same numbers for a program, without any text of a set."""
    sets = {name: {"questions": len(rows), **measure(rows)} for name, rows in report.items()}
    return {"model": model, "recipe": recipe, "sets": sets}


def parser() -> argparse.ArgumentParser:
    made = command_parser("jobs.rerank_report", __doc__)
    made.add_argument("--data", type=Path, required=True, help="folder of the sets")
    made.add_argument("--model", default=STATIC_MODEL, help="static model of both retrievers")
    made.add_argument("--recipe", default=RECIPE, help="recipe of the ranking before")
    made.add_argument("--weights", type=Path, default=BUNDLED, help="weights of the reranker")
    return made


def compare(
    options: argparse.Namespace, recipe: Recipe, console: Console
) -> dict[str, list[Answered]]:
    """Every set, as weights order it that never saw it; every file is read before the first
    question is ranked.

    Raises ConfigError: a set, the model or the weights are missing or cannot be read.
    """
    static = load_static_model(find_model(options.model))
    shipped = read_rerank_model(options.weights)
    suites = _suites(options.data)
    corpora = load_examples(options.data)
    console.print("Asking every question …")
    sets: dict[str, list[Asked]] = {}
    for name, suite in suites.items():
        for one in asked_of(suite.corpora, static, recipe):
            part, source = _part(name, suite, one.example.judged.category)
            sets.setdefault(part, []).append(Asked(one.example, one.plain, source))
    for name, source in LEARNED.items():
        own = [corpus for corpus in corpora if source_of(corpus.name) == source]
        asked = asked_of(own, static, recipe)
        sets[name] = [Asked(one.example, one.plain, source) for one in asked]
    return left_out(sets, Weights(shipped, corpora, static, recipe), recipe, console)


def _suites(data: Path) -> dict[str, Suite]:
    return {
        "LoCoMo": load_locomo(data),
        "BEAM": load_beam(data),
        "BEAM, exchanges": load_beam_exchanges(data),
        "ParaShoot": load_parashoot(data),
        "mixed": load_mixed(data),
        "mixed with ParaShoot": load_mixed(data, load_parashoot),
    }


def _part(name: str, suite: Suite, category: str) -> tuple[str, str | None]:
    """The row that a question belongs to, and what the weights must not know."""
    if name.startswith("mixed"):
        return f"{name}: {category}", MIXED_SOURCE.get(category)
    if suite.headline is None:
        return name, None
    return (f"{name} 1-4" if category in suite.headline else f"{name} 5"), None


def _run(options: argparse.Namespace) -> int:
    console = report_console()
    (recipe,) = known_recipes(bootstrap.load_texts().recipes, [options.recipe])
    check_files(options.out)
    report = compare(options, recipe, console)
    console.print(table(report))
    put_json(options.out, report_of(report, Path(options.model).name, recipe.name))
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
