"""Learns from stored exchanges in the background: claim, decide, keep the decision, do it, finish.

A crash before the decision is kept repeats the asking; one after it repeats only the doing, which
is harmless. No request waits for any of this.
"""

import asyncio
import logging
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta
from typing import Any, Self

from rayapp.assistant.extraction.executor import ExtractionExecutor
from rayapp.assistant.extraction.policies import Case, Decided, ExtractionPolicies
from rayapp.assistant.extraction.rules.facts import TASKS, LearnedExchange, Task
from rayapp.assistant.ports import ClaimedExchange, ExchangeQueue, WorkEnd
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Runtime

log = logging.getLogger("rayapp.extraction")
# Exchanges claimed at once, of one user each: a user's second one must see what the first one
# taught, so it would wait anyway, and whoever comes new would wait with it.
BATCH = 4
PER_USER = 1
# Four tasks, two tries each of ten seconds, a wait for a place before each, and room to write.
CLAIM_S = 240.0
# Rows ended at once while no model may be asked.
SKIP_BATCH = 1_000
# Tries that a bad or late answer may take, and the pauses between them, seconds: the last one
# comes about a quarter of an hour after the first. Our choice.
TRIES = 5
PAUSE_S = 30.0
MAX_PAUSE_S = 900.0
# Pause while something is away, seconds: as long as a breaker stays open.
AWAY_S = 60.0
# An exchange that waited so long for a model is let go: what it says is old by then. Our choice.
MAX_AGE = timedelta(hours=24)
GAUGE_S = 10.0  # pause between two counts of what waits, seconds


@dataclass(slots=True)
class _Progress:
    """The plan of one exchange while it is worked on. `parts`: by task; `done`: tasks."""

    parts: dict[str, Any]
    notes: dict[str, str]
    done: list[str]
    wait: str = ""

    @classmethod
    def of(cls, claimed: ClaimedExchange) -> Self:
        plan = claimed.plan
        return cls(
            dict(plan.get("parts", {})), dict(plan.get("notes", {})), list(plan.get("done", []))
        )

    @property
    def plan(self) -> dict[str, Any]:
        return {"parts": self.parts, "notes": self.notes, "done": self.done}


@dataclass(eq=False)
class ExchangeLearning:
    """Any number may run at once: a claim gives each exchange to one of them."""

    queue: ExchangeQueue
    policies: ExtractionPolicies
    executor: ExtractionExecutor
    _: KW_ONLY
    runtime: Runtime

    def __post_init__(self) -> None:
        self._gauged_at: float | None = None

    async def close(self) -> None:
        """End the connections of the model; nothing is learned afterwards."""
        await self.policies.models.close()

    async def run_once(self) -> int:
        """Work on one batch; how many exchanges were looked at or skipped."""
        await self._gauge()
        if not self.policies.enabled:
            skipped = await self.queue.skip_waiting("off", SKIP_BATCH)
            if skipped:
                self.runtime.metrics.count("learned", skipped, task="all", result="off")
            return skipped
        token = self.runtime.new_id()
        claimed = await self.queue.claim(
            token=token, limit=BATCH, claim_s=CLAIM_S, per_user=PER_USER
        )
        await asyncio.gather(*(self._one(one, token) for one in claimed))
        return len(claimed)

    async def _one(self, one: ClaimedExchange, token: str) -> None:
        try:
            await self._work(one, token)
        except RayappError as error:
            log.warning("an exchange waits: %s", error.message)
            await self._put_back(one, token, error.code, blamed=False)
        except Exception:  # a bug met by one exchange must not stop those of others
            log.exception("an exchange failed")
            await self._put_back(one, token, "error", blamed=True)

    async def _work(self, claimed: ClaimedExchange, token: str) -> None:
        exchange, progress = claimed.exchange, _Progress.of(claimed)
        case = await self._case(exchange)
        if case.gone:
            await self.queue.erase(exchange)
            self.runtime.metrics.count("learned", task="all", result="gone")
            return
        await self._decide(case, progress)
        if not await self.queue.keep(exchange, token, progress.plan):
            return  # somebody else has it by now
        for task in TASKS:
            if task in progress.parts and task not in progress.done:
                note = await self.executor.do(exchange, task, progress.parts[task])
                progress.notes[task] = note
                progress.done.append(task)
                self.runtime.metrics.count("learned", task=task, result=note)
        if not progress.wait:
            await self.queue.finish(exchange, token, _end(progress), progress.notes)
        elif await self.queue.keep(exchange, token, progress.plan):
            await self._put_back(claimed, token, progress.wait, blamed=progress.wait == "tried")

    async def _decide(self, case: Case, progress: _Progress) -> None:
        """Decide every task that is open. What has to wait keeps no note, so it stays open."""
        for task in TASKS:
            if task in progress.notes:
                continue
            case = _with_learned(case, progress)
            decided = await self._decided(case, task)
            if decided.wait:
                progress.wait = "tried" if "tried" in (progress.wait, decided.wait) else "away"
                self.runtime.metrics.count("learned", task=task, result=decided.note)
                continue
            progress.notes[task] = decided.note
            if decided.part is None:
                self.runtime.metrics.count("learned", task=task, result=decided.note)
            else:
                progress.parts[task] = decided.part

    async def _decided(self, case: Case, task: Task) -> Decided:
        """A task that cannot be decided takes nothing from the others: their answers are paid."""
        try:
            return await self.policies.decide(case, task)
        except RayappError as error:
            log.warning("an exchange waits: %s", error.message)
            return Decided(error.code, wait="away")
        except Exception:  # a bug met by one task must not stop the others
            log.exception("an exchange failed")
            return Decided("error", wait="tried")

    async def _case(self, exchange: LearnedExchange) -> Case:
        known, user_id, memory_id = self.policies.known, exchange.user_id, exchange.memory_id
        item = await known.active(user_id, memory_id) if memory_id is not None else None
        shown = await known.shown(user_id, exchange.shown)
        return Case(exchange=exchange, item=item, shown=tuple(shown))

    async def _put_back(
        self, claimed: ClaimedExchange, token: str, why: str, *, blamed: bool
    ) -> None:
        exchange, tries = claimed.exchange, claimed.attempts + blamed
        old = self.runtime.clock.now() - exchange.at > MAX_AGE
        try:
            if tries >= TRIES or old:
                self.runtime.metrics.count("learned", task="all", result="gave_up")
                await self.queue.finish(exchange, token, "failed", {"all": why})
                return
            pause = min(PAUSE_S * 2.0**claimed.attempts, MAX_PAUSE_S) if blamed else AWAY_S
            # Spread, so that not all come back at once.
            delay = pause * (0.5 + self.runtime.random())
            await self.queue.again(exchange, token, delay_s=delay, error=why, blamed=blamed)
        except RayappError as error:
            log.warning("an exchange waits until its claim ends: %s", error.message)

    async def _gauge(self) -> None:
        now = self.runtime.clock.monotonic()
        if self._gauged_at is None or now - self._gauged_at >= GAUGE_S:
            self._gauged_at = now
            self.runtime.metrics.gauge("exchanges_waiting", await self.queue.waiting())


def _with_learned(case: Case, progress: _Progress) -> Case:
    """What this exchange says of the user already is known to what is asked next."""
    texts = [one["text"] for one in progress.parts.get("profile", ())]
    return replace(case, learned=tuple(texts))


def _end(progress: _Progress) -> WorkEnd:
    asked = any(note not in ("off", "budget") for note in progress.notes.values())
    return "done" if asked else "skipped"
