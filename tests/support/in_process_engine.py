"""The embedded engine in the process of the test: calls block the event loop."""

from typing import Any

from rayapp.storage.qdrant.edge_engine import EdgeEngine


class InProcessTransport:
    """Implements `storage.qdrant.edge.Transport`."""

    def __init__(self, engine: EdgeEngine) -> None:
        self._engine = engine

    async def call(self, method: str, *args: Any, timeout_s: float) -> Any:
        return self._engine.call(method, args)

    async def close(self) -> None:
        self._engine.close()
