"""Reranking gateway: caps, sigmoid, faults, time limits."""

import asyncio
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.batching import BackendTraits
from rayapp.core.breaker import Breaker, BreakerPolicy, BreakerState
from rayapp.core.errors import DeadlineExceeded, InvalidInput, Overloaded, RerankerDown
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import BatchSettings, RerankerSettings
from rayapp.inference.reranking import WAITING_SEARCHES, RerankService, sigmoid
from tests.support.models import InlineOverlapBackend, OverlapRerankBackend

QUERY = "where does the cat live"
DOCUMENTS = ["the cat does live here", "a dog", "where is the cat", "nothing of that"]


class Bench:
    def __init__(
        self, *, delay_s: float = 0.0, max_size: int = 32, inline: bool = False, **settings: float
    ) -> None:
        kind = InlineOverlapBackend if inline else OverlapRerankBackend
        self.backend = kind(delay_s=delay_s)
        self.breaker = Breaker("reranker", BreakerPolicy(failures=3, open_s=30, successes=2))
        self.metrics = InMemoryMetrics()
        self.service = RerankService(
            self.backend,
            RerankerSettings.model_validate(
                {"batch": BatchSettings(max_size=max_size), **settings}
            ),
            BackendTraits(max_tokens=16_384),
            breaker=self.breaker,
            metrics=self.metrics,
        )

    async def rerank(self, *documents: str, timeout_s: float = 5.0) -> list[float] | None:
        return await self.service.rerank(QUERY, documents, timeout_s=timeout_s)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_sigmoid_is_a_probability(logit: float) -> None:
    assert 0.0 <= sigmoid(logit) <= 1.0
    assert sigmoid(logit) + sigmoid(-logit) == pytest.approx(1.0)


@pytest.mark.parametrize(("logit", "p"), [(0, 0.5), (2, 0.8808), (-2, 0.1192), (-10, 0.0000454)])
def test_sigmoid_values(logit: float, p: float) -> None:
    assert sigmoid(logit) == pytest.approx(p, rel=1e-3)


class TestScores:
    async def test_in_document_order(self) -> None:
        bench = Bench()
        scores = await bench.rerank(*DOCUMENTS)
        logits = await bench.backend.logits(QUERY, DOCUMENTS)
        assert scores == [sigmoid(logit) for logit in logits]
        assert scores[1] == scores[3] < scores[2] <= scores[0]

    async def test_batches_of_mixed_length_keep_the_order(self) -> None:
        documents = [f"cat {'word ' * (number * 7 % 11)}{number}" for number in range(25)]
        whole, parts = Bench(), Bench(max_size=4)
        assert await parts.rerank(*documents) == await whole.rerank(*documents)
        assert max(map(len, parts.backend.calls)) == 4

    async def test_candidates_and_characters_are_capped(self) -> None:
        bench = Bench(max_candidates=2, max_chars=100)
        scores = await bench.rerank("x" * 500, "b", "c")
        assert scores is not None
        assert len(scores) == 2
        assert bench.backend.calls == [["b", "x" * 100]]

    async def test_no_documents_no_call(self) -> None:
        bench = Bench()
        assert await bench.rerank() == []
        assert bench.backend.calls == []

    async def test_no_backend_no_scores(self) -> None:
        service = RerankService(
            None,
            RerankerSettings(),
            BackendTraits(max_tokens=1),
            breaker=Breaker("reranker", BreakerPolicy(failures=3, open_s=30, successes=2)),
            metrics=InMemoryMetrics(),
        )
        assert await service.rerank(QUERY, DOCUMENTS, timeout_s=1) is None
        assert (await service.health())["backend"] == "none"


