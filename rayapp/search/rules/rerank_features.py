"""The feature reranker: how well a text answers a question, in numbers, and the model that weighs
them.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rayapp.core.errors import ConfigError
from rayapp.search.rules.rerank_words import Analysed, Bools, Ints, Kind, ShortInts, WordTable

Floats = npt.NDArray[np.float32]

# How a word of the question is met: itself or its lemma; or by letters; or by a near vector.
_MEETINGS = ("exact", "near", "soft")
# For these the weight differs between the languages: BM25 ranks English dialogue less well.
_ENGLISH = ("soft_list", "bm25_list", "cosine", "length")
_WANTED = (
    ("when_time", "when", "time"),
    ("count_number", "count", "number"),
    ("who_name", "who", "name"),
    ("where_name", "where", "name"),
    ("why_cause", "why", "cause"),
)
FEATURES = (
    *(f"{place}{how}_{weight}" for place in ("", "sentence_", "pair_") for how in _MEETINGS
      for weight in ("static", "list")),
    "bm25_static", "bm25_list", "bigrams", "bigrams_loose", "names", "numbers", "topic_soft",
    "all_matched", "cosine", "sentence_cosine", "speaker_named", "speaker_other", "asks",
    "yes_asks", "length", "short", "same_script", "first_person", "own_words",
    *(column for column, _, _ in _WANTED), *(f"sentence_{column}" for column, _, _ in _WANTED),
    *(f"{name}_en" for name in _ENGLISH),
)  # fmt: skip

# Where a match by lemma or by letters stands beside an equal word (our choice).
LEMMA = 0.9
GRAM = 0.8
# Cosine of word vectors from which two words begin to count as near (our choice).
NEAR = 0.3
# Share of a stop word in the weight of a question (our choice, near the lexical retriever's).
STOP_WEIGHT = 0.2
# A match that stands for the word itself in neighbours and counts (our choice).
FIRM = 0.7
QUESTION_WORDS = 24  # a longer question is cut (our choice)
K1, B = 0.9, 0.5  # as in the lexical retriever
SHORT_WORDS = 5  # "Sure, see you!" (our choice)
GAP = 4  # words between two texts laid side by side: more than a neighbour may be apart
LOOSE_STEPS = np.array([1, 2, 3, -1, -2, -3])  # the first: neighbours in order

_ASKED = {
    kind: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)
    for kind, words in {
        "when": r"when|what (?:date|year|day|month|time)|how long ago|which (?:year|month|day)"
        r"|מתי|באיזו שנה|באיזה (?:תאריך|יום|חודש)|ממתי|עד מתי|באיזו שעה",
        "count": r"how (?:many|much|long|old|often|far|big|tall)|what (?:number|percent|age|price)"
        r"|כמה|בכמה|לכמה|מה (?:מספר|גובה|גיל|שיעור|אחוז)",
        "who": r"who|whom|whose|which (?:person|friend)|what is the name|מי|מיהו|מיהי|למי|של מי"
        r"|עם מי|מיהם",
        "where": r"where|which (?:city|country|place|town)|in what (?:city|place)"
        r"|איפה|היכן|לאן|מאיפה|מהיכן|באיזו (?:עיר|מדינה)|באיזה מקום",
        "why": r"why|what (?:made|caused|reason)|how come|למה|מדוע|מה (?:הסיבה|גרם)|בגלל מה"
        r"|מהי הסיבה",
    }.items()
}
_ASKED["yes"] = re.compile(
    r"\s*(?:is|are|was|were|do|does|did|has|have|can|would|will|האם)(?!\w)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Question:
    """The words of a question: rows, their weight, and which of them are names and numbers."""

    rows: ShortInts
    weights: Floats
    names: Bools
    numbers: Bools
    vector: Floats
    hebrew: bool
    first_person: bool
    asked: frozenset[str]


class _Texts:
    """All candidates one after another; `distinct[place]` is the row of a word."""

    def __init__(self, found: Sequence[Analysed]) -> None:
        self.found = found
        rows = np.concatenate([one.rows for one in found])
        self.distinct, place = np.unique(rows, return_inverse=True)
        self.place: Ints = place.reshape(-1)
        self.lengths: Ints = np.array([len(one.rows) for one in found])
        sentences = np.array([len(one.starts) for one in found])
        self.begins: Ints = np.cumsum(self.lengths) - self.lengths
        # First sentence of each text, and the text of each sentence and of each word.
        self.firsts: Ints = np.cumsum(sentences) - sentences
        self.owner: Ints = np.repeat(np.arange(len(found)), sentences)
        self.text_of: Ints = np.repeat(np.arange(len(found)), self.lengths)
        self.sentences: Ints = (
            np.concatenate([one.starts for one in found]) + self.begins[self.owner]
        )

    def top(self, scores: Floats) -> Floats:
        """The best sentence's score of each text."""
        best: Floats = np.maximum.reduceat(scores, self.firsts, axis=0)
        return best

    def best(self, scores: Floats) -> Ints:
        """The best sentence of each text, the first of equals."""
        order = np.lexsort((-scores, self.owner))
        return order[self.firsts]


