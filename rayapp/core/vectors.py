"""Vectors, and what a collection of them was built for."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Parallel lists; indices are unique and ascending, u32."""

    indices: list[int]
    values: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSchema:
    """What a collection was built for. Any difference at start-up is a SchemaMismatch.

    Attributes:
        encoder, encoder_dims: of the second vector of a point; none where the encoder is off.
    """

    model: str
    dims: int
    analyser: str
    encoder: str = ""
    encoder_dims: int = 0

    @property
    def first(self) -> "IndexSchema":
        """Without the encoder: what the vectors are made for that every point has."""
        return replace(self, encoder="", encoder_dims=0)

    def as_json(self) -> dict[str, Any]:
        """As it is kept; without the encoder nothing of it, as versions before it know it."""
        return {name: value for name, value in asdict(self).items() if value}

    def holds(self, wanted: "IndexSchema") -> bool:
        """Whether a collection of this schema serves whoever wants the other: it may have more."""
        return self.first == wanted.first and (not wanted.encoder or self == wanted)

    @property
    def slug(self) -> str:
        """`model` as a file and collection name."""
        kept = "".join(c if c.isalnum() else "-" for c in self.model.lower())
        return "-".join(part for part in kept.split("-") if part)
