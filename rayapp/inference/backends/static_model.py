"""Static models: a text is the sum of its tokens' vectors; Hebrew words get rows of their own."""

import asyncio
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

import rayapp.inference.models
from rayapp.core.errors import ConfigError
from rayapp.core.vectors import Vector
from rayapp.inference.ports import EmbedderInfo, TextKind
from rayapp.text.hebrew import HAS_HEBREW, HEBREW_LETTER
from rayapp.text.lemmas import lemma
from rayapp.text.normalize import normalize

# What a static bilingual model sees in a Hebrew text: words, their lemmas and letter n-grams.
#
# The builder and the loader share these rules, so that a model is read as it was fitted.

# Raised with every change of what a word turns into; a model names the one it was fitted with.
RULES = 1
# Letters per n-gram: chosen on held-out fields of our sentence pairs (decision 0021).
GRAM_SIZES = (3, 4)
HEBREW_WORD = re.compile(rf"[{HEBREW_LETTER}]+(?:['\"][{HEBREW_LETTER}]+)*'?")
_READABLE = re.compile(r"[^\W_]")


def hebrew_words(normalized: str) -> list[str]:
    """The Hebrew words of a text that `normalize` has seen, in order."""
    return HEBREW_WORD.findall(normalized)


def without_hebrew(normalized: str) -> str:
    """The letters and digits of other scripts, empty when there are none.

    Punctuation alone says nothing, and reading it would cost as much as the words.
    """
    rest = HEBREW_WORD.sub(" ", normalized)
    return rest if _READABLE.search(rest) else ""


def lemma_of(word: str) -> str:
    """The dictionary form: inflections and prefixed forms of a word share one row."""
    return lemma(word)


def grams(lemma_form: str) -> list[str]:
    """Letter n-grams with marked ends, repeats kept: what an unknown word is made of."""
    marked = f"<{lemma_form.strip(chr(39))}>"
    return [
        marked[start : start + size]
        for size in GRAM_SIZES
        for start in range(len(marked) - size + 1)
    ]


# Distinct words kept resolved: about 20 MB; the words of a busy store are far fewer.
CACHE_WORDS = 1 << 16

Rows = tuple[tuple[int, ...], tuple[float, ...]]


class HebrewReader:
    """Known lemmas have a row; any other word is read from the rows of its letter n-grams.

    Args:
        words: lemma to row.
        pieces: n-gram to row.
    """

    def __init__(self, words: Mapping[str, int], pieces: Mapping[str, int]) -> None:
        self._words, self._pieces = words, pieces
        self._cache: dict[str, Rows] = {}

    def rows(self, word: str) -> Rows:
        """(rows, weight of each); both empty for a word of which nothing is known."""
        found = self._cache.get(word)
        if found is None:
            if len(self._cache) >= CACHE_WORDS:
                self._cache.clear()
            found = self._cache[word] = self._read(word)
        return found

    def _read(self, word: str) -> Rows:
        form = lemma_of(word)
        row = self._words.get(form)
        if row is not None:
            return (row,), (1.0,)
        parts = grams(form)
        known = tuple(self._pieces[part] for part in parts if part in self._pieces)
        return known, (1.0 / math.sqrt(len(parts)),) * len(known) if parts else ()


