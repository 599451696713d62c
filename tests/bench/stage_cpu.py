"""Processor time of coroutines: what each stage of a request costs, apart from what it waits."""

import functools
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any


class StageCpu:
    """Seconds of this thread's processor time by stage name, and how often each ran.

    Time of a stage that runs inside another counts for both. What tasks and socket callbacks of a
    stage cost is in none of them.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.wall: dict[str, list[float]] = defaultdict(list)

    def meter(self, owner: object, attribute: str, name: str) -> None:
        """Replace the method `attribute` of `owner` by one that is measured as `name`."""
        inner = getattr(owner, attribute)

        @functools.wraps(inner)
        async def measured(*args: Any, **named: Any) -> Any:
            begun = time.perf_counter()
            try:
                return await _Metered(inner(*args, **named), name, self)
            finally:
                self.wall[name].append(time.perf_counter() - begun)

        setattr(owner, attribute, measured)

    def meter_call(self, owner: object, attribute: str, name: str) -> None:
        """The same for a plain function."""
        inner: Callable[..., Any] = getattr(owner, attribute)

        @functools.wraps(inner)
        def measured(*args: Any, **named: Any) -> Any:
            begun, wall = time.thread_time(), time.perf_counter()
            try:
                return inner(*args, **named)
            finally:
                self.seconds[name] += time.thread_time() - begun
                self.wall[name].append(time.perf_counter() - wall)

        setattr(owner, attribute, measured)

    def clear(self) -> None:
        self.seconds.clear()
        self.wall.clear()


class _Metered(Awaitable[Any]):
    """Runs a coroutine step by step and adds up the processor time of the steps."""

    def __init__(self, inner: Coroutine[Any, Any, Any], name: str, into: StageCpu) -> None:
        self._inner = inner
        self._name = name
        self._into = into

    def __await__(self) -> Generator[Any, Any, Any]:
        send: Callable[[], Any] = functools.partial(self._inner.send, None)
        while True:
            begun = time.thread_time()
            try:
                waited_for = send()
            except StopIteration as done:
                return done.value
            finally:
                self._into.seconds[self._name] += time.thread_time() - begun
            try:
                given = yield waited_for
            except BaseException as error:  # noqa: BLE001 - thrown into the stage as it is
                send = functools.partial(self._inner.throw, error)
            else:
                send = functools.partial(self._inner.send, given)
