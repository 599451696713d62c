"""`python -m jobs.consistency_sweep`: find what differs between truth and index, and repair it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.model import CONSISTENCY
from rayapp.bulk.ports import JobWork
from rayapp.container import bootstrap
from rayapp.core.errors import InvalidInput
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import Settings
from rayapp.index.consistency.comparison import Comparison, Repairs
from rayapp.index.consistency.service import SweepLog, SweepStores, SweepWork


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--full", action="store_true", help="Look at everything (the default).")
    which.add_argument(
        "--sample", type=_number, metavar="N", help="Look at N ids, from a random one on."
    )
    parser.add_argument("--repair", action="store_true", help="Write, delete or correct points.")
    parser.add_argument(
        "--quarantine",
        action="store_true",
        help="With --repair: keep whole points aside for 30 days before they are deleted.",
    )


def params_of(options: argparse.Namespace) -> dict[str, Any]:
    """What was asked for; what was not is left out, as in a job that the API submits."""
    if options.quarantine and not options.repair:
        raise InvalidInput("--quarantine keeps what a repair deletes: add --repair.")
    asked = {
        "full": options.full,
        "sample": options.sample,
        "repair": options.repair,
        "quarantine": options.quarantine,
    }
    return {name: value for name, value in asked.items() if value}


async def open_work(settings: Settings, params: Mapping[str, Any]) -> JobWork:
    # Not at the top: see `JobSpec.imports`.
    from rayapp.serve.deployments.process import vector_index

    stores = bootstrap.Stores(settings)
    runtime = bootstrap.runtime_of(settings, InMemoryMetrics())
    return SweepWork(
        Comparison(stores.scan, vector_index(settings), stores.quarantine),
        SweepStores(items=stores.items, graphs=stores.graphs),
        SweepLog(stores.events, CONSISTENCY, runtime),
        sample=params.get("sample"),
        repairs=Repairs(
            repair=bool(params.get("repair")), quarantine=bool(params.get("quarantine"))
        ),
        runtime=runtime,
    )


SPEC = JobSpec(
    kind=CONSISTENCY,
    description="Compares the truth with the index in both directions, and repairs on request. "
    "Exit code 3: differences were found and not repaired, or some are left.",
    add_arguments=add_arguments,
    params_of=params_of,
    open_work=open_work,
    imports=("rayapp.serve.deployments.process",),
)


def main(argv: Sequence[str] | None = None) -> int:
    return run_main(SPEC, argv)


def _number(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError("use a whole number from 1 on")
    return value


if __name__ == "__main__":
    sys.exit(main())
