"""From records of the catalogue to shared items and their texts. Pure."""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rayapp.core.ids import MEMORY_ID_PATTERN, SYSTEM_USER
from rayapp.datagov.ports import ERROR_FLAG, FLAGS, Catalogue, Dataset, Kind, Resource
from rayapp.datagov.rules.categories import (
    CATEGORIES,
    DOMAINS,
    GENERAL,
    Category,
    flags_of,
    flags_of_all,
    main_category,
)
from rayapp.datagov.rules.prepare import has_hebrew
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

# The text of an item: a Hebrew line and an English line, then names that both languages share.
#
# A title is written once, where it belongs by its script: a repeated one would outweigh the rest.

# Raise it when the wording changes: the items are written again by the next run.
TEXT_VERSION = 2
# Beyond this the static embedder's mean says nothing any more (our choice: about 250 words).
MAX_CHARS = 1_500
# Words and tags say more of a dataset than its columns (description MRR of plain BM25 .673 without
# and .658 with columns): they come first, and few columns.
MAX_FIELD_NAMES = 12
MAX_KEYWORDS = 30
MAX_TAGS = 8
MAX_NAMES = 6
# One name of these is never longer: a pasted paragraph in a title must not fill the text.
MAX_NAME_CHARS = 160

# Latin words of three letters or more; numbers and ids of an address say nothing.
WORD = re.compile(r"(?<![a-z0-9])[a-z]{3,}(?![a-z0-9])")