class Features:
    """Makes the rows. Holds a table of words and the texts read last; what it gives is pure."""

    def __init__(self, table: WordTable) -> None:
        self._table = table

    def of(self, question: str, texts: Sequence[str]) -> Floats:
        """float32 `[texts, FEATURES]`; every value is finite. A text without words gets zeros."""
        out = np.zeros((len(texts), len(FEATURES)), dtype=np.float32)
        read = self._table.read([question, *texts])
        filled = [at for at, one in enumerate(read[1:]) if len(one.rows)]
        if filled and len(read[0].rows):
            columns = self._columns(
                self._question(question, read[0]), _Texts([read[at + 1] for at in filled])
            )
            out[filled] = np.array([columns[name] for name in FEATURES], dtype=np.float32).T
        return out

    def _question(self, text: str, read: Analysed) -> _Question:
        table = self._table
        # One word for its spellings with and without a capital.
        _, first = np.unique(table.first_reading[read.rows], return_index=True)
        first = np.sort(first)[:QUESTION_WORDS]
        rows = read.rows[first]
        stop = table.kinds[rows, Kind.STOP]
        factor = np.where(stop & ~stop.all(), STOP_WEIGHT, 1.0)
        return _Question(
            rows=rows,
            weights=(factor * table.norms[rows]).astype(np.float32),
            names=read.names[first] & ~stop,
            numbers=table.kinds[rows, Kind.NUMBER],
            vector=_unit(table.vectors_of(read.rows).sum(axis=0)),
            hebrew=read.hebrew,
            first_person=read.first_person,
            asked=frozenset(
                kind
                for kind, words in _ASKED.items()
                if (words.match(text) if kind == "yes" else words.search(text))
            ),
        )

    def _columns(self, asked: _Question, texts: _Texts) -> dict[str, Floats]:
        size = len(asked.rows)
        vectors = self._table.vectors_of(texts.distinct)
        meetings = self._meetings(asked, texts.distinct, vectors)
        sentence = np.maximum.reduceat(meetings[texts.place], texts.sentences, axis=0)
        in_text = texts.top(sentence)
        parts = {how: slice(at * size, (at + 1) * size) for at, how in enumerate(_MEETINGS)}
        near = in_text[:, parts["near"]]
        static = asked.weights / asked.weights.sum()
        listed = _list_weights(asked.weights, near)
        both = np.stack([static, listed], axis=1)
        # By sentence, then by how a word is met, by each of the weights.
        scored = _weighed(sentence, both)
        tops = texts.top(np.hstack([scored, _weighed(_pairs(sentence, texts.owner), both)]))
        names = [f"{how}_{weight}" for how in _MEETINGS for weight in ("static", "list")]
        columns: dict[str, Floats] = dict(zip(names, _weighed(in_text, both).T, strict=True))
        paired = [f"{place}_{name}" for place in ("sentence", "pair") for name in names]
        columns |= zip(paired, tops.T, strict=True)
        words = meetings[:, parts["near"]]
        columns |= _neighbours(words[texts.place], texts, both)
        columns |= _agreement(asked, in_text, parts)
        columns |= self._nearness(asked, texts, vectors) | _manner(asked, texts, words)
        soft = scored[:, names.index("soft_static")]
        columns |= self._answers(asked, texts, words, texts.best(soft))
        english = np.float32(not asked.hebrew)
        return columns | {f"{name}_en": columns[name] * english for name in _ENGLISH}

    def _meetings(self, asked: _Question, rows: ShortInts, vectors: Floats) -> Floats:
        """Distinct words by `_MEETINGS` x question words, 0..1, each kind at least the one before.

        A stop word is near to every other one: it counts when it is itself.
        """
        table, size = self._table, len(asked.rows)
        out = np.zeros((len(rows), 3 * size), dtype=np.float32)
        exact, near, soft = (out[:, at * size : (at + 1) * size] for at in range(3))
        for at, row in enumerate(asked.rows):
            same = _among(rows, _rows(table.with_reading, table.readings[row]))
            equal = table.first_reading[rows[same]] == table.first_reading[row]
            exact[same, at] = np.where(equal, 1.0, LEMMA)
            grams = _rows(table.with_gram, table.grams[row])
            if len(grams):
                alike, shared = np.unique(grams, return_counts=True)
                dice = 2.0 * shared / (table.gram_count[alike] + table.gram_count[row])
                where = np.minimum(np.searchsorted(rows, alike), len(rows) - 1)
                here = rows[where] == alike
                near[where[here], at] = GRAM * dice[here]
        np.maximum(near, exact, out=near)
        ours = table.vectors_of(asked.rows) / table.norms[asked.rows][:, None]
        cosine = (vectors @ ours.T) / table.norms[rows][:, None]
        content = ~table.kinds[asked.rows, Kind.STOP]
        np.clip((cosine - NEAR) * (content / (1.0 - NEAR)), 0.0, 1.0, out=soft)
        np.maximum(soft, near, out=soft)
        return out

    def _nearness(self, asked: _Question, texts: _Texts, vectors: Floats) -> dict[str, Floats]:
        """Mean cosine of a text's words with the question, by the weight of the words.

        Of the words and not of their sum: no vector has to be read or kept for a text.
        """
        table = self._table
        dots = (vectors @ asked.vector)[texts.place]
        norms = table.norms[texts.distinct][texts.place]
        near, weight = np.add.reduceat(np.stack([dots, norms]), texts.sentences, axis=1)
        whole: Floats = np.add.reduceat(near, texts.firsts)
        whole /= np.add.reduceat(weight, texts.firsts)
        return {"cosine": whole, "sentence_cosine": texts.top(near / weight)}

    def _answers(
        self, asked: _Question, texts: _Texts, near: Floats, best: Ints
    ) -> dict[str, Floats]:
        """Does the text, and its best sentence, hold the kind of thing that is asked for?

        What the question names itself is no answer to it.
        """
        nothing = np.zeros(len(texts.found), np.float32)
        columns = {name: nothing for column, _, _ in _WANTED
                   for name in (column, f"sentence_{column}")}  # fmt: skip
        wanted = [row for row in _WANTED if row[1] in asked.asked]
        if not wanted:
            return columns
        kinds = self._table.kinds[texts.distinct]
        fresh = near.max(axis=1) < FIRM
        number = kinds[:, Kind.NUMBER] & fresh
        here = {
            "time": ((kinds[:, Kind.TIME] & fresh) | number)[texts.place],
            "number": number[texts.place],
            "cause": kinds[:, Kind.CAUSE][texts.place],
            "name": np.concatenate([one.names for one in texts.found]) & fresh[texts.place],
        }
        for column, _, thing in wanted:
            flags = np.maximum.reduceat(here[thing].astype(np.float32), texts.sentences)
            columns[column] = texts.top(flags)
            columns[f"sentence_{column}"] = flags[best]
        return columns


