"""Learns when a user's memory knows nothing of a question. The same data give the same weights.

    python -m jobs.build.silence --data DIR [--out FILE] [--model NAME]

DIR holds `heq`. The examples are questions that are asked of a store: its own, whose evidence is
among what a context would show; those of other stores; and messages of every day
(`everyday.yaml`, of which the held-out part only judges). The stores are the texts of this project
and HeQ in two halves (Cohen et al. 2023, CC BY 4.0), each whole and as small stores of some of its
memories: learned on whole stores alone, a fifth of the questions of small ones is lost.

A logistic model weighs the signals of `search/rules/knowledge.py`; each kind of store, size and
question counts alike. The cut is taken from predictions of models that saw nothing of the store.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml

from jobs.build.reranker import embedding_of
from jobs.build.reranker_examples import CHATS, TEXTS, read_chat, read_corpus
from jobs.ending import command_parser
from jobs.suites.heq import load_heq
from jobs.suites.lab import Embed, item_of
from jobs.suites.suite import Corpus, OneT, Question, spread
from rayapp.container import bootstrap
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.inference.backends.static_model import find_model, load_static_model
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import Tier
from rayapp.search.rules.confidence import file_name
from rayapp.search.rules.fusion import DenseRetriever, speaks
from rayapp.search.rules.knowledge import SIGNALS, KnowledgeModel, is_crossed, signals_of
from rayapp.search.rules.query import plan_query
from rayapp.search.rules.ranking import rank
from rayapp.search.rules.view import Question as Asked
from rayapp.search.rules.view import Row, UserView
from rayapp.storage.files import load_forms
from rayapp.text.passages import passages_of

MODEL = "bilingual-static-1"
EVERYDAY = Path(__file__).with_name("everyday.yaml")
FOLDER = CONFIG_DIR / "knowledge"
HEQ_PARTS = 2
SIZES, DRAWN = (12, 20, 40, 100), 2  # memories of a small store; stores of a size
MOST_OWN, MOST_FOREIGN, MOST_EVERYDAY = 100, 60, 90  # questions of a whole store
SMALL_SHARE = 2  # of memories for one question of a small store
SEED = 5
SOURCE = "Texts of this project and HeQ (Cohen et al. 2023, CC BY 4.0); made by jobs.build.silence."
FOLDS = 6
RIDGE = 3.0
STEPS = 30
DECIMALS = 4
# Own questions whose evidence a context shows that may be lost, and the others that `yes` may take.
LOST, SURE, CUT_BY = 0.02, 0.05, "heq"
DEPTH = 60
HITS = 10  # among which evidence counts as found
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Example:
    """A question of a store. `shown`: share of its evidence that a context would hold."""

    signals: Mapping[str, float]
    kind: str
    store: str
    source: str
    size: str
    shown: float = 0.0
    held_out: bool = False


class Bench:
    """Asks a store as the service does, in process; the order before a reranker is enough here."""

    def __init__(self, model: str) -> None:
        static = load_static_model(find_model(model))
        self._texts = bootstrap.load_texts()
        self._recipe = self._texts.recipes["default"]
        self._embed: Embed = embedding_of(static)
        self._langs, self.dims = frozenset(static.langs), static.dims
        self._forms = load_forms(FOLDER)

    def rows(self, corpus: Corpus) -> list[Row]:
        """The memories of a store, as the view of a user holds them."""
        rows = []
        for place, document in enumerate(corpus.documents, start=1):
            texts = [one.of(document.text) for one in passages_of(document.text)]
            sparse = [self._texts.analyser.document(text) for text in texts]
            item = item_of(corpus.name, document, Tier.HISTORY, place)
            rows.append(Row(item, self._embed(texts), sparse))
        return rows

    def ask(self, view: UserView, text: str, gold: Sequence[str]) -> tuple[dict[str, float], float]:
        """Signals, and the share of the evidence among the best hits."""
        plan = plan_query(
            text,
            limit=None,
            sort_by=None,
            expansions=self._texts.expansions,
            latest=self._texts.latest,
        )
        own, weight = self._texts.analyser.query(text), self._recipe.expansion_weight
        query = self._texts.analyser.query(text, plan.expansions, expansion_weight=weight)
        asked = Asked(query, self._embed([text])[0])
        found = view.candidates(asked, ItemFilter(), {Tier.HISTORY: DEPTH}, own=own.indices)
        retriever = DenseRetriever(used=speaks(plan.text, found), langs=self._langs)
        ranked = rank(
            found,
            query_lang=plan.language,
            recipe=self._recipe,
            retriever=retriever,
            question=plan.text,
        )
        shown = {one.item.memory_id for one in ranked[:HITS]}
        assert found.reach is not None
        crossed = is_crossed(plan.language, ranked)
        signals = signals_of(found.reach, self._forms.read(text), crosses=crossed)
        return signals, len(shown & set(gold)) / len(gold) if gold else 0.0


def stores_of(data: Path) -> dict[str, tuple[str, Corpus]]:
    """The stores that it learns from, with their kind."""
    own = [read_corpus(path.stem, path.read_text("utf-8")) for path in sorted(TEXTS.glob("*.txt"))]
    own += [read_chat(path) for path in sorted((TEXTS / CHATS).glob("*.yaml"))]
    return {one.name: ("own", one) for one in own} | {
        one.name: ("heq", one) for one in split(load_heq(data).corpora[0], HEQ_PARTS)
    }


def split(corpus: Corpus, parts: int) -> list[Corpus]:
    """Stores of a part of the memories each, with the questions that these answer."""
    found = []
    for number in range(parts):
        documents = run_of(corpus.documents, number, parts)
        there = {document.doc_id for document in documents}
        asked = tuple(one for one in corpus.questions if one.gold and there.issuperset(one.gold))
        found.append(Corpus(f"{corpus.name}-{number}", tuple(documents), asked))
    return found


def run_of(items: Sequence[OneT], number: int, parts: int) -> Sequence[OneT]:
    """One of so many runs of them."""
    return items[len(items) * number // parts : len(items) * (number + 1) // parts]


def everyday(path: Path = EVERYDAY) -> list[tuple[str, bool]]:
    """Messages of every day, and whether they only judge."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        (str(text), part == "held_out")
        for part, languages in tree.items()
        for texts in languages.values()
        for text in texts
    ]


