"""The weights of the feature reranker: read, checked, and used as they stand."""

import copy
from typing import Any

import numpy as np
import pytest

from rayapp.core.errors import ConfigError
from rayapp.search.rules.rerank_features import FEATURES, RerankModel, as_tree, parse_rerank_model

MODEL = RerankModel(
    name="m", static_model="s", weights=tuple(float(at) for at in range(len(FEATURES))), bias=0.5
)


def test_what_is_written_is_read() -> None:
    assert parse_rerank_model(as_tree(MODEL)) == MODEL


def test_a_logit_is_the_weighted_sum() -> None:
    features = np.zeros((2, len(FEATURES)), dtype=np.float32)
    features[1, 3], features[1, 4] = 2.0, -1.0
    assert MODEL.logits(features) == [0.5, 0.5 + 6.0 - 4.0]


def changed(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(as_tree(MODEL)) | changes


@pytest.mark.parametrize(
    "tree",
    [
        {},
        changed(format=99),
        changed(weights={"unknown": 1.0}),
        changed(weights={**as_tree(MODEL)["weights"], "length": float("nan")}),
        changed(bias="much"),
        changed(weights=[1.0]),
    ],
)
def test_weights_that_do_not_fit_say_how_to_make_them(tree: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"jobs\.build\.reranker"):
        parse_rerank_model(tree)
