"""`python -m jobs.consistency_sweep`: find what differs between truth and index, and repair it."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.params import CONSISTENCY, SweepParams
from rayapp.bulk.ports import JobWork
from rayapp.container import bootstrap
from rayapp.container.understanding import orphans_of
from rayapp.core.settings.model import Settings
from rayapp.index.consistency.comparison import Comparison, Repairs
from rayapp.index.consistency.service import SweepLog, SweepStores, SweepWork


async def open_work(settings: Settings, params: Mapping[str, Any]) -> JobWork:
    # Not at the top: see `JobSpec.imports`.
    from rayapp.serve.deployments.process import vector_index

    stores = bootstrap.Stores(settings)
    runtime = bootstrap.runtime_of(settings)
    return SweepWork(
        Comparison(stores.scan, vector_index(settings), stores.quarantine),
        SweepStores(items=stores.items, graphs=stores.graphs, derived=orphans_of(stores, runtime)),
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
    params=SweepParams,
    open_work=open_work,
    imports=("rayapp.serve.deployments.process",),
)
main = partial(run_main, SPEC)


if __name__ == "__main__":
    sys.exit(main())
