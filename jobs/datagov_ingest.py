"""`python -m jobs.datagov_ingest`: bring the open-data catalogue into the shared DataGov tiers.

    python -m jobs.datagov_ingest --source FOLDER     # the catalogue's files
    python -m jobs.datagov_ingest --source ckan       # the live site (`datagov.ckan_url`)
    python -m jobs.datagov_ingest --source ckan --offline

What was read is kept as a Parquet file under the data directory; the workers read it there, and
`--offline` takes the latest one instead of the source. Only what is new, changed or gone since
the last run is written. Known anomalies of the data are in the report and are no failures.

Exit codes: 0 done, 2 bad arguments, 3 the source was cut short or items failed, 4 a dependency is
away.
"""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.params import CKAN, DATAGOV, INDEX_WAIT_S, DatagovParams
from rayapp.bulk.ports import JobWork
from rayapp.container import bootstrap
from rayapp.core.settings.model import Settings
from rayapp.datagov.service import DatagovIngest
from rayapp.storage.datagov.ckan import open_source


async def open_work(settings: Settings, params: Mapping[str, Any]) -> JobWork:
    stores = bootstrap.Stores(settings)
    name = params.get("source") or str(settings.datagov.source or CKAN)
    return DatagovIngest(
        open_source(
            name,
            data_dir=settings.data.dir,
            ckan_url=settings.datagov.ckan_url,
            offline=bool(params.get("offline")),
        ),
        stores.shared,
        stores.items,
        bootstrap.load_texts().expansions,
        runtime=bootstrap.runtime_of(settings),
        index_wait_s=float(params.get("index_wait_s", INDEX_WAIT_S)),
    )


SPEC = JobSpec(
    kind=DATAGOV,
    description="Bring the open-data catalogue into the shared DataGov tiers.",
    params=DatagovParams,
    open_work=open_work,
)
main = partial(run_main, SPEC)


if __name__ == "__main__":
    sys.exit(main())
