"""`python -m jobs.reindex`: a new index beside the one in use, proved, then switched to.

Searches use the old collection until the moment of the switch. Points are copied where model,
analyser and words are unchanged, and embedded anew everywhere else.
"""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.params import REINDEX, ReindexParams
from rayapp.bulk.ports import JobWork
from rayapp.container import bootstrap
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import Settings
from rayapp.index.reindex.parts import ReindexParts
from rayapp.index.reindex.service import ReindexWork
from rayapp.index.reindex.switch import RollbackWork


async def open_work(settings: Settings, params: Mapping[str, Any]) -> JobWork:
    """The job embeds by itself: the live gateway keeps its capacity for searches."""
    # Not at the top: see `JobSpec.imports`.
    from rayapp.serve.deployments.process import vector_index

    metrics = InMemoryMetrics()
    embedder = bootstrap.embedding_service(settings, metrics)
    encoder = bootstrap.text_encoder(settings, metrics)
    read = None if encoder is None else await encoder.info()
    stores, texts, index = (
        bootstrap.Stores(settings),
        bootstrap.load_texts(),
        vector_index(settings),
    )

    async def close() -> None:
        await embedder.close()
        await index.close()

    parts = ReindexParts(
        index=index,
        items=stores.items,
        scan=stores.scan,
        receipts=stores.receipts,
        leases=stores.leases,
        jobs=stores.jobs,
        embedder=embedder,
        encoder=encoder,
        analyser=texts.analyser,
        schema=bootstrap.schema_of(await embedder.info(), texts.analyser, read),
        runtime=bootstrap.runtime_of(settings, metrics),
        close=close,
    )
    return RollbackWork(parts) if params.get("rollback") else ReindexWork(parts, params)


SPEC = JobSpec(
    kind=REINDEX,
    description="Fills a new index beside the one in use with the configured model, compares "
    "it with the truth and with the old one, and moves the service to it. Users notice nothing. "
    "The old index is kept for reindex.rollback_h hours.",
    params=ReindexParams,
    open_work=open_work,
    embeds=True,
    imports=("rayapp.serve.deployments.process",),
    warms=lambda params: not params.get("rollback"),
)
main = partial(run_main, SPEC)


if __name__ == "__main__":
    sys.exit(main())
