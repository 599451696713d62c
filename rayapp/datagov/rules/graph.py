"""The picture of the catalogue: root, categories, and the largest datasets of each. Pure."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from itertools import zip_longest

from rayapp.datagov.records import Catalogue, Dataset
from rayapp.datagov.rules.categories import CATEGORIES, main_category
from rayapp.datagov.rules.items import IMPORTANCE, memory_id_of
from rayapp.graphs.records import ContentEdge, ContentNode
from rayapp.text.concepts import NodeType

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
