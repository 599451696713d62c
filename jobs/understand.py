"""`python -m jobs.understand`: everything that is stored is understood, without a model."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.params import UNDERSTAND, UnderstandParams
from rayapp.bulk.ports import JobWork
from rayapp.container import bootstrap
from rayapp.container.understanding import understand_work
from rayapp.core.settings.model import Settings


async def open_work(settings: Settings, params: Mapping[str, Any]) -> JobWork:
    stores, runtime = bootstrap.Stores(settings), bootstrap.runtime_of(settings)
    return understand_work(
        stores,
        bootstrap.load_texts(),
        bootstrap.embedding_service(settings, runtime.metrics),
        runtime,
        user_id=params.get("user_id"),
        again=bool(params.get("again")),
    )


SPEC = JobSpec(
    kind=UNDERSTAND,
    description="Derives people, relations and what else is understood from everything that is "
    "stored, a user at a time, beside the service. What is new is understood by the service "
    "meanwhile. Exit code 3: some memories could not be understood.",
    params=UnderstandParams,
    open_work=open_work,
)
main = partial(run_main, SPEC)


if __name__ == "__main__":
    sys.exit(main())
