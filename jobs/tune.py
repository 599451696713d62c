"""Chooses the fusion parameters of a recipe on the open sets, one set left out.

    python -m jobs.tune --data DIR --out tune.json [--limit-questions N]

Each set is measured with the values that the other sets choose, beside plain BM25 and the better of
both retrievers by itself. Everything runs in process, with the service's own analyser, embedder and
ranking; nothing is stored, and no text of a set is written. The same data and model print the same
numbers. The work is bounded: the retrievers are asked once per weight of the expansions, the grid
bounds the recipes, and a question is ranked anew only when a parameter that its ranking reads has
changed. It takes one processor. Exit codes: 0 done, 2 bad arguments.
"""

import argparse
import asyncio
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from jobs.build.reranker import embedding_of
from jobs.ending import DONE, command_parser, positive, run_command
from jobs.labelled import SentenceReader
from jobs.recipe_names import known_recipes
from jobs.suites.beam import load_beam, load_beam_exchanges
from jobs.suites.bm25 import PlainBm25
from jobs.suites.datagov_set import load_datagov
from jobs.suites.heq import load_heq
from jobs.suites.lab import DEPTH, Asked, Embed, Lab, Reading
from jobs.suites.locomo import load_locomo
from jobs.suites.outputs import check_files, put_json
from jobs.suites.parashoot import load_parashoot
from jobs.suites.suite import Corpus, Document, Question, Suite
from jobs.suites.tuning import Parameter, Scored, Scores, Search, Tuned, steps
from rayapp.client.progress import Progress
from rayapp.container import bootstrap
from rayapp.core.settings.load import load_settings
from rayapp.datagov.rules.items import items_of
from rayapp.datagov.rules.prepare import prepared
from rayapp.inference.backends.static_model import find_model, load_static_model
from rayapp.local.cli.output import report_console, table_of
from rayapp.memory.tiers import Tier
from rayapp.search.rules.evaluation import METRICS, Estimate, Judged
from rayapp.search.rules.fusion import DenseRetriever, dense_weight
from rayapp.search.rules.recipes import DenseWeights, Recipe, Texts
from rayapp.search.rules.turns import TURN_TIERS
from rayapp.storage.datagov.files import FolderSource

# A middle and a value on either side, our choice; more where the first look was flat or its best
# value lay at the end.
GRID = (
    Parameter("dense.english", (0.3, 0.45, 0.6)),
    Parameter("dense.hebrew", (0.0, 0.15, 0.3, 0.45)),
    Parameter("dense.mixed", (0.1, 0.25, 0.4)),
    Parameter("turns.neighbour", (0.1, 0.15, 0.2, 0.3)),
    Parameter("turns.second", (0.0, 0.5, 1.0)),
    Parameter("turns.answer", (0.0, 1.0, 2.0, 3.0)),
    Parameter("turns.speaker", (0.15, 0.3, 0.5)),
    Parameter("length_share", (0.04, 0.08, 0.12)),
    Parameter("expansion_weight", (0.2, 0.4, 0.6)),
)
# The same of the encoder, with `--encoder`.
ENCODER_GRID = (
    Parameter("encoder.unrelated", (0.75, 0.8, 0.83), off=0.8),
    Parameter("encoder.hebrew", (0.0, 0.15, 0.3, 0.45)),
    Parameter("encoder.english", (0.0, 0.15, 0.3)),
    Parameter("encoder.mixed", (0.0, 0.15, 0.3, 0.45)),
    Parameter("encoder.cross", (0.0, 0.15, 0.3, 0.5)),
)
LOCOMO, BEAM, EXCHANGES, HEQ, PARASHOOT = "LoCoMo", "BEAM", "BEAM, exchanges", "HeQ", "ParaShoot"
DESCRIBED, ASKED = "DataGov, descriptions", "DataGov, questions"
CATALOGUE = "datagov"
PERSONAL: Mapping[str, Callable[[Path], Suite]] = {
    LOCOMO: load_locomo,
    BEAM: load_beam,
    EXCHANGES: load_beam_exchanges,
    HEQ: load_heq,
    PARASHOOT: load_parashoot,
}
# Every n-th question of the larger sets, so that all sets have hundreds.
EVERY = {LOCOMO: 2, HEQ: 4, DESCRIBED: 4}
FLOOR_DEPTH = 200  # memories of plain BM25; a dataset has several
MEASURED = ("hit@10", "MRR")
# Metric to plain BM25 and the better retriever by itself.
Floors = Mapping[str, tuple[float, float]]
NOW = datetime(2026, 1, 1, tzinfo=UTC)  # any fixed time: no rule of fusion reads it


@dataclass(frozen=True, slots=True)
class Bench:
    """Corpora with what is known of their questions.

    Attributes:
        set_of: question id to its set.
        dataset_of: item id to its dataset.
    """

    corpora: tuple[Corpus, ...]
    set_of: Mapping[str, str]
    dataset_of: Mapping[str, str]