def _unit(vector: Floats) -> Floats:
    unit: Floats = vector / max(float(np.linalg.norm(vector)), 1e-6)
    return unit


def _rows(index: dict[int, list[int]], slots: Sequence[int]) -> Ints:
    """Rows that share one of the terms, a row as often as it shares one."""
    return np.array([row for slot in slots for row in index[slot]], dtype=np.int64)


def _among(rows: ShortInts, wanted: Ints) -> Ints:
    """Positions in `rows` (sorted, not empty) of the wanted rows that are there."""
    where = np.minimum(np.searchsorted(rows, wanted), len(rows) - 1)
    there: Ints = where[rows[where] == wanted]
    return there


def _weighed(meetings: Floats, weights: Floats) -> Floats:
    """`meetings` of question words, one kind after another, as sums by each column of `weights`."""
    sums: Floats = meetings.reshape(-1, len(weights)) @ weights
    return sums.reshape(len(meetings), -1)


def _pairs(sentence: Floats, owner: Ints) -> Floats:
    """Each sentence with the next one of the same text."""
    pair = sentence.copy()
    together = np.flatnonzero(owner[:-1] == owner[1:])
    pair[together] = np.maximum(sentence[together], sentence[together + 1])
    return pair


def _list_weights(weights: Floats, near: Floats) -> Floats:
    """Weights times IDF over the candidates: a word that all of them hold tells nothing."""
    count = (near >= FIRM).sum(axis=0)
    idf = np.log1p((len(near) - count + 0.5) / (count + 0.5))
    listed = weights * idf
    share: Floats = (listed / listed.sum()).astype(np.float32)
    return share


