"""Documents of the graph collections to domain values, and contributions both ways. Pure."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from rayapp.graphs import records
from rayapp.graphs.rules.content import Refused
from rayapp.storage.mongo.rows import from_row, may_lack, reader, to_row

Document = dict[str, Any]
T = TypeVar("T")
COUNTERS = tuple(field.name for field in fields(records.Counters))

# Only what is above zero was written.
may_lack(records.Counters)
may_lack(records.RoutingRow, "tiers", "aliases")


def _newest_first(kind: type[T], name: str) -> Callable[[Document], T]:
    """Rows keep the list `name` in the order in which it grew."""

    def read(row: Document) -> T:
        return from_row(kind, row | {name: row.get(name, ())[::-1]})

    return read


routing_row = _newest_first(records.RoutingRow, "examples")
action_row = _newest_first(records.ActionRow, "examples")
content_node = _newest_first(records.ContentNode, "memory_ids")
content_edge = reader(records.ContentEdge)
known_solution = reader(records.KnownSolution)
document_effect = reader(records.DocumentEffect)


def contribution_document(contribution: records.Contribution, refused: Refused) -> Document | None:
    """None when the item adds nothing: the index queue then may remove its tombstone."""
    if not contribution.concepts:
        return None
    return to_row(contribution) | {
        "refused_nodes": sorted(refused.nodes),
        "refused_edges": [list(edge) for edge in sorted(refused.edges)],
    }


def contribution_of_document(doc: Document | None) -> tuple[records.Contribution, Refused]:
    if doc is None:
        return records.Contribution(), Refused()
    refused = Refused(
        nodes=frozenset(doc.get("refused_nodes", ())),
        edges=frozenset((source, target) for source, target in doc.get("refused_edges", ())),
    )
    return from_row(records.Contribution, doc), refused
