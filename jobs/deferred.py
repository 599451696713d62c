"""`python -m jobs.deferred`: index waiting and failed items now, and follow them to the end."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.params import DEFERRED, DeferredParams
from rayapp.bulk.ports import JobWork
from rayapp.container import bootstrap
from rayapp.core.settings.model import Settings
from rayapp.index.deferred import DeferredWork


async def open_work(settings: Settings, params: Mapping[str, Any]) -> JobWork:
    stores = bootstrap.Stores(settings)
    return DeferredWork(stores.items, stores.scan, user_id=params.get("user_id"))


SPEC = JobSpec(
    kind=DEFERRED,
    description="Makes items that wait for the index, and those that failed, due now, and waits "
    "until the service has indexed those. Exit code 3: some failed again.",
    params=DeferredParams,
    open_work=open_work,
)
main = partial(run_main, SPEC)


if __name__ == "__main__":
    sys.exit(main())
