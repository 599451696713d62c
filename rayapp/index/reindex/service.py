"""Reindex: fill a new collection beside the one in use, prove it, and put it behind the alias.

Searches use the old collection until the moment of the switch, so they never see a half-built
index (decision 0018).
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from rayapp.bulk.model import Finish, Partition, PartitionRow, Plan, Step, point_ranges, shares_of
from rayapp.core.errors import InvalidInput
from rayapp.index.point_builder import PointFailure
from rayapp.index.reindex import switch
from rayapp.index.reindex.copy import Copier, Follower, PagesAhead, SearchBackoff
from rayapp.index.reindex.parts import (
    ReindexFacts,
    ReindexParts,
    belongs,
    facts_of,
    prepared_for,
    refresh_of,
)
from rayapp.index.reindex.verify import verified
from rayapp.index.rules.points import collection_name

# What the report says of items that could not be embedded.
SAMPLES = 20
NEVER = "never"


class ReindexWork:
    """Implements `JobWork`. `params`: user_id, tier, since (whose vectors are made anew even where
    the old ones fit), drop_old, switch ("auto" or "never")."""

    def __init__(self, parts: ReindexParts, params: Mapping[str, Any]) -> None:
        if params.get("switch", "auto") not in ("auto", NEVER):
            raise InvalidInput("switch is auto or never.")
        self._parts, self._params = parts, params
        self._settings = parts.runtime.settings.reindex
        self._refresh = refresh_of(params)
        self._facts: ReindexFacts | None = None
        self._copier: Copier | None = None
        self._pages = PagesAhead(parts.scan, self._settings.batch_size)
        self._backoff = SearchBackoff(parts.receipts, parts.runtime.clock, parts.sleep)
        self._missing = switch.MissingItems()
        self._spent_s: dict[str, float] = {}

    async def plan(self) -> Plan:
        parts = self._parts
        prepared = await prepared_for(parts.index, parts.jobs, parts.schema, self._params)
        if prepared is not None:
            # Filled and proved by an earlier job: what came since is followed, nothing is filled.
            facts = facts_of(prepared.facts)
            facts = replace(facts, previous=(await parts.index.health()).collection)
            return Plan(partitions=[], total=0, facts=facts.as_json())
        now = await parts.scan.now()
        stamp = parts.runtime.clock.now()
        name = collection_name(parts.runtime.settings.qdrant.alias, parts.schema, stamp)
        facts = ReindexFacts(
            collection=name,
            previous=(await parts.index.health()).collection,
            schema=parts.schema,
            watermark=now,
        )
        ranges = point_ranges(self._settings.partitions)
        partitions = shares_of({"after": after, "until": until} for after, until in ranges)
        total = await parts.scan.total()
        return Plan(partitions=partitions, total=total, facts=facts.as_json())

    async def begin(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts_of(facts)
        if self._facts.schema != self._parts.schema:
            raise InvalidInput(
                f"This job was planned for {self._facts.schema.model}, and "
                f"{self._parts.schema.model} is configured: start a new one with --no-resume."
            )
        await self._parts.index.create_collection(self._facts.collection, self._facts.schema)
        self._copier = Copier(self._parts, self._facts, self._refresh)

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        _, copier = self._begin()
        until = partition.payload["until"]
        after = cursor["after"] if cursor is not None else partition.payload["after"]
        async with self._backoff.turn():
            items, last = await self._pages.page(after, until)
            done = await copier.fill(items)
        counts = {"copied": done.copied, "embedded": done.embedded}
        return Step(
            cursor=None if last is None else {"after": last},
            done=sum(map(belongs, items)),
            failed=len(done.failures),
            counts={name: count for name, count in counts.items() if count},
            samples=[_sample(failure) for failure in done.failures[:SAMPLES]],
        )

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        facts, copier = self._begin()
        now = await self._parts.scan.now()
        follower = Follower(self._parts, copier, facts.watermark)
        report = _filled(partitions) | facts.as_json() | {"switched": False, "ready": False}
        report["reused"] = not partitions
        filled_s = max(0.0, (now - facts.watermark).total_seconds()) if partitions else 0.0
        self._spent_s = {"fill": filled_s}
        report["items_per_s"] = round(report["items"] / filled_s, 1) if filled_s else None
        async with self._timed("follow"):
            await switch.catch_up(follower, self._settings.batch_size)
            # Memories deleted between read and write, by whatever pass, a killed one too.
            report["removed"] = await copier.tidy()
            points = await self._parts.index.at(facts.collection).count()
            # A power cut takes points back whose checkpoints are kept.
            if report["failed"] or points < report["items"]:
                self._missing = await switch.copy_missing(self._parts, facts, copier)
        reason = await self._to_the_alias(report, follower)
        failures = list(self._missing.failures.values())
        report |= {
            "followed": follower.done.written,
            "failed": len(failures),
            "failures": [_sample(one) for one in failures[:SAMPLES]],
            "seconds": {name: round(spent, 2) for name, spent in self._spent_s.items()},
        }
        if reason is not None:
            return Finish(report=report | {"reason": reason}, complete=False)
        return Finish(report=report, complete=not failures)

    async def close(self) -> None:
        self._pages.close()
        await self._parts.close()

    async def _to_the_alias(self, report: dict[str, Any], follower: Follower) -> str | None:
        """Prove, compare, switch; the reason when the alias was left alone for a fault."""
        facts, copier = self._begin()
        # A driver that died after the switch left nothing to prove.
        if (await self._parts.index.health()).collection != facts.collection:
            waits = await self._waits()
            reason = await self._prove(report)
            if reason is not None:
                return reason
            found = await self._compare(report, follower, move=waits is None)
            if found.again:
                # Something is missing for a reason that is not known: look at every item.
                async with self._timed("gaps"):
                    self._missing = await switch.copy_missing(self._parts, facts, copier)
                reason = switch.too_many(self._missing, report["items"])
                if reason is not None:
                    return reason
                found = await self._compare(report, follower, move=waits is None)
            if found.reason is not None:
                return found.reason
            if found.served:
                waits = self._restart()
            if waits is not None:
                report |= {"ready": True, "next": waits, "ready_until": self._kept_until()}
                return None
        await switch.settle(self._parts, follower, list(self._missing.failures.values()))
        await self._switch(report)
        return None

    async def _prove(self, report: dict[str, Any]) -> str | None:
        facts, _ = self._begin()
        reason = switch.too_many(self._missing, report["items"])
        if reason is not None:
            return reason
        async with self._timed("verify"):
            checks = await verified(self._parts, facts)
        report["verify"] = checks.as_json()
        return checks.reason

    async def _compare(
        self, report: dict[str, Any], follower: Follower, *, move: bool
    ) -> switch.Outcome:
        facts, _ = self._begin()
        report["held_at"] = (await self._parts.scan.now()).isoformat()
        async with self._timed("switch"):
            return await switch.compared_and_switched(
                self._parts, facts, follower, self._missing, move=move
            )

    async def _switch(self, report: dict[str, Any]) -> None:
        facts, _ = self._begin()
        parts = self._parts
        report |= {"switched": True, "switched_at": parts.runtime.clock.now().isoformat()}
        if self._params.get("drop_old"):
            cleanup = switch.ReindexCleanup(parts.index, parts.jobs, runtime=parts.runtime)
            report["dropped"] = await cleanup.drop_old()
        elif facts.previous is not None:
            report["previous_kept_until"] = self._kept_until()

    async def _waits(self) -> str | None:
        """What has to happen before the alias may move; None: nothing, it moves now."""
        facts, _ = self._begin()
        if self._params.get("switch") == NEVER:
            return (
                "Ready; --switch never left the alias alone. The same command without it moves "
                f"there, and so does a service that is started with {facts.schema.model}."
            )
        return self._restart() if await switch.serving_elsewhere(self._parts, facts) else None

    def _restart(self) -> str:
        facts, _ = self._begin()
        return (
            f"Ready: restart the service with {facts.schema.model}; it moves to the new "
            "collection when it starts."
        )

    def _kept_until(self) -> str:
        hours = timedelta(hours=self._settings.rollback_h)
        return (self._parts.runtime.clock.now() + hours).isoformat()

    @asynccontextmanager
    async def _timed(self, stage: str) -> AsyncIterator[None]:
        clock = self._parts.runtime.clock
        began_s = clock.monotonic()
        try:
            yield
        finally:
            spent = self._spent_s.get(stage, 0.0)
            self._spent_s[stage] = spent + clock.monotonic() - began_s

    def _begin(self) -> tuple[ReindexFacts, Copier]:
        if self._facts is None or self._copier is None:
            raise InvalidInput("A reindex begins with its facts: call begin() first.")
        return self._facts, self._copier


def _filled(partitions: Sequence[PartitionRow]) -> dict[str, Any]:
    counted = ("copied", "embedded")
    counts = {name: sum(row.counts.get(name, 0) for row in partitions) for name in counted}
    return {
        "items": sum(row.done for row in partitions),
        "failed": sum(row.failed for row in partitions),
        **counts,
    }


def _sample(failure: PointFailure) -> dict[str, str]:
    return {
        "memory_id": failure.item.memory_id,
        "point_id": failure.item.point_id,
        "error": f"{failure.error.code}: {failure.error.message}",
    }
