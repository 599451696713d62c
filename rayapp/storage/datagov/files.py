"""Reads a catalogue from a folder of JSON files.

`enterprise_schemas.json` is the truth. The other files only add to it (names, addresses, English
names of organisations, descriptions) or are compared with it; what they lack is counted, not
refused.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Any

import orjson

from rayapp.core.errors import ConfigError
from rayapp.datagov.ports import FLAGS, Catalogue, Dataset, Field, Resource
from rayapp.datagov.rules.prepare import Anomalies

CATALOGUE_FILE = "enterprise_schemas.json"
MAP_FILE = "resources_map.json"
SNAPSHOT_FILE = "catalog.snapshot.json"
ORGANIZATIONS_FILE = "org_en.json"
SPLIT_FOLDER = "schemas"
SPLIT_INDEX = "_index.json"
Document = dict[str, Any]


class FolderSource:
    """A reader of the catalogue over the files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def origin(self) -> str:
        return "folder"

    async def read(self) -> Catalogue:
        """ConfigError when the folder has no readable catalogue."""
        return await asyncio.to_thread(self._read)

    async def close(self) -> None:
        """Nothing is open."""

    def _read(self) -> Catalogue:
        oddities = Anomalies()
        whole = self._json(CATALOGUE_FILE)
        rows = whole.get("datasets") if isinstance(whole, dict) else None
        if not isinstance(rows, list):
            raise ConfigError(
                f"{self._folder / CATALOGUE_FILE} lists no datasets: give the folder of the "
                "catalogue as --source."
            )
        beside = _Beside(
            map=self._optional(MAP_FILE, oddities),
            snapshot=self._optional(SNAPSHOT_FILE, oddities),
            organizations=self._optional(ORGANIZATIONS_FILE, oddities),
            oddities=oddities,
        )
        datasets = []
        for row in rows:
            try:
                datasets.append(_dataset(row, beside))
            except (KeyError, TypeError, ValueError, AttributeError):
                oddities.add("row_unreadable", str(row)[:80])
        beside.compare(datasets, oddities)
        self._cross_check(datasets, oddities)
        return Catalogue(
            origin=self.origin,
            generated_at=str(whole.get("generated_at", "")),
            datasets=tuple(datasets),
            odd_counts=dict(oddities.counts),
            oddities={kind: tuple(found) for kind, found in oddities.samples.items()},
        )

    def _json(self, name: str) -> Any:
        path = self._folder / name
        try:
            return orjson.loads(path.read_bytes())
        except FileNotFoundError:
            raise ConfigError(f"No {name} in {self._folder}: check --source.") from None
        except (OSError, orjson.JSONDecodeError) as error:
            raise ConfigError(f"{path} cannot be read as JSON: {error}") from None

    def _optional(self, name: str, oddities: Anomalies) -> Document:
        """An empty mapping for a file that is missing or of another shape."""
        if (self._folder / name).is_file():
            found = self._json(name)
            if isinstance(found, dict):
                return found
        oddities.add("side_file_missing", name)
        return {}

    def _cross_check(self, datasets: list[Dataset], oddities: Anomalies) -> None:
        """The split folder is derived from the catalogue and known to be incomplete."""
        folder = self._folder / SPLIT_FOLDER
        entries = self._optional(f"{SPLIT_FOLDER}/{SPLIT_INDEX}", oddities).get("resources")
        known = {one.resource_id for dataset in datasets for one in dataset.resources}
        there: dict[str, bool] = {}
        for resource_id, entry in entries.items() if isinstance(entries, dict) else ():
            name = said(entry.get("file")) if isinstance(entry, dict) else ""
            if name not in there:
                there[name] = bool(name) and (folder / name).is_file()
                if not there[name]:
                    oddities.add("split_file_missing", name)
            if not there[name]:
                oddities.add("split_entry_missing", resource_id)
            if resource_id not in known:
                oddities.add("split_index_differs", resource_id)


