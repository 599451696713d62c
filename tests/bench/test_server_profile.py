"""The server profile: its arithmetic, its points, and a tiny run against the real server."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson
import pytest
import yaml
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException
from rich.console import Console

from jobs.ending import BAD_ARGUMENTS, DEPENDENCY_AWAY, DONE, exit_code_of
from rayapp.client.progress import Progress
from rayapp.core.errors import IndexDown
from rayapp.core.vectors import SparseVector
from rayapp.index.ports import VectorIndex
from rayapp.index.records import IndexPoint
from rayapp.memory.tiers import CORE_TIERS
from rayapp.storage.qdrant.server import QdrantServerIndex
from tests.bench import server_points, server_profile
from tests.bench.server_builds import BUILDS, HNSW_M, Built, load, sooner
from tests.bench.server_profile import dense_ask
from tests.bench.server_report import agreement, recall, tables, without_graph
from tests.bench.texts import facts

NO_TERMS = SparseVector([], [])
REPOSITORY = Path(__file__).parents[2]


def point(name: str, user: str, *vector: float) -> IndexPoint:
    dense = np.array(vector, dtype=np.float32)
    return IndexPoint(point_id=name, dense=dense, sparse=NO_TERMS, payload={"user_id": user}, rev=1)


def question(user: str, *vector: float) -> server_points.Question:
    return server_points.Question(user, np.array(vector, dtype=np.float32), NO_TERMS)


def test_recall_is_the_share_of_the_best_that_was_found() -> None:
    assert recall([0.9, 0.8], [0.9, 0.8]) == 1.0
    assert recall([0.9, 0.5], [0.9, 0.8]) == 0.5
    assert recall([], [0.9]) == 0.0


def test_recall_takes_one_of_equal_scores_for_another() -> None:
    assert recall([0.9, 0.8, 0.8], [0.9, 0.8]) == 1.0


def test_recall_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="who have points"):
        recall([0.9], [])


def test_agreement_leaves_out_lists_that_are_empty_on_both_sides() -> None:
    assert agreement([["a", "b"], []], [["b", "a"], []]) == 1.0
    assert agreement([["a", "b"], ["c"]], [["a", "x"], []]) == 0.25
    assert agreement([[]], [[]]) == 1.0


def test_the_truth_is_the_users_own_unless_all_are_asked() -> None:
    truth = server_points.Truth(
        [point("a", "ann", 2, 0), point("b", "bob", 1, 0.1), point("c", "ann", 0, 5)]
    )
    asked = question("ann", 3, 0)
    assert truth.best(asked, server_points.LIGHT, 2) == pytest.approx([1.0, 0.0])
    assert truth.best(asked, server_points.ALL, 2) == pytest.approx([1.0, 0.995], abs=1e-3)
    assert truth.scores(asked, ["c", "a", "a"]) == pytest.approx([0.0, 1.0])


def test_one_user_has_a_fifth_and_the_others_equally_many() -> None:
    found = Counter(server_points.owners_of(1_000, 8, random.Random(1)))
    assert found[server_points.HEAVY] == 200
    assert {count for user, count in found.items() if user != server_points.HEAVY} == {100}


def test_no_memory_is_expired_and_both_languages_and_all_tiers_are_there() -> None:
    random_ = random.Random(3)
    items = [
        server_points.item_of(n, "ann", fact, random_)
        for n, fact in enumerate(islice(facts(3), 300))
    ]
    assert {item.lang for item in items} == {"he", "en"}
    assert {item.tier for item in items} == set(CORE_TIERS)
    assert all(item.expires_at is None or item.expires_at > server_points.NOW for item in items)
    assert len({item.content_hash for item in items}) == len(items)


def test_a_search_asks_both_ways_in_every_tier() -> None:
    sub_queries = question("ann", 1, 0).sub_queries()
    assert [sub_query.tiers for sub_query in sub_queries] == [(tier,) for tier in CORE_TIERS] * 2
    assert [sub_query.dense is None for sub_query in sub_queries] == [False] * 5 + [True] * 5


def test_the_measured_graph_is_that_of_the_prod_profile() -> None:
    prod = yaml.safe_load((REPOSITORY / "configs" / "prod.yaml").read_text(encoding="utf-8"))
    assert prod["qdrant"]["hnsw_m"] == HNSW_M
    assert BUILDS["hnsw"].hnsw_m == BUILDS["int8"].hnsw_m == HNSW_M


def test_smaller_graphs_keep_what_the_build_says_of_them() -> None:
    assert sooner(BUILDS["exact"], 100) == sooner(BUILDS["hnsw"], 0) == {}
    changed = sooner(BUILDS["tenants"], 100)["hnsw_config"]
    assert (changed.m, changed.payload_m, changed.full_scan_threshold) == (0, None, 100)


def speed(**more: float) -> dict[str, float]:
    names = ("p50_ms", "p95_ms", "per_s", "per_s_many", "client_cpu_ms", "engine_cpu_ms")
    return dict.fromkeys(names, 1.0) | more


def build(indexed: int) -> dict[str, Any]:
    return {
        "load_s": 1.0,
        "wait_s": 2.0,
        "cpu_s": 3.0,
        "indexed_vectors": indexed,
        "segments": 2,
        "pss_mib": 100.0,
        "dense": {"HNSW": {server_points.LIGHT: speed(recall=0.987)}},
        "search": {
            server_points.LIGHT: {
                "server": speed(),
                "embedded": speed(),
                "same_ids": 0.9,
                "p50_ratio": 1.0,
            }
        },
    }


def report(**builds: int) -> dict[str, Any]:
    return {
        "items": 100,
        "users": 5,
        "heavy": 20,
        "dims": 256,
        "top": 10,
        "clients": 8,
        "embedded": {"load_s": 1.0, "cpu_s": 2.0, "pss_mib": 3.0},
        "builds": {name: build(indexed) for name, indexed in builds.items()},
    }


def test_the_tables_name_every_build_and_audience() -> None:
    costs, dense, search = tables(report(exact=100, hnsw=200))
    assert list(costs.columns[0].cells) == ["exact", "hnsw", "embedded"]
    assert list(dense.columns[2].cells) == ["0.987", "0.987"]
    assert list(search.columns[0].cells)[::2] == ["exact", "hnsw"]


def test_a_graph_that_was_not_built_is_told() -> None:
    assert without_graph(report(exact=100, hnsw=100, int8=200)) == ["hnsw"]


def test_too_few_items_of_a_user_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert server_profile.main(["--items", "99", "--users", "10"]) == BAD_ARGUMENTS
    assert "at least 10 --items" in capsys.readouterr().err


class Gone:
    """A server that went away, as the adapter and as its own client tell it."""

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        raise IndexDown("The vector index is away.")

    async def query_batch_points(self, alias: str, requests: list[Any]) -> list[Any]:
        raise ResponseHandlingException(ConnectionResetError("gone"))


def test_a_server_that_dies_while_it_is_filled_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    points = [point(str(number), "u", 1.0, 0.0) for number in range(3_000)]

    async def work() -> int:
        with Progress(Console(quiet=True)) as progress:
            await load(cast(VectorIndex, Gone()), points, "load", progress)
        return 0

    assert exit_code_of(lambda: asyncio.run(work())) == DEPENDENCY_AWAY
    assert "The vector index is away." in capsys.readouterr().err


async def test_a_server_that_dies_while_it_is_asked_is_away() -> None:
    one = Built(
        index=cast(QdrantServerIndex, Gone()),
        client=cast(AsyncQdrantClient, Gone()),
        pid=0,
        version="",
        facts={},
    )
    ask = dense_ask(one, BUILDS["exact"].modes[0], server_points.LIGHT)
    with pytest.raises(IndexDown):
        await ask(question("u", 1.0, 0.0))


@pytest.mark.engine
def test_a_tiny_run_builds_graphs_and_finds_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    sizes = ["--items", "600", "--users", "6", "--queries", "6"]
    arguments = [*sizes, "--graph-from", "20", "--builds", "int8", "--out", str(out)]
    assert server_profile.main(arguments) == DONE
    seen = orjson.loads(out.read_bytes())
    assert without_graph(seen) == []
    rescored = seen["builds"]["int8"]["dense"]["HNSW int8, rescored"]
    assert rescored[server_points.LIGHT]["recall"] == 1.0
    assert min(row["recall"] for row in rescored.values()) > 0.9
    search = seen["builds"]["int8"]["search"]
    assert set(search) == {server_points.LIGHT, server_points.HEAVY_USER}
    # Several threads build the graph, each time another one: .83 was seen once.
    assert min(row["same_ids"] for row in search.values()) > 0.75
