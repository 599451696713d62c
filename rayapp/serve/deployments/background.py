"""Ray replicas in the background: the indexer, and maintenance with the owner's lease."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Any

from ray.serve.handle import DeploymentHandle

from rayapp.container.services import Container
from rayapp.core.errors import RayappError
from rayapp.core.settings.model import Settings
from rayapp.index.service import IndexingService
from rayapp.learning.leader import MaintenanceService
from rayapp.serve.deployments.loops import Loops
from rayapp.serve.deployments.process import Process

log = logging.getLogger("rayapp.maintenance")


class _Owner(ABC):
    """Serve's health check starts the loops of the replica and notices when one died."""

    def __init__(self, settings: Settings, embedding: DeploymentHandle[Any]) -> None:
        self._settings = settings
        self._process = Process(settings, embedding)
        self._started = False
        self._loops = Loops()

    async def check_health(self) -> None:
        """Never depends on a server: one blip would restart every replica."""
        if not self._started:
            self._started = True
            self._process.start(self._begin)
        self._loops.check()

    @abstractmethod
    def _begin(self, container: Container) -> None:
        """Start the loops, once everything is open."""

    @abstractmethod
    async def _release(self) -> None:
        """Give back what is held; no loop runs any more."""

    async def __del__(self) -> None:
        """Serve awaits this when it drains a replica: the work in hand ends first."""
        try:
            await self._loops.stop()
            await self._release()
        finally:
            self._process.stop()


# The indexer: drains pending items into the index. Several replicas share the work by claims.

# How often a lost index and the backlog gauges are looked at, seconds.
WATCH_S = 2.0
# Pause after an error of the truth itself, seconds.
INDEX_ERROR_PAUSE_S = 0.5
# Longest pause while a dependency is away, seconds: the backlog moves soon after it is back.
OUTAGE_PAUSE_S = 5.0


class IndexerDeployment(_Owner):
    """One replica: claims give each item to one of several."""

    _service: IndexingService | None = None

    def _begin(self, container: Container) -> None:
        self._service = service = container.indexing
        self._loops.start(self._drain(service), self._watch(container))

    async def _drain(self, service: IndexingService) -> None:
        pause_s = self._settings.indexer.poll_s
        while not self._loops.stopping:
            try:
                worked = await service.run_once()
            except RayappError as error:
                log.warning("indexing pauses: %s", error.message)
                await asyncio.sleep(INDEX_ERROR_PAUSE_S)
                continue
            except Exception:  # a bug must not restart the replica again and again
                log.exception("indexing failed and goes on")
                await asyncio.sleep(INDEX_ERROR_PAUSE_S)
                continue
            if worked and service.outage:
                # Trying the rest of the backlog against a dead server only rewrites every row.
                pause_s = min(2 * pause_s, OUTAGE_PAUSE_S)
                await asyncio.sleep(pause_s)
                continue
            pause_s = self._settings.indexer.poll_s
            if worked == 0:
                await asyncio.sleep(pause_s)

    async def _release(self) -> None:
        if self._service is not None:
            await self._service.close()

    async def _watch(self, container: Container) -> None:
        while not self._loops.stopping:
            try:
                await container.indexing.rebuild_if_lost()
                backlog = await container.stores.items.backlog()
                container.metrics.gauge("pending_items", backlog.pending)
                container.metrics.gauge("pending_age_s", backlog.oldest_pending_s)
            except RayappError as error:
                log.info("cannot look at the index now: %s", error.message)
            await asyncio.sleep(WATCH_S)


# Maintenance: the owner of promotion and sweeps, the drain of the outbox. A lease makes it one.

# Pause after an error of the truth itself, seconds.
ERROR_PAUSE_S = 1.0
# Pause between two looks at the owner's duties, seconds.
DUTY_PAUSE_S = 2.0
# Pause between two looks for exchanges to learn from, seconds: a fact is needed in a later turn.
LEARN_PAUSE_S = 2.0


class MaintenanceDeployment(_Owner):
    """Replicas may be several: all drain the outbox, the holder of the lease does the duties."""

    _service: MaintenanceService | None = None

    def _begin(self, container: Container) -> None:
        self._service = service = container.maintenance
        self._loops.start(self._drain(service), self._act(service), self._learn(service))

    async def _drain(self, service: MaintenanceService) -> None:
        while not self._loops.stopping:
            try:
                settled = await service.drain()
            except Exception as error:  # noqa: BLE001  # a bug in one kind must not stop the others
                _log_waiting("effects", error)
                await asyncio.sleep(ERROR_PAUSE_S)
                continue
            if settled == 0:
                await asyncio.sleep(self._settings.learning.effects_poll_s)

    async def _act(self, service: MaintenanceService) -> None:
        while not self._loops.stopping:
            try:
                await service.act()
            except Exception as error:  # noqa: BLE001  # the same
                _log_waiting("maintenance", error)
            await asyncio.sleep(DUTY_PAUSE_S)

    async def _learn(self, service: MaintenanceService) -> None:
        """Apart from the duties: a language model may take its time, the lease may not."""
        while not self._loops.stopping:
            try:
                learned = await service.learn()
            except Exception as error:  # noqa: BLE001  # the same
                _log_waiting("learning", error)
                learned = 0
            if learned == 0:
                await asyncio.sleep(LEARN_PAUSE_S)

    async def _release(self) -> None:
        try:
            if self._service is not None:
                await self._service.release()
        except RayappError as error:
            log.info("the lease ends by its time: %s", error.message)


def _log_waiting(what: str, error: Exception) -> None:
    """What is expected in one line, anything else with its trace."""
    if isinstance(error, RayappError):
        log.warning("%s: waits: %s", what, error.message)
    else:
        log.error("%s: failed and goes on", what, exc_info=error)
