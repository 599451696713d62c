"""Records of a source made comparable: normalised, and their anomalies named. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from rayapp.datagov.ports import Catalogue, Dataset, Field, Resource
from rayapp.datagov.rules import categories

T = TypeVar("T")

# Samples kept of each kind: enough to look one up, few enough for a report.
SAMPLES = 5

ANOMALIES: dict[str, str] = {
    "split_file_missing": "Files that the split folder lacks; the whole catalogue has them.",
    "split_entry_missing": "Resources whose split file is missing.",
    "split_index_differs": "Resources of the split index that the catalogue does not have.",
    "resource_not_in_map": "Resources without a row in the map of names.",
    "resource_only_in_map": "Resources of the map that the catalogue left out.",
    "dataset_not_described": "Datasets without a row in the snapshot of descriptions.",
    "dataset_only_described": "Datasets of that snapshot that the catalogue does not have.",
    "side_file_missing": "Files beside the catalogue that are missing.",
    "row_unreadable": "Rows of the source that could not be read and were left out.",
    "rows_short": "Datasets that the source counted but did not send.",
    "fields_unread": "Tables that did not answer: what is stored of them stays.",
    "field_name_is_data": "Column names that are data, such as 24/03/2025: left out.",
    "field_name_whitespace": "Column names with line breaks or tabs: repaired.",
    "field_name_marks": "Column names with invisible marks (direction, zero width): repaired.",
    "field_name_empty": "Column names without anything: left out.",
    "field_name_repeated": "Columns of one table with one name: kept once.",
    "text_repaired": "Titles, names and organisations with stray blanks or marks: repaired.",
    "record_repeated": "Records with the id of another one: left out.",
    "resource_error": "Resources that their source could not read: marked, searched last.",
    "resource_without_fields": "Resources without columns.",
    "resource_without_format": "Resources without a format.",
    "resource_without_name": "Resources without a name: the dataset's title stands in.",
    "resource_overclaimed": "Resources for which the dataset claims a feature they lack.",
    "dataset_title_repeated": "Titles that more than one dataset has.",
    "dataset_title_without_hebrew": "Datasets whose title has no Hebrew.",
    "dataset_without_resources": "Datasets without resources.",
    "dataset_without_tags": "Datasets without tags.",
    "dataset_without_category": "Datasets without a category: one was chosen by their words.",
    "category_unknown": "Categories that we have no name for: filed under general.",
    "organization_without_english": "Organisations without an English name.",
}


class Anomalies:
    """Counts by kind, each with a few samples."""

    def __init__(
        self,
        counts: Mapping[str, int] | None = None,
        samples: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter(counts or {})
        self.samples: dict[str, list[str]] = {
            kind: list(found)[:SAMPLES] for kind, found in (samples or {}).items()
        }

    def add(self, kind: str, sample: str = "", times: int = 1) -> None:
        """Count `times` of `kind`; an unknown kind is a mistake of ours."""
        if kind not in ANOMALIES:
            raise ValueError(f"No anomaly {kind!r}: name it in ANOMALIES.")
        if times < 1:
            return
        self.counts[kind] += times
        kept = self.samples.setdefault(kind, [])
        if sample and len(kept) < SAMPLES and sample not in kept:
            kept.append(sample)

    def rows(self) -> list[dict[str, Any]]:
        """For a report, in the order of the table above."""
        return [
            {
                "kind": kind,
                "count": self.counts[kind],
                "meaning": meaning,
                "samples": self.samples.get(kind, []),
            }
            for kind, meaning in ANOMALIES.items()
            if self.counts[kind]
        ]


# Cleans the records of a catalogue and counts what had to be cleaned. Pure and idempotent.

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


def normalise(catalogue: Catalogue, anomalies: Anomalies) -> Catalogue:
    """The catalogue with clean texts and without repeated records; `anomalies` gets the counts."""
    seen: set[str] = set()
    datasets = [
        _dataset(dataset, seen, anomalies)
        for dataset in _once(catalogue.datasets, "dataset_id", set(), anomalies)
    ]
    return replace(catalogue, datasets=tuple(datasets))


def _once(records: Iterable[T], key: str, seen: set[str], anomalies: Anomalies) -> Iterator[T]:
    """The first record of each id in the field `key`, of those that were not `seen`."""
    for record in records:
        name = getattr(record, key)
        if name in seen:
            anomalies.add("record_repeated", name)
        else:
            seen.add(name)
            yield record


def _dataset(dataset: Dataset, seen: set[str], anomalies: Anomalies) -> Dataset:
    title = _repair(dataset.title, anomalies) or dataset.name or dataset.dataset_id
    resources = [
        _resource(resource, title, anomalies)
        for resource in _once(dataset.resources, "resource_id", seen, anomalies)
    ]
    return replace(
        dataset,
        title=title,
        name=clean(dataset.name),
        organization=_repair(dataset.organization, anomalies),
        organization_en=clean(dataset.organization_en),
        description=clean(dataset.description),
        tags=_labels(dataset.tags),
        keywords=_labels(dataset.keywords),
        categories=_labels(category.lower() for category in dataset.categories),
        resources=tuple(resources),
    )


def _resource(resource: Resource, title: str, anomalies: Anomalies) -> Resource:
    name = _repair(resource.name, anomalies)
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


def _repair(text: str, anomalies: Anomalies) -> str:
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


def prepared(catalogue: Catalogue) -> tuple[Catalogue, Anomalies]:
    """Clean, every dataset with known categories, and all that was odd counted.

    The order of datasets is that of their ids: what a source lists first must change nothing.
    """
    anomalies = Anomalies(catalogue.odd_counts, catalogue.oddities)
    clean = normalise(catalogue, anomalies)
    datasets = [_file(dataset, anomalies) for dataset in clean.datasets]
    datasets.sort(key=lambda dataset: dataset.dataset_id)
    for dataset in datasets:
        _look_at_dataset(dataset, anomalies)
        _look_at_resources(dataset, anomalies)
    for title, times in Counter(dataset.title for dataset in datasets).items():
        if times > 1:
            anomalies.add("dataset_title_repeated", title)
    for name in sorted({d.organization for d in datasets if not d.organization_en} - {""}):
        anomalies.add("organization_without_english", name)
    return replace(clean, datasets=tuple(datasets)), anomalies


def _file(dataset: Dataset, anomalies: Anomalies) -> Dataset:
    if not dataset.categories:
        anomalies.add("dataset_without_category", dataset.title)
        owner = f"{dataset.organization} {dataset.organization_en}"
        found = categories.categorise(dataset.title, dataset.tags, owner)
        return replace(dataset, categories=found)
    known = [slug for slug in dataset.categories if slug in categories.CATEGORIES]
    for slug in dataset.categories:
        if slug not in categories.CATEGORIES:
            anomalies.add("category_unknown", slug)
    kept = tuple(known[: categories.MAX_CATEGORIES]) or (categories.GENERAL,)
    return replace(dataset, categories=kept)


def _look_at_dataset(dataset: Dataset, anomalies: Anomalies) -> None:
    if not has_hebrew(dataset.title):
        anomalies.add("dataset_title_without_hebrew", dataset.title)
    if not dataset.resources:
        anomalies.add("dataset_without_resources", dataset.title)
    if not dataset.tags:
        anomalies.add("dataset_without_tags", dataset.title)


def _look_at_resources(dataset: Dataset, anomalies: Anomalies) -> None:
    for resource in dataset.resources:
        shown = f"{resource.resource_id} {resource.name}"[:120]
        if resource.error is not None:
            anomalies.add("resource_error", f"{resource.error}: {resource.name}"[:120])
        if not resource.format:
            anomalies.add("resource_without_format", shown)
        if dataset.flags and dataset.flags - categories.flags_of(resource.fields):
            anomalies.add("resource_overclaimed", shown)
