"""The ingress: HTTP API, search and the clients of the stores in one process.

A hop between deployments costs more than a whole search inside, so everything a request needs is
here, and only models sit behind handles.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI
from ray.serve.handle import DeploymentHandle

from rayapp.api.app import create_api
from rayapp.api.services import Services
from rayapp.container.services import Container
from rayapp.core.breaker import BreakerState
from rayapp.core.errors import RayappError
from rayapp.core.ids import WARM_UP_USER
from rayapp.core.settings.model import Settings
from rayapp.memory.scope import ReadScope
from rayapp.search.requests import SearchQuery
from rayapp.serve.deployments.process import Process
from rayapp.serve.handles import HandleReranker
from rayapp.serve.scaling import WORK

log = logging.getLogger("rayapp.search")
# Gauges: requests of a replica, and those of them that are event streams.
IN_WORK = ("http_in_flight", "event_streams")
# How often a lost index is noticed, seconds.
WATCH_S = 1.0
# Users are sent to a replica that is open. One that cannot open says why after the first time; one
# that is only slow, as in a release on a busy machine, has both (Serve's own limit is 30 s).
OPEN_S, SLOW_S = 10.0, 15.0
# A search for a user who owns nothing warms every code path and finds nothing.
WARM_UP_QUERIES = ("warm up", "חימום המערכת")


class SearchDeployment:
    """One replica of the ingress. Scaled by replicas; of users it holds views, which every search
    reads again (decision 0055)."""

    def __init__(
        self,
        settings: Settings,
        embedding: DeploymentHandle[Any] | None,
        reranker: DeploymentHandle[Any] | None,
        owners: Sequence[DeploymentHandle[Any]],
    ) -> None:
        """None: the model is static, or of features, and runs right here (decisions 0009, 0024).

        `owners` are bound to it, so that one application holds all of them.
        """
        self._owners = owners
        by_handle = None if reranker is None else HandleReranker(reranker)
        self._process = Process(settings, embedding, by_handle, answers=True)
        self._services: Services | None = None
        self._container: Container | None = None
        self._open = asyncio.Event()
        self._waited = False

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Called by Serve once the replica is constructed."""
        app = create_api(self._current, self._process.startup)
        app.router.lifespan_context = self._lifespan
        return app

    def _current(self) -> Services | None:
        return self._services

    async def check_health(self) -> None:
        """Serve calls it before the replica counts as ready: users who are sent to one that is not
        open yet would hear so. Later calls tell only that the event loop runs."""
        if self._waited:
            return
        self._waited = True
        for limit_s in (OPEN_S, SLOW_S):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._open.wait(), limit_s)
            if self._open.is_set() or self._process.startup.hindered:
                return

    def record_autoscaling_stats(self) -> dict[str, float]:
        """What asks for replicas: requests in work, without open event streams."""
        gauges = self._process.metrics.gauges
        in_flight, streams = (gauges.get((name, ()), 0.0) for name in IN_WORK)
        return {WORK: max(0.0, in_flight - streams)}

    @asynccontextmanager
    async def _lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        self._process.start(self._serve)
        yield
        self._process.stop()
        if self._services is not None:
            await self._services.models.close()
            await self._services.completions.close()
        if self._container is not None:
            await self._container.flush()

    def _serve(self, container: Container) -> None:
        self._container = container
        self._process.keep(self._warm_up(container.services()))
        self._process.keep(self._watch(container))

    async def _watch(self, container: Container) -> None:
        watch, clock = container.watch, container.clock
        while True:
            await watch.look(container.index, container.stores.items)
            opened = watch.breaker.snapshot(clock.monotonic()).state is not BreakerState.CLOSED
            container.metrics.gauge("breaker_open", float(opened), dependency="qdrant")
            await asyncio.sleep(WATCH_S)

    async def _warm_up(self, services: Services) -> None:
        """The first request must not pay for imports, connections and models."""
        for query in WARM_UP_QUERIES:
            try:
                await services.search.search(ReadScope(WARM_UP_USER), SearchQuery(query=query))
            except RayappError as error:
                log.warning("warm-up search failed: %s", error.message)
        self._services = services
        self._open.set()
