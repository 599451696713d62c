"""Chooses the fusion parameters of a recipe on the open sets, by cross-validation.

    python -m jobs.tune --data DIR --out tune.json

Everything runs in process, with the service's own analyser, embedder and ranking; nothing is
stored, and no text of a set is written. The same data and model print the same numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import orjson
from rich.console import Console
from rich.table import Table

from jobs.suites import heq
from jobs.suites.datagov_set import load_datagov
from jobs.suites.lab import Asked, Embed, Lab
from jobs.suites.locomo import HEADLINE, load_locomo
from jobs.suites.suite import Corpus, Document, Question, read_json
from jobs.suites.tuning import FOLDS, Parameter, Scored, Scores, Search, Tuned
from rayapp import bootstrap
from rayapp.adapters.datagov.files import FolderSource
from rayapp.adapters.inference.static_model import find_model, load_static_model
from rayapp.domain.datagov.items import items_of
from rayapp.domain.datagov.prepare import prepared
from rayapp.domain.evaluation import Estimate, Judged, hit_at, reciprocal_rank
from rayapp.domain.retrieval.recipes import Recipe
from rayapp.domain.tiers import Tier
from rayapp.errors import ConfigError, RayappError
from rayapp.models.build_reranker import embedding_of
from rayapp.services.runtime import Texts
from rayapp.settings import Settings

GRID = (
    Parameter("dense.english", (0.3, 0.45, 0.6)),
    Parameter("dense.hebrew", (0.0, 0.15, 0.3)),
    Parameter("dense.mixed", (0.1, 0.25, 0.4)),
    Parameter("turns.neighbour", (0.1, 0.15, 0.2, 0.3)),
    Parameter("turns.second", (0.0, 0.5, 1.0)),
    Parameter("turns.answer", (0.0, 1.0, 2.0, 3.0)),
    Parameter("turns.speaker", (0.15, 0.3, 0.5)),
    Parameter("expansion_weight", (0.2, 0.4, 0.6)),
)
DEPTH = 30  # candidates per arm: a search for 10 hits
LOCOMO, HEQ, DESCRIBED, ASKED = "locomo", "heq", "datagov descriptions", "datagov questions"
CATALOGUE = "datagov"
# Every n-th question of the larger sets, so that all sets have hundreds and a run takes minutes.
EVERY = {HEQ: 2, DESCRIBED: 2}
NOW = datetime(2026, 1, 1, tzinfo=UTC)  # any fixed time: no rule of fusion reads it
DONE, BAD_ARGUMENTS = 0, 2


@dataclass(frozen=True, slots=True)
class Bench:
    """Corpora with what is known of their questions.

    Attributes:
        group_of: question id to what is held out together.
        set_of: question id to its set.
        dataset_of: item id to its dataset.
    """

    corpora: tuple[Corpus, ...]
    group_of: Mapping[str, str]
    set_of: Mapping[str, str]
    dataset_of: Mapping[str, str]


def load_bench(data: Path, texts: Texts) -> Bench:
    """The open sets under `data`, without questions that nothing answers.

    Raises:
        ConfigError: a file is missing or cannot be read.
    """
    corpora: list[Corpus] = []
    group_of: dict[str, str] = {}
    set_of: dict[str, str] = {}
    for corpus in load_locomo(data).corpora:
        kept = tuple(one for one in corpus.questions if one.category in HEADLINE)
        corpora.append(Corpus(corpus.name, corpus.documents, kept))
        group_of |= {one.question_id: corpus.name for one in kept}
        set_of |= {one.question_id: LOCOMO for one in kept}
    articles = _articles(data)
    for corpus in heq.load_heq(data).corpora:
        kept = tuple(one for one in corpus.questions if one.gold)[:: EVERY[HEQ]]
        corpora.append(Corpus(corpus.name, corpus.documents, kept))
        group_of |= {one.question_id: articles[one.question_id] for one in kept}
        set_of |= {one.question_id: HEQ for one in kept}
    documents, dataset_of = _catalogue(data, texts)
    sets = load_datagov(data)
    asked: list[Question] = []
    for name, suite in ((DESCRIBED, sets.descriptions), (ASKED, sets.questions)):
        kept = tuple(one for part in suite.corpora for one in part.questions)
        kept = kept[:: EVERY.get(name, 1)]
        asked += kept
        group_of |= {one.question_id: one.question_id for one in kept}
        set_of |= {one.question_id: name for one in kept}
    corpora.append(Corpus(CATALOGUE, documents, tuple(asked)))
    return Bench(tuple(corpora), group_of, set_of, dataset_of)


def judge_of(
    bench: Bench, texts: Texts, embed: Embed, langs: frozenset[str]
) -> Callable[[Recipe], Scores]:
    """A recipe to its metrics. The arms are asked once per weight of the expansions."""
    tiers = {CATALOGUE: Tier.DATAGOV_SCHEMA}
    lab = Lab(bench.corpora, texts, embed, depth=DEPTH, tiers=tiers)
    known: dict[float, list[Asked]] = {}

    def judge(recipe: Recipe) -> Scores:
        weight = recipe.expansion_weight
        if weight not in known:
            known[weight] = list(lab.ask(recipe))
        values: dict[str, list[float]] = defaultdict(list)
        groups: dict[str, list[str]] = defaultdict(list)
        for one in known[weight]:
            judged = _judged(one, recipe, langs, bench)
            for name, value in _metrics(bench.set_of[judged.question_id], judged):
                values[name].append(value)
                groups[name].append(bench.group_of[one.question.question_id])
        return {name: Scored(np.asarray(values[name]), tuple(groups[name])) for name in values}

    return judge


def _judged(one: Asked, recipe: Recipe, langs: frozenset[str], bench: Bench) -> Judged:
    ranked = one.ordered(recipe, langs)
    if one.corpus == CATALOGUE:
        ranked = list(dict.fromkeys(bench.dataset_of[name] for name in ranked))
    return one.judged_ids(ranked)


def _metrics(name: str, judged: Judged) -> list[tuple[str, float]]:
    """The metrics that the bars name, of one question."""
    if name == LOCOMO:
        return [("locomo hit@10", hit_at(judged, 10)), ("locomo MRR", reciprocal_rank(judged))]
    if name == HEQ:
        return [("heq R@1", hit_at(judged, 1))]
    if name == DESCRIBED:
        return [("datagov descriptions MRR", reciprocal_rank(judged))]
    return [(f"datagov questions {judged.lang} hit@5", hit_at(judged, 5))]


def _articles(data: Path) -> dict[str, str]:
    """Question id to its article: paragraphs of one article are held out together."""
    found: dict[str, str] = {}
    for number, article in enumerate(read_json(data / heq.FILE, "HeQ")["data"]):
        for paragraph in article["paragraphs"]:
            found |= {str(row["id"]): f"article-{number}" for row in paragraph["qas"]}
    return found


def _catalogue(data: Path, texts: Texts) -> tuple[tuple[Document, ...], dict[str, str]]:
    """The items that the ingestion makes of datasets and resources, and their datasets."""
    catalogue, _ = prepared(asyncio.run(FolderSource(data / "datagov").read()))
    documents, dataset_of = [], {}
    for item in items_of(catalogue, texts.expansions.entries(), NOW):
        dataset = (item.source.datagov or {}).get("dataset_id")
        if isinstance(dataset, str):
            documents.append(Document(item.memory_id, item.text))
            dataset_of[item.memory_id] = dataset
    return tuple(documents), dataset_of


def static_embed(name: str) -> tuple[Embed, frozenset[str]]:
    """Unit vectors of the bundled static model, and the languages it was made for."""
    model = load_static_model(find_model(name))

    return embedding_of(model), frozenset(model.langs)


def report(tuned: Tuned, model: str, recipe: str) -> dict[str, object]:
    """The JSON: values and estimates, never a text."""
    return {
        "model": model,
        "recipe": recipe,
        "folds": FOLDS,
        "depth": DEPTH,
        "recipes_judged": tuned.recipes,
        "chosen": tuned.chosen,
        "by_fold": tuned.by_fold,
        "start": _plain(tuned.start),
        "held_out": _plain(tuned.held_out),
        "gain": _plain(tuned.gain),
        "without": {path: _plain(losses) for path, losses in tuned.without.items()},
    }


def _plain(found: Mapping[str, Estimate]) -> dict[str, list[float]]:
    """Metric to mean, low, high."""
    return {
        name: [round(value, 4) for value in (one.mean, one.low, one.high)]
        for name, one in found.items()
    }


def _tables(tuned: Tuned) -> list[Table]:
    quality = Table(title="the recipe, and chosen without the fold", title_justify="left")
    for title in ("metric", "as it is", "held out", "gain"):
        quality.add_column(title)
    for name in tuned.start:
        cells = (tuned.start[name], tuned.held_out[name], tuned.gain[name])
        quality.add_row(name, *(_cell(one) for one in cells))
    costs = Table(title="what switching it off costs", title_justify="left")
    for title in ("parameter", "chosen", *tuned.start):
        costs.add_column(title)
    for path, losses in tuned.without.items():
        costs.add_row(path, f"{tuned.chosen[path]:g}", *(_cell(one) for one in losses.values()))
    return [quality, costs]


def _cell(one: Estimate) -> str:
    return f"{one.mean:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m jobs.tune", description=__doc__)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    made.add_argument("--recipe", default="default", help="recipe to start from")
    made.add_argument("--model", help="static model, a name or a folder; default: the settings'")
    made.add_argument("--out", type=Path, help="JSON file for the result")
    return made


def tune(data: Path, recipe_name: str, model: str) -> Tuned:
    """The whole run. Raises ConfigError."""
    texts = bootstrap.load_texts()
    recipe = texts.recipes.get(recipe_name)
    if recipe is None:
        known = ", ".join(sorted(texts.recipes))
        raise ConfigError(f"No recipe {recipe_name!r}; use one of {known}.")
    embed, langs = static_embed(model)
    return Search(recipe, GRID, judge_of(load_bench(data, texts), texts, embed, langs)).run()


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    console = Console()
    model = options.model or Settings().embedding.model
    try:
        tuned = tune(options.data, options.recipe, model)
        if options.out is not None:
            answer = report(tuned, Path(model).name, options.recipe)
            options.out.write_bytes(orjson.dumps(answer, option=orjson.OPT_INDENT_2))
    except (RayappError, OSError) as error:
        console.print(str(error))
        return BAD_ARGUMENTS
    for table in _tables(tuned):
        console.print(table)
    return DONE


if __name__ == "__main__":
    sys.exit(main())
