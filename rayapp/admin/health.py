"""What works, what does not, and the command that fixes it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Protocol

from rayapp.admin.ports import Component
from rayapp.admin.rules import differences_left
from rayapp.bulk.ports import LeaseStore
from rayapp.core.breaker import Breaker, BreakerSnapshot, BreakerState, worst_by_name
from rayapp.core.disk_space import DiskReport, DiskState
from rayapp.core.errors import RayappError
from rayapp.core.metrics import Series
from rayapp.core.runtime import BreakerOwner, Clock, Runtime
from rayapp.core.vectors import IndexSchema
from rayapp.index.consistency.service import last_report
from rayapp.index.ports import VectorIndex
from rayapp.learning.ports import OutcomeStore
from rayapp.learning.rules.promotion import OWNER_LEASE
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import EventStore, IndexBacklog, MemoryStore, TierCount
from rayapp.understanding.derived.ports import DerivedStore
from rayapp.understanding.derived.records import DerivedKind
from rayapp.understanding.merge_review import KIND as MERGE
from rayapp.understanding.statements.ports import KnowledgeStore

CHECK_TIMEOUT_S = 3.0
# A reset asks each model once, within the time limit of a query.
RESET_TIMEOUT_S = 6.0
# A backlog older than this says that the indexer stands still.
OLD_PENDING_S = 60.0
# Lifetime of the counts per tier, which scan the collection, and how many times as long as they
# took they live at least: a million memories take ten seconds.
COUNTS_S, COUNTS_REST = 15.0, 20
# Names of the client contract, in milliseconds, and what they are called here.
CONTRACT_LATENCIES = {
    "search": ("http_latency_s", ("route", "/api/memory/search")),
    "store": ("http_latency_s", ("route", "/api/memory/store")),
    "embed": ("embed_latency_s",),
    "prefetch": ("prefetch_latency_s",),
}
# Meaning and words are one read of the index here, so both names say how long that takes.
CONTRACT_STAGES = {
    "qdrant_query": ("stage_latency_s", ("stage", "index")),
    "bm25_query": ("stage_latency_s", ("stage", "index")),
    "rerank": ("stage_latency_s", ("stage", "rerank")),
}
# Failed items shown in diagnostics.
FAILURE_SAMPLE = 10

NO_OWNER = (
    "No maintenance process holds its lease: promotion and graphs wait; look at the maintenance "
    "deployment in the Ray dashboard."
)


class HealthStores(Protocol):
    """The stores that health asks: those that requests use."""

    items: MemoryStore
    outcomes: OutcomeStore
    leases: LeaseStore
    events: EventStore
    derived: DerivedStore
    knowledge: KnowledgeStore


Check = Callable[[], Awaitable[Any]]


class ProcessBreakers:
    """Implements `BreakerOwner` for breakers of this process, behind which nothing is asked."""

    def __init__(self, breakers: Sequence[Breaker], clock: Clock) -> None:
        self._breakers = breakers
        self._clock = clock

    async def breakers(self) -> list[BreakerSnapshot]:
        now = self._clock.monotonic()
        return [breaker.snapshot(now) for breaker in self._breakers]

    async def reset_breakers(self) -> list[str]:
        return [breaker.name for breaker in self._breakers if breaker.reset()]


@dataclass(frozen=True, slots=True)
class _Counts:
    """`at`: when they were begun, by the monotonic clock."""

    at: float
    took_s: float
    rows: list[TierCount]

    def old(self, now: float) -> bool:
        return now - self.at > max(COUNTS_S, COUNTS_REST * self.took_s)


@dataclass(eq=False)
class HealthService:
    """Asks the clients that requests use.

    Attributes:
        checks: of what is not the truth and not the index, by the name of its component.
        breaker_owners: whoever has some, by the name that stands for it while it does not answer.
        notices: what an operator should do some time; they block nothing.
    """

    stores: HealthStores
    index: VectorIndex
    _: KW_ONLY
    schema: IndexSchema
    checks: Mapping[str, Check]
    breaker_owners: Mapping[str, BreakerOwner]
    notices: Sequence[str] = ()
    runtime: Runtime

    def __post_init__(self) -> None:
        self._started = self.runtime.clock.monotonic()
        self._counts: _Counts | None = None
        self._counting: asyncio.Task[None] | None = None

    async def not_ready(self) -> list[str]:
        """Only what no degraded rung covers: a wrong schema, or the truth away."""
        reasons = list(self.runtime.problems)
        truth = await self._check("mongodb", self.stores.items.ping, critical=True)
        if not truth.healthy:
            disk = self.runtime.disk.look()
            reasons += [disk.reason + "."] if disk is not None and disk.reason else []
            reasons.append(truth.message)
        return reasons

    async def components(self) -> list[Component]:
        checks: list[Awaitable[Component]] = [
            self._check("mongodb", self.stores.items.ping, critical=True),
            self._check("qdrant", self._index_state),
            *(self._check(name, check) for name, check in self.checks.items()),
        ]
        found = await asyncio.gather(*checks)
        disk = self.runtime.disk.look()
        return [*found] if disk is None else [*found, _disk_component(disk)]

    async def breakers(self) -> dict[str, dict[str, Any]]:
        """The worst of each name; an owner that does not answer is a row that says so."""
        owners = self.breaker_owners.items()
        found = await asyncio.gather(*(self._read_breakers(*owner) for owner in owners))
        silent = {name: row for one in found if isinstance(one, tuple) for name, row in [one]}
        shown = [shot for one in found if isinstance(one, list) for shot in one]
        rows = {name: _breaker_row(shots) for name, shots in worst_by_name(shown).items()}
        return rows | silent

    async def reset_breakers(self) -> list[str]:
        """One owner that does not answer keeps none of the others open."""
        owners = self.breaker_owners.values()
        answers = await asyncio.gather(
            *(asyncio.wait_for(owner.reset_breakers(), RESET_TIMEOUT_S) for owner in owners),
            return_exceptions=True,
        )
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(
                answer, RayappError | TimeoutError
            ):
                raise answer
        names = [name for one in answers if isinstance(one, list) for name in one]
        return list(dict.fromkeys(names))

    async def _read_breakers(
        self, name: str, owner: BreakerOwner
    ) -> list[BreakerSnapshot] | tuple[str, dict[str, Any]]:
        try:
            return await asyncio.wait_for(owner.breakers(), CHECK_TIMEOUT_S)
        except TimeoutError:
            return name, _unknown_breaker(f"{name} did not answer within {CHECK_TIMEOUT_S:.0f} s.")
        except RayappError as error:
            return name, _unknown_breaker(error.message)

    async def diagnostics(self, *, metrics: bool = False) -> dict[str, Any]:
        begun = self.runtime.clock.monotonic()
        backlog, counts, failures, points, learning, sweep = await asyncio.gather(
            self.stores.items.backlog(),
            self._tier_counts(),
            self.stores.items.failures(FAILURE_SAMPLE),
            self._counted(self.index.count),
            self._learning(),
            last_report(self.stores.events),
        )
        # After the backlog: what was pending then has its point by now, and lacks the vector.
        unencoded = await self._counted(self.index.unencoded) if self.schema.encoder else 0
        waiting = await self._review_waiting()
        components = await self.components()
        breakers = await self.breakers()
        disk = self.runtime.disk.look()
        body: dict[str, Any] = {
            "success": True,
            "timestamp": self.runtime.clock.now().isoformat(),
            "memory_items_total": _total(counts, backlog),
            "qdrant_points_total": points,
            "by_tier": [_tier_row(count) for count in counts.rows] if counts else [],
            "by_tier_age_s": round(begun - counts.at, 3) if counts else None,
            "index": {
                "pending": backlog.pending,
                "synced": backlog.synced,
                "failed": backlog.failed,
                "oldest_pending_s": round(backlog.oldest_pending_s, 3),
                "unencoded": unencoded,
            },
            "needs_reindex_total": backlog.pending + backlog.failed,
            "needs_reindex_sample": [_failure_row(item) for item in failures],
            "circuit_breakers": breakers,
            "disk": None if disk is None else asdict(disk),
            "deferred_indexing": {"queue_size": backlog.pending, "processing": backlog.pending > 0},
            "learning": learning,
            "review_waiting": waiting,
            "consistency": sweep,
            "embedding_config": {
                "dimension": self.schema.dims,
                "model": self.schema.model,
                "analyser": self.schema.analyser,
                "encoder": self.schema.encoder or None,
            },
            "models": await self._models_row(),
            "health_issues": [c.message for c in components if not c.healthy],
            "recommendations": [
                *_recommendations(components, backlog, self.runtime.problems),
                *self.notices,
                *([] if learning["owner"] else [NO_OWNER]),
                *_drift_advice(sweep),
                *([disk.reason + "."] if disk is not None and disk.reason else []),
            ],
            "degraded": [c.name for c in components if not c.healthy],
        }
        if metrics:
            body["metrics"] = self.metrics(breakers)
        body["diagnostics_ms"] = round((self.runtime.clock.monotonic() - begun) * 1000, 3)
        return body

    def metrics(self, breakers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """What this process counted and measured since it started. `rates`: per second."""
        kept, up_s = self.runtime.metrics, self.runtime.clock.monotonic() - self._started
        operations = _by_label(kept.counters)
        return {
            "timestamp": self.runtime.clock.now().isoformat(),
            "uptime_ms": round(up_s * 1000),
            "latencies": self._latencies(),
            "operations": operations,
            "rates": {name: round(n / up_s, 4) for name, n in operations.items()} if up_s else {},
            "circuitBreakers": breakers,
            "queues": _by_label(kept.gauges),
            "hitRate": kept.cache_hit_rate(),
        }

    async def _learning(self) -> dict[str, Any]:
        owed, lease = await asyncio.gather(
            self.stores.outcomes.backlog(), self.stores.leases.current(OWNER_LEASE)
        )
        return {"owed": owed, "owner": lease.holder if lease else None}

    async def _review_waiting(self) -> dict[str, int]:
        """What waits for a person, by kind. Names for the registry are counted by each review."""
        derived, merges = await asyncio.gather(
            self.stores.derived.pending_of_all(), self.stores.knowledge.pending_of_all()
        )
        return {**{kind.value: derived.get(kind, 0) for kind in DerivedKind}, MERGE: merges}

    async def _models_row(self) -> dict[str, Any] | None:
        """Whether helpers may ask a language model, and how it does."""
        return await self.checks["models"]() if "models" in self.checks else None

    async def _tier_counts(self) -> _Counts | None:
        """Those of all documents, counted beside requests, which wait a little for new ones. None:
        they are counted for the first time."""
        now = self.runtime.clock.monotonic()
        if self._counting is None and (self._counts is None or self._counts.old(now)):
            self._counting = asyncio.create_task(self._count(now))
        if (counting := self._counting) is not None:
            done, _ = await asyncio.wait({counting}, timeout=CHECK_TIMEOUT_S)
            if done:
                await counting  # raises what the store said, to whoever waited
        return self._counts

    async def _count(self, began: float) -> None:
        try:
            rows = await self.stores.items.tier_counts(None)
            self._counts = _Counts(began, self.runtime.clock.monotonic() - began, rows)
        finally:
            self._counting = None

    async def _index_state(self) -> dict[str, Any]:
        health = await self.index.health()
        facts = {
            "engine": health.engine,
            "collection": health.collection,
            "points": health.points,
            "needs_rebuild": health.needs_rebuild,
            **health.facts,
        }
        return {"healthy": health.ready, "message": health.detail, **facts}

    async def _counted(self, count: Callable[[], Awaitable[int]]) -> int | None:
        """None: the index does not answer."""
        try:
            return await asyncio.wait_for(count(), CHECK_TIMEOUT_S)
        except (RayappError, TimeoutError):
            return None

    async def _check(self, name: str, check: Check, *, critical: bool = False) -> Component:
        begun = self.runtime.clock.monotonic()
        details: dict[str, Any] = {}
        healthy, message = True, "ok"
        try:
            answer = await asyncio.wait_for(check(), CHECK_TIMEOUT_S)
            if isinstance(answer, dict):
                details = answer
                healthy = bool(answer.get("healthy", True))
                message = str(answer.get("message") or ("ok" if healthy else f"{name} is not well"))
        except TimeoutError:
            healthy, message = False, f"{name} did not answer within {CHECK_TIMEOUT_S:.0f} s."
        except RayappError as error:
            healthy, message = False, error.message
        return Component(
            name=name,
            healthy=healthy,
            latency_ms=round((self.runtime.clock.monotonic() - begun) * 1000, 3),
            message=message,
            critical=critical,
            details=details,
        )

    def _latencies(self) -> dict[str, Any]:
        """By the names of the metrics, in their units; then by those of the client contract."""
        kept = self.runtime.metrics
        names = dict.fromkeys(name for name, _ in kept.samples)
        found: dict[str, Any] = {name: _spread(kept.samples_of(name)) for name in names}
        stages = self._named(CONTRACT_STAGES)
        return found | self._named(CONTRACT_LATENCIES) | {"searchStages": stages}

    def _named(self, names: Mapping[str, tuple[Any, ...]]) -> dict[str, dict[str, float]]:
        """In milliseconds; all zeros before anything was measured."""
        kept = self.runtime.metrics.samples
        return {
            name: _spread([seconds * 1000 for seconds in kept.get((ours, tuple(labels)), ())])
            for name, (ours, *labels) in names.items()
        }


def _by_label(counted: Mapping[Series, float]) -> dict[str, float]:
    return {
        name + "".join(f"[{k}={v}]" for k, v in labels): value
        for (name, labels), value in counted.items()
    }


def _breaker_row(shots: Sequence[BreakerSnapshot]) -> dict[str, Any]:
    """The first one's state, and of how many replicas theirs is closed no more."""
    worst = shots[0]
    return {
        "state": worst.state.value,
        "isOpen": worst.state is BreakerState.OPEN,
        "failureCount": worst.failures,
        "successCount": worst.successes,
        "lastError": worst.last_error,
        "nextProbeS": worst.next_probe_s,
        "replicas": len(shots),
        "tripped": sum(shot.state is not BreakerState.CLOSED for shot in shots),
    }


