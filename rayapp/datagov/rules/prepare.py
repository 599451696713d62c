"""From a catalogue as it was read to one that items can be made of. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from rayapp.datagov.records import Catalogue, Dataset
from rayapp.datagov.rules.anomalies import Anomalies
from rayapp.datagov.rules.categories import CATEGORIES, GENERAL, MAX_CATEGORIES, categorise
from rayapp.datagov.rules.flags import flags_of
from rayapp.datagov.rules.normalise import has_hebrew, normalised


def prepared(catalogue: Catalogue) -> tuple[Catalogue, Anomalies]:
    """Clean, every dataset with known categories, and all that was odd counted.

    The order of datasets is that of their ids: what a source lists first must change nothing.
    """
    anomalies = Anomalies(catalogue.odd_counts, catalogue.oddities)
    clean = normalised(catalogue, anomalies)
    datasets = [_filed(dataset, anomalies) for dataset in clean.datasets]
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


def _filed(dataset: Dataset, anomalies: Anomalies) -> Dataset:
    if not dataset.categories:
        anomalies.add("dataset_without_category", dataset.title)
        owner = f"{dataset.organization} {dataset.organization_en}"
        return replace(dataset, categories=categorise(dataset.title, dataset.tags, owner))
    known = [slug for slug in dataset.categories if slug in CATEGORIES]
    for slug in dataset.categories:
        if slug not in CATEGORIES:
            anomalies.add("category_unknown", slug)
    return replace(dataset, categories=tuple(known[:MAX_CATEGORIES]) or (GENERAL,))


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
        if dataset.flags and dataset.flags - flags_of(resource.fields):
            anomalies.add("resource_overclaimed", shown)
