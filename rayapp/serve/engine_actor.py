"""The embedded engine as one named detached Ray actor, and the transport that reaches it.

One process owns the folder: the engine holds the GIL during every call and refuses a second
open. The actor is pinned to the node that holds the folder and restarted without limit; it opens
the folder on its first call, because a constructor that fails would end the actor for good.
"""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any, Final

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rayapp.core.disk_space import DiskLimits, DiskSpace, measured
from rayapp.core.errors import IndexDown, RayappError
from rayapp.core.settings.model import Settings
from rayapp.serve.engine_socket import SocketClient, SocketClosedError, SocketServer
from rayapp.storage.qdrant.edge_engine import EdgeEngine
from rayapp.storage.qdrant.edge_scheduler import PriorityScheduler

ACTOR_NAME: Final = "vector-engine"
ACTOR_NAMESPACE: Final = "rayapp"
FOLDER_NAME: Final = "qdrant"
RETRY_AFTER_S: Final = 1.0
# Calls admitted to the event loop at once; they run one by one, further ones wait in Ray's queue.
MAX_CONCURRENT_CALLS: Final = 256
# What takes new room on the disk.
GROWS: Final = frozenset({"upsert", "copy", "set_encoder", "create_collection"})
NO_LIMITS: Final = DiskLimits(warn_bytes=0, min_bytes=0)


class VectorEngineActor:
    """Runs engine calls one after the other on its event loop and flushes in the background."""

    def __init__(
        self, folder: str, alias: str, flush_interval_s: float, limits: DiskLimits = NO_LIMITS
    ) -> None:
        self._engine = EdgeEngine(Path(folder), alias)
        self._disk = DiskSpace(folder, limits, lambda: measured(Path(folder)))
        self._turns = PriorityScheduler(self._engine)
        self._socket = SocketServer(self.call)
        self._flush_interval_s = flush_interval_s
        self._flusher: asyncio.Task[None] | None = None

    async def call(self, method: str, args: tuple[Any, ...], timeout_s: float) -> Any:
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush_forever())
        if (method in GROWS or not self._engine.is_open) and self._disk.full_for_index:
            # Its files are mapped into memory: a page without room on the disk kills the process.
            raise IndexDown(
                f"The disk of {self._disk.folder} is full: free space on it and the index goes on.",
                code="disk_full",
                retry_after_s=RETRY_AFTER_S,
            )
        return await self._turns.call(method, args, timeout_s)

    async def pid(self) -> int:
        return os.getpid()

    async def socket(self) -> tuple[str, str]:
        """The node of this process, and where callers on it find a shorter way in."""
        return ray.get_runtime_context().get_node_id(), await self._socket.open()

    async def close(self) -> None:
        """Flush and give the folder back; a later call opens it again."""
        if self._flusher is not None:
            self._flusher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._flusher
            self._flusher = None
        await self._socket.close()
        self._engine.close()

    async def _flush_forever(self) -> None:
        while True:
            await asyncio.sleep(self._flush_interval_s)
            await self._turns.flush()


class RayTransport:
    """Calls the actor through its socket, or through Ray from another machine; finds or starts it
    again after it is lost."""

    def __init__(self, settings: Settings, *, name: str = ACTOR_NAME) -> None:
        self._settings = settings
        self._name = name
        self._actor: Any = None
        self._socket: SocketClient | None = None
        self._elsewhere = False
        self._finding = asyncio.Lock()

    async def call(self, method: str, *args: Any, timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                socket = self._socket
                if socket is None or not socket.is_open:
                    socket = await self._find()
                if socket is not None:
                    return await socket.call(method, args, timeout_s)
                return await self._actor.call.remote(method, args, timeout_s)
        except TimeoutError as error:
            raise _down(f"no answer within {timeout_s} s") from error
        except SocketClosedError as error:
            raise _down(str(error)) from error
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, RayappError):
                raise cause from None
            raise _down(str(cause)) from error
        except (RayError, ValueError) as error:
            # The handle may belong to an actor that is gone for good: look it up next time.
            self._actor, self._elsewhere = None, False
            raise _down(str(error)) from error

    async def _find(self) -> SocketClient | None:
        """The actor, and its socket when it is on this machine."""
        async with self._finding:
            if self._socket is not None and self._socket.is_open:
                return self._socket
            if self._actor is None:
                self._actor = await asyncio.to_thread(
                    get_or_create_vector_actor, self._settings, name=self._name
                )
            if self._elsewhere:
                return None
            node, path = await self._actor.socket.remote()
            self._elsewhere = node != ray.get_runtime_context().get_node_id()
            self._socket = None
            if not self._elsewhere:
                # A socket that does not open leaves the way through Ray.
                with contextlib.suppress(SocketClosedError):
                    self._socket = await SocketClient.to(path)
            return self._socket

    async def close(self) -> None:
        """The actor is shared with other processes and stays up."""
        if self._socket is not None:
            await self._socket.close()
        self._actor = self._socket = None


def get_or_create_vector_actor(settings: Settings, *, name: str = ACTOR_NAME) -> Any:
    """The handle of the one engine actor of the cluster; started on this node when missing.

    Callers find it by name and never open the folder themselves.
    """
    here = ray.get_runtime_context().get_node_id()
    folder = settings.data.dir.resolve() / FOLDER_NAME
    return (
        ray.remote(VectorEngineActor)
        .options(
            name=name,
            namespace=ACTOR_NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            max_restarts=-1,
            max_concurrency=MAX_CONCURRENT_CALLS,
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False),
        )
        .remote(
            str(folder),
            settings.qdrant.alias,
            settings.qdrant.flush_interval_s,
            settings.data.disk_limits,
        )
    )


def _down(text: str) -> IndexDown:
    return IndexDown(
        "The vector engine did not answer: it restarts by itself, try again shortly.",
        details={"error": text[:500]},
        retry_after_s=RETRY_AFTER_S,
    )
