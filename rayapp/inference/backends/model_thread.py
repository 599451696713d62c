"""Threads of one local model: calls queue in them and the event loop stays free."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from rayapp.core.batching import OUT_OF_MEMORY
from rayapp.core.errors import DependencyDown, RayappError
from rayapp.inference.backends.gpu import is_out_of_memory, release

T = TypeVar("T")
B = TypeVar("B")


class ModelThread:
    """`down` is the error class of a model that breaks.

    Two threads: while one computes a batch, the other turns the next one into tokens, so that a
    GPU does not wait for the tokenizer.
    """

    def __init__(self, name: str, down: type[DependencyDown]) -> None:
        self._name = name
        self._down = down
        self._tokens = _Worker(f"tokens-{name}")
        self._model = _Worker(f"model-{name}")

    async def run(self, call: Callable[[], T], *, urgent: bool = False) -> T:
        """Run a blocking call in the model's thread; an urgent one overtakes those that wait.

        Raises:
            DependencyDown: as `down`; with code `out_of_memory` when the batch did not fit.
        """
        return await self._guarded(self._model, call, urgent)

    async def batch(
        self, prepare: Callable[[], B], compute: Callable[[B], T], *, urgent: bool = False
    ) -> T:
        """`compute(prepare())`, each in its own thread. Raises as `run` does."""
        prepared = await self._guarded(self._tokens, prepare, urgent)
        return await self._guarded(self._model, lambda: compute(prepared), urgent)

    async def _guarded(self, worker: _Worker, call: Callable[[], T], urgent: bool) -> T:
        try:
            return await worker.run(call, urgent)
        except RayappError:
            raise
        # Broad: model runtimes raise RuntimeError, ValueError and classes of their own.
        except Exception as error:
            code = OUT_OF_MEMORY if is_out_of_memory(error) else None
            raise self._down(
                f"The model {self._name} failed ({error!r}): check the model folder.", code=code
            ) from error

    def close(self) -> None:
        """Does not wait: a call in a model cannot be interrupted."""
        self._tokens.close()
        self._model.close()


class _Worker:
    """One thread and its waiting calls, urgent ones before the others."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._urgent: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._others: deque[tuple[Callable[[], Any], Future[Any]]] = deque()

    async def run(self, call: Callable[[], T], urgent: bool) -> T:
        done: Future[T] = Future()
        (self._urgent if urgent else self._others).append((call, done))
        # As many submissions as calls, but each runs the most urgent call that waits then.
        self._pool.submit(self._next)
        return await asyncio.wrap_future(done)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for _, done in (*self._urgent, *self._others):
            done.cancel()

    def _next(self) -> None:
        call, done = (self._urgent or self._others).popleft()
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(call())
        # Broad: whatever a model raises belongs to the caller who waits.
        except BaseException as error:  # noqa: BLE001
            try:
                if is_out_of_memory(error):
                    # Here, before the next call of this thread needs the memory.
                    release(error)
            finally:
                # A device that cannot even be tidied must not leave the caller waiting.
                done.set_exception(error)
