"""The smallest bulk job: partition n works on the numbers of its range, and logs each in a file."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.model import Finish, Partition, PartitionRow, Plan, Step
from rayapp.bulk.params import JobParams
from rayapp.core.errors import InvalidInput
from rayapp.core.settings.model import Settings


class Toy:
    """`begin` and every step leave a line in the folder, so that a test sees who did what."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._folder = Path(params["folder"])
        self._parts, self._size = params["parts"], params["size"]
        self._pause_s, self._batch = params["pause_s"], params["batch"]
        self._breaks = params.get("breaks")

    async def plan(self) -> Plan:
        partitions = [
            Partition(index=n, payload={"from": n * self._size, "to": (n + 1) * self._size})
            for n in range(self._parts)
        ]
        return Plan(partitions=partitions, total=self._parts * self._size, facts={"made": "once"})

    async def begin(self, facts: Mapping[str, Any]) -> None:
        assert facts == {"made": "once"}

    async def step(self, partition: Partition, cursor: Mapping[str, Any] | None) -> Step:
        at = cursor["next"] if cursor else partition.payload["from"]
        end = min(at + self._batch, partition.payload["to"])
        if not (self._folder / "go").exists():  # a test lets it run freely
            await asyncio.sleep(self._pause_s)
        if self._breaks and partition.index == 1:
            raise ValueError("this partition is broken\nand says so at length")
        with (self._folder / f"{partition.index}.log").open("a") as log:
            log.write(f"{at} {end} {os.getpid()}\n")
        return Step(
            cursor={"next": end} if end < partition.payload["to"] else None,
            done=end - at,
            counts={"even": sum(n % 2 == 0 for n in range(at, end))},
            samples=[at],
        )

    async def finish(self, partitions: Sequence[PartitionRow]) -> Finish:
        return Finish(report={"numbers": sum(row.done for row in partitions)})

    async def close(self) -> None:
        """Holds nothing."""


class ToyParams(JobParams):
    folder: str = ""
    parts: int = 4
    size: int = 20
    batch: int = 5
    pause_s: float = 0.0
    breaks: bool = False

    def refuse_pairs(self, *, local: bool) -> None:
        if self.parts < 1:
            raise InvalidInput("--parts must be 1 or more.")


async def open_work(_settings: Settings, params: Mapping[str, Any]) -> Toy:
    return Toy(params)


SPEC = JobSpec(kind="toy_job", description="Counts numbers.", params=ToyParams, open_work=open_work)


def main(argv: list[str] | None = None) -> int:
    return run_main(SPEC, argv, module="tests.integration.toys.toy_job")


if __name__ == "__main__":
    sys.exit(main())
