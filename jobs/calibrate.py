"""Fits how sure the service may be of an answer, per embedder and recipe.

    python -m jobs.calibrate --data DIR [--model NAME] [--recipe NAME ...]

The embedder is the one of the settings (static, local or HTTP; profile and environment as the
service reads them); `--model` takes a static model instead. With `--recipe` the other recipes of
the file stay as they are. The service reads the result at its next start.

Features of the best hit go into a logistic model that says whether it answers. It learns from HeQ
(CC BY 4.0; its impossible questions are asked about a paragraph on the topic that does not answer)
and from `jobs/calibration_pairs.yaml`, which we wrote. Both are judged by cross-validation over
paragraphs, and the result goes to `configs/calibration/<model>.yaml`, where characters that no file
name should have become `_`. No database takes part. Exit codes: 0 done, 2 bad arguments, 4 the
embedder is away.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml
from rich.console import Console

from jobs.ending import DONE, command_parser, run_command
from jobs.recipe_names import known_recipes
from jobs.suites.gateway import Gateway
from jobs.suites.heq import load_heq
from jobs.suites.lab import Lab
from jobs.suites.outputs import check_files, put
from jobs.suites.suite import Corpus, Document, Question
from rayapp.container import bootstrap
from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import CONFIG_DIR, load_settings
from rayapp.core.settings.model import Settings
from rayapp.inference.backends.static_model import find_model, load_static_model
from rayapp.local.cli.output import report_console
from rayapp.search.feature_reranker import BUNDLED, read_rerank_model
from rayapp.search.rules.confidence import Calibration, Features, features_of, file_name
from rayapp.search.rules.ranking import Ranked, with_rerank
from rayapp.search.rules.recipes import ConfidenceModel, Recipe
from rayapp.search.rules.rerank_features import Features as RerankFeatures
from rayapp.search.rules.rerank_words import WordTable
from rayapp.storage.files import load_calibration

Floats = npt.NDArray[np.float64]
NAMES = ("cosine", "coverage", "passage", "words", "number_missing")
# Direction that each weight may have, 0 = any: a hit that holds more of the question must never be
# trusted less, whatever the examples of one set say of two features that go together.
SIGNS = (1, 1, 1, 0, -1)
FOLDS = 10
RIDGE = 3.0  # penalty on weights of standardised features; flat between 1 and 10
STEPS = 30  # of Newton's method; it ends at machine precision after about eight
DECIMALS = 4
# Right answers that `medium` may refuse, share, and the precision that `high` promises. Of all
# questions with an answer a tenth at most may be refused; the wrong best hits among them, which are
# refused more often, leave 7 % for the right ones.
REFUSED = 0.07
SURE = 0.85
# Of the least sure right answer: what is not put before an assistant is lost to it, so the floor
# lies below every right one. At .57 greetings are below it and no question of LoCoMo is; at .75
# LoCoMo loses .7 points of its evidence (decision 0062).
FLOOR_SHARE = 0.57
PAIRS = Path(__file__).parent / "calibration_pairs.yaml"
OUT = CONFIG_DIR / "calibration"


@dataclass(frozen=True, slots=True)
class Example:
    """The best hit of a question. `group`: the paragraph; its questions stay in one fold.

    `answerable` without `answers`: the answer is there, but another hit came first.
    """

    features: Features
    answers: bool
    answerable: bool
    group: str
    source: str


@dataclass(frozen=True, slots=True)
class Fitted:
    """Weights by name with `bias`, the cuts, and what cross-validation says of them."""

    weights: dict[str, float]
    medium: float
    high: float
    floor: float
    measured: dict[str, float]


def fit(examples: Sequence[Example]) -> Fitted:
    """The model over all examples; its cuts and measures come from held-out predictions."""
    x, y = matrix(examples)
    held = held_out(x, y, folds(examples))
    raw = logistic(x, y)
    answerable = np.array([one.answerable for one in examples])
    right = np.sort(held[y > 0])
    medium = float(right[int(REFUSED * len(right))])
    measured = {
        "examples": float(len(examples)),
        "auc": auc(held, y),
        "brier": float(np.mean((held - y) ** 2)),
        "abstained": float(np.mean(held[~answerable] < medium)),
        "refused": float(np.mean(held[answerable] < medium)),
    }
    return Fitted(
        weights=dict(zip(("bias", *NAMES), map(float, raw), strict=True)),
        medium=medium,
        high=_sure_from(held, y, medium),
        floor=FLOOR_SHARE * float(right[0]),
        measured=measured,
    )


def matrix(examples: Sequence[Example]) -> tuple[Floats, Floats]:
    x = np.array([[getattr(one.features, name) for name in NAMES] for one in examples])
    return x, np.array([float(one.answers) for one in examples])


def folds(examples: Sequence[Example]) -> npt.NDArray[np.int64]:
    """Fold of each example, by the order in which its group first appears."""
    order = {group: n for n, group in enumerate(dict.fromkeys(one.group for one in examples))}
    return np.array([order[one.group] % FOLDS for one in examples])


def held_out(x: Floats, y: Floats, fold: npt.NDArray[np.int64]) -> Floats:
    """Probability of each example by a model that saw nothing of its fold."""
    held = np.zeros(len(y))
    for one in range(FOLDS):
        out = fold == one
        if out.any():
            raw = logistic(x[~out], y[~out])
            held[out] = _probability(x[out], raw)
    return held


def logistic(x: Floats, y: Floats) -> Floats:
    """`[bias, weights]`; a feature whose weight has the wrong sign is left out, the worst first."""
    kept = list(range(x.shape[1]))
    while True:
        raw = _unsigned(x[:, kept], y)
        wrong = [(raw[1 + at] * SIGNS[one], one) for at, one in enumerate(kept)]
        worst = min(wrong, default=(0.0, -1))
        if worst[0] >= 0.0:
            break
        kept.remove(worst[1])
    full = np.zeros(1 + x.shape[1])
    full[0] = raw[0]
    full[[1 + one for one in kept]] = raw[1:]
    return full


def _unsigned(x: Floats, y: Floats) -> Floats:
    """As `logistic`, of any sign; ridge on standardised features, weights on their own scale."""
    mean, spread = x.mean(axis=0), x.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    design = np.c_[np.ones(len(x)), (x - mean) / spread]
    penalty = RIDGE * np.diag([0.0, *np.ones(x.shape[1])])
    found = np.zeros(design.shape[1])
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(-design @ found))
        gradient = design.T @ (p - y) + penalty @ found
        curve = (design * (p * (1.0 - p))[:, None]).T @ design + penalty
        found = found - np.linalg.solve(curve + 1e-9 * np.eye(len(found)), gradient)
    slopes = found[1:] / spread
    return np.array([found[0] - float(slopes @ mean), *slopes])


def _probability(x: Floats, raw: Floats) -> Floats:
    made: Floats = 1.0 / (1.0 + np.exp(-(raw[0] + x @ raw[1:])))
    return made


def _sure_from(held: Floats, y: Floats, medium: float) -> float:
    """Least probability above which answers are right as often as `high` promises."""
    for cut in np.arange(max(medium, 0.5), 0.99, 0.01):
        above = held >= cut
        if above.any() and float(y[above].mean()) >= SURE:
            return float(cut)
    return 0.99


def auc(held: Floats, y: Floats) -> float:
    """Share of (answering, not answering) pairs in the right order; ties count half."""
    _, place, count = np.unique(held, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    rank = ((last - count + 1 + last) / 2.0)[place]
    right, wrong = float(y.sum()), float(len(y) - y.sum())
    return float((rank[y > 0].sum() - right * (right + 1) / 2.0) / (right * wrong))


class Rereader:
    """The reranker of features, as a search replica has it."""

    def __init__(self) -> None:
        self._model = read_rerank_model(BUNDLED)
        vectors = load_static_model(find_model(self._model.static_model))
        self._features = RerankFeatures(WordTable(vectors.sums))

    def order(self, question: str, ranked: list[Ranked], recipe: Recipe) -> list[Ranked]:
        texts = [one.passage_text for one in ranked[: recipe.rerank.top]]
        logits = np.asarray(self._model.logits(self._features.of(question, texts)))
        probabilities = [float(one) for one in 1.0 / (1.0 + np.exp(-logits))]
        return with_rerank(ranked, probabilities, recipe)


def examples_of(
    lab: Lab, recipe: Recipe, langs: frozenset[str], source: str, rereader: Rereader
) -> Iterable[Example]:
    """The best hit of every question of the lab, as the service ranks."""
    for asked in lab.ask(recipe):
        ranked = asked.ranked(recipe, langs)
        if not ranked:
            continue
        best = rereader.order(asked.question.text, ranked, recipe)[0]
        yield Example(
            features_of(asked.question.text, best.passage_text, best.dense_similarity),
            best.item.memory_id in asked.question.gold,
            bool(asked.question.gold),
            best.item.memory_id,
            source,
        )


def load_pairs(path: Path = PAIRS) -> Corpus:
    """Our own memories and questions of both languages.

    Raises ConfigError: the file is missing or has another form.
    """
    try:
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))
        documents = tuple(Document(f"own:{n}", str(r["text"])) for n, r in enumerate(rows))
        questions = tuple(
            Question(f"own:{n}:{kind}:{at}", str(text), (f"own:{n}",) if kind else (), "own", "")
            for n, row in enumerate(rows)
            for kind, field in ((1, "answered"), (0, "not_answered"))
            for at, text in enumerate(row[field])
        )
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise ConfigError(f"{path.name} cannot be read: {error}.") from None
    return Corpus("own", documents, questions)


@dataclass(frozen=True, slots=True)
class Bench:
    """What a recipe is fitted on: the labs by source, and the embedder behind them."""

    labs: dict[str, Lab]
    langs: frozenset[str]
    rereader: Rereader


def open_bench(corpora: Mapping[str, Sequence[Corpus]], gateway: Gateway) -> Bench:
    """Embeds every text of the sources. ConfigError, EmbedderDown."""
    texts = bootstrap.load_texts()
    labs = {
        source: Lab(part, texts, gateway.passages, embed_question=gateway.queries)
        for source, part in corpora.items()
    }
    return Bench(labs, frozenset(gateway.info().langs), Rereader())


def calibrate(bench: Bench, recipe: Recipe) -> Fitted:
    """The fit on all sources; `measured` says the same of each source alone."""
    found = [
        one
        for source, lab in bench.labs.items()
        for one in examples_of(lab, recipe, bench.langs, source, bench.rereader)
    ]
    fitted = fit(found)
    for source in bench.labs:
        part = fit([one for one in found if one.source == source]).measured
        fitted.measured.update({f"{source}_{key}": value for key, value in part.items()})
    return fitted


def merge(before: Calibration | None, fits: Mapping[str, Fitted]) -> Calibration:
    """The recipes of `before` that were not fitted again, and the fitted ones."""
    recipes = dict(before.recipes) if before else {}
    measured = dict(before.measured) if before else {}
    for name, fitted in fits.items():
        weights = {key: round(float(value), DECIMALS) for key, value in fitted.weights.items()}
        recipes[name] = ConfidenceModel(
            **weights,
            medium=round(fitted.medium, DECIMALS),
            high=round(fitted.high, DECIMALS),
            floor=round(fitted.floor, DECIMALS),
        )
        measured[name] = {key: round(value, DECIMALS) for key, value in fitted.measured.items()}
    return Calibration(recipes=recipes, measured=measured)


def as_yaml(calibration: Calibration, model: str) -> str:
    """The file, recipes in the order of their names."""
    order = ("bias", *NAMES, "medium", "high", "floor")
    recipes = {
        name: {key: getattr(calibration.recipes[name], key) for key in order}
        for name in sorted(calibration.recipes)
    }
    measured = {name: calibration.measured[name] for name in sorted(calibration.measured)}
    head = f"# Written by `python -m jobs.calibrate` for {model!r}; do not edit by hand.\n"
    return head + yaml.safe_dump({"recipes": recipes, "measured": measured}, sort_keys=False)


def run(data: Path, settings: Settings, names: Sequence[str], out: Path, console: Console) -> Path:
    """Fit these recipes, or all without names, and write the file, which is returned.

    Everything that can be refused is looked at before the first text is embedded.

    Raises:
        ConfigError: an unknown recipe, a missing set, a folder that cannot be written to.
        EmbedderDown: the embedder gives no answer.
    """
    known = bootstrap.load_texts().recipes
    recipes = known_recipes(known, names or sorted(known))
    corpora = {"own": [load_pairs()], "heq": list(load_heq(data).corpora)}
    with Gateway(settings) as gateway:
        model = gateway.info().model
        path = out / file_name(model)
        check_files(path)
        before = load_calibration(out, model) if names else None
        bench = open_bench(corpora, gateway)
        fits = {}
        for recipe in recipes:
            fits[recipe.name] = fitted = calibrate(bench, recipe)
            console.print(recipe.name, fitted.weights, fitted.measured)
    put(path, as_yaml(merge(before, fits), model).encode("utf-8"))
    return path


def settings_of(model: str | None) -> Settings:
    """Those of the service, or of a static model that the command names. ConfigError."""
    if model is None:
        return load_settings()
    return load_settings(
        env={}, overrides={"embedding": {"backend": "static", "model": model, "dims": 0}}
    )


def parser() -> argparse.ArgumentParser:
    made = command_parser("jobs.calibrate", __doc__, out=False)
    made.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    made.add_argument(
        "--model", help="static model, a name or a folder; default: the embedder of the settings"
    )
    made.add_argument("--recipe", action="append", default=[], help="recipe; default: all")
    made.add_argument("--out", type=Path, default=OUT, help="folder of the result")
    return made


def _run(given: argparse.Namespace) -> int:
    console = report_console()
    path = run(given.data, settings_of(given.model), given.recipe, given.out, console)
    console.print(f"Written: {path}. Restart the service to use it.", soft_wrap=True)
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
