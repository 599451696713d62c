"""The indexer: drains pending items into the index. Several replicas share the work by claims."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from ray.serve.handle import DeploymentHandle

from rayapp.container import bootstrap
from rayapp.container.parts import Parts
from rayapp.core.errors import RayappError
from rayapp.core.settings.model import Settings
from rayapp.index.service import IndexingService
from rayapp.serve.deployments.loops import Loops
from rayapp.serve.deployments.process import Process

log = logging.getLogger("rayapp.indexer")
# How often a lost index and the backlog gauges are looked at, seconds.
WATCH_S = 2.0
# Pause after an error of the truth itself, seconds.
ERROR_PAUSE_S = 0.5
# Longest pause while a dependency is away, seconds: the backlog moves soon after it is back.
OUTAGE_PAUSE_S = 5.0


class IndexerDeployment:
    """One replica; Serve's health check starts its loop and notices when it died."""

    def __init__(self, settings: Settings, embedding: DeploymentHandle[Any]) -> None:
        self._settings = settings
        self._process = Process(settings, embedding)
        self._started = False
        self._loops = Loops()
        self._service: IndexingService | None = None

    async def check_health(self) -> None:
        """Never depends on a server: one blip would restart every replica."""
        if not self._started:
            self._started = True
            self._process.start(self._begin)
        self._loops.check()

    def _begin(self, parts: Parts) -> None:
        self._service = service = bootstrap.build_indexing(parts)
        self._loops.start(self._drain(service), self._watch(parts, service.rebuild_if_lost))

    async def _drain(self, service: IndexingService) -> None:
        pause_s = self._settings.indexer.poll_s
        while not self._loops.stopping:
            try:
                worked = await service.run_once()
            except RayappError as error:
                log.warning("indexing pauses: %s", error.message)
                await asyncio.sleep(ERROR_PAUSE_S)
                continue
            except Exception:  # a bug must not restart the replica again and again
                log.exception("indexing failed and goes on")
                await asyncio.sleep(ERROR_PAUSE_S)
                continue
            if worked and service.outage:
                # Trying the rest of the backlog against a dead server only rewrites every row.
                pause_s = min(2 * pause_s, OUTAGE_PAUSE_S)
                await asyncio.sleep(pause_s)
                continue
            pause_s = self._settings.indexer.poll_s
            if worked == 0:
                await asyncio.sleep(pause_s)

    async def __del__(self) -> None:
        """Serve awaits this when it drains a replica: the batch in work ends, no claim is left."""
        try:
            await self._loops.stop()
            if self._service is not None:
                await self._service.close()
        finally:
            self._process.stop()

    async def _watch(self, parts: Parts, rebuild_if_lost: Callable[[], Awaitable[bool]]) -> None:
        while not self._loops.stopping:
            try:
                await rebuild_if_lost()
                backlog = await parts.stores.items.backlog()
                parts.runtime.metrics.gauge("pending_items", backlog.pending)
                parts.runtime.metrics.gauge("pending_age_s", backlog.oldest_pending_s)
            except RayappError as error:
                log.info("cannot look at the index now: %s", error.message)
            await asyncio.sleep(WATCH_S)
