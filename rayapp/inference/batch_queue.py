"""Texts of many callers waiting for one model: sent in batches, split where one does not fit."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, TypeVar

from rayapp.core.batching import OUT_OF_MEMORY, after_out_of_memory, padded_tokens, plan_batches
from rayapp.core.errors import DependencyDown, EmbedderDown, InvalidInput, Overloaded, RayappError
from rayapp.core.runtime import Metrics
from rayapp.core.vectors import Vector

E = TypeVar("E")
R = TypeVar("R")


# Calls that used most of a cap which had shrunk, before it grows by that part of itself: a cap that
# was halved is whole again after some 400 of them, and where memory is still missing, one call in
# as many is made in halves. Our choice.
GROW_AFTER = 64
GROW_SHARE = 1 / 8


@dataclass(slots=True)
class BatchCap:
    """Largest call; `max_tokens` shrinks when a call runs out of memory, and grows back slowly."""

    max_size: int
    max_tokens: int
    _most_tokens: int = field(init=False)
    _full_calls: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._most_tokens = self.max_tokens

    def plan(self, token_counts: Sequence[int]) -> list[list[int]]:
        return plan_batches(token_counts, self.max_size, self.max_tokens)

    def shrink(self, failed_tokens: int) -> None:
        self.max_tokens = min(self.max_tokens, after_out_of_memory(failed_tokens))
        self._full_calls = 0

    def fitted(self, tokens: int) -> None:
        """Learn from a call that had room. One far below the cap says nothing about it."""
        if self.max_tokens == self._most_tokens or 2 * tokens <= self.max_tokens:
            return
        self._full_calls += 1
        if self._full_calls >= GROW_AFTER:
            grown = self.max_tokens + max(1, int(GROW_SHARE * self.max_tokens))
            self.max_tokens = min(self._most_tokens, grown)
            self._full_calls = 0


@dataclass(frozen=True)
class Splitter(Generic[E, R]):
    """Calls a model with one batch and halves the batch where only a part of it is to blame.

    Attributes:
        call: one model call, results in order.
        tokens: tokens of one entry.
        cap: learns from calls that did not fit, and from those that did.
        metrics: counts `oom_metric`.
        oom_metric: registered metric name.
    """

    call: Callable[[Sequence[E]], Awaitable[Sequence[R]]]
    tokens: Callable[[E], int]
    cap: BatchCap
    metrics: Metrics
    oom_metric: str

    async def run(self, batch: Sequence[E]) -> list[R | RayappError]:
        """A result or an error per entry, in order; errors of rayapp never leave as raises."""
        results: dict[int, R | RayappError] = {}
        work = deque([list(range(len(batch)))])
        while work:
            positions = work.popleft()
            parts = self._parts(batch, positions)
            if len(parts) == 1:
                answers = await self._attempt([batch[position] for position in positions])
                if answers is not None:
                    results |= zip(positions, answers, strict=True)
                    continue
                middle = len(positions) // 2
                parts = [positions[:middle], positions[middle:]]
            work.extendleft(reversed(parts))
        return [results[position] for position in range(len(batch))]

    def _parts(self, batch: Sequence[E], positions: list[int]) -> list[list[int]]:
        """More than one when the cap shrank since the batch was planned."""
        plan = self.cap.plan([self.tokens(batch[position]) for position in positions])
        if len(plan) == 1:
            return [positions]
        return [[positions[place] for place in part] for part in plan]

    async def _attempt(self, entries: list[E]) -> Sequence[R | RayappError] | None:
        """One call; None when a smaller one may do better."""
        tokens = padded_tokens([self.tokens(entry) for entry in entries])
        try:
            answers = await self.call(entries)
        except InvalidInput as error:
            return [error] if len(entries) == 1 else None
        except DependencyDown as error:
            if error.code != OUT_OF_MEMORY:
                return [error] * len(entries)
            self.metrics.count(self.oom_metric)
            if len(entries) == 1:
                # No smaller call can be made of it, so it says nothing about batches.
                return [error]
            self.cap.shrink(tokens)
            return None
        except RayappError as error:
            return [error] * len(entries)
        self.cap.fitted(tokens)
        return answers


log = logging.getLogger("rayapp.embedding")

# Full batches that may wait before callers are told to come back: 32 batches of 64 short texts
# are 0.1 s of work for the static model and 12 s for a small transformer on a CPU (measured).
QUEUED_BATCHES = 32
# Full batches looked at when neighbours in length are put together.
LOOKAHEAD_BATCHES = 8

Answer = Vector | RayappError


@dataclass(slots=True)
class Entry:
    """One waiting text. `done` gets an error as a result, so an unread one logs nothing."""

    text: str
    tokens: int
    done: asyncio.Future[Answer]

    def answer(self, answer: Answer) -> None:
        if not self.done.done():
            self.done.set_result(answer)


@dataclass(eq=False)
class BatchQueue:
    """Bounded. An entry whose caller gave up (`done` is cancelled) is never sent.

    `run` answers every entry of its batch; a batch waits `wait_s` for company.
    """

    run: Callable[[list[Entry]], Awaitable[None]]
    cap: BatchCap
    _: KW_ONLY
    wait_s: float
    concurrency: int

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.concurrency)
        self._waiting: deque[Entry] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()

    @property
    def depth(self) -> int:
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing is with the model."""
        return not self._waiting and not self._running and not self._slots.locked()

    def put(self, texts: Sequence[str], token_counts: Sequence[int]) -> list[Entry]:
        """Queue the texts of one caller.

        Raises Overloaded: they do not fit. One request above the bound is let in when none waits.
        """
        bound = QUEUED_BATCHES * self.cap.max_size
        if self._waiting and len(self._waiting) + len(texts) > bound:
            self._waiting = deque(entry for entry in self._waiting if not entry.done.done())
        if self._waiting and len(self._waiting) + len(texts) > bound:
            raise Overloaded(
                f"{len(self._waiting)} texts wait for the embedder; retry later.", retry_after_s=1.0
            )
        loop = asyncio.get_running_loop()
        entries = [
            Entry(text, tokens, loop.create_future())
            for text, tokens in zip(texts, token_counts, strict=True)
        ]
        self._waiting.extend(entries)
        if self._pump is None or self._pump.done():
            self._pump = loop.create_task(self._send_all())
        return entries

    async def alone(self, text: str, tokens: int) -> Answer:
        """Send one text now, past the queue. For callers who saw that it is `idle`."""
        entry = Entry(text, tokens, asyncio.get_running_loop().create_future())
        async with self._slots:
            await self._run_batch([entry])
        return entry.done.result()

    async def close(self) -> None:
        """Stop sending; whoever waits gets EmbedderDown."""
        tasks = [*self._running, *([self._pump] if self._pump else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        stopped = EmbedderDown("The embedding gateway is stopping; retry later.")
        while self._waiting:
            self._waiting.popleft().answer(stopped)

    async def _send_all(self) -> None:
        if self.wait_s and len(self._waiting) < self.cap.max_size:
            await asyncio.sleep(self.wait_s)
        while self._waiting:
            # The batch is chosen after the wait for a slot, so that late company gets in.
            await self._slots.acquire()
            task = asyncio.get_running_loop().create_task(self._run_batch(self._next_batch()))
            self._running.add(task)
            task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._slots.release()

    async def _run_batch(self, batch: list[Entry]) -> None:
        try:
            if batch:
                await self.run(batch)
        except Exception as error:  # callers wait on futures: a bug must reach them
            log.exception("an embedding batch broke")
            broken = EmbedderDown(f"The embedding gateway broke: {error!r}; see the logs.")
            for entry in batch:
                entry.answer(broken)
        finally:
            stopped = EmbedderDown("The embedding gateway is stopping; retry later.")
            for entry in batch:
                entry.answer(stopped)

    def _next_batch(self) -> list[Entry]:
        """The planned batch with the oldest entry, so that no length starves."""
        window: list[Entry] = []
        while self._waiting and len(window) < LOOKAHEAD_BATCHES * self.cap.max_size:
            entry = self._waiting.popleft()
            if not entry.done.done():
                window.append(entry)
        if not window:
            return []
        plan = self.cap.plan([entry.tokens for entry in window])
        chosen = set(next(batch for batch in plan if 0 in batch))
        kept = [entry for position, entry in enumerate(window) if position not in chosen]
        self._waiting.extendleft(reversed(kept))
        return [window[position] for position in sorted(chosen)]
