"""Runs the work of a job without its frame: every step by another instance, as after a kill."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rayapp.bulk.model import Finish, Partition, PartitionRow, PartitionState
from rayapp.bulk.ports import JobWork


async def run_by_hand(make: Callable[[], JobWork], *, workers: int = 1) -> Finish:
    """plan, begin, all steps, finish; `workers` partitions at a time."""
    plan = await make().plan()
    room = asyncio.Semaphore(workers)

    async def one(partition: Partition) -> PartitionRow:
        async with room:
            return await partition_by_hand(make, partition, plan.facts)

    rows = await asyncio.gather(*(one(partition) for partition in plan.partitions))
    last = make()
    await last.begin(plan.facts)
    return await last.finish(rows)


async def partition_by_hand(
    make: Callable[[], JobWork], partition: Partition, facts: Mapping[str, Any]
) -> PartitionRow:
    """All steps of one partition."""
    cursor: Mapping[str, Any] | None = None
    done, steps, samples = 0, 0, list[Any]()
    counts: Counter[str] = Counter()
    while True:
        work = make()
        await work.begin(facts)
        step = await work.step(partition, cursor)
        cursor, done, steps = step.cursor, done + step.done, steps + 1
        counts.update(step.counts)
        samples += step.samples
        if cursor is None:
            return PartitionRow(
                job_id="by-hand",
                index=partition.index,
                payload=partition.payload,
                state=PartitionState.DONE,
                done=done,
                counts=dict(counts),
                samples=samples,
                steps=steps,
            )
