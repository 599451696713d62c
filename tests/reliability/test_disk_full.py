"""A data directory on a disk that fills up: refused early, nothing lost, back by itself.

One test, because a stack on a disk of its own takes a minute: filled by stores over HTTP until they
are refused, every route; filled by somebody else to the last byte and MongoDB gone, every route;
room again, and everything that was acknowledged is there, once, and found.
"""

import random
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from rayapp.api.errors import PROTOCOL
from rayapp.local.stack.paths import StackPaths, tail
from tests.contract.test_path_encodings import ALL, Asked
from tests.running import RunningService, started, until
from tests.small_disk import MIB, SmallDisk, on_small_disk
from tests.support.harness import without_encoder

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.fault, pytest.mark.takes(90)]
# A new stack takes 390 MB, the filled one 480: with room again more is free than the reserve and
# its margin, and still less than the step at which jobs are refused.
DISK_MB = 1_200
RESERVE = 500 * MIB
# Room for stores above the reserve: a few seconds of them.
ROOM = 40 * MIB
MAX_STORES = 4_000
BATCH = 50
BATCH_TRIES = 5
WORDS = 600
FILLER = random.Random(20)
# Whatever waits for a MongoDB that is gone gives up after its server selection, 2 s; twice that
# where one call asks it twice, and the machine may be busy.
ANSWER_S = 15.0
NO_ROOM = 507
# A store whose answer was lost is in there, and is 200 when it comes again.
ACCEPTED = (200, 201)
# Two seconds, measured on busy cores as well; a machine that does all else at once takes longer.
RECOVERY_S = 60.0
LOG_LINES = 25
# Each waits for a MongoDB that is gone; one after the other they would take minutes.
WALKERS = 8


