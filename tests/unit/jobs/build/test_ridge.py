"""The solver against the closed form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.build import ridge as module
from jobs.build.ridge import ChainedRows, ridge, sparse_rows

entries = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.floats(-2, 2)), max_size=6), min_size=1, max_size=8
)


def dense_of(rows: list[list[tuple[int, float]]], columns: int) -> np.ndarray:
    out = np.zeros((len(rows), columns))
    for row, cells in enumerate(rows):
        for column, value in cells:
            out[row, column] += value
    return out


@given(rows=entries)
def test_products_are_those_of_the_dense_matrix(rows: list[list[tuple[int, float]]]) -> None:
    sparse, dense = sparse_rows(rows, 5), dense_of(rows, 5)
    right = np.arange(15.0).reshape(5, 3)
    left = np.arange(3.0 * len(rows)).reshape(len(rows), 3)
    assert sparse.times(right) == pytest.approx(dense @ right)
    assert sparse.transposed.times(left) == pytest.approx(dense.T @ left)
    assert sparse.squares() == pytest.approx((dense**2).sum(axis=0))


def test_a_product_in_pieces_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    rows = [[(int(c), float(rng.normal())) for c in rng.integers(0, 9, 7)] for _ in range(40)]
    rows[3] = []
    right = rng.normal(size=(9, 4))
    whole = sparse_rows(rows, 9).times(right)
    monkeypatch.setattr(module, "ENTRIES_AT_ONCE", 5)
    assert np.array_equal(sparse_rows(rows, 9).times(right), whole)


@given(rows=entries, penalty=st.floats(0.1, 10))
def test_the_solution_is_the_closed_form(
    rows: list[list[tuple[int, float]]], penalty: float
) -> None:
    dense = dense_of(rows, 5)
    targets = np.random.default_rng(len(rows)).normal(size=(len(rows), 3))
    expected = np.linalg.solve(dense.T @ dense + penalty * np.eye(5), dense.T @ targets)
    solved = ridge(sparse_rows(rows, 5), targets, penalty=penalty, steps=30)
    assert solved == pytest.approx(expected, abs=1e-6)


def test_a_column_without_entries_gets_zeros() -> None:
    solved = ridge(sparse_rows([[(0, 1.0)]], 2), np.ones((1, 2)), penalty=1.0, steps=3)
    assert solved.tolist() == [[0.5, 0.5], [0.0, 0.0]]


@given(outer=entries, inner=st.lists(st.lists(st.tuples(st.integers(0, 3), st.floats(-2, 2)),
       max_size=4), min_size=5, max_size=5))  # fmt: skip
def test_a_chain_is_the_product(
    outer: list[list[tuple[int, float]]], inner: list[list[tuple[int, float]]]
) -> None:
    chain = ChainedRows(sparse_rows(outer, 5), sparse_rows(inner, 4))
    dense = dense_of(outer, 5) @ dense_of(inner, 4)
    right = np.arange(8.0).reshape(4, 2)
    left = np.arange(2.0 * len(outer)).reshape(len(outer), 2)
    assert chain.times(right) == pytest.approx(dense @ right)
    assert chain.transposed.times(left) == pytest.approx(dense.T @ left)
