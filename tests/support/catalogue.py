"""Small catalogues for tests: as records, and as the folder of files that the job reads."""

from pathlib import Path
from typing import Any

import orjson

from rayapp.datagov.ports import FLAGS, Catalogue, Dataset, Field, Resource

VEHICLES = Dataset(
    dataset_id="11111111-0000-4000-8000-000000000001",
    title="מספרי רישוי של כלי רכב פרטיים",
    name="private-vehicles",
    organization="משרד התחבורה",
    organization_en="Ministry of Transport",
    description="רשימת כלי הרכב הפרטיים בישראל",
    tags=("רכב", "תחבורה"),
    keywords=("רכב", "רישוי", "דגם"),
    categories=("transportation", "geography"),
    flags=frozenset({"has_date", "has_phone"}),
    resources=(
        Resource(
            resource_id="22222222-0000-4000-8000-000000000001",
            name="כלי רכב 2024",
            format="CSV",
            url="https://example.org/vehicles.csv",
            fields=(
                Field(name="_id", type="int"),
                Field(name="מספר רכב", type="numeric"),
                Field(name="תאריך עלייה לכביש", type="text", semantic="date"),
            ),
            total_records=4_000_000,
        ),
        Resource(
            resource_id="22222222-0000-4000-8000-000000000002",
            name="vehicles-old",
            format="XLSX",
            error="HTTP Error 404: Not Found",
        ),
    ),
)
WELLS = Dataset(
    dataset_id="11111111-0000-4000-8000-000000000002",
    title="Water levels in wells",
    name="wells",
    organization="רשות המים",
    organization_en="Israel Water Authority",
    tags=("water",),
    keywords=("well", "level"),
    categories=("water",),
    flags=frozenset(),
    resources=(
        Resource(
            resource_id="22222222-0000-4000-8000-000000000003",
            name="levels",
            format="CSV",
            fields=(Field(name="WellName", type="text"), Field(name="ContactPhone", type="text")),
            total_records=250,
        ),
    ),
)


def a_catalogue(*datasets: Dataset) -> Catalogue:
    """The two datasets above, or those given."""
    return Catalogue(
        origin="folder", generated_at="2026-01-01", datasets=datasets or (VEHICLES, WELLS)
    )


def many_datasets(count: int) -> tuple[Dataset, ...]:
    """Alike but for number, size and category (`water`, `health`, `general` in turn)."""
    slugs = ("water", "health", "general")
    return tuple(
        Dataset(
            dataset_id=f"d-{number:05d}",
            title=f"מאגר מספר {number}",
            organization="גוף",
            categories=(slugs[number % 3],),
            resources=(
                Resource(
                    resource_id=f"r-{number:05d}",
                    name=f"קובץ {number}",
                    format="CSV",
                    fields=(Field(name="שם"),),
                    total_records=number,
                ),
            ),
        )
        for number in range(count)
    )


def write_folder(folder: Path, catalogue: Catalogue) -> Path:
    """The files of the folder layout; side files may be deleted or changed by a test."""
    folder.mkdir(parents=True, exist_ok=True)
    datasets = catalogue.datasets
    files: dict[str, Any] = {
        "enterprise_schemas.json": {
            "generated_at": catalogue.generated_at,
            "total_datasets": len(datasets),
            "datasets": [_schema(dataset) for dataset in datasets],
        },
        "resources_map.json": {"datasets": [_mapped(dataset) for dataset in datasets]},
        "catalog.snapshot.json": {
            "datasets": [
                {"id": one.dataset_id, "notes": one.description, "org": _slug(one)}
                for one in datasets
            ],
            "orgs": [{"name": _slug(one), "title": one.organization} for one in datasets],
        },
        "org_en.json": {
            _slug(one): [one.organization_en, "Government"]
            for one in datasets
            if one.organization_en
        },
    }
    for name, content in files.items():
        (folder / name).write_bytes(orjson.dumps(content))
    _write_split(folder / "schemas", datasets)
    return folder


def _write_split(folder: Path, datasets: tuple[Dataset, ...]) -> None:
    entries = {}
    for dataset in datasets:
        name = f"{dataset.categories[0]}/{dataset.dataset_id}.json"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(_schema(dataset)))
        for resource in dataset.resources:
            entries[resource.resource_id] = {"file": name, "dataset_id": dataset.dataset_id}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_index.json").write_bytes(orjson.dumps({"resources": entries}))


def _schema(dataset: Dataset) -> dict[str, Any]:
    resources = []
    for one in dataset.resources:
        row: dict[str, Any] = {
            "resource_id": one.resource_id,
            "title": one.name,
            "format": one.format,
            "fields": [
                {"name": f.name, "type": f.type, "semantic": f.semantic} for f in one.fields
            ],
        }
        if one.total_records is not None:
            row["total_records"] = one.total_records
        if one.error:
            row["error"] = one.error
        resources.append(row)
    return {
        "dataset_id": dataset.dataset_id,
        "title": dataset.title,
        "organization": dataset.organization,
        "tags": list(dataset.tags),
        "keywords": list(dataset.keywords),
        "categories": list(dataset.categories),
        "resources": resources,
        "field_availability": {flag: flag in (dataset.flags or ()) for flag in FLAGS},
    }


def _mapped(dataset: Dataset) -> dict[str, Any]:
    return {
        "id": dataset.dataset_id,
        "name": dataset.name,
        "title": dataset.title,
        "resources": [
            {"id": one.resource_id, "name": one.name, "format": one.format, "url": one.url}
            for one in dataset.resources
        ],
    }


def _slug(dataset: Dataset) -> str:
    return f"owner-of-{dataset.dataset_id}"
