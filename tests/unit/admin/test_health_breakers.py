"""Which breakers health names and closes: all that a request meets, wherever they live."""

from typing import Any

from rayapp.admin.health import HealthService, ProcessBreakers
from rayapp.core.breaker import Breaker, BreakerPolicy, BreakerSnapshot
from rayapp.core.errors import RerankerDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.runtime import BreakerOwner, Runtime
from rayapp.core.settings.load import load_settings
from tests.support.clock import FakeClock

POLICY = BreakerPolicy(failures=1, open_s=30, successes=1)


class Away:
    """A deployment none of whose replicas answers."""

    async def breakers(self) -> list[BreakerSnapshot]:
        raise RerankerDown("The deployment failed to start; see its log.")

    async def reset_breakers(self) -> list[str]:
        raise RerankerDown("The deployment failed to start; see its log.")


def health_of(owners: dict[str, BreakerOwner], clock: FakeClock) -> HealthService:
    unused: Any = None
    runtime = Runtime(
        settings=load_settings("local", env={}),
        clock=clock,
        metrics=InMemoryMetrics(),
        new_id=lambda: "id",
        random=lambda: 0.0,
        process="p",
    )
    return HealthService(
        unused, unused, schema=unused, checks={}, breaker_owners=owners, runtime=runtime
    )


def tripped(name: str, clock: FakeClock) -> Breaker:
    breaker = Breaker(name, POLICY)
    ticket = breaker.admit(clock.monotonic())
    assert ticket is not None
    breaker.fail(ticket, "EmbedderDown: away", clock.monotonic())
    return breaker


async def test_replicas_are_one_row_that_shows_the_worst() -> None:
    clock = FakeClock()
    replicas = ProcessBreakers([Breaker("embedding", POLICY), tripped("embedding", clock)], clock)
    health = health_of(
        {"process": ProcessBreakers([Breaker("qdrant", POLICY)], clock), "embedding": replicas},
        clock,
    )
    clock.advance(10)
    rows = await health.breakers()
    assert list(rows) == ["qdrant", "embedding"]
    row = rows["embedding"]
    assert (row["state"], row["isOpen"], row["lastError"]) == ("open", True, "EmbedderDown: away")
    assert (row["nextProbeS"], row["replicas"], row["tripped"]) == (20, 2, 1)
    assert await health.reset_breakers() == ["embedding"]
    assert {row["state"] for row in (await health.breakers()).values()} == {"closed"}


async def test_an_owner_that_does_not_answer_is_named_and_keeps_no_other_open() -> None:
    clock = FakeClock()
    own = ProcessBreakers([tripped("qdrant", clock)], clock)
    health = health_of({"reranker": Away(), "process": own}, clock)
    rows = await health.breakers()
    assert (rows["qdrant"]["state"], rows["reranker"]["state"]) == ("open", "unknown")
    assert "failed to start" in rows["reranker"]["lastError"]
    assert await health.reset_breakers() == ["qdrant"]