FLAG_WORDS: dict[str, tuple[str, str]] = {
    "has_phone": ("טלפונים", "phone numbers"),
    "has_address": ("כתובות", "addresses"),
    "has_location": ("מיקום", "locations"),
    "has_email": ("דואר אלקטרוני", "email addresses"),
    "has_date": ("תאריכים", "dates"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryFacts:
    """What a category's text tells of its datasets; titles are the largest ones."""

    datasets: int
    resources: int
    titles: Sequence[str]
    organizations: Sequence[str]
    organizations_en: Sequence[str]


def category_text(category: Category, facts: CategoryFacts) -> str:
    """Counts, owners and the largest datasets of a category."""
    he = [
        f"קטגוריה: {category.he} ({category.slug})",
        category.he_about,
        f"{facts.datasets:,} מאגרי מידע ו-{facts.resources:,} משאבים במאגרי המידע הממשלתיים",
        _listed("גופים", facts.organizations, MAX_NAMES),
    ]
    en = [
        f"Category: {category.en} ({category.slug})",
        category.en_about,
        f"{facts.datasets:,} datasets and {facts.resources:,} resources of Israeli government data",
        _listed("Publishers", facts.organizations_en, MAX_NAMES),
    ]
    return _text(he, en, [_listed("מאגרים / Datasets", facts.titles, MAX_NAMES)])


def dataset_text(dataset: Dataset, flags: Iterable[str]) -> str:
    """A dataset with what its resources hold together."""
    flags = tuple(flags)
    formats = list(dict.fromkeys(one.format.upper() for one in dataset.resources if one.format))
    he = [f"מאגר מידע: {_short(dataset.title)}", *_hebrew(dataset, formats, flags)]
    en = [_english_title("Dataset", dataset.title), *_english(dataset, formats, flags)]
    if words := _name_words(dataset):
        en.insert(1, f"Name: {words}")
    if dataset.resources:
        several = len(dataset.resources) > 1
        he.insert(-1, f"{len(dataset.resources)} משאבים" if several else "משאב אחד")
        en.insert(-1, f"{len(dataset.resources)} resources" if several else "1 resource")
    if dataset.total_records:
        he.insert(-1, f"{dataset.total_records:,} רשומות")
        en.insert(-1, f"{dataset.total_records:,} records")
    names = [one.name for one in dataset.resources if one.name != dataset.title]
    fields = dict.fromkeys(one.name for resource in dataset.resources for one in resource.fields)
    shared = [_listed("משאבים / Resources", names, MAX_NAMES), *_shared(dataset, list(fields))]
    return _text(he, en, shared)


def resource_text(
    dataset: Dataset, resource: Resource, flags: Iterable[str], number: int | None
) -> str:
    """A resource with its own name; `number` tells it from others of that name, from 1."""
    flags = tuple(flags)
    name = _short(resource.name) + ("" if number is None else f" ({number})")
    own = name != dataset.title
    he = [f"מאגר מידע: {_short(dataset.title)}", f"משאב: {name}" if own else ""]
    en = [_english_title("Dataset", dataset.title), _english_title("Resource", name) if own else ""]
    formats = [resource.format.upper()] if resource.format else []
    he += _hebrew(dataset, formats, flags)
    en += _english(dataset, formats, flags)
    if resource.total_records is not None:
        he.insert(-1, f"{resource.total_records:,} רשומות")
        en.insert(-1, f"{resource.total_records:,} records")
    if resource.error:
        he.append("לא ניתן היה לקרוא את המשאב")
        en.append("The resource could not be read")
    return _text(he, en, _shared(dataset, [one.name for one in resource.fields]))


def domain_text(domain: str, entries: Iterable[tuple[Sequence[str], Sequence[str]]]) -> str:
    """A domain of the dictionary with as many of its entries as fit."""
    named = DOMAINS[domain]
    lines = [
        f"מילון מונחים: {named.he} ({domain}). {named.he_about}.",
        f"Glossary: {named.en} ({domain}). {named.en_about}.",
    ]
    used = sum(len(line) + 1 for line in lines)
    pairs: list[str] = []
    for hebrew, english in entries:
        pair = f"{', '.join(hebrew)} = {', '.join(english)}"
        if used + len(pair) + 2 > MAX_CHARS:
            break
        pairs.append(pair)
        used += len(pair) + 2
    return "\n".join([*lines, "; ".join(pairs)])


def _hebrew(dataset: Dataset, formats: Sequence[str], flags: Sequence[str]) -> list[str]:
    return [
        _listed("קטגוריה", _named(dataset, "he"), MAX_NAMES),
        f"ארגון: {dataset.organization}" if dataset.organization else "",
        _listed("פורמט", formats, MAX_NAMES),
        _listed("כולל", [FLAG_WORDS[flag][0] for flag in FLAG_WORDS if flag in flags], MAX_NAMES),
    ]


def _english(dataset: Dataset, formats: Sequence[str], flags: Sequence[str]) -> list[str]:
    return [
        _listed("Category", _named(dataset, "en"), MAX_NAMES),
        f"Publisher: {dataset.organization_en}" if dataset.organization_en else "",
        _listed("Format", formats, MAX_NAMES),
        _listed("With", [FLAG_WORDS[flag][1] for flag in FLAG_WORDS if flag in flags], MAX_NAMES),
    ]


def _shared(dataset: Dataset, fields: Sequence[str]) -> list[str]:
    return [
        _listed("תגיות / Tags", dataset.tags, MAX_TAGS),
        _listed("מילות מפתח / Keywords", dataset.keywords, MAX_KEYWORDS),
        _listed("שדות / Fields", fields, MAX_FIELD_NAMES),
    ]


def _named(dataset: Dataset, language: str) -> list[str]:
    slugs = [slug for slug in dataset.categories if slug in CATEGORIES] or [GENERAL]
    return [str(getattr(CATEGORIES[slug], language)) for slug in slugs]


def _english_title(label: str, title: str) -> str:
    """A Hebrew title stands in the Hebrew line only."""
    return "" if has_hebrew(title) else f"{label}: {_short(title)}"


def _name_words(dataset: Dataset) -> str:
    """The words of the address that its publisher chose: often the only English of a dataset.
    Measured on our questions (jobs/suites/datagov_questions.yaml): English MRR +.057 (95 % +.019 to
    +.099), Hebrew +.019 (+.004 to +.039)."""
    said = set(WORD.findall(dataset.title.lower()))
    words = dict.fromkeys(WORD.findall(dataset.name.lower()))
    return " ".join(word for word in words if word not in said)[:MAX_NAME_CHARS]


def _listed(label: str, names: Iterable[str], limit: int) -> str:
    kept = [_short(name) for name in dict.fromkeys(names) if name][:limit]
    return f"{label}: {', '.join(kept)}" if kept else ""


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARS else name[: MAX_NAME_CHARS - 1].rstrip() + "…"


def _text(he: Iterable[str], en: Iterable[str], shared: Iterable[str]) -> str:
    """Lines of sentences; what does not fit at the end is left out, whole names at a time."""
    lines = [_sentences(he), _sentences(en), *(line for line in shared if line)]
    return "\n".join(_fitting([line for line in lines if line]))


def _sentences(parts: Iterable[str]) -> str:
    return ". ".join(part for part in parts if part) + "."


def _fitting(lines: Iterable[str]) -> Iterator[str]:
    left = MAX_CHARS
    for line in lines:
        if len(line) > left:
            cut = line[: max(0, left)].rpartition(", ")[0]
            if ": " in cut:
                yield cut
            return
        left -= len(line) + 1
        yield line


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
