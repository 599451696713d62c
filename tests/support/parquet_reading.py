"""A Parquet export as somebody reads it, and the rows that it must hold."""

import base64
import io
from datetime import datetime
from typing import Any

import orjson
import pyarrow.parquet as pq

from rayapp.core.ids import org_of, user_of
from rayapp.portability.parquet import ParquetManifest, ParquetPlace
from rayapp.portability.rules.archive import MANIFEST, Row
from rayapp.portability.rules.collections import Collection
from rayapp.portability.rules.columns import OTHER, ColumnKind, columns_of


def said(row: Row) -> dict[str, Any]:
    """What a reader is to find of a stored row: no field that is empty, times and bytes in JSON
    marked as in an archive."""
    owner = str(row["user_id"])
    whole = {"org_id": org_of(owner), "user_id": user_of(owner), **row}
    whole |= {"user_id": user_of(owner), "org_id": org_of(owner)}
    return {name: _plain(one) for name, one in whole.items() if one is not None and name != "_id"}


def whole_row(collection: Collection, values: dict[str, Any]) -> dict[str, Any]:
    """A row of a file; what stands in no column of its own is a field again."""
    found: dict[str, Any] = {}
    for column in columns_of(collection):
        value = values[column.name]
        if value is None:
            continue
        if column.kind is ColumnKind.JSON:
            value = orjson.loads(value)
        found |= value if column.name == OTHER else {column.name: _plain(value)}
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"$date": value.isoformat(timespec="milliseconds")}
    if isinstance(value, bytes):
        return {"$binary": {"base64": base64.b64encode(value).decode(), "subType": "00"}}
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def manifest_of(place: ParquetPlace, name: str) -> ParquetManifest:
    with place.folder(name).reading(MANIFEST) as file:
        return ParquetManifest.model_validate_json(file.read())


def dataset(place: ParquetPlace, name: str, collection: Collection) -> list[dict[str, Any]]:
    """All rows of a collection, part by part in the order of their names."""
    files = place.folder(name, collection.name)
    found: list[dict[str, Any]] = []
    for part in manifest_of(place, name).collections[collection.name].parts:
        with files.reading(part.file) as file:
            table = pq.read_table(io.BytesIO(file.read()))
        assert table.num_rows == part.rows
        found += [whole_row(collection, row) for row in table.to_pylist()]
    return found
