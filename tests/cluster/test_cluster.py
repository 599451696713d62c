"""A cluster of three hosts under two clients: what each death costs, and that nothing is lost."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from threading import Thread
from typing import Any

import httpx
import pytest

from tests.bench.fault_load import Ended
from tests.cluster.conftest import ROWS
from tests.cluster.load import ClusterLoad
from tests.cluster.rig import CACHE, Cluster, until

pytestmark = [pytest.mark.cluster]
USERS = [f"person-{number}" for number in range(8)]
# Of the test of isolation: with two fronts, 750 searches.
PEOPLE, ROUNDS = 25, 15
JOB_S = 240.0
BEFORE_S, CALM_S, LONGEST_S = 5.0, 6.0, 90.0
# The table of what a death may cost: failed stores, failed searches, seconds to the last failure.
Cost = tuple[int, int, float]


class Loaded:
    """The load beside a test; `failed` of one kind since something was done to the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.load = ClusterLoad(cluster.fronts, USERS, cluster.key)
        self.at = 0.0

    def failed(self, kind: str) -> list[Ended]:
        return [one for one in self.load.seen.failures if one.kind == kind]

    @property
    def last_s(self) -> float:
        return max((one.ended - self.at for one in self.load.seen.failures), default=0.0)


@contextmanager
def load_of(cluster: Cluster) -> Iterator[Loaded]:
    """Load before, while and after the body, until nothing fails any more."""
    made = Loaded(cluster)
    thread = Thread(target=asyncio.run, args=(made.load.run(),))
    thread.start()
    try:
        time.sleep(BEFORE_S)
        assert made.load.seen.acknowledged
        assert made.load.seen.failures == [], made.load.seen.failures
        made.at = time.monotonic()
        yield made
        least = time.monotonic() + CALM_S
        while (now := time.monotonic()) < made.at + LONGEST_S:
            if now > least and made.load.seen.calm(now):
                break
            time.sleep(0.2)
    finally:
        made.load.stop()
        thread.join()


def judge(
    name: str, loaded: Loaded, cluster: Cluster, may: Cost, settle: Callable[[], None]
) -> None:
    begun = time.monotonic()
    settle()
    whole_s = time.monotonic() - begun
    lost = asyncio.run(loaded.load.missing())
    seen = loaded.load.seen
    row: dict[str, Any] = {
        "what": name,
        "calls": len(seen.calls),
        "failed": dict(Counter(one.how for one in seen.failures)) or "none",
        "refusals": dict(loaded.load.refusals),
        "last, s": f"{loaded.last_s:.1f}",
        "searches failed": len(loaded.failed("search")),
        "missing": f"{len(lost)} of {len(seen.acknowledged)}",
        "degraded": ", ".join(sorted(loaded.load.degraded)),
        "whole, s": f"{whole_s:.0f}",
    }
    ROWS.append(row)
    stores, searches, seconds = may
    assert lost == [], row
    assert len(loaded.failed("store")) <= stores, row
    assert len(loaded.failed("search")) <= searches, row
    assert loaded.last_s <= seconds, row


def whole(cluster: Cluster) -> Callable[[], None]:
    def settle() -> None:
        cluster.until_whole()
        cluster.until_indexed()

    return settle


def test_every_worker_answers_each_user_with_their_own_memories_alone(cluster: Cluster) -> None:
    people = [f"resident-{number}" for number in range(PEOPLE)]
    for front in cluster.fronts:
        for who in people:
            body = {"text": f"{who} lives in Haifa", "tier": "history"}
            cluster.call(front, "POST", "/api/memory/store", body, **{"X-User-Id": who})
    for front, who in product(cluster.fronts, people * ROUNDS):
        body = {"query": "Who lives in Haifa?"}
        found = cluster.call(front, "POST", "/api/memory/search", body, **{"X-User-Id": who})
        assert {hit["content"].split()[0] for hit in found["results"]} == {who}


