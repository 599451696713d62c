"""What the deploying driver waits for, in a file, for the person who waits for it.

Every phase is one that Ray Serve reports or that the driver is in; none is guessed from the time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rayapp.local.stack.paths import write_private

if TYPE_CHECKING:
    from ray.serve.schema import ApplicationStatusOverview

LOOK_S = 0.5
RUNNING = "RUNNING"
# Why a deployment is not running, as Serve says it: its first sentence, and no more than a line.
MESSAGE_CHARS = 160


class DeployPhase:
    """The file holds the last phase; `remove_state` takes it away."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._said = ""

    def say(self, phase: str) -> None:
        if phase != self._said:
            self._said = phase
            write_private(self._path, phase)

    @contextlib.contextmanager
    def following(self, name: str, loading: frozenset[str]) -> Iterator[None]:
        """While the block lasts, say what Serve reports of the application.

        `loading`: deployments that load a model before they run.
        """
        from ray import serve  # its driver has imported it already

        ended = threading.Event()

        def look() -> None:
            while not ended.wait(LOOK_S):
                # A controller that is too busy to answer is asked again; the start goes on.
                with contextlib.suppress(Exception):
                    found = serve.status().applications.get(name)
                    if found is not None and not ended.is_set():
                        self.say(phase_of(found, loading))

        watcher = threading.Thread(target=look, name="deploy-phase", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def phase_of(found: ApplicationStatusOverview, loading: frozenset[str]) -> str:
    """Which deployments do not run yet, what they do, and what Serve says of it."""
    missing = {
        name: one
        for name, one in found.deployments.items()
        if not one.replica_states.get(RUNNING)  # type: ignore[call-overload]  # str enum
    }
    if not found.deployments:
        return "waiting for Ray Serve to take the application"
    if not missing:
        return "waiting until the replicas are healthy"
    names = [f"{name} (loading the model)" if name in loading else name for name in missing]
    ready = len(found.deployments) - len(missing)
    said = next((one.message for one in missing.values() if one.message), "")
    first = " ".join(said.split()).partition(". ")[0].rstrip(".")
    why = f" ({first[:MESSAGE_CHARS]})" if said else ""
    return f"{ready} of {len(found.deployments)} deployments run, starting {', '.join(names)}{why}"
