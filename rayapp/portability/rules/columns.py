"""The columns of a collection in Parquet, and a row as their values. Pure.

The columns come from the shape of the rows, not from the rows, so that all parts of a collection
have the same ones. What has no plain type is JSON, as a line of an archive holds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rayapp.core.ids import org_of, user_of
from rayapp.portability.rules.archive import RENEWED, Row, to_line
from rayapp.portability.rules.collections import BY_NAME, Collection

ORG, USER = "org_id", "user_id"
# Fields that have no column, or do not fit theirs: rows of other versions lose nothing.
OTHER = "_other"
# Whole numbers that a float holds exactly.
EXACT = 1 << 53


class ColumnKind(StrEnum):
    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    FLAG = "flag"
    TIME = "time"
    BYTES = "bytes"
    TEXTS = "texts"
    WHOLES = "wholes"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: ColumnKind


PLAIN: Mapping[type, ColumnKind] = {
    bool: ColumnKind.FLAG,
    int: ColumnKind.WHOLE,
    float: ColumnKind.NUMBER,
    datetime: ColumnKind.TIME,
    bytes: ColumnKind.BYTES,
    str: ColumnKind.TEXT,
}
OF_KIND = {kind: plain for plain, kind in PLAIN.items()}
LISTS = {ColumnKind.TEXT: ColumnKind.TEXTS, ColumnKind.WHOLE: ColumnKind.WHOLES}


def columns_of(collection: Collection) -> tuple[Column, ...]:
    """Tenant and user, the fields of the row but those that an import makes anew, and OTHER."""
    return _columns(collection.name)


@cache
def _columns(name: str) -> tuple[Column, ...]:
    collection = BY_NAME[name]
    shape: Any = collection.row
    hints = {**get_type_hints(shape), **collection.extra}
    own = hints.keys() - {*RENEWED, ORG} - collection.renewed
    fields = [Column(name, _kind_of(hints[name])) for name in hints if name in own]
    owner = [Column(name, ColumnKind.TEXT) for name in (ORG, USER)]
    return (*owner, *fields, Column(OTHER, ColumnKind.JSON))


def _kind_of(hint: Any) -> ColumnKind:
    if get_origin(hint) in (Union, UnionType):
        left = [one for one in get_args(hint) if one is not NoneType]
        return _kind_of(left[0]) if len(left) == 1 else ColumnKind.JSON
    if get_origin(hint) is Literal:
        kinds = {_kind_of(type(one)) for one in get_args(hint)}
        return kinds.pop() if len(kinds) == 1 else ColumnKind.JSON
    if get_origin(hint) in (tuple, frozenset, Sequence):
        inner = [one for one in get_args(hint) if one is not Ellipsis]
        found = _kind_of(inner[0]) if len(inner) == 1 else ColumnKind.JSON
        return LISTS.get(found, ColumnKind.JSON)
    if isinstance(hint, type) and issubclass(hint, Enum) and issubclass(hint, str):
        return ColumnKind.TEXT
    return PLAIN.get(hint, ColumnKind.JSON)


def values_of(collection: Collection, row: Row) -> dict[str, Any]:
    """By column; a field that the row lacks, or holds nothing in, is None. `user_id` of the row is
    its owner."""
    owner = str(row[USER])
    found: dict[str, Any] = {ORG: org_of(owner), USER: user_of(owner)}
    other = {name: value for name, value in row.items() if value is not None}
    for column in columns_of(collection)[2:-1]:
        name, kind = column.name, column.kind
        value = other.get(name)
        if value is None:
            found[name] = None
        elif kind is ColumnKind.JSON:
            found[name] = _json(other.pop(name))
        elif type(value) is OF_KIND.get(kind) or fits(kind, value):
            found[name] = other.pop(name)
        else:
            found[name] = None
    for name in (ORG, *RENEWED, *collection.renewed):
        other.pop(name, None)
    found[OTHER] = _json(other) if other else None
    return found


def fits(kind: ColumnKind, value: Any) -> bool:
    """Whether a column of this kind holds the value as it is."""
    if kind in (ColumnKind.TEXTS, ColumnKind.WHOLES):
        plain = OF_KIND[next(one for one, many in LISTS.items() if many is kind)]
        types = {*map(type, value)} if isinstance(value, list) else {bool}
        return all(issubclass(one, plain) and one is not bool for one in types)
    if isinstance(value, bool):
        return kind is ColumnKind.FLAG
    if kind is ColumnKind.NUMBER:
        return isinstance(value, float) or (isinstance(value, int) and abs(value) <= EXACT)
    return isinstance(value, OF_KIND[kind])


def _json(value: Any) -> str:
    return to_line(value).decode().rstrip("\n")
