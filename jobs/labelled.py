"""Sentences with their kind, `kind<TAB>text`, what is read of them, how well guesses of it do."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rayapp.core.errors import ConfigError
from rayapp.core.settings.model import EmbeddingSettings, EncoderSettings
from rayapp.core.vectors import Vector
from rayapp.inference.backends.encoder_model import EncoderModel
from rayapp.inference.backends.static_model import find_model, load_static_model
from rayapp.inference.embedding import prepare
from rayapp.inference.ports import TextKind, TextVectors
from rayapp.inference.sentence_heads import READ_AS, SENTENCE_KINDS, Reading, SentenceKind
from rayapp.text.language import detect_language

# Knows the words of both languages, whatever embedder a service has.
STATIC_MODEL = "bilingual-static-1"

LANGUAGE = Path(__file__).parent / "build" / "language"
_KINDS: dict[str, SentenceKind] = {kind: kind for kind in SENTENCE_KINDS}


@dataclass(frozen=True, slots=True)
class Labelled:
    """A sentence of a kind. `language` is the name of its file."""

    kind: SentenceKind
    text: str
    language: str


def read_labelled(path: Path) -> list[Labelled]:
    """The sentences of a file; empty lines are none. ConfigError names the line that is wrong."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as UTF-8 text: {error}.") from None
    found = [
        _labelled(line, f"{path.name}, line {number}", path.stem)
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if not found:
        raise ConfigError(f"{path.name} holds no sentence: write kind, one tab, text on each line.")
    return found


def _labelled(line: str, where: str, language: str) -> Labelled:
    name, tab, text = line.partition("\t")
    if not tab or not text.strip():
        raise ConfigError(f"{where}: write kind, one tab, text.")
    kind = _KINDS.get(name.strip())
    if kind is None:
        raise ConfigError(
            f"{where}: {name.strip()!r} is no kind: take one of {', '.join(SENTENCE_KINDS)}."
        )
    return Labelled(kind, text.strip(), language)


@dataclass(frozen=True, slots=True)
class KindScore:
    """Of the guesses of one kind. `sentences`: how many there are of it."""

    kind: SentenceKind
    sentences: int
    precision: float
    recall: float
    f1: float


def kind_scores(pairs: Sequence[tuple[SentenceKind, SentenceKind]]) -> list[KindScore]:
    """By pairs of kind and guess: a row for each kind that is there or was guessed."""
    there, guessed = Counter(kind for kind, _ in pairs), Counter(guess for _, guess in pairs)
    right = Counter(kind for kind, guess in pairs if kind == guess)
    return [
        KindScore(
            kind,
            there[kind],
            _share(right[kind], guessed[kind]),
            _share(right[kind], there[kind]),
            _share(2 * right[kind], there[kind] + guessed[kind]),
        )
        for kind in SENTENCE_KINDS
        if there[kind] or guessed[kind]
    ]


def macro_of(rows: Sequence[KindScore]) -> float:
    """The mean F1 of the kinds that there are: guesses of others cost these their recall."""
    there = [row.f1 for row in rows if row.sentences]
    return sum(there) / len(there) if there else 0.0


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


class SentenceReader:
    """Reads texts for their kind as the service does, in this process."""

    def __init__(self, static_model: str = STATIC_MODEL) -> None:
        """Loads both models. ConfigError: onnxruntime is not installed, or no such model."""
        self._encoder = EncoderModel()
        self._static = load_static_model(find_model(static_model))
        self.encoder, self.static_model = self._encoder.name, self._static.name
        self.dims = self._encoder.dims // 2
        self._settings = EmbeddingSettings(
            query_prefix=self._encoder.prefixes["query"],
            passage_prefix=self._encoder.prefixes["passage"],
            max_text_chars=EncoderSettings().max_text_chars,
        )

    def passages(self, texts: Sequence[str]) -> Vector:
        """`[texts, dims]` of texts that are kept, for search."""
        return self._joint(texts, "passage")[:, : self.dims]

    def queries(self, texts: Sequence[str]) -> Vector:
        """The same of questions."""
        return self._joint(texts, "query")[:, : self.dims]

    def _joint(self, texts: Sequence[str], kind: TextKind) -> Vector:
        return self._encoder.read([prepare(text, kind, self._settings) for text in texts])

    def read(self, texts: Sequence[str]) -> list[Reading]:
        """In the order of the texts."""
        joint = self._joint(texts, READ_AS)
        words = self._static.sums(texts)
        words /= np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-9)
        return [
            Reading(detect_language(text), TextVectors(*np.split(one, 2)), row)
            for text, one, row in zip(texts, joint, words, strict=True)
        ]
