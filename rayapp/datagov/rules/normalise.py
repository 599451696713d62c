"""Cleans the records of a catalogue and counts what had to be cleaned. Pure and idempotent."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace

from rayapp.datagov.records import Catalogue, Dataset, Field, Resource
from rayapp.datagov.rules.anomalies import Anomalies

# Direction marks, zero-width characters, soft hyphen, byte-order mark, and control characters
# that no text may hold (line breaks and tabs are blanks instead).
_MARKS = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_BREAKS = re.compile("[\t\n\r\x0b\x0c\x85]")
_BLANKS = re.compile(r"\s+")
_LETTER = re.compile(r"[^\W\d_]")
_HEBREW = re.compile("[א-ת]")
# Columns that the data store adds to every table.
INTERNAL_FIELDS = frozenset({"_id", "_full_text"})


def clean(text: str) -> str:
    """`text` in one line: composed letters, no invisible marks, single blanks, no outer blanks."""
    # A line break is a blank; only then are blanks collapsed.
    plain = _CONTROL.sub("", _MARKS.sub("", unicodedata.normalize("NFC", text)))
    return unicodedata.normalize("NFC", _BLANKS.sub(" ", plain).strip())


def is_data(name: str) -> bool:
    """Whether a column's name is a value from the first row: a date, a number, signs."""
    return _LETTER.search(name) is None


def has_hebrew(text: str) -> bool:
    """Whether there is any Hebrew letter in `text`, not only at its start."""
    return _HEBREW.search(text) is not None


def normalised(catalogue: Catalogue, anomalies: Anomalies) -> Catalogue:
    """The catalogue with clean texts and without repeated records; `anomalies` gets the counts."""
    seen_datasets: set[str] = set()
    seen_resources: set[str] = set()
    datasets = []
    for dataset in catalogue.datasets:
        if dataset.dataset_id in seen_datasets:
            anomalies.add("record_repeated", dataset.dataset_id)
            continue
        seen_datasets.add(dataset.dataset_id)
        datasets.append(_dataset(dataset, seen_resources, anomalies))
    return replace(catalogue, datasets=tuple(datasets))


def _dataset(dataset: Dataset, seen: set[str], anomalies: Anomalies) -> Dataset:
    title = _repaired(dataset.title, anomalies) or dataset.name or dataset.dataset_id
    resources = []
    for resource in dataset.resources:
        if resource.resource_id in seen:
            anomalies.add("record_repeated", resource.resource_id)
            continue
        seen.add(resource.resource_id)
        resources.append(_resource(resource, title, anomalies))
    return replace(
        dataset,
        title=title,
        name=clean(dataset.name),
        organization=_repaired(dataset.organization, anomalies),
        organization_en=clean(dataset.organization_en),
        description=clean(dataset.description),
        tags=_labels(dataset.tags),
        keywords=_labels(dataset.keywords),
        categories=_labels(category.lower() for category in dataset.categories),
        resources=tuple(resources),
    )


def _resource(resource: Resource, title: str, anomalies: Anomalies) -> Resource:
    name = _repaired(resource.name, anomalies)
    if not name:
        anomalies.add("resource_without_name", resource.resource_id)
        name = title
    if not resource.fields:
        anomalies.add("resource_without_fields", f"{resource.resource_id} {name}"[:120])
    total = resource.total_records
    return replace(
        resource,
        name=name,
        format=clean(resource.format).lower().lstrip("."),
        url=clean(resource.url),
        fields=_fields(resource.fields, anomalies),
        total_records=None if total is None or total < 0 else total,
        error=(clean(resource.error) or None) if resource.error else None,
    )


def _fields(fields: Iterable[Field], anomalies: Anomalies) -> tuple[Field, ...]:
    kept: dict[str, Field] = {}
    for one in fields:
        if one.name in INTERNAL_FIELDS:
            continue
        name = clean(one.name)
        shown = one.name[:80]
        if not name:
            anomalies.add("field_name_empty")
            continue
        if is_data(name):
            anomalies.add("field_name_is_data", shown)
            continue
        if _BREAKS.search(one.name):
            anomalies.add("field_name_whitespace", name)
        if _MARKS.search(one.name):
            anomalies.add("field_name_marks", name)
        if name.casefold() in kept:
            anomalies.add("field_name_repeated", name)
            continue
        kept[name.casefold()] = replace(one, name=name, type=one.type.lower())
    return tuple(kept.values())


def _repaired(text: str, anomalies: Anomalies) -> str:
    plain = clean(text)
    if plain != text:
        anomalies.add("text_repaired", plain)
    return plain


def _labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Clean, not empty, each once; case does not make two."""
    kept: dict[str, str] = {}
    for label in labels:
        plain = clean(label)
        if plain:
            kept.setdefault(plain.casefold(), plain)
    return tuple(kept.values())