def filler() -> str:
    return " ".join(
        "".join(FILLER.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(WORDS)
    )


def fill(http: httpx.Client, acknowledged: dict[str, str]) -> httpx.Response:
    """Store until a store is refused; that answer."""
    while len(acknowledged) < MAX_STORES:
        markers = [f"diskmarker{len(acknowledged) + number:06d}" for number in range(BATCH)]
        items = [{"text": f"{marker} {filler()}", "tier": "history"} for marker in markers]
        answer = batch(http, items)
        if answer.status_code >= 400:
            return answer
        for marker, row in zip(markers, answer.json()["results"], strict=True):
            acknowledged[row["memory_id"]] = marker
    raise AssertionError("the disk never filled up")


def batch(http: httpx.Client, items: list[dict[str, str]]) -> httpx.Response:
    """The answer to a batch. On busy cores MongoDB may be late; then it is sent again, as it is."""
    for _ in range(BATCH_TRIES):
        answer = http.post("/api/memory/store/batch", json={"items": items})
        if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
            break
    return answer


def answers(service: RunningService) -> dict[Asked, httpx.Response]:
    """Every operation of the API with its example, as a user of no other test."""
    kind = {"Content-Type": "application/json"}
    with service.client("walker") as http, ThreadPoolExecutor(WALKERS) as pool:
        http.timeout = httpx.Timeout(ANSWER_S)

        def ask(asked: Asked) -> httpx.Response:
            body = {"content": asked.body, "headers": kind} if asked.body else {}
            with http.stream(asked.method, asked.path, **body) as response:
                if not asked.stream or response.status_code >= 400:
                    response.read()
                return response

        return dict(zip(ALL, pool.map(ask, ALL), strict=True))


def broken(found: dict[Asked, httpx.Response]) -> list[str]:
    """Answers that are no sentence: 500, a trace, or an error without one."""
    bad = []
    for asked, response in found.items():
        if response.status_code < 400:
            continue
        body = response.json() if "json" in response.headers.get("Content-Type", "") else {}
        if asked.path.startswith(PROTOCOL):
            body = body.get("error", {})
        # The probe lists reasons, health says it per component.
        told = body.get("message") or body.get("reasons") or body.get("components")
        if response.status_code == 500 or not told or "Traceback" in response.text:
            bad.append(f"{asked.method} {asked.path}: {response.status_code} {response.text[:200]}")
    return bad


def of_memory(found: dict[Asked, httpx.Response]) -> dict[Asked, httpx.Response]:
    """Without the routes of a language model: there is none here, and they say so."""
    return {asked: one for asked, one in found.items() if not asked.path.startswith(PROTOCOL)}


def count_of(http: httpx.Client) -> int:
    rows = http.get("/api/memory/stats").json()["stats"]["tiers"]
    return int(rows["history"]["active_count"])


def status_of(folder: Path) -> str:
    command = [sys.executable, "-m", "rayapp.local.cli.app", "status", "--data-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout


def test_a_full_disk_loses_nothing_and_says_what_to_do() -> None:
    test = f"{__file__}::{test_a_full_disk_loses_nothing_and_says_what_to_do.__name__}"
    on_small_disk(DISK_MB, test, fill_and_recover)


def fill_and_recover(disk: SmallDisk) -> None:
    data = disk.folder / "data"
    data.mkdir()
    service = started(data, embedding=without_encoder())
    try:
        acknowledged: dict[str, str] = {}
        with service.client("full") as http:
            the_disk_is_named_before_it_is_full(http, disk)
            disk.leave(RESERVE + ROOM)
            refused = fill(http, acknowledged)
            every_route_goes_on_or_refuses(service, http, refused, acknowledged)
            disk.fill()
            service.child("mongod").kill()  # as it ends itself once a write of its own fails
            until(lambda: http.get("/api/memory/stats").status_code == 503)
            without_mongodb_every_route_says_why(service, data)
            disk.release()
            comes_back(service, http)
            nothing_is_lost(service, http, acknowledged)
    finally:
        disk.release()
        service.down()


def comes_back(service: RunningService, http: httpx.Client) -> None:
    """Stores are accepted again; what the supervisor and MongoDB wrote when they are not."""
    try:
        until(lambda: store(http, "after the disk had room").status_code in ACCEPTED, RECOVERY_S)
        until(service.ready, RECOVERY_S)
    except AssertionError as error:
        paths = StackPaths.of(service.folder)
        logs = [tail(paths.log(name), LOG_LINES) for name in ("supervisor", "mongod")]
        answer = store(http, "still not").text
        raise AssertionError("\n\n".join([str(error), answer, *logs])) from None


def store(http: httpx.Client, text: str) -> httpx.Response:
    return http.post("/api/memory/store", json={"text": text, "tier": "working"})


def the_disk_is_named_before_it_is_full(http: httpx.Client, disk: SmallDisk) -> None:
    body = http.get("/api/memory/diagnostics").json()
    # Below the step at which work that takes much is refused: the disk is that small.
    assert body["disk"]["state"] == "tight"
    assert abs(body["disk"]["free_bytes"] - disk.free_bytes) < 64 * MIB
    assert any("nearly full" in advice for advice in body["recommendations"])
    assert store(http, "tight is no reason to refuse").status_code == 201
    job = http.post("/api/memory/ops/reindex", json={})
    assert (job.status_code, job.json()["code"]) == (NO_ROOM, "disk_full"), job.text


def every_route_goes_on_or_refuses(
    service: RunningService,
    http: httpx.Client,
    refused: httpx.Response,
    acknowledged: dict[str, str],
) -> None:
    assert (refused.status_code, refused.json()["code"]) == (NO_ROOM, "disk_full"), refused.text
    assert int(refused.headers["Retry-After"]) > 1
    assert str(service.folder) in refused.json()["message"]
    assert "nothing was stored" in refused.json()["message"]
    last = list(acknowledged)[-1]
    assert acknowledged[last] in http.get(f"/api/memory/items/{last}").text
    hits = http.post("/api/memory/search", json={"query": acknowledged[last], "limit": 3}).json()
    assert len(hits["results"]) == 3
    # On busy cores the graphs may be late as well.
    assert hits["receipt_id"] is None
    assert {"receipt"} <= set(hits["degraded"]) <= {"receipt", "priors"}
    health = http.get("/api/memory/health").json()
    row = next(one for one in health["components"] if one["name"] == "disk")
    assert (row["healthy"], health["status"]) == (False, "degraded")
    assert "full" in status_of(service.folder)

    found = answers(service)
    assert broken(found) == []
    counts = Counter(response.status_code for response in of_memory(found).values())
    assert counts[NO_ROOM] > 20, counts
    assert counts[503] == 0, counts
    reads = {asked: r for asked, r in found.items() if asked.method == "GET"}
    assert not [asked for asked, r in reads.items() if r.status_code == NO_ROOM]


def without_mongodb_every_route_says_why(service: RunningService, data: Path) -> None:
    found = answers(service)
    assert broken(found) == []
    away = [one for one in of_memory(found).values() if one.status_code == 503]
    assert away
    for response in away:
        assert str(data) in response.text, response.text
    assert str(data) in status_of(data)


def nothing_is_lost(
    service: RunningService, http: httpx.Client, acknowledged: dict[str, str]
) -> None:
    assert psutil.pid_exists(service.state().supervisor.pid)
    service.indexed(180)
    assert count_of(http) == len(acknowledged)
    for memory_id, marker in acknowledged.items():
        item = http.get(f"/api/memory/items/{memory_id}").json()
        assert marker in str(item)
    for memory_id in FILLER.sample(sorted(acknowledged), 40):
        body = {"query": acknowledged[memory_id], "limit": 10}
        hits = http.post("/api/memory/search", json=body).json()["results"]
        assert [hit["memory_id"] for hit in hits].count(memory_id) == 1
    body = http.post("/api/memory/ops/consistency", json={"dry_run": True}).json()
    assert body["result"]["issuesFound"] == 0, body
