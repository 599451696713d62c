"""What changed between two snapshots, what retires, and the graph of the catalogue. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import TypeVar

from rayapp.core.errors import Forbidden
from rayapp.core.ids import SYSTEM_USER
from rayapp.datagov.ports import Catalogue, Dataset
from rayapp.datagov.rules.categories import CATEGORIES, main_category
from rayapp.datagov.rules.items import IMPORTANCE, kind_of, memory_id_of, record_hash_of
from rayapp.graphs.records import ContentEdge, ContentNode
from rayapp.memory.item import ChangeType, IndexOp, MemoryItem, MemoryVersion, Status
from rayapp.memory.rules.creation import archived
from rayapp.memory.rules.revision import queued, replaced_state, requeued, revived
from rayapp.memory.tiers import DATAGOV_TIERS
from rayapp.text.concept import NodeType

# A catalogue that lost half of a kind at once was cut short rather than cleaned up (our choice).
MIN_SHARE = 0.5
# What says that the source did not give all it has.
CUT_SHORT = ("rows_short", "row_unreadable")
# After which a run is not complete. A table that did not answer is still in the catalogue: it says
# nothing about what left it.
INCOMPLETE = (*CUT_SHORT, "fields_unread")


@dataclass(frozen=True, slots=True)
class Retiring:
    """Ids to archive, or why none are; `kept` items would have gone."""

    memory_ids: tuple[str, ...] = ()
    refused: str = ""
    kept: int = 0


def retiring(
    stored: Mapping[str, tuple[str, Status]], wanted: Collection[str], oddities: Mapping[str, int]
) -> Retiring:
    """What is active and not `wanted`; nothing when the source looks cut short."""
    active = [memory_id for memory_id, (_, status) in stored.items() if status is Status.ACTIVE]
    kept = set(wanted)
    gone = tuple(sorted(memory_id for memory_id in active if memory_id not in kept))
    if not gone:
        return Retiring()
    short = sum(oddities.get(kind, 0) for kind in CUT_SHORT)
    if short:
        return Retiring(refused=f"{short} rows of the source are missing.", kept=len(gone))
    had, has = Counter(map(kind_of, active)), Counter(map(kind_of, kept))
    for kind, count in had.items():
        if has[kind] < MIN_SHARE * count:
            return Retiring(
                refused=f"The source has {has[kind]} of {count} {kind} records: check it.",
                kept=len(gone),
            )
    return Retiring(memory_ids=gone)


ROOT_ID = "datagov_root"
ROOT_LABEL = "data.gov.il"
HAS_CATEGORY = "has_category"
HAS_DATASET = "has_dataset"


def graph_of(
    catalogue: Catalogue, now: datetime, *, datasets: int, nodes: int
) -> tuple[list[ContentNode], list[ContentEdge]]:
    """Nodes and edges; at most `datasets` of a category and `nodes` in all.

    When not all fit, each category gives its largest one before any gives its second.
    """
    filed: dict[str, list[Dataset]] = defaultdict(list)
    for dataset in catalogue.datasets:
        filed[main_category(dataset.categories)].append(dataset)
    made = [_node(ROOT_ID, ROOT_LABEL, "catalogue", len(catalogue.datasets), (), now)]
    edges: list[ContentEdge] = []
    for slug, category in CATEGORIES.items():
        node_id = memory_id_of("category", slug)
        label = f"{category.he} · {category.en}"
        made.append(_node(node_id, label, "category", len(filed[slug]), (node_id,), now))
        edges.append(_edge(ROOT_ID, node_id, HAS_CATEGORY, len(filed[slug]), now))
    rounds = zip_longest(*(_largest(filed[slug], datasets) for slug in CATEGORIES))
    shown = [dataset for row in rounds for dataset in row if dataset is not None]
    for dataset in shown[: max(0, nodes - len(made))]:
        node_id = memory_id_of("dataset", dataset.dataset_id)
        size = len(dataset.resources)
        made.append(_node(node_id, dataset.title, "dataset", size, (node_id,), now))
        of = memory_id_of("category", main_category(dataset.categories))
        edges.append(_edge(of, node_id, HAS_DATASET, size, now))
    return made, edges


def _largest(datasets: list[Dataset], limit: int) -> list[Dataset]:
    """By records, then resources; the id makes the order of equals stable."""
    ranked = sorted(
        datasets, key=lambda one: (-one.total_records, -len(one.resources), one.dataset_id)
    )
    return ranked[: max(0, limit)]


def _node(
    node_id: str, label: str, kind: NodeType, size: int, memory_ids: tuple[str, ...], now: datetime
) -> ContentNode:
    """`mentions` is the size of what it stands for, at least 1: else a picture leaves it out."""
    mentions = max(1, size)
    quality = IMPORTANCE["dataset"] if kind == "dataset" else IMPORTANCE["category"]
    return ContentNode(
        node_id=node_id,
        label=label,
        type=kind,
        mentions=mentions,
        quality_sum=quality * mentions,
        first_seen_at=now,
        last_seen_at=now,
        memory_ids=memory_ids,
    )


def _edge(source: str, target: str, relation: str, weight: int, now: datetime) -> ContentEdge:
    return ContentEdge(
        source=source,
        target=target,
        weight=float(max(1, weight)),
        first_seen_at=now,
        last_seen_at=now,
        relation=relation,
    )


UPDATED = "the catalogue changed"
RETURNED = "the catalogue has it again"

Change = tuple[MemoryItem, MemoryVersion | None]
Row = TypeVar("Row", ContentNode, ContentEdge)


def check_shared(items: Iterable[MemoryItem]) -> None:
    """Raise Forbidden unless all of them belong to the shared tenant and its tiers."""
    for item in items:
        if item.user_id != SYSTEM_USER or item.tier not in DATAGOV_TIERS:
            raise Forbidden(
                f"{item.memory_id} is not an item of the shared catalogue: store it as its user."
            )


def put_change(stored: MemoryItem | None, fresh: MemoryItem) -> Change | None:
    """The item to store and the version row it leaves; None when nothing is to be done."""
    if stored is None:
        return queued(fresh), None
    if stored.status is Status.DELETED:
        return revived(stored, fresh), None
    active = stored.status is Status.ACTIVE
    if active and record_hash_of(stored) == record_hash_of(fresh):
        return None
    mentioned = stored.quality.mentioned_count
    item = replace(
        fresh,
        stats=stored.stats,
        quality=replace(fresh.quality, mentioned_count=mentioned),
        created_at=stored.created_at,
        stored_at=stored.stored_at,
        tier_entered_at=stored.tier_entered_at if active else fresh.tier_entered_at,
        version=stored.version + 1,
        index=requeued(stored.index, IndexOp.VECTOR, fresh.updated_at),
    )
    kind, reason = (ChangeType.UPDATE, UPDATED) if active else (ChangeType.RESTORE, RETURNED)
    return item, replaced_state(stored, kind, reason, fresh.updated_at)


def retire_change(stored: MemoryItem, reason: str, at: datetime) -> Change | None:
    """The same for an item whose record is gone; None unless it is active."""
    if stored.status is not Status.ACTIVE:
        return None
    item = replace(archived(stored, reason, at), version=stored.version + 1)
    return item, replaced_state(stored, ChangeType.ARCHIVE, reason, at)


def graph_changes(stored: Sequence[Row], wanted: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows to write, and rows to remove. A known row keeps when it was first seen."""
    known = {_key(row): row for row in stored}
    kept = {_key(row) for row in wanted}
    write = []
    for row in wanted:
        old = known.get(_key(row))
        if old is None:
            write.append(row)
            continue
        same = replace(row, first_seen_at=old.first_seen_at, last_seen_at=old.last_seen_at)
        if same != old:
            write.append(replace(row, first_seen_at=old.first_seen_at))
    return write, [row for row in stored if _key(row) not in kept]


def _key(row: ContentNode | ContentEdge) -> tuple[str, ...]:
    if isinstance(row, ContentNode):
        return (row.node_id,)
    return row.source, row.target, row.relation
