"""`python -m jobs.promotion`: one promotion cycle for every user, shared by several workers."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.params import PROMOTION, JobParams
from rayapp.bulk.ports import JobWork
from rayapp.container import bootstrap
from rayapp.core.settings.model import Settings
from rayapp.learning.promotion import PromotionService, PromotionWork


async def open_work(settings: Settings, params: Mapping[str, Any]) -> JobWork:
    stores = bootstrap.Stores(settings)
    runtime = bootstrap.runtime_of(settings)
    service = PromotionService(stores.lifecycle, stores.leases, runtime=runtime)
    return PromotionWork(service, stores.lifecycle, clock=runtime.clock)


SPEC = JobSpec(
    kind=PROMOTION,
    description="Looks at every item that a rule of promotion, demotion or expiry could touch. "
    "A second run finds nothing to do. Exit code 3: some items could not be judged.",
    params=JobParams,
    open_work=open_work,
)
main = partial(run_main, SPEC)


if __name__ == "__main__":
    sys.exit(main())