def _unknown_breaker(why: str) -> dict[str, Any]:
    """The row of an owner that does not answer."""
    shot = BreakerSnapshot(
        name="",
        state=BreakerState.CLOSED,
        failures=0,
        successes=0,
        last_error=why,
        next_probe_s=None,
    )
    return _breaker_row([shot]) | {"state": "unknown", "replicas": 0}


def _disk_component(disk: DiskReport) -> Component:
    """Low is still well, and says so; full refuses writes."""
    return Component(
        name="disk",
        healthy=disk.state is not DiskState.FULL,
        latency_ms=0.0,
        message=f"{disk.reason}." if disk.reason else "ok",
        details=asdict(disk),
    )


def _failure_row(item: MemoryItem) -> dict[str, Any]:
    return {
        "memory_id": item.memory_id,
        "user_id": item.user_id,
        "attempts": item.index.attempts,
        "last_error": item.index.last_error,
    }


def _total(counts: _Counts | None, backlog: IndexBacklog) -> int:
    """Before they are counted: every row that the index knows, those to be deleted as well."""
    if counts is None:
        return backlog.pending + backlog.synced + backlog.failed
    return sum(row.active + row.archived + row.hidden for row in counts.rows)


def _tier_row(count: TierCount) -> dict[str, Any]:
    return {
        "tier": count.tier.value,
        "mongoCount": count.active,
        "archivedCount": count.archived,
        "hiddenCount": count.hidden,
        "deletedCount": count.deleted,
        # By the queue: counting the points of a tier would read the engine at every look.
        "qdrantCount": count.indexed,
        "needsReindexCount": count.waiting,
    }