def load_bench(data: Path, texts: Texts, limit: int | None = None) -> Bench:
    """The open sets under `data`, without questions that nothing answers.

    Args:
        limit: questions of each set at most, spread over it; all documents stay.

    Raises:
        ConfigError: a file is missing or cannot be read.
    """
    corpora: list[Corpus] = []
    set_of: dict[str, str] = {}
    for name, load in PERSONAL.items():
        for corpus in _sample(name, load(data), limit):
            # A chat is in two sets; the questions of each are its own.
            asked = tuple(
                replace(one, question_id=f"{name} {one.question_id}") for one in corpus.questions
            )
            corpora.append(Corpus(f"{name} {corpus.name}", corpus.documents, asked))
            set_of |= {one.question_id: name for one in asked}
    documents, dataset_of = _catalogue(data, texts)
    sets = load_datagov(data)
    questions: list[Question] = []
    for name, suite in ((DESCRIBED, sets.descriptions), (ASKED, sets.questions)):
        kept = [one for part in _sample(name, suite, limit) for one in part.questions]
        questions += kept
        set_of |= {one.question_id: name for one in kept}
    corpora.append(Corpus(CATALOGUE, documents, tuple(questions)))
    return Bench(tuple(corpora), set_of, dataset_of)


def _sample(name: str, suite: Suite, limit: int | None) -> tuple[Corpus, ...]:
    """The corpora with the questions of the set that take part."""
    kept = []
    for corpus in suite.corpora:
        asked = [
            one
            for one in corpus.questions
            if one.gold and (suite.headline is None or one.category in suite.headline)
        ]
        kept.append(replace(corpus, questions=tuple(asked[:: EVERY.get(name, 1)])))
    return replace(suite, corpora=tuple(kept)).sampled(limit).corpora


# Weights that differ from each other, so that a share tells which of them it was.
MARKED = DenseWeights(hebrew=0.1, english=0.2, mixed=0.3, cross=0.4, unknown=0.5)
MARKS = {value: name for name, value in MARKED}
PARTS_READ_APART = {"dense", "turns"}  # of a recipe; all other parts count for every question


@dataclass(frozen=True, slots=True)
class Reads:
    """The parts of a recipe that one ranking may depend on: dense weights by name, and turns."""

    dense: tuple[str, ...]
    turns: bool

    def key(self, recipe: Recipe, rest: str) -> tuple[object, ...]:
        """Equal for two recipes that rank this question alike. `rest`: all other parts."""
        shares = tuple(getattr(recipe.dense, name) for name in self.dense)
        return rest, shares, recipe.turns if self.turns else None


def reads_of(asked: Asked, langs: frozenset[str]) -> Reads:
    """What the ranking of this question reads, by the scripts and tiers of its candidates."""
    retriever = DenseRetriever(used=True, langs=langs)
    items = asked.candidates.items
    shares = {dense_weight(MARKED, asked.language, item.lang, retriever) for item in items}
    return Reads(
        dense=tuple(sorted(MARKS[share] for share in shares)),
        turns=any(item.tier in TURN_TIERS for item in items),
    )


class Judge:
    """A recipe to its metrics.

    The retrievers are asked once per weight of the expansions, and a question is ranked once per
    setting of what its ranking reads: the weight of English texts changes nothing for a Hebrew
    paragraph.
    """

    def __init__(
        self,
        bench: Bench,
        texts: Texts,
        embed: Embed,
        langs: frozenset[str],
        encoder: Reading | None = None,
    ) -> None:
        tiers = {CATALOGUE: Tier.DATAGOV_SCHEMA}
        self._bench, self._langs = bench, langs
        self._lab = Lab(bench.corpora, texts, embed, tiers=tiers, encoder=encoder)
        self._asked: dict[float, list[tuple[Asked, Reads]]] = {}
        self._known: dict[tuple[int, tuple[object, ...]], list[float]] = {}
        self.ranked = 0  # rankings made, for those who want to know what the rest saved

    def __call__(self, recipe: Recipe) -> Scores:
        rest = recipe.model_dump_json(exclude=PARTS_READ_APART)
        values: dict[str, list[list[float]]] = defaultdict(list)
        keys: dict[Reads, tuple[object, ...]] = {}
        for place, (asked, reads) in enumerate(self._candidates(recipe)):
            key = keys.setdefault(reads, reads.key(recipe, rest))
            of = self._bench.set_of[asked.question.question_id]
            values[of].append(self._values(place, key, asked, recipe))
        return _scores(values)

    def floors(self, recipe: Recipe) -> dict[str, tuple[float, float]]:
        """Metric to the means of plain BM25, and of the better retriever by itself."""
        values: list[dict[str, list[list[float]]]] = [defaultdict(list) for _ in range(3)]
        plain = {one.name: PlainBm25(one.documents) for one in self._bench.corpora}
        for asked, _ in self._candidates(recipe):
            of = self._bench.set_of[asked.question.question_id]
            words = plain[asked.corpus].rank(asked.question.text, FLOOR_DEPTH)
            answers = (words, *(one.ranked for one in asked.alone()))
            for ranker, ranked in zip(values, answers, strict=True):
                ranker[of].append(_metrics(_judged(asked, ranked, self._bench)))
        bm25, *alone = (
            {name: float(one.values.mean()) for name, one in _scores(ranker).items()}
            for ranker in values
        )
        return {name: (bm25[name], max(one[name] for one in alone)) for name in bm25}

    def _candidates(self, recipe: Recipe) -> list[tuple[Asked, Reads]]:
        weight = recipe.expansion_weight
        if weight not in self._asked:
            asked = self._lab.ask(recipe)
            self._asked[weight] = [(one, reads_of(one, self._langs)) for one in asked]
        return self._asked[weight]

    def _values(
        self, place: int, key: tuple[object, ...], asked: Asked, recipe: Recipe
    ) -> list[float]:
        """The metrics of the question at this place."""
        found = self._known.get((place, key))
        if found is None:
            self.ranked += 1
            ranked = asked.ordered(recipe, self._langs)
            found = _metrics(_judged(asked, ranked, self._bench))
            self._known[place, key] = found
        return found


