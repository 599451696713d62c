"""What kind of sentence a text is: linear heads over what the encoder gives of it.

The weights are learned from labelled sentences (`jobs/build/heads.py`) for one encoder and one
static model. The encoder's vectors tell how a sentence is meant; the sum of word vectors tells
better which words were said, above all in Hebrew. Each language is read from its own middle,
because a vector tells the language of a text before it tells anything else.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

import rayapp.inference.models
from rayapp.core.errors import ConfigError
from rayapp.core.vectors import Vector
from rayapp.inference.ports import TextKind, TextVectors
from rayapp.text.language import Language

SentenceKind = Literal[
    "remember",
    "forget",
    "preference",
    "identity",
    "goal",
    "emotion",
    "past",
    "documents",
    "general",
    "small_talk",
    "fact",
    "plan",
    "decision",
]
SENTENCE_KINDS: tuple[SentenceKind, ...] = get_args(SentenceKind)
# The prefix under which a text is read for its kind, whatever it turns out to be.
READ_AS: TextKind = "query"
FORMAT = 1
BUNDLED = Path(rayapp.inference.models.__file__).with_name("sentence_heads.npz")
# What the words of a text weigh beside each vector of the encoder, of length 1 (decision 0094).
WORDS_WEIGHT = 0.4
# Languages with a middle of their own; any other text is read from between them.
LANGUAGES = ("en", "he")


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of a text when its kind is asked.

    Attributes:
        language: as detected; it says from which middle the text is read.
        vectors: of the encoder, the text read as `READ_AS`.
        words: of the static model that the heads name, unit length.
    """

    language: Language
    vectors: TextVectors
    words: Vector


def features_of(reading: Reading, means: Vector) -> Vector:
    """What the heads weigh; `means` of both vectors of the encoder side by side."""
    joint = np.concatenate([reading.vectors.search, reading.vectors.heads])
    middle = middle_of(reading.language, means)
    return np.concatenate([joint - middle, WORDS_WEIGHT * reading.words])


def middle_of(language: Language, means: Vector) -> Vector:
    """Where vectors of a language are read from; `means` in the order of `LANGUAGES`."""
    if language in LANGUAGES:
        middle: Vector = means[LANGUAGES.index(language)]
        return middle
    between: Vector = means.mean(axis=0)
    return between


@dataclass(frozen=True, slots=True)
class SentenceHeads:
    """For one encoder and one static model. `weights` are `[features, kinds]`."""

    encoder: str
    static_model: str
    means: Vector
    weights: Vector
    bias: Vector
    metadata: Mapping[str, Any]

    def probabilities(self, reading: Reading) -> dict[SentenceKind, float]:
        """Of each kind, calibrated; together 1."""
        scores = features_of(reading, self.means) @ self.weights + self.bias
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        return dict(zip(SENTENCE_KINDS, map(float, shares), strict=True))


def load_heads(encoder: str | None = None, path: Path = BUNDLED) -> SentenceHeads:
    """Those for the encoder of this name; None: whichever they are for.

    ConfigError: broken, or made for another encoder.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays: dict[str, npt.NDArray[Any]] = {name: file[name] for name in file.files}
        metadata = json.loads(arrays["metadata"].tobytes())
        means, weights = (arrays[name].astype(np.float32) for name in ("means", "weights"))
        bias = arrays["bias"].astype(np.float32)
        fits = (metadata["format"], tuple(metadata["kinds"])) == (FORMAT, SENTENCE_KINDS)
        shapes = (
            (len(LANGUAGES), metadata["joint_dims"]),
            (metadata["joint_dims"] + metadata["words_dims"], len(bias)),
        )
        made_for, static_model = metadata["encoder"], metadata["static_model"]
    # Broad: a broken archive raises what zipfile, json or numpy raise.
    except Exception as error:
        raise ConfigError(
            f"The heads in {path.name} cannot be read ({error!r}): make them again with "
            "`python -m jobs.build.heads`."
        ) from error
    if not fits or (means.shape, weights.shape) != shapes or len(bias) != len(SENTENCE_KINDS):
        raise ConfigError(
            f"The heads in {path.name} do not fit this version: make them again with "
            "`python -m jobs.build.heads`."
        )
    if encoder is not None and made_for != encoder:
        raise ConfigError(
            f"The heads in {path.name} were made for {made_for!r}, not for {encoder!r}: make them "
            "again with `python -m jobs.build.heads`."
        )
    return SentenceHeads(made_for, static_model, means, weights, bias, metadata)
