"""Ray replicas in the background: the indexer, and maintenance with the owner's lease."""

import asyncio
import itertools
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from ray.serve.handle import DeploymentHandle

from rayapp.admin.webhooks.delivery import WebhookDeliveries, WebhookFeed
from rayapp.container.services import Container
from rayapp.core.disk_space import DiskSpace
from rayapp.core.errors import RayappError
from rayapp.core.settings.model import Settings
from rayapp.documents.digest import BookDigests
from rayapp.documents.service import BookWork
from rayapp.index.encoding import EncodingService
from rayapp.index.service import IndexingService
from rayapp.learning.leader import MaintenanceService
from rayapp.serve.deployments.loops import Loops, Pause
from rayapp.serve.deployments.process import Process
from rayapp.understanding.service import UnderstandingService

log = logging.getLogger("rayapp.maintenance")
T = TypeVar("T")


class Role(ABC):
    """Work that runs by itself in a replica: the loops of one owner.

    Not a replica of its own, so that a laptop needs one process for all of them.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.loops = Loops()

    @abstractmethod
    def begin(self, container: Container) -> None:
        """Start the loops, once everything is open."""

    @abstractmethod
    async def release(self) -> None:
        """Give back what is held; no loop runs any more."""

    async def end(self) -> None:
        """The work in hand ends first."""
        await self.loops.stop()
        await self.release()


class BackgroundDeployment:
    """Serve's health check starts the loops of the replica and notices when one died."""

    def __init__(
        self,
        settings: Settings,
        embedding: DeploymentHandle[Any] | None,
        roles: Sequence[type[Role]],
    ) -> None:
        self._process = Process(settings, embedding)
        self._started = False
        self._roles = [role(settings) for role in roles]

    async def check_health(self) -> None:
        """Never depends on a server: one blip would restart every replica."""
        if not self._started:
            self._started = True
            self._process.start(self._begin)
        for role in self._roles:
            role.loops.check()

    def _begin(self, container: Container) -> None:
        for role in self._roles:
            role.begin(container)

    async def __del__(self) -> None:
        """Serve awaits this when it drains a replica. Every role ends, whatever befalls another."""
        try:
            ended = await asyncio.gather(
                *(role.end() for role in self._roles), return_exceptions=True
            )
        finally:
            self._process.stop()
        for error in ended:
            if isinstance(error, BaseException):
                raise error


# The indexer: drains pending items into the index. Several replicas share the work by claims.

# How often a lost index is looked at, seconds, and at every how manyth of these looks the backlog,
# which counts all items.
WATCH_S, BACKLOG_EVERY = 2.0, 5
# Pause after an error of the truth itself, seconds.
INDEX_ERROR_PAUSE_S = 0.5
# Longest pause while a dependency is away, seconds: the backlog moves soon after it is back.
OUTAGE_PAUSE_S = 5.0


class Indexer(Role):
    """Replicas may be several: claims give each item to one of them."""

    _service: IndexingService | None = None

    def begin(self, container: Container) -> None:
        self._service = service = container.indexing
        encoding = container.encoding
        others = () if encoding is None else (self._encode(encoding),)
        self.loops.start(self._drain(service), self._watch(container), *others)

    async def _drain(self, service: IndexingService) -> None:
        pause = Pause(self._settings.indexer.poll_s)
        outage_s = self._settings.indexer.poll_s
        while not self.loops.stopping:
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
                outage_s = min(2 * outage_s, OUTAGE_PAUSE_S)
                await asyncio.sleep(outage_s)
                continue
            outage_s = self._settings.indexer.poll_s
            await pause.after(worked)

    async def _encode(self, service: EncodingService) -> None:
        """Beside the indexer, which never waits for it."""
        pause = Pause(self._settings.indexer.poll_s)
        while not self.loops.stopping:
            worked = await _tried("encoding", service.run_once)
            if worked is None:
                await asyncio.sleep(OUTAGE_PAUSE_S)
            else:
                await pause.after(worked)

    async def release(self) -> None:
        if self._service is not None:
            await self._service.close()

    async def _watch(self, container: Container) -> None:
        for look in itertools.count():
            if self.loops.stopping:
                return
            try:
                await container.indexing.rebuild_if_lost()
                if look % BACKLOG_EVERY == 0:
                    await self._measure(container)
            except RayappError as error:
                log.info("cannot look at the index now: %s", error.message)
            await asyncio.sleep(WATCH_S)

    async def _measure(self, container: Container) -> None:
        backlog = await container.stores.items.backlog()
        container.metrics.gauge("pending_items", backlog.pending)
        container.metrics.gauge("pending_age_s", backlog.oldest_pending_s)


