"""A closed loop of clients in processes of their own, and what it says about the service."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import orjson

from rayapp.core.errors import DependencyDown
from rayapp.search.rules.evaluation import percentile
from tests.bench.wire import Call, Drive, Driven, drive

CLIENTS_PER_PROCESS = 4  # above that the client competes with itself for one core
# Worker processes begin together, once all have been imported: .6 s of a core each, measured,
# of two cores that the service uses as well.
LEAST_LAG_S, IMPORT_S = 2.0, 1.0
# The stages of a search that wait for the engine or for MongoDB, one after the other. `pending`
# and `priors` wait beside them; to add those as well would flatter the overhead.
STORE_STAGES = ("index_ms", "hydrate_ms", "receipt_ms")
NEEDED_STAGES = STORE_STAGES[:2]  # an answer without them skipped a store
# More clients that bring less than this share of further requests only wait for each other.
KNEE_GROWTH = 0.10


def drive_all(
    url: str, clients: int, calls: Sequence[Call], *, warm_s: float, measure_s: float
) -> dict[str, Any]:
    """A closed loop of `clients` connections spread over processes; see `summary`.

    Raises:
        DependencyDown: no call was answered.
    """
    start_at = time.time() + max(LEAST_LAG_S, IMPORT_S * client_processes(clients))
    whole = Drive(
        url=url, clients=clients, start_at=start_at, warm_s=warm_s, measure_s=measure_s, calls=calls
    )
    plans = shared_out(whole)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(plans), mp_context=context) as pool:
        return summary(clients, list(pool.map(drive, plans)))


def client_processes(clients: int) -> int:
    return -(-clients // CLIENTS_PER_PROCESS)


def shared_out(whole: Drive) -> list[Drive]:
    """The same loop as one plan per client process."""
    count = client_processes(whole.clients)
    return [
        replace(
            whole,
            clients=min(CLIENTS_PER_PROCESS, whole.clients - index * CLIENTS_PER_PROCESS),
            calls=whole.calls[index::count] or whole.calls,
        )
        for index in range(count)
    ]


def summary(clients: int, seen: Sequence[Driven]) -> dict[str, Any]:
    """Latencies, throughput and the client's own CPU use of all processes together.

    `requests` and `per_s` are of calls that the service took; `refused` ones were told to come
    again later.
    """
    latencies = [value for one in seen for value in one.latencies_ms]
    refused = sum(one.refused for one in seen)
    if not latencies:
        did = "All calls were refused" if refused else "No call was answered"
        raise DependencyDown(f"{did}: look at the service with `rayapp doctor`.")
    statuses: Counter[str] = Counter()
    stages: dict[str, list[float]] = {}
    in_stores: list[float] = []
    degraded: Counter[str] = Counter()
    from_index = 0
    for one in seen:
        statuses.update({str(status): count for status, count in one.statuses.items()})
        for answer in map(orjson.loads, one.kept):
            timings = (answer.get("debug") or {}).get("stage_timings_ms") or {}
            for name, value in timings.items():
                stages.setdefault(name, []).append(float(value))
            from_index += "index_ms" in timings
            if all(name in timings for name in NEEDED_STAGES):
                in_stores.append(sum(timings.get(name, 0.0) for name in STORE_STAGES))
            degraded.update(answer.get("degraded") or ())
    wall_s = max(one.wall_s for one in seen)
    latency = spread(latencies)
    found: dict[str, Any] = {
        "clients": clients,
        "requests": len(latencies),
        "per_s": round(len(latencies) / wall_s, 1),
        "latency_ms": latency,
        "statuses": dict(sorted(statuses.items())),
        "refused": refused,
        "lost": sum(one.lost for one in seen),
        "client_cpu_share": round(sum(one.cpu_s for one in seen) / wall_s, 3),
        "stages_ms": {name: spread(values) for name, values in stages.items()},
        "degraded": dict(degraded),
        # Of the answers that were looked into; the others came from a held view.
        "from_index": round(from_index / max(1, sum(len(one.kept) for one in seen)), 3),
    }
    stores_ms = percentile(in_stores, 0.5) if in_stores else 0.0
    if stores_ms:
        found["overhead"] = round(latency["p50"] / stores_ms, 2)
    return found


def knee(per_s: Mapping[int, float]) -> int | None:
    """The fewest clients beyond which requests per second grow by less than a tenth.

    `per_s`: by number of clients. None: the most clients still brought more, so it lies beyond.
    """
    counts = sorted(per_s)
    for place, count in enumerate(counts[:-1]):
        if max(per_s[more] for more in counts[place + 1 :]) < per_s[count] * (1 + KNEE_GROWTH):
            return count
    return None


def spread(values: Sequence[float]) -> dict[str, float]:
    """p50, p95, p99 and the largest, rounded to microseconds of milliseconds."""
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(percentile(values, share), 3) for name, share in shares.items()}
