"""Requests to the server: what the client copies, and what it may not touch."""

from copy import deepcopy

import numpy as np
from qdrant_client import models

from rayapp.core.vectors import SparseVector
from rayapp.index.records import SubQuery
from rayapp.storage.qdrant.server_convert import FULL_SCAN_KB, graph_config, query_of

CONDITIONS = models.Filter(must=[])
NEAR = SubQuery(name="dense", limit=7, dense=np.array([0.5, -0.5], dtype=np.float32))
WORDS = SubQuery(name="bm25", limit=7, sparse=SparseVector([3, 9], [1.0, 2.0]))


def test_a_copy_of_a_request_shares_its_vector_and_filter() -> None:
    request = query_of(NEAR, CONDITIONS)
    copied = deepcopy(request)
    assert copied is not request
    assert copied == request
    assert copied.query is request.query
    assert copied.filter is CONDITIONS


def test_a_changed_copy_leaves_the_request_as_it_was() -> None:
    request = query_of(WORDS, CONDITIONS)
    copied = deepcopy(request)
    copied.query = None
    copied.limit = 1
    assert isinstance(request.query, models.NearestQuery)
    assert request.limit == 7


def test_each_arm_asks_its_own_vector() -> None:
    near, matching = query_of(NEAR, CONDITIONS), query_of(WORDS, CONDITIONS)
    assert (near.using, matching.using) == ("dense", "bm25")
    assert isinstance(near.query, models.NearestQuery)
    assert near.query.nearest == [0.5, -0.5]
    assert isinstance(matching.query, models.NearestQuery)
    assert matching.query.nearest == models.SparseVector(indices=[3, 9], values=[1.0, 2.0])


def test_large_users_have_graphs_of_their_own_and_others_are_read_exactly() -> None:
    graph = graph_config(16)
    assert (graph.m, graph.payload_m) == (16, 16)
    assert graph.full_scan_threshold == FULL_SCAN_KB


def test_exact_search_has_no_graph_at_all() -> None:
    assert (graph_config(0).m, graph_config(0).payload_m) == (0, 0)
