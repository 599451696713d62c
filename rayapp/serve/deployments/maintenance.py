"""Maintenance: the owner of promotion and sweeps, the drain of the outbox. A lease makes it one."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ray.serve.handle import DeploymentHandle

from rayapp.container import bootstrap
from rayapp.container.parts import Parts
from rayapp.core.errors import RayappError
from rayapp.core.settings.model import Settings
from rayapp.learning.leader import MaintenanceService
from rayapp.serve.deployments.loops import Loops
from rayapp.serve.deployments.process import Process
from rayapp.serve.job_launcher import RayJobLauncher

log = logging.getLogger("rayapp.maintenance")
# Pause after an error of the truth itself, seconds.
ERROR_PAUSE_S = 1.0
# Pause between two looks at the owner's duties, seconds.
DUTY_PAUSE_S = 2.0
# Pause between two looks for exchanges to learn from, seconds: a fact is needed in a later turn.
LEARN_PAUSE_S = 2.0


class MaintenanceDeployment:
    """Replicas may be several: all drain the outbox, the holder of the lease does the duties."""

    def __init__(self, settings: Settings, embedding: DeploymentHandle[Any]) -> None:
        self._settings = settings
        self._process = Process(settings, embedding)
        self._started = False
        self._loops = Loops()
        self._service: MaintenanceService | None = None

    async def check_health(self) -> None:
        """Never depends on a server: one blip would restart every replica."""
        if not self._started:
            self._started = True
            self._process.start(self._begin)
        self._loops.check()

    def _begin(self, parts: Parts) -> None:
        self._service = bootstrap.build_maintenance(parts, RayJobLauncher(self._settings))
        service = self._service
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

    async def __del__(self) -> None:
        """Serve awaits this when it drains a replica."""
        try:
            await self._loops.stop()
            if self._service is not None:
                await self._service.release()
        except RayappError as error:
            log.info("the lease ends by its time: %s", error.message)
        finally:
            self._process.stop()


def _log_waiting(what: str, error: Exception) -> None:
    """What is expected in one line, anything else with its trace."""
    if isinstance(error, RayappError):
        log.warning("%s: waits: %s", what, error.message)
    else:
        log.error("%s: failed and goes on", what, exc_info=error)