@dataclass(eq=False, kw_only=True)
class _Beside:
    """What the files beside the catalogue say of its records."""

    map: Document
    snapshot: Document
    organizations: Document
    oddities: InitVar[Anomalies]

    def __post_init__(self, oddities: Anomalies) -> None:
        self._has_map, self._has_snapshot = bool(self.map), bool(self.snapshot)
        datasets = _rows(self.map, "datasets", "id", oddities)
        self.names: dict[str, str] = {row["id"]: said(row.get("name")) for row in datasets}
        self.resources: dict[str, Document] = {
            one["id"]: one for row in datasets for one in _rows(row, "resources", "id", oddities)
        }
        self.described: dict[str, Document] = {
            row["id"]: row for row in _rows(self.snapshot, "datasets", "id", oddities)
        }
        self._slugs = {
            row["title"].strip(): said(row.get("name"))
            for row in _rows(self.snapshot, "orgs", "title", oddities)
        }

    def english(self, dataset_id: str, organization: str) -> str:
        """The English name of the organisation; else its address name, in words."""
        slug = said(self.described.get(dataset_id, {}).get("org")) or self._slugs.get(
            organization.strip(), ""
        )
        named = self.organizations.get(slug)
        if isinstance(named, list) and named:
            return said(named[0])
        return words_of_slug(slug)

    def compare(self, datasets: list[Dataset], oddities: Anomalies) -> None:
        ids = {dataset.dataset_id for dataset in datasets}
        resources = {one.resource_id for dataset in datasets for one in dataset.resources}
        if self._has_map:
            _differences(
                (resources, self.resources.keys()),
                ("resource_not_in_map", "resource_only_in_map"),
                oddities,
            )
        if self._has_snapshot:
            _differences(
                (ids, self.described.keys()),
                ("dataset_not_described", "dataset_only_described"),
                oddities,
            )


def _rows(of: Document, name: str, key: str, oddities: Anomalies) -> list[Document]:
    """Those that have their key; what is no such row is counted and left out."""
    found = of.get(name) or []
    rows = found if isinstance(found, list) else [found]
    kept = []
    for row in rows:
        if isinstance(row, dict) and isinstance(row.get(key), str):
            kept.append(row)
        else:
            oddities.add("row_unreadable", str(row)[:80])
    return kept


def words_of_slug(slug: str) -> str:
    """`ministry_of_health` as words; empty for a slug without Latin letters."""
    words = slug.replace("_", " ").replace("-", " ").split()
    latin = any(word.isascii() and word.isalpha() for word in words)
    return " ".join(word.capitalize() for word in words) if latin else ""


def _differences(sides: tuple[Any, Any], kinds: tuple[str, str], oddities: Anomalies) -> None:
    left, right = set(sides[0]), set(sides[1])
    for kind, found in zip(kinds, (left - right, right - left), strict=True):
        oddities.add(kind, min(found, default=""), times=len(found))


def _dataset(row: Mapping[str, Any], beside: _Beside) -> Dataset:
    dataset_id = row["dataset_id"]
    organization = said(row.get("organization"))
    flags = row.get("field_availability")
    return Dataset(
        dataset_id=_text(dataset_id),
        title=said(row.get("title")),
        name=beside.names.get(dataset_id, ""),
        organization=organization,
        organization_en=beside.english(dataset_id, organization),
        description=said(beside.described.get(dataset_id, {}).get("notes")),
        tags=_texts(row.get("tags")),
        keywords=_texts(row.get("keywords")),
        categories=_texts(row.get("categories")),
        flags=None if flags is None else frozenset(flag for flag in FLAGS if flags.get(flag)),
        resources=tuple(_resource(one, beside) for one in row.get("resources") or ()),
    )


def _resource(row: Mapping[str, Any], beside: _Beside) -> Resource:
    resource_id = row["resource_id"]
    mapped = beside.resources.get(resource_id, {})
    total = row.get("total_records")
    return Resource(
        resource_id=_text(resource_id),
        name=said(mapped.get("name")) or said(row.get("title")),
        format=said(row.get("format")) or said(mapped.get("format")),
        url=said(mapped.get("url")),
        fields=tuple(
            Field(
                name=str(one["name"]),
                type=str(one.get("type") or ""),
                semantic=said(one.get("semantic")) or None,
            )
            for one in row.get("fields") or ()
        ),
        total_records=None if total is None else int(total),
        error=str(row["error"]) if row.get("error") else None,
    )


def said(value: Any) -> str:
    """A text of the source: a name may be a year, and what is neither says nothing."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number or isinstance(value, str) else ""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("an id is missing")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(value for value in values or () if isinstance(value, str))
