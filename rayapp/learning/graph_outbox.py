"""What outcomes owe the graphs: paid at once by who recorded one, else by who drains the outbox."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from rayapp.core.runtime import Runtime
from rayapp.graphs.ports import GraphStore
from rayapp.learning.content_outbox import BAD_ROW
from rayapp.learning.records import OutcomeEvent
from rayapp.learning.rules.graph_effects import outcome_changes
from rayapp.text.expansions import Expansions

log = logging.getLogger("rayapp.effects")
# An outcome's answer waits so long for the graphs, seconds: some milliseconds are usual.
AT_ONCE_S = 1.0
# Users whose outcomes one process settles at the same time; the others are left to the outbox.
MAX_AT_ONCE = 8


class GraphSettling:
    """Any number may run at once: what one settles, another skips."""

    def __init__(self, graphs: GraphStore, expansions: Expansions, *, runtime: Runtime) -> None:
        self._graphs = graphs
        self._expansions = expansions
        self._metrics = runtime.metrics
        self._going: dict[str, asyncio.Task[None]] = {}

    async def settle(self, events: Sequence[OutcomeEvent]) -> int:
        """Settle one user's events; how many another process had not settled before."""
        changes = outcome_changes(events, self._expansions)
        if await self._graphs.settle_outcomes(events, changes):
            return len(events)
        # Another process settled some of them: what is left is settled one by one.
        if len(events) == 1:
            return 0
        return sum([await self.settle([event]) for event in events])

    async def at_once(self, event: OutcomeEvent) -> None:
        """Settle an outcome before it is answered, so that the user's next question knows of it.

        What is late goes on without being waited for; what fails is left to the outbox. Outcomes
        of one user that come together would only fight for the same rows: one goes, the others
        are left to the outbox too.
        """
        user_id = event.user_id
        if user_id in self._going or len(self._going) >= MAX_AT_ONCE:
            return
        task = asyncio.get_running_loop().create_task(self._try(event))
        self._going[user_id] = task
        task.add_done_callback(lambda _: self._going.pop(user_id))
        await asyncio.wait({task}, timeout=AT_ONCE_S)

    async def _try(self, event: OutcomeEvent) -> None:
        try:
            settled = await self.settle([event])
        except BAD_ROW as error:
            log.info("outcome %s is left to the outbox: %r", event.idempotency_key, error)
        else:
            if settled:
                self._metrics.count("effects_settled", settled, kind="graph")
