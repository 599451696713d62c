"""What a reindex works with, of stores that a test has."""

from typing import Any

from rayapp.index.reindex.parts import ReindexParts


def reindex_parts(stores: Any, **others: Any) -> ReindexParts:
    """`stores` names them as the container does; `others` are all fields that are no stores."""
    names = ("items", "scan", "receipts", "leases", "jobs")
    return ReindexParts(**{name: getattr(stores, name) for name in names}, **others)
