"""Ridge regression over sparse rows, with the same bits on every machine.

The minimum has a closed form, (XᵀX + λI)⁻¹XᵀY; conjugate gradients reach it in a fixed number of
steps without forming XᵀX. Only element-wise operations and sums in a fixed order: a BLAS product
differs in its last bits with the processor and the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Entries gathered at once: 64 MiB of float64 at 256 columns.
ENTRIES_AT_ONCE = 1 << 15


class SparseRows:
    """An immutable sparse matrix that knows products only.

    Args:
        rows, columns, values: entries; equal places must not repeat.
        shape: rows and columns.
    """

    def __init__(self, rows: Ints, columns: Ints, values: Floats, shape: tuple[int, int]) -> None:
        order = np.lexsort((columns, rows))
        self.shape = shape
        self.rows, self.columns, self.values = rows[order], columns[order], values[order]
        self._targets, self._starts = np.unique(self.rows, return_index=True)

    @property
    def transposed(self) -> SparseRows:
        return SparseRows(self.columns, self.rows, self.values, (self.shape[1], self.shape[0]))

    def scaled(self, weights: Floats) -> SparseRows:
        """Row `i` times `weights[i]`."""
        return SparseRows(self.rows, self.columns, self.values * weights[self.rows], self.shape)

    def squares(self) -> Floats:
        """Sum of squares of each column."""
        return self.weighted_squares(np.ones(self.shape[0]))

    def times(self, dense: Floats) -> Floats:
        """The product with a dense matrix `[columns, D]`."""
        out = np.zeros((self.shape[0], dense.shape[1]))
        for first, last in pairwise(self._cuts()):
            starts = self._starts[first:last]
            begin = starts[0]
            end = self._starts[last] if last < len(self._starts) else len(self.rows)
            parts = dense[self.columns[begin:end]]
            parts *= self.values[begin:end, None]
            out[self._targets[first:last]] = np.add.reduceat(parts, starts - begin, axis=0)
        return out

    def weighted_squares(self, weights: Floats) -> Floats:
        """Sum of squares of each column, row `i` counting `weights[i]` times."""
        squares = self.values * self.values * weights[self.rows]
        return np.asarray(np.bincount(self.columns, squares, self.shape[1]), dtype=np.float64)

    def _cuts(self) -> list[int]:
        """Places in `_targets` that cut the entries into pieces of about ENTRIES_AT_ONCE."""
        wanted = np.arange(0, len(self.rows), ENTRIES_AT_ONCE)
        inner = np.searchsorted(self._starts, wanted)
        return [int(cut) for cut in np.unique(np.append(inner, len(self._starts)))]


class ChainedRows:
    """The product of two sparse matrices, never formed: texts of words of parts.

    The parts of a word are written down once, and not again for every text that holds it.
    """

    def __init__(self, outer: SparseRows, inner: SparseRows) -> None:
        self._outer, self._inner = outer, inner
        self.shape = (outer.shape[0], inner.shape[1])

    @property
    def transposed(self) -> ChainedRows:
        return ChainedRows(self._inner.transposed, self._outer.transposed)

    def squares(self) -> Floats:
        """Without the cross terms of two words in a text: near enough to precondition with."""
        return self._inner.weighted_squares(self._outer.squares())

    def times(self, dense: Floats) -> Floats:
        return self._outer.times(self._inner.times(dense))


def sparse_rows(rows: Sequence[Iterable[tuple[int, float]]], columns: int) -> SparseRows:
    """From (column, value) lists per row; values of a repeated column add up."""
    places: list[tuple[int, int, float]] = []
    for row, entries in enumerate(rows):
        summed: dict[int, float] = {}
        for column, value in entries:
            summed[column] = summed.get(column, 0.0) + value
        places += [(row, column, value) for column, value in summed.items()]
    index = np.array([(row, column) for row, column, _ in places], dtype=np.int64).reshape(-1, 2)
    values = np.array([value for _, _, value in places], dtype=np.float64)
    return SparseRows(index[:, 0], index[:, 1], values, (len(rows), columns))


def ridge(
    features: SparseRows | ChainedRows, targets: Floats, *, penalty: float, steps: int
) -> Floats:
    """`W` `[columns, D]` that minimises |XW − Y|² + penalty · |W|².

    Conjugate gradients with a diagonal preconditioner, each column of Y by itself. Columns of X
    without entries get zeros.
    """
    back = features.transposed
    scale = (1.0 / (features.squares() + penalty))[:, None]
    found = np.zeros((features.shape[1], targets.shape[1]))
    residual = back.times(targets)
    ahead = scale * residual
    direction = ahead.copy()
    size = (residual * ahead).sum(axis=0)
    for _ in range(steps):
        image = back.times(features.times(direction)) + penalty * direction
        curvature = (direction * image).sum(axis=0)
        step = np.divide(size, curvature, out=np.zeros_like(size), where=curvature > 0.0)
        found += step * direction
        residual -= step * image
        ahead = scale * residual
        left = (residual * ahead).sum(axis=0)
        growth = np.divide(left, size, out=np.zeros_like(size), where=size > 0.0)
        direction = ahead + growth * direction
        size = left
    return found
