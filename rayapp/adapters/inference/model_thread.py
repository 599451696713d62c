"""One thread per local model: calls queue in it and the event loop stays free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rayapp.adapters.inference.gpu import is_out_of_memory
from rayapp.errors import DependencyDown, RayappError
from rayapp.resilience.batching import OUT_OF_MEMORY

T = TypeVar("T")


class ModelThread:
    """`down` is the error class of a model that breaks."""

    def __init__(self, name: str, down: type[DependencyDown]) -> None:
        self._name = name
        self._down = down
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"model-{name}")

    async def run(self, call: Callable[[], T]) -> T:
        """Run a blocking call.

        Raises:
            DependencyDown: as `down`; with code `out_of_memory` when the batch did not fit.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, call)
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
        self._pool.shutdown(wait=False, cancel_futures=True)