def _judged(asked: Asked, ranked: Sequence[str], bench: Bench) -> Judged:
    if asked.corpus == CATALOGUE:
        ranked = list(dict.fromkeys(bench.dataset_of[name] for name in ranked))
    return asked.question.judged(ranked)


def _metrics(judged: Judged) -> list[float]:
    return [METRICS[name](judged) for name in MEASURED]


def _scores(values: Mapping[str, Sequence[Sequence[float]]]) -> Scores:
    """Of each set, a row per question with its metrics."""
    return {
        f"{of} {name}": Scored(of, column)
        for of, rows in values.items()
        for name, column in zip(MEASURED, np.asarray(rows).T, strict=True)
    }


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


def report(tuned: Tuned, floors: Floors, model: str, recipe: str) -> dict[str, object]:
    """The JSON: values and estimates, never a text."""
    return {
        "model": model,
        "recipe": recipe,
        "depth": DEPTH,
        "recipes_judged": tuned.recipes,
        "chosen": tuned.chosen,
        "by_set": tuned.by_set,
        "floors": floors,
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


def _tables(tuned: Tuned, floors: Floors) -> list[Table]:
    heads = ("metric", "plain BM25", "best retriever", "as it is", "left out", "gain")
    quality = table_of(*heads, title="leave one set out, before the reranker")
    for name in tuned.start:
        cells = (tuned.start[name], tuned.held_out[name], tuned.gain[name])
        quality.add_row(
            name, *(f"{floor:.3f}" for floor in floors[name]), *(_cell(one) for one in cells)
        )
    parts = ("parameter", "chosen", "metric", "costs")
    costs = table_of(*parts, title="what switching it off costs")
    for path, losses in tuned.without.items():
        lead = (path, f"{tuned.chosen[path]:g}")
        for name, loss in losses.items():
            costs.add_row(*lead, name, _cell(loss))
            lead = ("", "")
        costs.add_section()
    return [quality, costs]


def _cell(one: Estimate) -> str:
    return f"{one.mean:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"


def parser() -> argparse.ArgumentParser:
    made = command_parser("jobs.tune", __doc__)
    made.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    made.add_argument("--recipe", default="default", help="recipe to start from")
    made.add_argument("--model", help="static model, a name or a folder; default: the settings'")
    made.add_argument(
        "--encoder",
        action="store_true",
        help="with the bundled encoder as a third retriever; it reads all texts first, which takes "
        "an hour of one processor",
    )
    made.add_argument(
        "--limit-questions", type=positive, help="questions of each set at most, spread; for a try"
    )
    return made


def tune(options: argparse.Namespace, model: str, console: Console) -> tuple[Tuned, Floors]:
    """The whole run; what can be refused is looked at first. Raises ConfigError."""
    texts = bootstrap.load_texts()
    (recipe,) = known_recipes(texts.recipes, [options.recipe])
    check_files(options.out)
    embed, langs = static_embed(model)
    console.print("Reading the sets and analysing their texts …")
    bench = load_bench(options.data, texts, options.limit_questions)
    encoder = None
    if options.encoder:
        reader = SentenceReader()
        encoder = Reading(reader.passages, reader.queries)
    judge = Judge(bench, texts, embed, langs, encoder)
    grid = GRID if encoder is None else GRID + ENCODER_GRID
    sets = len(set(bench.set_of.values()))
    with Progress(console) as progress, progress.step("values tried", steps(grid, sets)) as bar:
        return Search(recipe, grid, judge, bar.advance).run(), judge.floors(recipe)


def _run(options: argparse.Namespace) -> int:
    console = report_console()
    model = options.model or load_settings(env={}).embedding.model
    tuned, floors = tune(options, model, console)
    for table in _tables(tuned, floors):
        console.print(table)
    put_json(options.out, report(tuned, floors, Path(model).name, options.recipe))
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