class TestTrouble:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    async def test_unusable_scores(self, bad: float) -> None:
        bench = Bench()

        async def logits(query: str, documents: list[str]) -> list[float]:
            return [bad] * len(documents)

        bench.backend.logits = logits  # type: ignore[assignment,method-assign]
        with pytest.raises(RerankerDown):
            await bench.rerank(*DOCUMENTS)
        assert bench.breaker.snapshot(0).failures == 1

    async def test_breaker_opens(self) -> None:
        bench = Bench()
        bench.backend.failures = [RerankerDown("away")] * 3
        for _ in range(3):
            with pytest.raises(RerankerDown, match="away"):
                await bench.rerank(*DOCUMENTS)
        with pytest.raises(RerankerDown) as caught:
            await bench.rerank(*DOCUMENTS)
        assert caught.value.code == "breaker_open"
        assert bench.metrics.gauges["breaker_open", (("dependency", "reranker"),)] == 1
        assert await bench.service.reset_breakers() == ["reranker"]
        assert await bench.rerank(*DOCUMENTS) is not None
        bench.backend.failures = [RerankerDown("still away")]
        assert await bench.service.reset_breakers() == []
        (row,) = await bench.service.breakers()
        assert (row.name, row.last_error) == ("reranker", "RerankerDown: still away")

    async def test_a_hang_shorter_callers_cannot_see_opens_the_breaker(self) -> None:
        bench = Bench(delay_s=9.0, timeout_s=0.05)
        for _ in range(3):
            with pytest.raises(RerankerDown) as caught:
                await bench.rerank(*DOCUMENTS, timeout_s=0.01)
            assert caught.value.code == "reranker_timeout"
            await asyncio.sleep(0.06)
        assert bench.breaker.snapshot(time.monotonic()).state is BreakerState.OPEN

    async def test_impatient_callers_do_not_blame_the_backend(self) -> None:
        bench = Bench(delay_s=0.05)
        for _ in range(3):
            with pytest.raises(RerankerDown):
                await bench.rerank(*DOCUMENTS, timeout_s=0.01)
        await asyncio.sleep(0.2)
        assert bench.breaker.snapshot(0).failures == 0

    async def test_out_of_memory_halves(self) -> None:
        bench = Bench()
        bench.backend.memory_texts = 2
        assert await bench.rerank(*DOCUMENTS) == await Bench().rerank(*DOCUMENTS)
        assert bench.metrics.counters["rerank_oom", ()] >= 1
        assert bench.breaker.snapshot(0).failures == 0

    async def test_a_refused_document_is_not_the_users_fault(self) -> None:
        bench = Bench()
        bench.backend.failures = [InvalidInput("too long")]
        with pytest.raises(RerankerDown, match="too long"):
            await bench.rerank("one")

    async def test_too_many_searches_are_refused_at_once(self) -> None:
        bench = Bench(delay_s=0.2)
        waiting = [asyncio.ensure_future(bench.rerank(*DOCUMENTS)) for _ in range(WAITING_SEARCHES)]
        await asyncio.sleep(0.01)
        with pytest.raises(Overloaded):
            await bench.rerank(*DOCUMENTS)
        for task in waiting:
            task.cancel()
        await bench.service.close()

    async def test_above_its_capacity_it_works_only_for_callers_who_still_wait(self) -> None:
        bench = Bench(delay_s=0.05)
        asked = [bench.rerank(*DOCUMENTS, timeout_s=1.0) for _ in range(WAITING_SEARCHES)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        scored = [answer for answer in answers if isinstance(answer, list)]
        late = [answer for answer in answers if isinstance(answer, RerankerDown)]
        assert len(bench.backend.calls) == len(scored) <= 11  # those that begin within half of 1 s
        assert {error.code for error in late} == {"reranker_timeout"}
        assert (await bench.service.health())["waiting"] == 0
        assert bench.breaker.snapshot(0).failures == 0
        assert await bench.rerank(*DOCUMENTS, timeout_s=1.0) is not None

    async def test_no_time_left(self) -> None:
        with pytest.raises(DeadlineExceeded):
            await Bench().rerank(*DOCUMENTS, timeout_s=0)


class TestInline:
    async def test_short_texts_are_scored_in_the_callers_turn(self) -> None:
        bench = Bench(inline=True)
        assert await bench.rerank("ab", "") == [pytest.approx(sigmoid(2.0)), 0.5]
        assert bench.backend.calls == []

    async def test_long_texts_go_the_way_of_every_backend(self) -> None:
        bench = Bench(inline=True)
        assert await bench.rerank("cat " * 40) is not None
        assert len(bench.backend.calls) == 1

    async def test_failures_open_the_breaker_whatever_the_length(self) -> None:
        bench = Bench(inline=True)
        bench.backend.failures = [RerankerDown("broken") for _ in range(3)]
        for text in ("ab", "cat " * 40, "ab"):
            with pytest.raises(RerankerDown):
                await bench.rerank(text)
        assert bench.breaker.snapshot(0.0).state is BreakerState.OPEN
