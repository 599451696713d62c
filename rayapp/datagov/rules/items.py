"""Memory items of a catalogue and of the dictionary, for the shared tenant. Pure.

An item's id follows from its record's id, and its hash from everything it says: a run writes only
what changed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rayapp.core.ids import MEMORY_ID_PATTERN, SYSTEM_USER
from rayapp.datagov.records import (
    ERROR_FLAG,
    FLAGS,
    Catalogue,
    Dataset,
    Kind,
    Resource,
)
from rayapp.datagov.rules.categories import CATEGORIES, DOMAINS, main_category
from rayapp.datagov.rules.flags import flags_of, flags_of_all
from rayapp.datagov.rules.normalise import has_hebrew
from rayapp.datagov.rules.texts import (
    TEXT_VERSION,
    CategoryFacts,
    category_text,
    dataset_text,
    domain_text,
    resource_text,
)
from rayapp.memory.item import (
    SOURCE_TRUST,
    IndexState,
    MemoryItem,
    Quality,
    Source,
    SourceType,
    point_id_of,
)
from rayapp.memory.rules.creation import DEFAULT_CONFIDENCE
from rayapp.memory.tiers import Tier
from rayapp.text.language import detect_language
from rayapp.text.normalize import content_hash

IMPORTANCE: dict[Kind, float] = {
    "category": 0.9,
    "dataset": 0.8,
    "resource": 0.7,
    "expansion": 0.85,
}
# A resource that its source could not read stays findable, behind all others (our choice).
ERROR_IMPORTANCE = 0.3
# Kept with the item for people; the text holds fewer.
MAX_FIELDS = 50
MAX_DESCRIPTION_CHARS = 600
PREFIX = "datagov"
SITE = "https://data.gov.il"

Entry = tuple[str, Sequence[str], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    kind: Kind
    record_id: str
    text: str
    category: str
    facts: Mapping[str, Any]
    dedup_scope: str = ""
    error: bool = False


def memory_id_of(kind: Kind, record_id: str) -> str:
    """`datagov_<kind>_<record id>`; an id with other characters is replaced by its hash."""
    plain = f"{PREFIX}_{kind}_{record_id}"
    if MEMORY_ID_PATTERN.fullmatch(plain):
        return plain
    return f"{PREFIX}_{kind}_{hashlib.sha256(record_id.encode()).hexdigest()[:32]}"


def kind_of(memory_id: str) -> Kind | None:
    """The kind that an id made by `memory_id_of` is of."""
    return next((k for k in IMPORTANCE if memory_id.startswith(f"{PREFIX}_{k}_")), None)


def partial_ids(catalogue: Catalogue) -> frozenset[str]:
    """Items that tell of a table that did not answer: its own, its dataset's, the category's.

    What is stored of them is better than what can be made of them now.
    """
    unread, found = set(catalogue.unread), set()
    for dataset in catalogue.datasets:
        tables = [one.resource_id for one in dataset.resources if one.resource_id in unread]
        if tables:
            found.add(memory_id_of("category", main_category(dataset.categories)))
            found.add(memory_id_of("dataset", dataset.dataset_id))
            found.update(memory_id_of("resource", one) for one in tables)
    return frozenset(found)


def items_of(
    catalogue: Catalogue, entries: Iterable[Entry], now: datetime, *, site: str = SITE
) -> list[MemoryItem]:
    """Every item: categories, datasets, resources, then the dictionary's domains.

    Args:
        catalogue: normalised, with known categories.
        entries: domain, Hebrew and English forms, as `Expansions.entries` gives them.
        site: where the pages of datasets are.
    """
    drafts = [
        *_categories(catalogue),
        *(_dataset(dataset, site) for dataset in catalogue.datasets),
        *(draft for dataset in catalogue.datasets for draft in _resources(dataset, site)),
        *_domains(entries),
    ]
    return [_item(draft, now) for draft in drafts]


def _categories(catalogue: Catalogue) -> Iterator[_Draft]:
    filed: dict[str, list[Dataset]] = defaultdict(list)
    for dataset in catalogue.datasets:
        filed[main_category(dataset.categories)].append(dataset)
    for slug, category in CATEGORIES.items():
        datasets = sorted(filed[slug], key=lambda one: (-one.total_records, one.dataset_id))
        resources = sum(len(one.resources) for one in datasets)
        facts = CategoryFacts(
            datasets=len(datasets),
            resources=resources,
            titles=[one.title for one in datasets],
            organizations=_frequent(one.organization for one in datasets),
            organizations_en=_frequent(one.organization_en for one in datasets),
        )
        yield _Draft(
            kind="category",
            record_id=slug,
            text=category_text(category, facts),
            category=slug,
            facts={
                "title": category.en,
                "title_he": category.he,
                "datasets": len(datasets),
                "resources": resources,
                "total_records": sum(one.total_records for one in datasets),
                "flags": {},
            },
        )


def _dataset(dataset: Dataset, site: str) -> _Draft:
    flags = flags_of_all(dataset.resources)
    fields = dict.fromkeys(one.name for resource in dataset.resources for one in resource.fields)
    formats = list(dict.fromkeys(one.format for one in dataset.resources if one.format))
    return _Draft(
        kind="dataset",
        record_id=dataset.dataset_id,
        text=dataset_text(dataset, flags),
        category=main_category(dataset.categories),
        facts={
            **_about(dataset),
            "title": dataset.title,
            "format": formats[0] if len(formats) == 1 else None,
            "formats": formats,
            "total_records": dataset.total_records,
            "fields": list(fields)[:MAX_FIELDS],
            "flags": _flag_values(flags),
            "url": f"{site}/dataset/{dataset.name or dataset.dataset_id}",
        },
    )


def _resources(dataset: Dataset, site: str) -> Iterator[_Draft]:
    named = Counter(_spelling(resource) for resource in dataset.resources)
    numbers: Counter[str] = Counter()
    for resource in dataset.resources:
        numbers[_spelling(resource)] += 1
        repeated = named[_spelling(resource)] > 1
        flags = flags_of(resource.fields)
        error = resource.error is not None
        number = numbers[_spelling(resource)] if repeated else None
        page = f"{site}/dataset/{dataset.name or dataset.dataset_id}"
        facts: dict[str, Any] = {
            **_about(dataset),
            "resource_id": resource.resource_id,
            "title": resource.name,
            "dataset_title": dataset.title,
            "format": resource.format or None,
            "total_records": resource.total_records,
            "fields": [one.name for one in resource.fields[:MAX_FIELDS]],
            "flags": {**_flag_values(flags), ERROR_FLAG: error},
            "url": resource.url or f"{page}/resource/{resource.resource_id}",
        }
        if error:
            facts["error"] = resource.error
        yield _Draft(
            kind="resource",
            record_id=resource.resource_id,
            text=resource_text(dataset, resource, flags, number),
            category=main_category(dataset.categories),
            facts=facts,
            dedup_scope=resource.resource_id,
            error=error,
        )


def _domains(entries: Iterable[Entry]) -> Iterator[_Draft]:
    by_domain: dict[str, list[tuple[Sequence[str], Sequence[str]]]] = defaultdict(list)
    for domain, hebrew, english in entries:
        if domain in DOMAINS:
            by_domain[domain].append((hebrew, english))
    for domain, found in sorted(by_domain.items()):
        yield _Draft(
            kind="expansion",
            record_id=domain,
            text=domain_text(domain, found),
            category=domain,
            facts={
                "title": DOMAINS[domain].en,
                "title_he": DOMAINS[domain].he,
                "total_records": len(found),
                "flags": {},
                # All of the entries: the text holds those that fit, a change of any is a change.
                "terms_hash": _hash([[list(he), list(en)] for he, en in found]),
            },
        )


def _about(dataset: Dataset) -> dict[str, Any]:
    """What a dataset and its resources have in common."""
    return {
        "dataset_id": dataset.dataset_id,
        "categories": list(dataset.categories),
        "organization": dataset.organization or None,
        "organization_en": dataset.organization_en or None,
        "description": dataset.description[:MAX_DESCRIPTION_CHARS] or None,
    }


def _item(draft: _Draft, now: datetime) -> MemoryItem:
    tier = Tier.DATAGOV_EXPANSION if draft.kind == "expansion" else Tier.DATAGOV_SCHEMA
    memory_id = memory_id_of(draft.kind, draft.record_id)
    datagov: dict[str, Any] = {
        "kind": draft.kind,
        "category": draft.category,
        "dataset_id": None,
        "resource_id": None,
        "organization": None,
        "format": None,
        "fields": [],
        **draft.facts,
    }
    if has_hebrew(str(datagov["title"])):
        datagov.setdefault("title_he", datagov["title"])
    datagov["record_hash"] = _hash([TEXT_VERSION, draft.text, datagov])
    tags = (PREFIX, draft.kind, draft.category, datagov["format"])
    importance = ERROR_IMPORTANCE if draft.error else IMPORTANCE[draft.kind]
    return MemoryItem(
        memory_id=memory_id,
        point_id=point_id_of(SYSTEM_USER, memory_id),
        user_id=SYSTEM_USER,
        tier=tier,
        text=draft.text,
        content_hash=content_hash(draft.text),
        # Two records may say the same, and each is a record.
        dedup_scope=draft.dedup_scope or memory_id,
        tags=tuple(dict.fromkeys(tag for tag in tags if tag)),
        lang=detect_language(draft.text),
        source=Source(type=SourceType.DATAGOV, datagov=datagov),
        perspective_owner_id=SYSTEM_USER,
        subject_id=SYSTEM_USER,
        trust=SOURCE_TRUST[SourceType.DATAGOV],
        quality=Quality(importance=importance, confidence=DEFAULT_CONFIDENCE),
        created_at=now,
        stored_at=now,
        updated_at=now,
        tier_entered_at=now,
        index=IndexState(next_attempt_at=now),
    )


def record_hash_of(item: MemoryItem) -> str:
    """The hash that an item was stored with; empty when it has none."""
    return str((item.source.datagov or {}).get("record_hash", ""))


def _flag_values(flags: frozenset[str]) -> dict[str, bool]:
    return {name: name in flags for name in FLAGS}


def _spelling(resource: Resource) -> str:
    return resource.name.casefold()


def _frequent(names: Iterable[str]) -> list[str]:
    """Most frequent first, then by name, so that the order of the source does not count."""
    counts = Counter(name for name in names if name)
    return sorted(counts, key=lambda name: (-counts[name], name))


def _hash(value: Any) -> str:
    plain = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()
