"""`python -m jobs.reindex`: a new index beside the one in use, proved, then switched to.

Searches use the old collection until the moment of the switch. Points are copied where model,
analyser and words are unchanged, and embedded anew everywhere else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.model import REINDEX, checked_params
from rayapp.bulk.ports import JobWork
from rayapp.container import bootstrap
from rayapp.core.errors import InvalidInput
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import Settings
from rayapp.index.reindex.parts import ReindexParts
from rayapp.index.reindex.service import ReindexWork
from rayapp.index.reindex.switch import RollbackWork
from rayapp.memory.tiers import Tier


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--switch",
        choices=["auto", "never"],
        default="auto",
        help="auto: move to the new index when it is proved, unless a service still runs with "
        "another model; never: fill and prove only. The same command without it, or a restart of "
        "the service with the new model, then moves to what was filled.",
    )
    parser.add_argument(
        "--drop-old",
        action="store_true",
        help="Delete all older collections after the switch: there is no way back then.",
    )
    parser.add_argument(
        "--rollback",
        action="store_true",
        help="Go back to the collection before the last reindex.",
    )
    again = parser.add_argument_group(
        "embed again", "Items whose vectors are made anew even where the old ones fit."
    )
    again.add_argument("--user", metavar="ID", help="Items of this user.")
    again.add_argument("--tier", choices=[tier.value for tier in Tier], help="Items of this tier.")
    again.add_argument("--since", metavar="TIME", help="Items changed since, ISO-8601.")


def params_of(options: argparse.Namespace) -> dict[str, Any]:
    asked = {
        "user_id": options.user,
        "tier": options.tier,
        "since": options.since,
        "drop_old": options.drop_old or None,
        "switch": None if options.switch == "auto" else options.switch,
    }
    if options.rollback:
        if any(value is not None for value in asked.values()):
            raise InvalidInput("--rollback goes alone: leave the other options out.")
        return checked_params(REINDEX, {"rollback": True})
    return checked_params(REINDEX, asked)


async def open_work(settings: Settings, params: Mapping[str, Any]) -> JobWork:
    """The job embeds by itself: the live gateway keeps its capacity for searches."""
    # Not at the top: see `JobSpec.imports`.
    from rayapp.serve.deployments.process import vector_index

    metrics = InMemoryMetrics()
    embedder = bootstrap.embedding_service(settings, metrics)
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
        analyser=texts.analyser,
        schema=bootstrap.schema_of(await embedder.info(), texts.analyser),
        runtime=bootstrap.runtime_of(settings, metrics),
        close=close,
    )
    return RollbackWork(parts) if params.get("rollback") else ReindexWork(parts, params)


SPEC = JobSpec(
    kind=REINDEX,
    description="Fills a new index beside the one in use with the configured model, compares "
    "it with the truth and with the old one, and moves the service to it. Users notice nothing. "
    "The old index is kept for reindex.rollback_h hours.",
    add_arguments=add_arguments,
    params_of=params_of,
    open_work=open_work,
    embeds=True,
    imports=("rayapp.serve.deployments.process",),
    warms=lambda params: not params.get("rollback"),
)


def main(argv: Sequence[str] | None = None) -> int:
    return run_main(SPEC, argv)


if __name__ == "__main__":
    sys.exit(main())