FORMAT, BILINGUAL_FORMAT = 1, 2
TOKENIZER_KIND = "tokenizers-json"
BUNDLED = Path(rayapp.inference.models.__file__).parent
# Rows gathered at once: 16 MiB of float32 at 256 dimensions, whatever the texts' lengths.
TOKENS_PER_SUM = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticModel:
    """A loaded artefact. `unknown_id` is the row of the token that stands for unknown words."""

    name: str
    dims: int
    langs: tuple[str, ...]
    vectors: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]
    tokenizer: Tokenizer
    unknown_id: int
    hebrew: HebrewReader | None = None

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Rows of the tokens that the tokenizer knows, of each text."""
        encoded = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [[row for row in text.ids if row != self.unknown_id] for text in encoded]

    def sums(self, texts: Sequence[str]) -> Vector:
        """float32 `[n, dims]`: the sum of token vectors, which has the direction of their mean.

        A text without any known token (an emoji, a foreign script) gets the unknown token alone:
        a vector of the model, close to nothing.
        """
        hebrew = self.hebrew
        out = np.empty((len(texts), self.dims), dtype=np.float32)
        rest = list(texts)
        words: dict[int, tuple[list[int], list[float]]] = {}
        if hebrew is not None:
            for position, text in enumerate(texts):
                if HAS_HEBREW.search(text):
                    plain = normalize(text)
                    words[position] = _rows_of(hebrew, plain)
                    rest[position] = without_hebrew(plain)
        for position, ids in enumerate(self.token_ids(rest)):
            read = words.get(position)
            if read is None:
                out[position] = self._sum(ids, None)
            else:
                rows, weights = read
                out[position] = self._sum(rows + ids, weights + [1.0] * len(ids))
        return out

    def _sum(self, rows: list[int], weights: list[float] | None) -> Vector:
        """`weights` of the rows; None = each counts once."""
        if not rows:
            rows, weights = [self.unknown_id], None
        total = np.zeros(self.dims, dtype=np.float32)
        for begin in range(0, len(rows), TOKENS_PER_SUM):
            part = np.asarray(rows[begin : begin + TOKENS_PER_SUM], dtype=np.int64)
            factors = self.scales[part]
            if weights is not None:
                factors *= np.asarray(weights[begin : begin + TOKENS_PER_SUM], dtype=np.float32)
            total += factors @ self.vectors[part].astype(np.float32)
        return total


def _rows_of(hebrew: HebrewReader, normalized: str) -> tuple[list[int], list[float]]:
    rows: list[int] = []
    weights: list[float] = []
    for word in hebrew_words(normalized):
        found = hebrew.rows(word)
        rows += found[0]
        weights += found[1]
    return rows, weights


def find_model(name_or_folder: str) -> Path:
    """A bundled model by name, or a folder. ConfigError when there is neither."""
    for folder in (BUNDLED / name_or_folder, Path(name_or_folder)):
        if (folder / "metadata.json").is_file():
            return folder
    bundled = sorted(path.parent.name for path in BUNDLED.glob("*/vectors.npz"))
    raise ConfigError(
        f"No static model {name_or_folder!r}: set embedding.model to a folder with "
        f"metadata.json or to one of {', '.join(bundled)}."
    )


def load_static_model(folder: Path) -> StaticModel:
    """Read and check an artefact. ConfigError when a part is missing or does not fit."""
    try:
        metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
        _check_kind(metadata)
        with np.load(folder / "vectors.npz", allow_pickle=False) as arrays:
            vectors, scales = arrays["vectors"], arrays["scales"]
        tokenizer = Tokenizer.from_file(str(folder / metadata["tokenizer"]["file"]))
        unknown_id = tokenizer.get_vocab()[metadata["unknown_token"]]
        hebrew, extra = _hebrew_of(folder, metadata)
        shape = (metadata["vocabulary"] + extra, metadata["dims"])
        model = StaticModel(
            name=metadata["name"],
            dims=metadata["dims"],
            langs=tuple(metadata["langs"]),
            vectors=vectors,
            scales=scales,
            tokenizer=tokenizer,
            unknown_id=unknown_id,
            hebrew=hebrew,
        )
    except ConfigError:
        raise
    # Broad: the tokenizers library raises a bare Exception on a file that it cannot read.
    except Exception as error:
        raise ConfigError(
            f"The static model in {folder.name} cannot be read ({error!r}): build it again."
        ) from error
    _check_arrays(model, shape)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return model


def _check_kind(metadata: dict[str, Any]) -> None:
    kind, number = metadata["tokenizer"]["kind"], metadata["format"]
    if number not in (FORMAT, BILINGUAL_FORMAT) or kind != TOKENIZER_KIND:
        raise ConfigError(
            f"Static model format {number} with tokenizer {kind!r} is not known here: "
            f"build it again for format {BILINGUAL_FORMAT} and {TOKENIZER_KIND!r}."
        )


def _hebrew_of(folder: Path, metadata: dict[str, Any]) -> tuple[HebrewReader | None, int]:
    """(reader, rows it names); (None, 0) for a model of format 1."""
    if metadata["format"] == FORMAT:
        return None, 0
    part, at = metadata["hebrew"], metadata["vocabulary"]
    if part["rules"] != RULES:
        raise ConfigError(
            f"The static model {metadata['name']} was fitted to Hebrew rules {part['rules']}, "
            f"this version reads by {RULES}: build it again."
        )
    words = (folder / part["words"]).read_text(encoding="utf-8").split("\n")[:-1]
    pieces = (folder / part["pieces"]).read_text(encoding="utf-8").split("\n")[:-1]
    reader = HebrewReader(
        {word: row for row, word in enumerate(words, at)},
        {piece: row for row, piece in enumerate(pieces, at + len(words))},
    )
    return reader, len(words) + len(pieces)


def _check_arrays(model: StaticModel, shape: tuple[int, int]) -> None:
    fits = (
        model.vectors.shape == shape
        and model.vectors.dtype == np.int8
        and model.scales.shape == shape[:1]
        and model.tokenizer.get_vocab_size() <= shape[0]
    )
    if not fits:
        raise ConfigError(
            f"The parts of the static model {model.name} do not fit together: build it again."
        )


# Up to here the work (0.4 ms at 10,000 characters per ms, measured) costs less than it does to
# hand it to a thread while other requests run; above it would hold up the event loop.
INLINE_CHARS = 4_000


class StaticBackend:
    """`EmbeddingBackend`; queries and passages share one space."""

    def __init__(self, name_or_folder: str) -> None:
        """Loads the artefact (0.1 s). ConfigError when it is not there or broken."""
        self._model = load_static_model(find_model(name_or_folder))

    async def info(self) -> EmbedderInfo:
        model = self._model
        return EmbedderInfo(backend="static", model=model.name, dims=model.dims, langs=model.langs)

    async def encode(self, texts: Sequence[str], kind: TextKind) -> list[Vector]:
        """Sums of token vectors, not normalised (the gateway does that)."""
        if sum(map(len, texts)) <= INLINE_CHARS:
            return list(self._model.sums(texts))
        return list(await asyncio.to_thread(self._model.sums, texts))

    async def close(self) -> None:
        return None
