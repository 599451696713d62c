"""The command of a sweep: its options, and what its exit code says. No Ray, no servers."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs import consistency_sweep, frame
from jobs.job_arguments import params_of, parser_of
from rayapp.bulk.lease import JobRate, PartitionSteps
from rayapp.bulk.model import Job, PartitionRow
from rayapp.bulk.params import CONSISTENCY, checked_params
from rayapp.container import bootstrap
from rayapp.core.errors import InvalidInput
from rayapp.index.consistency.rules import Drift
from rayapp.serve.deployments import process
from tests.unit.index.consistency.world import SweepWorld


def params(*arguments: str) -> dict[str, Any]:
    options = parser_of(consistency_sweep.SPEC).parse_args(arguments)
    return params_of(consistency_sweep.SPEC, options)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ((), {}),
        (("--full",), {"full": True}),
        (("--sample", "500"), {"sample": 500}),
        (("--repair",), {"repair": True}),
        (
            ("--sample", "5", "--repair", "--quarantine"),
            {"sample": 5, "repair": True, "quarantine": True},
        ),
    ],
)
def test_options_are_the_parameters_that_the_api_takes(
    arguments: tuple[str, ...], wanted: dict[str, Any]
) -> None:
    assert params(*arguments) == wanted == checked_params(CONSISTENCY, wanted)


@pytest.mark.parametrize(
    "arguments",
    [("--full", "--sample", "5"), ("--sample", "0"), ("--sample", "many"), ("--quarantine",)],
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        params(*arguments)
    assert consistency_sweep.main(arguments) == 2


class OneWorker:
    """`Workers` in this process."""

    def __init__(self, world: SweepWorld) -> None:
        self._world = world

    async def work_on(self, job: Job, row: PartitionRow) -> bool:
        h = self._world.harness
        work = await consistency_sweep.open_work(h.settings, job.params)
        await work.begin(job.facts)
        steps = PartitionSteps(h.jobs, work, JobRate(None, h.clock), h.clock)
        return bool(await steps.run(row, job.fence))

    def stop(self) -> None:
        """Nothing runs beside the driver."""

    async def close(self) -> None:
        """Holds nothing."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SweepWorld:
    """What the command finds: a service on fakes, with an indexer that works between commands."""
    world = asyncio.run(SweepWorld.open(grace_s=0))
    h = world.harness
    monkeypatch.setattr(frame, "attached", lambda _folder: h.settings)
    monkeypatch.setattr(frame, "connect", lambda _settings, _name: None)
    monkeypatch.setattr(bootstrap, "Stores", lambda _settings: h.container.stores)
    monkeypatch.setattr(process, "vector_index", lambda _settings: h.index)
    monkeypatch.setattr(frame._Run, "_workers", lambda _self: OneWorker(world))
    return world


Report = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def sweep(world: SweepWorld, tmp_path: Path) -> Report:
    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        out = tmp_path / "report.json"
        code = consistency_sweep.main([*arguments, "--out", str(out)])
        return code, json.loads(out.read_text(encoding="utf-8"))

    return call


async def _break(world: SweepWorld, kind: Drift) -> None:
    await world.break_(kind, (await world.items())[0])


def test_nothing_found_is_0(sweep: Report) -> None:
    code, report = sweep()
    assert code == 0
    assert report["report"]["found"] == {}
    assert report["done"] == 27


def test_drift_that_is_not_repaired_is_3(world: SweepWorld, sweep: Report) -> None:
    asyncio.run(_break(world, Drift.ORPHAN))
    code, report = sweep("--full")
    assert code == 3
    assert report["report"]["left"] == {"orphan_in_index": 1}
    code, report = sweep("--sample", "100000")
    assert code == 3


def test_drift_that_was_repaired_is_0(world: SweepWorld, sweep: Report) -> None:
    asyncio.run(_break(world, Drift.ORPHAN))
    code, report = sweep("--repair", "--quarantine")
    assert code == 0
    assert (report["report"]["healed"], report["report"]["quarantined"]) == (1, 1)
    assert sweep()[0] == 0


def test_a_dry_run_looks_at_nothing(world: SweepWorld, sweep: Report) -> None:
    asyncio.run(_break(world, Drift.ORPHAN))
    code, report = sweep("--repair", "--dry-run")
    assert code == 0
    assert report["partitions"] == 4
    assert asyncio.run(world.harness.jobs.recent(None, 9)) == []
    assert sweep()[0] == 3
