"""`python -m jobs.documents_ingest`: take the files of a folder in as documents of a user.

    python -m jobs.documents_ingest --folder DIR --user dana --concurrency 4
    python -m jobs.documents_ingest --folder DIR --user dana --dry-run

Workers read the files side by side; what is here already is left alone, so a second run takes in
what is new. Files of types that no reader reads are not looked at.

Exit codes: 0 done, 2 bad arguments, 3 some files could not be read, 4 a dependency is away.
"""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jobs.frame import run_main
from jobs.spec import JobSpec
from rayapp.bulk.params import DOCUMENTS, DocumentsParams
from rayapp.bulk.ports import JobWork
from rayapp.container import bootstrap
from rayapp.core.settings.model import Settings
from rayapp.documents.ingest import DocumentsIngest
from rayapp.documents.reading import read_document
from rayapp.documents.service import BooksService, BookWork


async def open_work(settings: Settings, params: Mapping[str, Any]) -> JobWork:
    stores = bootstrap.Stores(settings)
    runtime = bootstrap.runtime_of(settings)
    memories = bootstrap.memories_service(stores, runtime)
    return DocumentsIngest(
        BooksService(stores.books, stores.items, runtime=runtime),
        BookWork(stores.books, memories, read_document, runtime=runtime),
        Path(params["folder"]),
        str(params["user_id"]),
        params.get("author"),
    )


SPEC = JobSpec(
    kind=DOCUMENTS,
    description="Take the files of a folder in as documents of a user.",
    params=DocumentsParams,
    open_work=open_work,
)
main = partial(run_main, SPEC)


if __name__ == "__main__":
    sys.exit(main())