# Maintenance: the owner of promotion and sweeps, the drain of the outbox. A lease makes it one.

# Pause after an error of the truth itself, seconds.
ERROR_PAUSE_S = 1.0
# Pause between two looks at the leader's tasks, seconds.
DUTY_PAUSE_S = 2.0
# Pause between two looks for exchanges to learn from, seconds: a fact is needed in a later turn.
LEARN_PAUSE_S = 2.0
# Pause between two looks for documents to read, seconds: a person waits for the first word.
READ_PAUSE_S = 1.0
# Pause between two looks for events to send, seconds: a program reacts while a person waits.
TELL_PAUSE_S = 1.0
# Documents that are read side by side, each of another user: a library of one keeps nobody waiting.
READERS = 2


class Maintenance(Role):
    """Replicas may be several: all drain the outbox, the leader runs the periodic tasks."""

    _service: MaintenanceService | None = None

    def begin(self, container: Container) -> None:
        self._service = service = container.maintenance
        self.loops.start(
            self._drain(service),
            self._act(service),
            self._learn(service),
            *(self._read(container.book_work, container.disk) for _ in range(READERS)),
            self._read(container.book_digests, container.disk),
            self._follow(container.webhook_feed),
            self._tell(container.webhook_deliveries),
        )

    async def _drain(self, service: MaintenanceService) -> None:
        pause = Pause(self._settings.learning.effects_poll_s)
        while not self.loops.stopping:
            settled = await _tried("effects", service.drain)
            if settled is None:
                await asyncio.sleep(ERROR_PAUSE_S)
            else:
                await pause.after(settled)

    async def _act(self, service: MaintenanceService) -> None:
        while not self.loops.stopping:
            await _tried("maintenance", service.act)
            await asyncio.sleep(DUTY_PAUSE_S)

    async def _learn(self, service: MaintenanceService) -> None:
        """Apart from the tasks: a language model may take its time, the lease may not."""
        while not self.loops.stopping:
            if not await _tried("learning", service.learn):
                await asyncio.sleep(LEARN_PAUSE_S)

    async def _read(self, work: BookWork | BookDigests, disk: DiskSpace) -> None:
        """Documents, one after the other."""
        pause = Pause(READ_PAUSE_S)
        while not self.loops.stopping:
            worked = None if disk.full else await _tried("documents", work.run_once)
            await pause.after(worked or 0)

    async def _follow(self, feed: WebhookFeed) -> None:
        """What happens, for webhooks; a look waits by itself where somebody is to be told."""
        pause = Pause(DUTY_PAUSE_S)
        try:
            while not self.loops.stopping:
                if not feed.following:
                    await pause.after(0)
                await _tried("webhooks", feed.run_once)
        finally:
            await feed.close()

    async def _tell(self, deliveries: WebhookDeliveries) -> None:
        pause = Pause(TELL_PAUSE_S)
        while not self.loops.stopping:
            await pause.after(await _tried("webhooks", deliveries.run_once) or 0)

    async def release(self) -> None:
        try:
            if self._service is not None:
                await self._service.release()
        except RayappError as error:
            log.info("the lease ends by its time: %s", error.message)


class Understanding(Role):
    """Replicas may be several: claims give each memory to one of them. A role of its own, so that
    a slow text never holds up the index or the outbox."""

    def begin(self, container: Container) -> None:
        self.loops.start(self._understand(container.understanding, container.disk))

    async def _understand(self, service: UnderstandingService, disk: DiskSpace) -> None:
        pause = Pause(self._settings.understanding.poll_s)
        while not self.loops.stopping:
            worked = None if disk.full else await _tried("understanding", service.run_once)
            if worked is None:
                await asyncio.sleep(ERROR_PAUSE_S)
            else:
                await pause.after(worked)

    async def release(self) -> None:
        """It holds nothing: a claim ends by its time."""


async def _tried(what: str, work: Callable[[], Awaitable[T]]) -> T | None:
    """None after an error, logged in one line if it is expected, else with its trace."""
    try:
        return await work()
    except RayappError as error:
        log.warning("%s: waits: %s", what, error.message)
    except Exception:  # a bug in one kind must not stop the others
        log.exception("%s: failed and goes on", what)
    return None