def _spread(samples: Sequence[float]) -> dict[str, float]:
    ordered = sorted(samples)
    if not ordered:
        return dict.fromkeys(("count", "min", "max", "avg", "p50", "p90", "p99"), 0)

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {
        "count": len(ordered),
        "min": ordered[0],
        "max": ordered[-1],
        "avg": sum(ordered) / len(ordered),
        "p50": at(0.50),
        "p90": at(0.90),
        "p99": at(0.99),
    }


def _drift_advice(sweep: Mapping[str, Any] | None) -> list[str]:
    """What the last sweep found and nobody repaired."""
    if sweep is None:
        return []
    left = sum(differences_left(sweep).values())
    if left <= 0:
        return []
    return [
        f"The last sweep left {left} differences between the truth and the index: run "
        "`rayapp job consistency_sweep --repair`."
    ]


def _recommendations(
    components: Sequence[Component], backlog: IndexBacklog, start_problems: Sequence[str]
) -> list[str]:
    """One sentence per problem, with the command that fixes it."""
    advice = list(start_problems)
    advice += [
        f"{c.name} is away: run `rayapp doctor` and see its log." for c in components
        if not c.healthy
    ]  # fmt: skip
    if backlog.failed:
        advice.append(f"{backlog.failed} items failed to index: run `rayapp job deferred`.")
    if backlog.oldest_pending_s > OLD_PENDING_S:
        advice.append("Items wait too long for the index: look at the indexer in the dashboard.")
    return advice
