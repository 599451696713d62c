"""Learns when a user's memory knows nothing of a question. The same data give the same weights.

    python -m jobs.build.silence --data DIR [--out FOLDER] [--model NAME]

DIR holds `heq`. The examples are questions that are asked of a store: its own, whose evidence is
among what a context would show; those of other stores; and messages of every day
(`everyday.yaml`, of which the held-out part only judges). The stores are the texts of this project
and HeQ in two halves (Cohen et al. 2023, CC BY 4.0), each whole and as small stores of some of its
memories: learned on whole stores alone, a fifth of the questions of small ones is lost.

A logistic model weighs the signals of `search/rules/knowledge.py`; each kind of store, size and
question counts alike. The cut is taken from predictions of models that saw nothing of the store.
Without the encoder's signals one model is learned, with them two: the second of the questions in
another language than the store's (`crossed.yaml`).
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import yaml

from jobs.build.reranker import embedding_of
from jobs.build.reranker_examples import CHATS, TEXTS, read_chat, read_corpus
from jobs.ending import command_parser
from jobs.labelled import SentenceReader
from jobs.suites.heq import load_heq
from jobs.suites.lab import Embed, item_of
from jobs.suites.suite import Corpus, OneT, Question, spread
from rayapp.container import bootstrap
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.inference.backends.static_model import find_model, load_static_model
from rayapp.inference.sentence_heads import Reading, load_heads
from rayapp.memory.scope import ItemFilter
from rayapp.memory.tiers import Tier
from rayapp.search.rules.confidence import file_name
from rayapp.search.rules.fusion import DenseRetriever, speaks
from rayapp.search.rules.knowledge import (
    CROSSED_SIGNALS,
    ENCODED_SIGNALS,
    SIGNALS,
    KnowledgeModel,
    is_crossed,
    signals_of,
)
from rayapp.search.rules.query import plan_query
from rayapp.search.rules.ranking import rank
from rayapp.search.rules.view import Question as Sought
from rayapp.search.rules.view import Row, UserView
from rayapp.storage.files import load_forms
from rayapp.text.passages import passages_of

MODEL = "bilingual-static-1"
EVERYDAY = Path(__file__).with_name("everyday.yaml")
CROSSED = Path(__file__).with_name("crossed.yaml")
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
# Share of the evidence of each kind of store that a cut may lose: our own texts are written to be
# asked in other words than theirs. Of the other questions, those that `yes` may take.
MAY_LOSE, SURE = {"own": 0.05, "heq": 0.02}, 0.05
# Of questions in another language than the store's: they are few, and what is asked of no store
# is hard to tell from them.
CROSSED_MAY_LOSE = {"own": 0.12, "heq": 0.12}
DEPTH = 60
HITS = 10  # among which evidence counts as found
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Example:
    """A question of a store. `shown`: share of its evidence that a context would hold. `crosses`:
    it is in another language than the store."""

    signals: Mapping[str, float]
    kind: str
    store: str
    source: str
    size: str
    crosses: bool
    shown: float = 0.0
    held_out: bool = False

    @property
    def teaches(self) -> bool:
        """What is not found teaches nothing: silence loses nothing of it."""
        return not self.held_out and (self.source != "own" or self.shown > 0.0)


class Answer(NamedTuple):
    """What a search weighed, whether it crosses, and the share of the evidence in its best hits."""

    signals: dict[str, float]
    crosses: bool
    shown: float


class Bench:
    """Asks a store as the service does, in process; the order before a reranker is enough here."""

    def __init__(self, model: str) -> None:
        static = load_static_model(find_model(model))
        self._texts = bootstrap.load_texts()
        self._recipe = self._texts.recipes["default"]
        self._embed: Embed = embedding_of(static)
        self._langs, self.dims = frozenset(static.langs), static.dims
        self._forms = load_forms(FOLDER)
        self._reader = SentenceReader(model)
        self.encoder, self.encoder_dims = self._reader.encoder, self._reader.dims
        self._heads = load_heads(self.encoder)
        self._read: dict[str, Reading] = {}

    def _reading(self, text: str) -> Reading:
        if text not in self._read:
            (self._read[text],) = self._reader.read([text])
        return self._read[text]

    def rows(self, corpus: Corpus) -> list[Row]:
        """The memories of a store, as the view of a user holds them."""
        rows = []
        for place, document in enumerate(corpus.documents, start=1):
            texts = [one.of(document.text) for one in passages_of(document.text)]
            sparse = [self._texts.analyser.document(text) for text in texts]
            item = item_of(corpus.name, document, Tier.HISTORY, place)
            rows.append(Row(item, self._embed(texts), sparse, self._reader.passages(texts)))
        return rows

    def ask(self, view: UserView, text: str, gold: Sequence[str]) -> Answer:
        plan = plan_query(
            text,
            limit=None,
            sort_by=None,
            expansions=self._texts.expansions,
            latest=self._texts.latest,
        )
        own, weight = self._texts.analyser.query(text), self._recipe.expansion_weight
        query = self._texts.analyser.query(text, plan.expansions, expansion_weight=weight)
        reading = self._reading(text)
        sought = Sought(query, self._embed([text])[0], reading.vectors.search)
        found = view.candidates(sought, ItemFilter(), {Tier.HISTORY: DEPTH}, own=own.indices)
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
        reach = found.reach._replace(kinds=dict(self._heads.probabilities(reading).items()))
        return Answer(
            signals_of(reach, self._forms.read(text)),
            is_crossed(plan.language, ranked),
            len(shown & set(gold)) / len(gold) if gold else 0.0,
        )


def stores_of(data: Path) -> dict[str, tuple[str, Corpus]]:
    """The stores that it learns from, with their kind."""
    own = [read_corpus(path.stem, path.read_text("utf-8")) for path in sorted(TEXTS.glob("*.txt"))]
    own += [read_chat(path) for path in sorted((TEXTS / CHATS).glob("*.yaml"))]
    found = {one.name: ("own", one) for one in own} | {
        one.name: ("heq", one) for one in split(load_heq(data).corpora[0], HEQ_PARTS)
    }
    asked = yaml.safe_load(CROSSED.read_text(encoding="utf-8"))
    return {name: (kind, with_crossed(one, asked)) for name, (kind, one) in found.items()}


def with_crossed(corpus: Corpus, asked: Mapping[str, str]) -> Corpus:
    """The corpus with those of its questions that were asked in the other language as well."""
    crossed = [
        replace(one, question_id=f"{one.question_id}:crossed", text=asked[one.question_id])
        for one in corpus.questions
        if one.question_id in asked
    ]
    return replace(corpus, questions=(*corpus.questions, *crossed))


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


@dataclass(frozen=True, slots=True)
class Message:
    """A message of every day. `held_out`: it only judges."""

    text: str
    lang: str
    held_out: bool


def everyday() -> list[Message]:
    """Messages that no memory answers."""
    tree = yaml.safe_load(EVERYDAY.read_text(encoding="utf-8"))
    return [
        Message(str(text), lang, part == "held_out")
        for part, languages in tree.items()
        for lang, texts in languages.items()
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
            view = UserView([rows[at] for at in places], bench.dims, bench.encoder_dims)
            small = size != "whole"
            for one in asked:
                signals, crosses, shown = bench.ask(view, one.text, one.gold)
                yield Example(signals, kind, name, "own", size, crosses, shown)
            for text in chance.sample(foreign, min(len(foreign), MOST_FOREIGN >> small)):
                signals, crosses, _ = bench.ask(view, text, ())
                yield Example(signals, kind, name, "foreign", size, crosses)
            for said in chance.sample(daily, MOST_EVERYDAY >> small):
                signals, crosses, _ = bench.ask(view, said.text, ())
                yield Example(
                    signals, kind, name, "everyday", size, crosses, held_out=said.held_out
                )


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


def fit(examples: Sequence[Example], names: Sequence[str]) -> tuple[dict[str, float], float]:
    """Weights and bias; each kind of store, size and question counts alike."""
    used = [one for one in examples if one.teaches]
    raw = _matrix(used, names)
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
    return dict(zip(names, map(float, plain), strict=True)), bias


def _matrix(examples: Sequence[Example], names: Sequence[str]) -> Floats:
    return np.array([[one.signals[name] for name in names] for one in examples])


def held_out(examples: Sequence[Example], names: Sequence[str]) -> Floats:
    """Probability of each by a model that saw nothing of its store."""
    stores = {name: at % FOLDS for at, name in enumerate(dict.fromkeys(e.store for e in examples))}
    fold = np.array([stores[one.store] for one in examples])
    raw, found = _matrix(examples, names), np.zeros(len(examples))
    for number in range(FOLDS):
        out = fold == number
        if out.any():
            taught = [one for one, is_out in zip(examples, out, strict=True) if not is_out]
            weights, bias = fit(taught, names)
            z = raw[out] @ np.array([weights[name] for name in names]) + bias
            found[out] = 1.0 / (1.0 + np.exp(-z))
    return found


def learn(
    examples: Sequence[Example], names: Sequence[str], may_lose: Mapping[str, float]
) -> KnowledgeModel:
    """The model over all examples; its cuts and measures come from held-out predictions."""
    weights, bias = fit(examples, names)
    held = held_out(examples, names)
    other = np.sort(held[[one.source != "own" for one in examples]])
    least = cut_of(examples, held, may_lose)
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


def cut_of(examples: Sequence[Example], held: Floats, may_lose: Mapping[str, float]) -> float:
    """The highest probability below which no kind of store has more of its evidence than it may
    lose."""
    return min(_cut_of(kind, examples, held, share) for kind, share in may_lose.items())


def _cut_of(kind: str, examples: Sequence[Example], held: Floats, may_lose: float) -> float:
    rows = [
        (float(value), one.shown)
        for value, one in zip(held, examples, strict=True)
        if one.kind == kind and one.shown > 0.0
    ]
    rows.sort()
    allowed = may_lose * sum(shown for _, shown in rows)
    for value, shown in rows:
        allowed -= shown
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
    parser.add_argument("--out", type=Path, help="default: the folder that the service reads")
    parser.add_argument("--model", default=MODEL, help="static model of the vectors")
    arguments = parser.parse_args()
    bench = Bench(arguments.model)
    examples = list(examples_of(stores_of(arguments.data), bench))
    same = [one for one in examples if not one.crosses]
    crossed = [one for one in examples if one.crosses]
    # Without the encoder hardly anything tells the questions of another language apart.
    alone = learn(same, SIGNALS, MAY_LOSE)
    encoded = learn(same, ENCODED_SIGNALS, MAY_LOSE)
    other = learn(crossed, CROSSED_SIGNALS, CROSSED_MAY_LOSE)
    encoded = encoded.model_copy(update={"crossed": other})
    both = f"{arguments.model} {bench.encoder}"
    for name, found in ((arguments.model, alone), (both, encoded)):
        text = yaml.safe_dump(
            found.model_dump(exclude_none=True), sort_keys=False, allow_unicode=True
        )
        head = f"# Written by `python -m jobs.build.silence` for {name!r}; do not edit it.\n"
        target = (arguments.out or FOLDER) / file_name(name)
        target.write_text(head + text, encoding="utf-8")


if __name__ == "__main__":
    main()
