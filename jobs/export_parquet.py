"""`python -m jobs.export_parquet`: everything of all users as Parquet, a dataset per collection.

    python -m jobs.export_parquet --to PLACE [--optional] [--dry-run] [--concurrency 4]

PLACE is a folder (the same path on every node) or an address such as s3://bucket/path; without it
the place of backups. Workers write the parts side by side; `manifest.json`, which comes last, names
those that count, with rows, bytes and SHA-256. Nothing is encrypted, and no erasure reaches it.

Exit codes: 0 done, 2 bad arguments, 3 cut short, 4 a dependency is away.
"""

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.params import PARQUET, ParquetParams
from rayapp.bulk.ports import JobWork
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.model import Settings
from rayapp.portability.parquet import ParquetExport, ParquetPlace
from rayapp.portability.rules.collections import exported
from rayapp.portability.rules.kinds import DEFAULT_KINDS, Kind
from rayapp.storage.backup_files import open_backups
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.raw_rows import MongoAllRows


async def open_work(settings: Settings, params: Mapping[str, Any]) -> JobWork:
    place = params.get("to") or str(settings.backup.place_in(settings.data.dir))
    return ParquetExport(
        MongoAllRows(MongoDatabase(settings.mongo)),
        ParquetPlace(place, open_backups),
        exported(Kind if params.get("optional") else DEFAULT_KINDS),
        SystemClock(),
    )


SPEC = JobSpec(
    kind=PARQUET,
    description="Everything of all users as Parquet, a dataset per collection.",
    params=ParquetParams,
    open_work=open_work,
)
main = partial(run_main, SPEC)


if __name__ == "__main__":
    sys.exit(main())
