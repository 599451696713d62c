"""Embedding gateway: batching, isolation of faults, breaker, time limits."""

import asyncio
from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest

from rayapp.core import errors
from rayapp.core.batching import BackendTraits
from rayapp.core.breaker import Breaker, BreakerPolicy, BreakerState
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import BatchSettings, EmbeddingSettings
from rayapp.core.vectors import Vector
from rayapp.inference.batch_queue import GROW_AFTER, QUEUED_BATCHES, BatchCap
from rayapp.inference.embedding import EmbeddingService, prepare, unit_vector
from tests.support.models import HashBackend, hash_vector

DIMS = 32


class Bench:
    """A service over a fake backend, and what to look at afterwards."""

    def __init__(self, backend: HashBackend, service: EmbeddingService, breaker: Breaker) -> None:
        self.backend = backend
        self.service = service
        self.breaker = breaker
        self.metrics = InMemoryMetrics()

    async def one(self, text: str, timeout_s: float = 5.0) -> Vector:
        return (await self.service.embed([text], "query", timeout_s=timeout_s))[0]


Make = Callable[..., Bench]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[Bench] = []

    def build(
        *,
        delay_s: float = 0.0,
        max_size: int = 8,
        max_tokens: int = 16_384,
        gathers: bool = True,
        wait_s: float = 0.005,
        **changes: object,
    ) -> Bench:
        batch = BatchSettings(max_size=max_size, wait_s=wait_s)
        settings = EmbeddingSettings.model_validate({"batch": batch, **changes})
        backend = HashBackend(DIMS, delay_s=delay_s)
        breaker = Breaker("embedder", BreakerPolicy(failures=2, open_s=0.2, successes=2))
        metrics = InMemoryMetrics()
        traits = BackendTraits(max_tokens=max_tokens, gathers=gathers)
        service = EmbeddingService(backend, settings, traits, breaker=breaker, metrics=metrics)
        bench = Bench(backend, service, breaker)
        bench.metrics = metrics
        made.append(bench)
        return bench

    yield build
    for bench in made:
        await bench.service.close()
        assert bench.backend.closed


class TestPrepare:
    @pytest.mark.parametrize(
        ("text", "read"),
        [
            ("  two\n\nwords ", "query: two words"),
            ("ﬁne", "query: fine"),
            ("a\ud800b", "query: a?b"),
            ("א" * 300, "query: " + "א" * 100),
            (" \n\t ", ""),
        ],
    )
    def test_what_the_model_reads(self, text: str, read: str) -> None:
        settings = EmbeddingSettings(query_prefix="query: ", max_text_chars=100)
        assert prepare(text, "query", settings) == read

    def test_twice_is_once(self) -> None:
        settings = EmbeddingSettings(max_text_chars=100)
        text = "word " * 19 + "at the end   and more"
        once = prepare(text, "passage", settings)
        assert prepare(once, "passage", settings) == once


class TestUnitVector:
    @pytest.mark.parametrize(
        "values", [[3.0, 4.0], [3e30, 4e30], [3e-5, 4e-5]], ids=["plain", "huge", "tiny"]
    )
    def test_has_length_one(self, values: list[float]) -> None:
        vector = unit_vector(np.array(values, dtype=np.float32), 2)
        assert not isinstance(vector, errors.BadVector)
        assert vector == pytest.approx([0.6, 0.8], abs=1e-6)
        assert vector.dtype == np.float32

    @pytest.mark.parametrize(
        "values",
        [[1.0], [1.0, 2.0, 3.0], [], [0.0, 0.0], [1e-9, 0.0], [1.0, float("nan")],
         [float("inf"), 1.0], [[1.0, 2.0]]],
    )  # fmt: skip
    def test_refused(self, values: list[float]) -> None:
        assert isinstance(unit_vector(np.array(values, dtype=np.float32), 2), errors.BadVector)