def examples_of(stores: Mapping[str, tuple[str, Corpus]], bench: Bench) -> Iterator[Example]:
    """Every store, whole and small, with its own questions and those that it knows nothing of."""
    chance = random.Random(SEED)
    for name, (kind, corpus) in stores.items():
        rows = bench.rows(corpus)
        own = list(spread(corpus.questions, MOST_OWN))
        foreign = foreign_of(stores, name, chance)
        daily = everyday()
        for size, places, asked in plans_of(corpus, own, chance):
            view = UserView([rows[at] for at in places], bench.dims)
            small = size != "whole"
            for one in asked:
                signals, shown = bench.ask(view, one.text, one.gold)
                yield Example(signals, kind, name, "own", size, shown)
            for text in chance.sample(foreign, min(len(foreign), MOST_FOREIGN >> small)):
                yield Example(bench.ask(view, text, ())[0], kind, name, "foreign", size)
            for text, held in chance.sample(daily, MOST_EVERYDAY >> small):
                signals = bench.ask(view, text, ())[0]
                yield Example(signals, kind, name, "everyday", size, held_out=held)


def foreign_of(
    stores: Mapping[str, tuple[str, Corpus]], name: str, chance: random.Random
) -> list[str]:
    """Questions of other stores, of each kind as many."""
    by_kind: dict[str, list[str]] = {}
    for other, (kind, corpus) in stores.items():
        if other != name:
            by_kind.setdefault(kind, []).extend(one.text for one in corpus.questions)
    most = MOST_FOREIGN // len(by_kind)
    return [
        text for texts in by_kind.values() for text in chance.sample(texts, min(len(texts), most))
    ]


