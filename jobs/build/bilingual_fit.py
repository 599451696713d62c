"""Fits Hebrew rows to an English static model: a Hebrew text's sum hits the English text's sum.

A lemma gets a row, and so does every letter n-gram that several words share. While fitting, a word
is its lemma plus its n-grams; afterwards the n-grams are folded into the rows of known lemmas, and
are read by themselves only for words never seen.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from jobs.build.pair_files import Pair
from jobs.build.ridge import ChainedRows, Floats, SparseRows, ridge, sparse_rows
from jobs.build.static import quantise, read_embeddings
from rayapp.inference.backends.static_model import grams, hebrew_words, lemma_of, without_hebrew
from rayapp.text.normalize import normalize

# Length of the average English half of our pairs in the English model: the unit of the penalty.
AVERAGE_LENGTH = 190.0
# Texts below an eighth of that count as if they had it: our choice.
LIGHTEST = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRecipe:
    """Source of every number: held-out fields of our pairs (decision 0021); all optima are flat.

    Attributes:
        penalty: λ, in units of pairs of average length.
        gram_weight: of a word's n-grams together against its lemma.
        phrase_weight: of a dictionary phrase against a sentence pair.
        name_weight: of a name against a sentence pair.
        min_words: distinct words that share an n-gram before it gets a row.
        steps: of the solver; from 15 on nothing measurable changes.
    """

    penalty: float = 1.0
    gram_weight: float = 0.8
    phrase_weight: float = 0.7
    name_weight: float = 0.5
    min_words: int = 3
    steps: int = 20


class EnglishRows:
    """The English half: int8 rows with scales and their tokenizer.

    Args:
        folder: a Model2Vec folder, or an artefact made here before (its English rows are kept).
    """

    def __init__(self, folder: Path) -> None:
        self.tokenizer_file = folder / "tokenizer.json"
        if (folder / "model.safetensors").is_file():
            self.vectors, self.scales = quantise(read_embeddings(folder / "model.safetensors"))
        else:
            count = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))["vocabulary"]
            with np.load(folder / "vectors.npz", allow_pickle=False) as arrays:
                self.vectors, self.scales = arrays["vectors"][:count], arrays["scales"][:count]
        described = json.loads(self.tokenizer_file.read_text(encoding="utf-8"))
        self.unknown_token: str = described["model"]["unk_token"]
        self._tokenizer = Tokenizer.from_file(str(self.tokenizer_file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._unknown_id = self._tokenizer.get_vocab()[self.unknown_token]

    def sums(self, texts: Sequence[str]) -> Floats:
        """float64 `[n, D]`: what the loaded model gives for these texts, zeros for empty ones."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        entries = [[(row, 1.0) for row in one.ids if row != self._unknown_id] for one in encoded]
        rows = self.vectors.astype(np.float64) * self.scales.astype(np.float64)[:, None]
        return sparse_rows(entries, len(rows)).times(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a model is fitted to, in a fixed order."""

    sentences: Sequence[Pair]
    phrases: Sequence[Pair] = ()
    names: Sequence[Pair] = ()

    def pairs(self) -> list[Pair]:
        return [*self.sentences, *self.phrases, *self.names]

    def weights(self, recipe: FitRecipe) -> Floats:
        """One per pair."""
        kinds = (
            (self.sentences, 1.0),
            (self.phrases, recipe.phrase_weight),
            (self.names, recipe.name_weight),
        )
        return np.concatenate([np.full(len(pairs), weight) for pairs, weight in kinds])


@dataclass(frozen=True, slots=True, kw_only=True)
class HebrewRows:
    """The Hebrew half: sorted lemmas and n-grams with their rows."""

    words: list[str]
    word_rows: Floats
    pieces: list[str]
    piece_rows: Floats


def fit(english: EnglishRows, sources: Sources, recipe: FitRecipe) -> HebrewRows:
    """The Hebrew rows for these pairs; the same pairs in the same order give the same bits."""
    pairs = sources.pairs()
    plain = [normalize(pair.hebrew) for pair in pairs]
    read = [[lemma_of(word) for word in hebrew_words(text)] for text in plain]
    words, pieces = _vocabulary(read, recipe.min_words)
    word_at = {word: at for at, word in enumerate(words)}
    piece_at = {piece: at for at, piece in enumerate(pieces)}
    texts = sparse_rows([[(word_at[word], 1.0) for word in text] for text in read], len(words))
    folds = sparse_rows([_parts(word, piece_at) for word in words], len(pieces))
    gram = recipe.gram_weight
    # Latin words and numbers inside a Hebrew text keep their English vectors.
    said = english.sums([pair.english for pair in pairs])
    targets = said - english.sums([without_hebrew(text) for text in plain])
    weights = _row_weights(said, sources.weights(recipe))
    features = ChainedRows(texts.scaled(weights), _beside_identity(folds, gram))
    solved = ridge(features, targets * weights[:, None], penalty=recipe.penalty, steps=recipe.steps)
    piece_rows = gram * solved[len(words) :]
    return HebrewRows(
        words=words,
        word_rows=solved[: len(words)] + folds.times(piece_rows),
        pieces=pieces,
        piece_rows=piece_rows,
    )


def _beside_identity(folds: SparseRows, weight: float) -> SparseRows:
    """Each word is its own row, and `weight` times the rows of its n-grams."""
    count, pieces = folds.shape
    own = np.arange(count)
    return SparseRows(
        np.concatenate([own, folds.rows]),
        np.concatenate([own, folds.columns + count]),
        np.concatenate([np.ones(count), weight * folds.values]),
        (count, count + pieces),
    )


def _vocabulary(texts: Sequence[Sequence[str]], min_words: int) -> tuple[list[str], list[str]]:
    words = sorted({word for text in texts for word in text})
    shared = Counter(piece for word in words for piece in set(grams(word)))
    return words, sorted(piece for piece, count in shared.items() if count >= min_words)


def _parts(word: str, piece_at: dict[str, int]) -> list[tuple[int, float]]:
    """Rows and weights of a word's n-grams; the loader weighs an unknown word's the same."""
    parts = grams(word)
    return [(piece_at[part], 1.0 / math.sqrt(len(parts))) for part in parts if part in piece_at]


def _row_weights(said: Floats, weights: Floats) -> Floats:
    """Factors of the equations: an error counts relative to the length of its English text."""
    length = np.sqrt((said * said).sum(axis=1))
    # A text of a few light words would otherwise outweigh a hundred sentences.
    relative = np.maximum(length, AVERAGE_LENGTH / LIGHTEST) / AVERAGE_LENGTH
    factors: Floats = np.sqrt(weights) / relative
    return factors