class TestBatches:
    async def test_vectors_in_order_at_unit_length(self, make: Make) -> None:
        bench = make(max_size=4)
        texts = [f"text number {number}" + " and more" * (number % 5) for number in range(50)]
        vectors = await bench.service.embed(texts, "passage", timeout_s=5)
        for text, vector in zip(texts, vectors, strict=True):
            assert vector == pytest.approx(hash_vector(text, DIMS), abs=1e-6)
        assert max(map(len, bench.backend.calls)) == 4
        assert sum(map(len, bench.backend.calls)) == 50

    async def test_callers_share_a_batch(self, make: Make) -> None:
        bench = make(max_size=8)
        await asyncio.gather(*(bench.one(f"question {number}") for number in range(8)))
        assert [len(call) for call in bench.backend.calls] == [8]
        assert bench.metrics.samples_of("embed_batch_size") == [8]

    async def test_a_model_that_gains_nothing_from_batches_does_not_wait(self, make: Make) -> None:
        bench = make(gathers=False, wait_s=0.1)
        first = asyncio.ensure_future(bench.one("question"))
        await asyncio.sleep(0.02)
        await bench.one("another")
        await first
        # Had it waited for company, both would be in one call.
        assert [len(call) for call in bench.backend.calls] == [1, 1]

    async def test_a_lone_text_for_such_a_model_is_made_in_its_own_turn(self, make: Make) -> None:
        bench, order = make(gathers=False), list[str]()
        asyncio.get_running_loop().call_soon(order.append, "another request")
        vector = await bench.one("שאלה")
        order.append("vector")
        assert vector == pytest.approx(hash_vector("שאלה", DIMS), abs=1e-6)
        assert order == ["vector"]

    async def test_a_lone_text_has_the_limits_of_a_batch(self, make: Make) -> None:
        bench = make(gathers=False, delay_s=0.2)
        with pytest.raises(errors.EmbedderDown) as late:
            await bench.one("question", timeout_s=0.02)
        assert late.value.code == "embedder_timeout"
        first = asyncio.ensure_future(bench.one("one"))
        await asyncio.sleep(0.01)
        assert not bench.service._lanes["query"].idle
        second = asyncio.ensure_future(bench.one("two"))
        await asyncio.sleep(0.01)
        assert bench.backend.calls == [["question"], ["one"]]  # one call at a time
        await asyncio.gather(first, second)

    async def test_token_budget_bounds_a_batch(self, make: Make) -> None:
        bench = make(max_size=64, max_tokens=200)
        await bench.service.embed(["x" * 200] * 6, "passage", timeout_s=5)
        assert [len(call) for call in bench.backend.calls] == [2, 2, 2]

    async def test_prefixes_reach_the_backend(self, make: Make) -> None:
        bench = make(query_prefix="Q: ", passage_prefix="P: ")
        await bench.one("cat")
        await bench.service.embed(["cat"], "passage", timeout_s=5)
        assert bench.backend.calls == [["Q: cat"], ["P: cat"]]

    async def test_a_query_does_not_wait_for_a_bulk_load(self, make: Make) -> None:
        bench = make(max_size=2, delay_s=0.05)
        bulk = asyncio.ensure_future(
            bench.service.embed([f"passage {n}" for n in range(20)], "passage", timeout_s=5)
        )
        await asyncio.sleep(0.02)
        await bench.one("question")
        assert not bulk.done()
        assert len(await bulk) == 20

    async def test_nothing_asked_nothing_called(self, make: Make) -> None:
        bench = make()
        assert await bench.service.embed([], "query", timeout_s=5) == []
        assert bench.backend.calls == []


class TestBadTexts:
    async def test_a_bad_vector_fails_its_caller_only(self, make: Make) -> None:
        bench = make()
        bench.backend.answers["bad"] = np.full(DIMS, np.nan, dtype=np.float32)
        good, bad = await asyncio.gather(
            bench.one("good"), bench.one("bad"), return_exceptions=True
        )
        assert isinstance(bad, errors.BadVector)
        assert not isinstance(good, BaseException)
        assert len(bench.backend.calls) == 1
        assert bench.metrics.counters["embed_bad_vectors", ()] == 1
        assert bench.breaker.snapshot(0).failures == 0

    async def test_positions_name_the_bad_texts(self, make: Make) -> None:
        bench = make()
        bench.backend.answers["zero"] = np.zeros(DIMS, dtype=np.float32)
        with pytest.raises(errors.BadVector) as caught:
            await bench.service.embed(["a", "zero", "b", "zero"], "passage", timeout_s=5)
        assert caught.value.details == {"positions": [1, 3]}

    async def test_empty_texts_are_refused_unsent(self, make: Make) -> None:
        bench = make()
        with pytest.raises(errors.InvalidInput) as caught:
            await bench.service.embed(["a", " \n"], "passage", timeout_s=5)
        assert caught.value.details == {"positions": [1]}
        assert bench.backend.calls == []

    async def test_a_refused_batch_is_split_to_find_the_text(self, make: Make) -> None:
        bench = make(max_size=8)
        whole = bench.backend.encode

        async def refuse(texts: list[str], kind: str) -> list[Vector]:
            if "poison" in texts:
                bench.backend.calls.append(list(texts))
                raise errors.InvalidInput("refused")
            return await whole(texts, "passage")

        bench.backend.encode = refuse  # type: ignore[assignment,method-assign]
        results = await asyncio.gather(
            *(bench.one(text) for text in ["a", "b", "poison", "c"]), return_exceptions=True
        )
        assert [isinstance(r, errors.InvalidInput) for r in results] == [False, False, True, False]
        assert bench.breaker.snapshot(0).failures == 0