def plans_of(
    corpus: Corpus, own: Sequence[Question], chance: random.Random
) -> Iterator[tuple[str, Sequence[int], Sequence[Question]]]:
    """The whole store, and small ones: the evidence of some questions and a run of other memories,
    as a store is while it is young."""
    count = len(corpus.documents)
    place = {document.doc_id: at for at, document in enumerate(corpus.documents)}
    yield "whole", range(count), own
    for size in SIZES:
        for _ in range(DRAWN if size < count else 0):
            chosen: set[int] = set()
            asked: list[Question] = []
            for one in chance.sample(own, min(len(own), size // SMALL_SHARE)):
                with_it = chosen | {place[gold] for gold in one.gold}
                if len(with_it) <= size // SMALL_SHARE:
                    chosen, asked = with_it, [*asked, one]
            at = chance.randrange(count)
            while len(chosen) < size:
                chosen.add(at % count)
                at += 1
            yield str(size), sorted(chosen), asked


def fit(examples: Sequence[Example]) -> tuple[dict[str, float], float]:
    """Weights and bias; each kind of store, size and question counts alike."""
    used = [one for one in examples if not one.held_out]
    raw = _matrix(used)
    mean, spread_of = raw.mean(axis=0), raw.std(axis=0) + 1e-9
    rows = np.c_[(raw - mean) / spread_of, np.ones(len(raw))]
    known = np.array([float(one.source == "own") for one in used])
    keys = [(one.kind, one.size == "whole", one.source) for one in used]
    counts = Counter(keys)
    share = np.array([len(used) / len(counts) / counts[key] for key in keys])
    ridge = np.eye(rows.shape[1]) * RIDGE
    ridge[-1, -1] = 0.0
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        said = 1.0 / (1.0 + np.exp(-rows @ weights))
        slope = rows.T @ (share * (known - said)) - ridge @ weights
        curve = (rows * (share * said * (1.0 - said))[:, None]).T @ rows + ridge
        weights += np.linalg.solve(curve, slope)
    plain = weights[:-1] / spread_of
    bias = float(weights[-1] - plain @ mean)
    return dict(zip(SIGNALS, map(float, plain), strict=True)), bias


def _matrix(examples: Sequence[Example]) -> Floats:
    return np.array([[one.signals[name] for name in SIGNALS] for one in examples])


def held_out(examples: Sequence[Example]) -> Floats:
    """Probability of each by a model that saw nothing of its store."""
    stores = {name: at % FOLDS for at, name in enumerate(dict.fromkeys(e.store for e in examples))}
    fold = np.array([stores[one.store] for one in examples])
    raw, found = _matrix(examples), np.zeros(len(examples))
    for number in range(FOLDS):
        out = fold == number
        if out.any():
            weights, bias = fit(
                [one for one, is_out in zip(examples, out, strict=True) if not is_out]
            )
            z = raw[out] @ np.array([weights[name] for name in SIGNALS]) + bias
            found[out] = 1.0 / (1.0 + np.exp(-z))
    return found


def learn(examples: Sequence[Example]) -> KnowledgeModel:
    """The model over all examples; its cuts and measures come from held-out predictions."""
    weights, bias = fit(examples)
    held = held_out(examples)
    other = np.sort(held[[one.source != "own" for one in examples]])
    least = cut_of(examples, held)
    measured = {}
    for kind in dict.fromkeys(one.kind for one in examples):
        for size in dict.fromkeys(one.size for one in examples if one.kind == kind):
            row = measured_of(examples, held, least, kind, size)
            measured[f"{kind}_{size}"] = {
                name: round(value, DECIMALS) for name, value in row.items()
            }
    return KnowledgeModel(
        weights={name: round(value, DECIMALS) for name, value in weights.items()},
        bias=round(bias, DECIMALS),
        least=round(least, DECIMALS),
        sure=round(max(least, float(other[int((1.0 - SURE) * len(other))])), DECIMALS),
        source=SOURCE,
        measured=measured,
    )


def cut_of(examples: Sequence[Example], held: Floats) -> float:
    """The probability below which `LOST` of the evidence of `CUT_BY` lies.

    Our own texts are written to be asked in other words and in the other language than theirs: what
    spares those spares most of what is foreign, too.
    """
    rows = [
        (float(value), one)
        for value, one in zip(held, examples, strict=True)
        if one.kind == CUT_BY and one.shown > 0.0
    ]
    rows.sort(key=lambda row: row[0])
    allowed = LOST * sum(one.shown for _, one in rows)
    for value, one in rows:
        allowed -= one.shown
        if allowed < 0.0:
            return value
    return 0.0


def measured_of(
    examples: Sequence[Example], held: Floats, least: float, kind: str, size: str
) -> dict[str, float]:
    """Evidence lost, and the other questions that pass; of every day those that taught nothing."""
    rows = [
        (one, value >= least)
        for one, value in zip(examples, held.tolist(), strict=True)
        if one.kind == kind and one.size == size
    ]
    shown = [(one.shown, passes) for one, passes in rows if one.source == "own"]
    foreign = [passes for one, passes in rows if one.source == "foreign"]
    daily = [passes for one, passes in rows if one.held_out]
    return {
        "lost": sum(share for share, passes in shown if not passes) / max(len(shown), 1),
        "foreign": sum(foreign) / max(len(foreign), 1),
        "everyday": sum(daily) / max(len(daily), 1),
    }


def main() -> None:
    parser = command_parser("jobs.build.silence", __doc__, out=False)
    parser.add_argument("--data", type=Path, required=True, help="folder with heq")
    parser.add_argument("--out", type=Path, help="default: the file that the service reads")
    parser.add_argument("--model", default=MODEL, help="static model of the vectors")
    arguments = parser.parse_args()
    model = learn(list(examples_of(stores_of(arguments.data), Bench(arguments.model))))
    text = yaml.safe_dump(model.model_dump(), sort_keys=False, allow_unicode=True)
    head = f"# Written by `python -m jobs.build.silence` for {arguments.model!r}; do not edit it.\n"
    out = arguments.out or FOLDER / file_name(arguments.model)
    out.write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