def test_a_session_token_of_one_host_holds_on_the_other(cluster: Cluster) -> None:
    for front, other in (cluster.fronts, cluster.fronts[::-1]):
        made = cluster.call(front, "POST", "/api/auth/session", {}, **{"X-User-Id": "noa"})
        headers = {"Authorization": f"Bearer {made['token']}"}
        for one in (front, other) * 9:
            answer = httpx.get(f"{one}/api/memory/items", headers=headers, timeout=20)
            assert answer.status_code == 200, answer.text


def test_a_job_is_begun_on_each_host_and_its_workers_are_on_both(cluster: Cluster) -> None:
    for front in cluster.fronts:
        begun = cluster.call(front, "POST", "/api/memory/ops/reindex", {})
        follow = begun["result"]["follow"]

        def ended(front: str = front, follow: str = follow) -> bool:
            job = cluster.call(front, "GET", follow)["job"]
            assert job["state"] == "completed", job
            return True

        until(ended, JOB_S)


def test_an_erasure_reaches_the_archives_of_every_host(cluster: Cluster) -> None:
    who = {"X-User-Id": "leaving"}
    for front in cluster.fronts:
        body = {"text": f"I leave, and say so to {front}", "tier": "history"}
        cluster.call(front, "POST", "/api/memory/store", body, **who)
        saved = cluster.call(front, "GET", "/api/memory/backup/export", **who)
        cluster.call(front, "POST", "/api/memory/backup/restore", {"payload": saved}, **who)
    listed = [cluster.call(one, "GET", "/api/memory/backup/list", **who) for one in cluster.fronts]
    assert listed[0]["backups"] == listed[1]["backups"] != []
    erased = cluster.call(cluster.fronts[0], "DELETE", "/api/memory/user?confirm=DELETE", **who)
    removed = erased["certificate"]["removed"]["archives"]
    assert removed == len(listed[0]["backups"])
    assert not any((cluster.folder / "archives").rglob("*.zip"))


def test_a_qdrant_peer_dies(cluster: Cluster) -> None:
    host = cluster.hosts["c"]
    with load_of(cluster) as loaded:
        host.kill("qdrant")
    cluster.start_qdrant(host)
    judge("a Qdrant peer", loaded, cluster, (0, 0, 5.0), whole(cluster))


def test_the_cache_dies(cluster: Cluster) -> None:
    host = cluster.hosts["d"]
    with load_of(cluster) as loaded:
        host.kill("cache")
    cluster.start_memory(host, "cache", CACHE)
    judge("the cache", loaded, cluster, (0, 0, 5.0), whole(cluster))


def test_the_primary_of_mongodb_dies(cluster: Cluster) -> None:
    host = cluster.primary()
    assert host is not None
    with load_of(cluster) as loaded:
        host.kill("mongod")
    cluster.start_mongo(host)
    judge("the MongoDB primary", loaded, cluster, (30, 0, 15.0), whole(cluster))


def test_a_worker_host_dies(cluster: Cluster) -> None:
    host = cluster.hosts["c"]
    with load_of(cluster) as loaded:
        host.die()
    host.start()
    cluster.start_stores(host)
    cluster.start_ray(host)
    judge("a worker host", loaded, cluster, (30, 30, 15.0), whole(cluster))


def test_a_worker_host_is_cut_off_and_comes_back(cluster: Cluster) -> None:
    host = cluster.hosts["c"]
    with load_of(cluster) as loaded:
        host.cut()
        time.sleep(20.0)
        host.heal()
    judge("a cut of 20 s", loaded, cluster, (30, 30, 45.0), whole(cluster))


def test_the_head_host_dies_and_a_new_deployment_works(cluster: Cluster) -> None:
    host = cluster.hosts["a"]
    with load_of(cluster) as loaded:
        host.die()
    host.start()
    cluster.start_stores(host)
    cluster.start_ray(host)

    def settle() -> None:
        cluster.deploy()
        whole(cluster)()

    judge("the head host", loaded, cluster, (10, 0, 15.0), settle)


def test_a_release_under_load_fails_no_call(cluster: Cluster) -> None:
    with load_of(cluster) as loaded:
        cluster.deploy_anew()
    judge("a release", loaded, cluster, (0, 0, 0.0), whole(cluster))