class TestOutOfMemory:
    async def test_halves_retries_and_remembers(self, make: Make) -> None:
        bench = make(max_size=16)
        bench.backend.memory_texts = 5
        texts = [f"text {number:02}" for number in range(16)]
        assert len(await bench.service.embed(texts, "passage", timeout_s=5)) == 16
        assert [len(call) for call in bench.backend.calls] == [16, 8, 4, 4, 4, 4]
        assert bench.metrics.counters["embed_oom", ()] == 2
        bench.backend.calls.clear()
        await bench.service.embed(texts, "passage", timeout_s=5)
        assert [len(call) for call in bench.backend.calls] == [4, 4, 4, 4]

    async def test_a_text_that_never_fits_fails_alone(self, make: Make) -> None:
        bench = make()
        bench.backend.memory_texts = 0
        for _ in range(3):
            with pytest.raises(errors.EmbedderDown, match="did not fit"):
                await bench.one("huge")
        bench.backend.memory_texts = None
        assert len(await bench.one("small")) == DIMS

    async def test_one_text_that_does_not_fit_makes_no_batch_smaller(self, make: Make) -> None:
        bench = make(max_size=16)
        bench.backend.memory_texts = 0
        with pytest.raises(errors.EmbedderDown):
            await bench.one("tiny")
        bench.backend.memory_texts = None
        bench.backend.calls.clear()
        await bench.service.embed([f"{number:02}" for number in range(16)], "passage", timeout_s=5)
        assert [len(call) for call in bench.backend.calls] == [16]

    async def test_batches_grow_again_once_memory_is_back(self, make: Make) -> None:
        bench = make(max_size=16, max_tokens=16 * 2)
        texts = [f"{number:02}" for number in range(16)]  # estimated as 2 tokens each
        bench.backend.memory_texts = 15
        await bench.service.embed(texts, "query", timeout_s=5)
        bench.backend.memory_texts = None
        sizes: list[int] = []
        for _ in range(8 * GROW_AFTER):
            bench.backend.calls.clear()
            await bench.service.embed(texts, "query", timeout_s=5)
            sizes.append(max(len(call) for call in bench.backend.calls))
        assert sizes[: GROW_AFTER // 2 - 1] == [8] * (GROW_AFTER // 2 - 1)
        assert sizes == sorted(sizes)
        assert sizes[-1] == 16


def test_a_cap_grows_back_to_what_it_was_and_no_further() -> None:
    cap = BatchCap(max_size=8, max_tokens=1_000)
    cap.shrink(1_000)
    for _ in range(GROW_AFTER):
        cap.fitted(10)
    assert cap.max_tokens == 500, "small calls say nothing"
    for _ in range(GROW_AFTER):
        cap.fitted(500)
    assert cap.max_tokens == 562
    for _ in range(20 * GROW_AFTER):
        cap.fitted(cap.max_tokens)
    assert cap.max_tokens == 1_000


class TestBackendTrouble:
    async def test_breaker_opens_probes_and_closes(self, make: Make) -> None:
        bench = make()
        bench.backend.failures = [errors.EmbedderDown("refused")] * 3
        for _ in range(2):
            with pytest.raises(errors.EmbedderDown, match="refused"):
                await bench.one("a")
        with pytest.raises(errors.EmbedderDown) as caught:
            await bench.one("a")
        assert caught.value.code == "breaker_open"
        assert len(bench.backend.calls) == 2
        assert bench.metrics.gauges["breaker_open", (("dependency", "embedder"),)] == 1
        assert (await bench.service.health())["healthy"] is False
        await asyncio.sleep(0.21)
        with pytest.raises(errors.EmbedderDown, match="refused"):
            await bench.one("a")
        await asyncio.sleep(0.21)
        for _ in range(2):
            await bench.one("a")
        health = await bench.service.health()
        assert health["healthy"] is True
        assert health["breaker"]["state"] is BreakerState.CLOSED
        assert bench.metrics.gauges["breaker_open", (("dependency", "embedder"),)] == 0

    async def reset_after_failures(self, make: Make, failures: int) -> Bench:
        """The breaker opened at the second one and was reset; the others are to come."""
        bench = make()
        bench.backend.failures = [errors.EmbedderDown("refused")] * failures
        for _ in range(2):
            with pytest.raises(errors.EmbedderDown):
                await bench.one("a")
        assert await bench.service.reset_breakers() == ["embedder"]
        return bench

    async def test_reset_lets_calls_through(self, make: Make) -> None:
        bench = await self.reset_after_failures(make, 2)
        assert len(await bench.one("a")) == DIMS

    async def test_a_reset_asks_once_and_keeps_what_it_was_told(self, make: Make) -> None:
        bench = await self.reset_after_failures(make, 3)
        (row,) = await bench.service.breakers()
        assert (row.state, row.last_error) == (BreakerState.CLOSED, "EmbedderDown: refused")
        assert await bench.service.reset_breakers() == []
        (row,) = await bench.service.breakers()
        assert (row.state, row.last_error) == (BreakerState.CLOSED, None)

    async def test_wrong_count_is_an_error_for_all(self, make: Make) -> None:
        bench = make()

        async def short(texts: list[str], kind: str) -> list[Vector]:
            return [hash_vector(text, DIMS) for text in texts[1:]]

        bench.backend.encode = short  # type: ignore[assignment,method-assign]
        with pytest.raises(errors.BadVector, match="1 vectors for 2 texts"):
            await bench.service.embed(["a", "b"], "query", timeout_s=5)
        assert bench.breaker.snapshot(0).failures == 1

    async def test_a_bug_reaches_the_caller(self, make: Make) -> None:
        bench = make()
        bench.backend.failures = [RuntimeError("a bug")]
        with pytest.raises(errors.EmbedderDown, match="a bug"):
            await bench.one("a")

    async def test_a_hanging_backend_opens_the_breaker(self, make: Make) -> None:
        bench = make(delay_s=5.0, query_timeout_s=0.05)
        for _ in range(2):
            with pytest.raises(errors.EmbedderDown) as caught:
                await bench.one("a", timeout_s=1.0)
            assert caught.value.code == "embedder_timeout"
        assert bench.breaker.snapshot(0).state is BreakerState.OPEN


class TestTimeLimits:
    async def test_an_impatient_caller_does_not_blame_the_backend(self, make: Make) -> None:
        bench = make(delay_s=0.1)
        for _ in range(3):
            with pytest.raises(errors.EmbedderDown) as caught:
                await bench.one("a", timeout_s=0.02)
            assert caught.value.code == "embedder_timeout"
        await asyncio.sleep(0.15)
        assert bench.breaker.snapshot(0).failures == 0

    async def test_no_time_left(self, make: Make) -> None:
        with pytest.raises(errors.DeadlineExceeded):
            await make().one("a", timeout_s=0.0)

    async def test_texts_of_callers_who_left_are_not_sent(self, make: Make) -> None:
        bench = make(max_size=1, delay_s=0.1)
        first = asyncio.ensure_future(bench.one("first"))
        await asyncio.sleep(0.03)
        second = asyncio.ensure_future(bench.one("second"))
        await asyncio.sleep(0.03)
        second.cancel()
        await first
        await bench.one("third")
        assert bench.backend.calls == [["first"], ["third"]]

    async def test_a_full_queue_refuses_at_once(self, make: Make) -> None:
        bench = make(max_size=1, delay_s=0.05)
        waiting = asyncio.ensure_future(
            bench.service.embed([f"t {n}" for n in range(QUEUED_BATCHES + 2)], "query", timeout_s=9)
        )
        await asyncio.sleep(0.02)
        with pytest.raises(errors.Overloaded):
            await bench.one("late")
        assert not waiting.done()
        assert bench.metrics.counters["embed_overloaded", (("kind", "query"),)] == 1
        waiting.cancel()

    async def test_close_answers_who_waits(self, make: Make) -> None:
        bench = make(max_size=1, delay_s=5.0)
        waiting = [asyncio.ensure_future(bench.one(f"t {n}", timeout_s=9)) for n in range(3)]
        await asyncio.sleep(0.02)
        await bench.service.close()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, errors.EmbedderDown) for result in results)


class TestInfo:
    async def test_wrong_size_in_settings(self, make: Make) -> None:
        with pytest.raises(errors.ConfigError, match="dims is 768"):
            await make(dims=768).service.warm_up()

    async def test_warm_up_calls_the_model(self, make: Make) -> None:
        bench = make()
        await bench.service.warm_up()
        assert bench.backend.calls == [["warm up"]]
