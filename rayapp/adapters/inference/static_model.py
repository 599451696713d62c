"""Static models: one vector per token, a text is the sum of its tokens' vectors.

An artefact is a folder, made by `rayapp.models.build_static`:

`metadata.json`
    `format` 1, `name` (goes into cache keys and the index schema), `dims`, `vocabulary`,
    `langs` (ISO 639-1), `tokenizer` {`kind`, `file`}, `unknown_token`, `licence`, `origin`.
`vectors.npz`
    `vectors` int8 `[V, D]` and `scales` float32 `[V]`; token `i` is `vectors[i] * scales[i]`.
    Row norms are the token weights.
`tokenizer.json`
    kind `tokenizers-json`: a file of the `tokenizers` library whose ids are the row numbers. A
    bilingual model has the same layout with more rows and a vocabulary that covers both languages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

import rayapp.models
from rayapp.domain.index import Vector
from rayapp.errors import ConfigError

FORMAT = 1
TOKENIZER_KIND = "tokenizers-json"
BUNDLED = Path(rayapp.models.__file__).parent
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

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Rows of the known tokens of each text.

        A text without any known token (an emoji, a foreign script) gets the unknown token alone:
        a vector of the model, close to nothing. Sub-word vocabularies know single letters, so
        this is rare: the bundled model reads Hebrew letter by letter.
        """
        encoded = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        known = [[row for row in text.ids if row != self.unknown_id] for text in encoded]
        return [rows or [self.unknown_id] for rows in known]

    def sums(self, texts: Sequence[str]) -> Vector:
        """float32 `[n, dims]`: the sum of token vectors, which has the direction of their mean."""
        ids = self.token_ids(texts)
        out = np.empty((len(ids), self.dims), dtype=np.float32)
        for position, rows in enumerate(ids):
            out[position] = self._sum(np.asarray(rows, dtype=np.int64))
        return out

    def _sum(self, rows: npt.NDArray[np.int64]) -> Vector:
        total = np.zeros(self.dims, dtype=np.float32)
        for begin in range(0, len(rows), TOKENS_PER_SUM):
            part = rows[begin : begin + TOKENS_PER_SUM]
            total += self.scales[part] @ self.vectors[part].astype(np.float32)
        return total


def find_model(name_or_folder: str) -> Path:
    """A bundled model by name, or a folder. ConfigError when there is neither."""
    for folder in (BUNDLED / name_or_folder, Path(name_or_folder)):
        if (folder / "metadata.json").is_file():
            return folder
    bundled = sorted(path.parent.name for path in BUNDLED.glob("*/metadata.json"))
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
        shape = (metadata["vocabulary"], metadata["dims"])
        model = StaticModel(
            name=metadata["name"],
            dims=metadata["dims"],
            langs=tuple(metadata["langs"]),
            vectors=vectors,
            scales=scales,
            tokenizer=tokenizer,
            unknown_id=unknown_id,
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
    kind = metadata["tokenizer"]["kind"]
    if metadata["format"] != FORMAT or kind != TOKENIZER_KIND:
        raise ConfigError(
            f"Static model format {metadata['format']} with tokenizer {kind!r} is not known here: "
            f"build it again for format {FORMAT} and {TOKENIZER_KIND!r}."
        )


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
