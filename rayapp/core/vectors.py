"""Vectors, and what a collection of them was built for."""

from dataclasses import dataclass

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
    """What a collection was built for. Any difference at start-up is a SchemaMismatch."""

    model: str
    dims: int
    analyser: str

    @property
    def slug(self) -> str:
        """`model` as a file and collection name."""
        kept = "".join(c if c.isalnum() else "-" for c in self.model.lower())
        return "-".join(part for part in kept.split("-") if part)