def _neighbours(near: Floats, texts: _Texts, both: Floats) -> dict[str, Floats]:
    """BM25 over the candidates as a share of what one text can reach; and the order of words.

    Neighbours in the question are neighbours in the text when they follow each other, and loosely
    so when at most two words are between them in either direction.
    """
    count, size = len(texts.found), near.shape[1]
    at, word = np.nonzero(near >= FIRM)
    cell = texts.text_of[at] * size + word
    times = np.bincount(cell, near[at, word], minlength=count * size).reshape(count, size)
    norm = K1 * (1.0 - B + B * texts.lengths / texts.lengths.mean())[:, None]
    bm25 = (times * (K1 + 1.0) / (times + norm)) @ both
    columns: dict[str, npt.NDArray[Any]] = {"bm25_static": bm25[:, 0], "bm25_list": bm25[:, 1]}
    if size < 2:
        zeros = np.zeros(count, np.float32)
        return columns | {"bigrams": zeros, "bigrams_loose": zeros}
    # The number of a meeting: its place, with a gap between texts, and its word.
    step = size + 1
    numbers = (at + texts.text_of[at] * GAP) * step + word
    met = _met(numbers, numbers + (LOOSE_STEPS[:, None] * step + 1))
    strict: Bools = met[0]
    loose: Bools = np.any(met, axis=0)
    weights = np.sqrt(both[:-1, 0] * both[1:, 0])
    weights = np.append(weights / weights.sum(), 0.0)
    for name, together in (("bigrams", strict), ("bigrams_loose", loose)):
        # Each pair counts once per text.
        cells = np.unique(cell[together])
        columns[name] = np.bincount(cells // size, weights[cells % size], minlength=count)
    return columns


def _met(numbers: Ints, wanted: Ints) -> Bools:
    """Whether each wanted number is among the numbers, which are sorted."""
    if not len(numbers):
        return np.zeros(wanted.shape, dtype=np.bool_)
    where = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    met: Bools = numbers[where] == wanted
    return met


def _agreement(asked: _Question, in_text: Floats, parts: dict[str, slice]) -> dict[str, Floats]:
    """Names and numbers of the question that the text has, and the rest of its words."""

    def share(match: Floats, which: Bools) -> Floats:
        if not which.any():
            return np.zeros(len(match), np.float32)
        weights = asked.weights * which
        found: Floats = match @ (weights / weights.sum())
        return found

    near = in_text[:, parts["near"]]
    return {
        "names": share(near, asked.names),
        "numbers": share(in_text[:, parts["exact"]], asked.numbers),
        "topic_soft": share(in_text[:, parts["soft"]], ~asked.names),
        "all_matched": (near.min(axis=1) >= FIRM).astype(np.float32),
    }


def _manner(asked: _Question, texts: _Texts, near: Floats) -> dict[str, Floats]:
    """Who speaks, whether the text asks itself, its length and its script."""
    found = texts.found
    named = other = np.zeros(len(found), np.float32)
    if asked.names.any():
        is_name = near[:, asked.names].max(axis=1) >= FIRM
        speakers = np.array([one.speaker for one in found])
        place = np.arange(len(texts.text_of)) - texts.begins[texts.text_of]
        said = is_name[texts.place] & (place < speakers[texts.text_of])
        by_name = np.bincount(texts.text_of[said], minlength=len(found)) > 0
        named = by_name.astype(np.float32)
        other = ((speakers > 0) & ~by_name).astype(np.float32)
    asks = np.array([one.asks for one in found], np.float32)
    first_person = np.array([one.first_person for one in found], np.float32)
    return {
        "speaker_named": named,
        "speaker_other": other,
        "asks": asks,
        "yes_asks": asks * np.float32("yes" in asked.asked),
        "length": np.log1p(texts.lengths).astype(np.float32),
        "short": (texts.lengths < SHORT_WORDS).astype(np.float32),
        "same_script": np.array([one.hebrew == asked.hebrew for one in found], np.float32),
        "first_person": first_person,
        # Who asks about themselves is answered by what they said.
        "own_words": first_person * np.float32(asked.first_person),
    }


# The feature reranker's judgement: a linear model over `FEATURES`, read from a small table.

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankModel:
    """Attributes:
    name: goes into health and reports.
    static_model: the word vectors that it was trained with; others have another scale.
    weights: one per feature, in the order of `FEATURES`.
    """

    name: str
    static_model: str
    weights: tuple[float, ...]
    bias: float

    def logits(self, features: Floats) -> list[float]:
        """One per row; the gateway makes probabilities of them."""
        scores = features.astype(np.float64) @ np.asarray(self.weights) + self.bias
        return [float(score) for score in scores]


def parse_rerank_model(tree: Mapping[str, Any]) -> RerankModel:
    """ConfigError when it was made for other features, or a number is missing."""
    try:
        weights = {str(name): float(weight) for name, weight in tree["weights"].items()}
        model = RerankModel(
            name=str(tree["name"]),
            static_model=str(tree["static_model"]),
            weights=tuple(weights.get(name, 0.0) for name in FEATURES),
            bias=float(tree["bias"]),
        )
        fits = tree["format"] == FORMAT and weights.keys() == set(FEATURES)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"The reranker's weights cannot be read ({error!r}): {_AGAIN}") from error
    if not fits or not all(map(math.isfinite, (*model.weights, model.bias))):
        raise ConfigError(f"The reranker's weights do not fit this version: {_AGAIN}")
    return model


def as_tree(model: RerankModel) -> dict[str, Any]:
    """What `parse_rerank_model` reads."""
    return {
        "format": FORMAT,
        "name": model.name,
        "static_model": model.static_model,
        "bias": model.bias,
        "weights": dict(zip(FEATURES, model.weights, strict=True)),
    }


_AGAIN = "make them again with `python -m jobs.build.reranker`."
