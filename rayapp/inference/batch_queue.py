"""Texts of many callers waiting for one model, and the tasks that send them in batches."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from rayapp.core.errors import EmbedderDown, Overloaded, RayappError
from rayapp.core.vectors import Vector
from rayapp.inference.model_batches import BatchCap

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


class BatchQueue:
    """Bounded. An entry whose caller gave up (`done` is cancelled) is never sent."""

    def __init__(
        self,
        run: Callable[[list[Entry]], Awaitable[None]],
        cap: BatchCap,
        *,
        wait_s: float,
        concurrency: int,
    ) -> None:
        """`run` answers every entry of its batch; a batch waits `wait_s` for company."""
        self._run = run
        self._cap = cap
        self._wait_s = wait_s
        self._slots = asyncio.Semaphore(concurrency)
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

        Raises:
            Overloaded: they do not fit. One request above the bound is let in when none waits.
        """
        bound = QUEUED_BATCHES * self._cap.max_size
        if self._waiting and len(self._waiting) + len(texts) > bound:
            self._waiting = deque(entry for entry in self._waiting if not entry.done.done())
        if self._waiting and len(self._waiting) + len(texts) > bound:
            raise Overloaded(
                f"{len(self._waiting)} texts wait for the embedder; retry later.",
                retry_after_s=1.0,
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
        if self._wait_s and len(self._waiting) < self._cap.max_size:
            await asyncio.sleep(self._wait_s)
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
                await self._run(batch)
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
        while self._waiting and len(window) < LOOKAHEAD_BATCHES * self._cap.max_size:
            entry = self._waiting.popleft()
            if not entry.done.done():
                window.append(entry)
        if not window:
            return []
        plan = self._cap.plan([entry.tokens for entry in window])
        chosen = set(next(batch for batch in plan if 0 in batch))
        kept = [entry for position, entry in enumerate(window) if position not in chosen]
        self._waiting.extendleft(reversed(kept))
        return [window[position] for position in sorted(chosen)]
