"""What is odd about a catalogue: counted and reported, never a failure. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

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
