"""What an archive is made of, and what one that was sent may hold. Pure.

A row is written as one line of JSON; times and bytes as MongoDB's Extended JSON writes them
(`{"$date": …}`, `{"$binary": {"base64": …}}`), so that they come back as what they were.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rayapp.core.errors import InvalidInput, RayappError
from rayapp.core.ids import MEMORY_ID_PATTERN, org_of, owner_id, user_of
from rayapp.learning.records import OutcomeEvent
from rayapp.memory.item import MemoryItem, Status, point_id_of
from rayapp.memory.rules.creation import (
    RESERVED_SIGN,
    TextLimits,
    check_labels,
    check_text,
    check_validity,
)
from rayapp.memory.tiers import TIER_POLICY, Tier
from rayapp.portability.rules.collections import BY_NAME, EXPORTED, ITEMS, OUTCOMES, Collection
from rayapp.portability.rules.kinds import Kind
from rayapp.text.normalize import content_hash, printable

Row = dict[str, Any]
FORMAT = "rayapp-export"
VERSION = 1
MANIFEST = "manifest.json"
SUFFIX = ".jsonl"
# What an import makes anew in every row, beside the fields of `Collection.renewed`.
RENEWED = ("_id", "user_id")
# The server takes documents of 16 MB; a part of a file has 4 MB, a third more in base64.
MAX_LINE_BYTES = 15 << 20
MAX_MANIFEST_BYTES = 1 << 20
MAX_DEPTH = 32
# Unpacked bytes for each packed one: text of people gets to 20, a bomb to 1,000.
MAX_RATIO = 200
INT64 = 1 << 63
# Outcomes move the end of a memory: it must not leave the years that a driver reads, for then a
# list with its row cannot be read. No outcome moves it a hundred years.
FIRST_END, LAST_END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
MOST_MOVED_MS = 100 * 366 * 86_400_000
_SHA256 = r"^[0-9a-f]{64}$"


class BadArchive(InvalidInput):
    """An archive that is not imported."""

    default_code = "bad_archive"


def bad_row(collection: str, number: int, error: ValueError) -> BadArchive:
    return BadArchive(
        f"Row {number} of {collection} in the archive {error}; remove it, or export again.",
        details={"collection": collection, "row": number},
    )


class Part(BaseModel):
    """The rows of one collection: a member of a zip, or a list in JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    collection: str
    rows: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=_SHA256)]
    schema_version: Annotated[int, Field(ge=1)]


class Manifest(BaseModel):
    """What an archive says of itself. `partial`: rows of its kinds were left out on request, and
    `tiers` and `archived` say which memories it was to hold. `org_id`: the tenant of the user, None
    for the default one."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    format: Literal["rayapp-export"]
    version: int
    exported_at: datetime
    user_id: str
    org_id: Annotated[str | None, Field(exclude_if=lambda one: one is None)] = None
    partial: bool = False
    tiers: Annotated[tuple[Tier, ...] | None, Field(exclude_if=lambda one: one is None)] = None
    archived: Annotated[bool, Field(exclude_if=lambda one: one)] = True
    parts: tuple[Part, ...]
    renewed: dict[str, tuple[str, ...]]

    @property
    def owner_id(self) -> str:
        return owner_id(self.org_id, self.user_id)

    @property
    def exact(self) -> bool:
        """Whether memories, outcomes and graphs are all there, so that they agree."""
        held = {part.collection for part in self.parts}
        graphs = {one.name for one in EXPORTED if one.kind is Kind.GRAPHS}
        return not self.partial and held >= graphs | {ITEMS, OUTCOMES}


def renewed_fields(collections: Iterable[Collection]) -> dict[str, tuple[str, ...]]:
    """Which fields of each collection do not come back as they were."""
    return {one.name: (*RENEWED, *sorted(one.renewed | one.restarted)) for one in collections}


def read_manifest(data: bytes) -> Manifest:
    """Raises BadArchive: it is none, or names a version, a collection or rows not known here."""
    try:
        manifest = Manifest.model_validate_json(data)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or MANIFEST
        raise BadArchive(
            f"The manifest of the archive cannot be read at {where}; send an archive that an "
            "export of this service made."
        ) from None
    if manifest.version > VERSION:
        raise BadArchive(
            f"The archive is of version {manifest.version}, this service reads up to {VERSION}; "
            "import it with a newer one."
        )
    names = [part.collection for part in manifest.parts]
    if len(set(names)) < len(names):
        raise BadArchive("The manifest names a collection twice; export it again.")
    for part in manifest.parts:
        known = BY_NAME.get(part.collection)
        if known is None or known.kind is None:
            raise BadArchive(
                f"The archive holds {part.collection[:64]!r}, which no import takes; remove it."
            )
        if part.schema_version > known.schema:
            raise BadArchive(
                f"The rows of {known.name} are of schema {part.schema_version}, this service "
                f"reads up to {known.schema}; import them with a newer one."
            )
    return manifest


# --- rows and lines


def to_line(row: Any) -> bytes:
    """One line of JSON, with its end. A time without a zone is UTC."""
    options = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(row, default=_marked, option=options)


def _marked(value: Any) -> Any:
    if isinstance(value, datetime):
        zone = "+00:00" if value.tzinfo is None else ""
        return {"$date": value.isoformat(timespec="milliseconds") + zone}
    if isinstance(value, bytes):
        return {"$binary": {"base64": base64.b64encode(value).decode(), "subType": "00"}}
    raise TypeError(type(value).__name__)


def plain_line(row: Any) -> bytes:
    """The line of a row as any program may write it after it has read it: names in order, and
    whole numbers without a fraction, as JavaScript writes them."""
    options = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(_whole(row, MAX_DEPTH), option=options)


def _whole(value: Any, depth: int) -> Any:
    if depth < 0:
        raise ValueError(f"is nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict):
        return {name: _whole(one, depth - 1) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole(one, depth - 1) for one in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def of_line(line: bytes) -> Row:
    """Raises ValueError: what is wrong with it, for the end of a sentence."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise ValueError("is no JSON") from None
    if not isinstance(found, dict):
        raise ValueError("is no JSON object")
    row: Row = _revived(found, MAX_DEPTH)
    return row


def _revived(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        if depth == 0:
            raise ValueError(f"is nested more than {MAX_DEPTH} deep")
        if len(value) == 1 and (mark := next(iter(value))).startswith(RESERVED_SIGN):
            return _unmarked(mark, value[mark])
        for name in value:
            if name.startswith(RESERVED_SIGN) or "\0" in name:
                raise _unstorable(name)
        return {name: _revived(one, depth - 1) for name, one in value.items()}
    if isinstance(value, list):
        if depth == 0:
            raise ValueError(f"is nested more than {MAX_DEPTH} deep")
        return [_revived(one, depth - 1) for one in value]
    if isinstance(value, int) and not -INT64 <= value < INT64:
        raise ValueError("holds a number that is too large")
    return value


def _unmarked(mark: str, value: Any) -> Any:
    if mark == "$date" and isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
            if at.tzinfo is not None:
                return at.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise ValueError("has a time that cannot be read")
    if mark == "$binary" and isinstance(value, dict) and isinstance(value.get("base64"), str):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error:
            raise ValueError("has bytes that cannot be read") from None
    raise _unstorable(mark)


def _unstorable(name: str) -> ValueError:
    return ValueError(f"has a field with the name {printable(name, 64)!r}, which cannot be stored")


# --- what a row may hold


@dataclass(frozen=True, slots=True)
class RowCheck:
    """Rows of one user, by its owner id. `filled`: collections of which a row lacked a field."""

    user_id: str
    limits: TextLimits
    filled: set[str] = field(default_factory=set)

    def known(self, collection: Collection, line: bytes) -> Row:
        """The row of a line that was checked before: eight times as fast."""
        return self.row(collection, line) if collection.name in self.filled else of_line(line)

    def row(self, collection: Collection, line: bytes) -> Row:
        """The row as it is stored, without its user. Raises ValueError, as `of_line`."""
        row = of_line(line)
        unknown = row.keys() - _names(collection)
        if unknown:
            raise ValueError(f"has the unknown field {min(unknown)[:64]!r}")
        found, filled = _shaped(collection, row, self.user_id)
        if filled:
            self.filled.add(collection.name)
        if isinstance(found, MemoryItem):
            self._item(found)
        if isinstance(found, OutcomeEvent):
            moved = (abs(one.lifetime_moved_ms or 0) for one in found.applied)
            if max(moved, default=0) > MOST_MOVED_MS:
                raise ValueError("moved a lifetime further than any outcome does")
        return row

    def _item(self, item: MemoryItem) -> None:
        if not MEMORY_ID_PATTERN.fullmatch(item.memory_id):
            raise ValueError("has an id with characters that are not allowed")
        if item.point_id != point_id_of(self.user_id, item.memory_id):
            raise ValueError("has a point_id that is not its own")
        if item.org_id != org_of(self.user_id):
            raise ValueError("has an org_id that is not its own")
        if TIER_POLICY[item.tier].shared or item.status is Status.DELETED:
            raise ValueError("is no memory that a user keeps")
        if item.content_hash != content_hash(item.text):
            raise ValueError("has a content_hash that is not that of its text")
        if item.expires_at is not None and not FIRST_END <= item.expires_at <= LAST_END:
            raise ValueError("has an expires_at outside of the years 1970 to 8999; null is never")
        quality = item.quality
        shares = (quality.importance, quality.confidence, item.trust, item.stats.score)
        if not all(0.0 <= one <= 1.0 for one in shares):
            raise ValueError("has a score that is not between 0 and 1")
        try:
            bank = item.tier is Tier.MEMORY_BANK
            check_text(item.text, self.limits.memory_bank if bank else self.limits.text)
            check_labels(item.tags, "tag")
            check_labels(item.entities, "entity")
            check_validity(item.valid_from, item.valid_to)
        except RayappError as error:
            raise ValueError(f"is refused ({error.message.rstrip('.')})") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _shape_names(kind: Any) -> frozenset[str]:
    return frozenset(kind.__dataclass_fields__) - set(RENEWED)


def _names(collection: Collection) -> frozenset[str]:
    kind: Any = collection.row
    return (_shape_names(kind) | collection.extra.keys()) - collection.renewed


def _shaped(collection: Collection, row: Row, user_id: str) -> tuple[Any, bool]:
    """The value of the row's shape, and whether a field had to be filled in. Raises ValueError: it
    has another."""
    kind: Any = collection.row
    shape = _adapter(kind)
    fields = {name: one for name, one in row.items() if name in _shape_names(kind)}
    try:
        value = shape.validate_python(fields | {"user_id": user_id})
        made = shape.dump_python(value)
        same = _agrees(fields, made)
        filled = False
        if not collection.sparse:
            made.pop("user_id", None)
            filled = _fill(
                row, {name: made[name] for name in made if name not in collection.renewed}
            )
        for name in collection.also.keys() & row.keys():
            other: Any = collection.also[name]
            own = {one: row[one] for one in _shape_names(other) & row.keys()}
            _adapter(other).validate_python(own | {"user_id": user_id})
        for name, given in collection.extra.items():
            if name in row:
                extra = _adapter(given)
                same = same and _agrees(
                    row[name], extra.dump_python(extra.validate_python(row[name]))
                )
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise ValueError(f"has a wrong value in {where or 'a field'}") from None
    if not same:
        raise ValueError("has a value of a wrong type")
    return value, filled


def _fill(row: Row, made: Mapping[str, Any]) -> bool:
    """Add fields that an older row lacks, as readers expect them; whether there were any."""
    filled = False
    for name, value in made.items():
        if name not in row:
            row[name] = orjson.loads(orjson.dumps(value, default=list))
            filled = True
        elif isinstance(value, dict) and isinstance(row[name], dict):
            filled |= _fill(row[name], value)
    return filled


def _agrees(row: Any, made: Any) -> bool:
    """Whether `row` says what was read out of it, as what it was read: "1" is no 1."""
    if isinstance(row, dict) and isinstance(made, dict):
        return all(name not in made or _agrees(one, made[name]) for name, one in row.items())
    if isinstance(row, list) and isinstance(made, list | tuple):
        return len(row) == len(made) and all(map(_agrees, row, made))
    return bool(row == made) and isinstance(row, bool) == isinstance(made, bool)


# --- another user


class UserMapping:
    """Rows of one user as those of another, by their owner ids: its name and tenant, and the ids
    made of them."""

    # Fields that may name the user beside the owner of the row.
    NAMES = ("stored_by", "principal", "perspective_owner_id", "subject_id")
    POINTS = ("points", "judged")
    # Of a source: what a caller says there in names of its own stays as it is.
    FREE_FORM = ("book", "datagov")

    def __init__(self, source: str, target: str) -> None:
        self._source, self._target = source, target
        self._points: dict[str, str] = {}

    def row(self, row: Row) -> Row:
        """The row of the other user; in place."""
        for name in self.NAMES:
            if row.get(name) == user_of(self._source):
                row[name] = user_of(self._target)
        if "org_id" in row:
            row["org_id"] = org_of(self._target)
        self._walk(row)
        return row

    def _walk(self, value: Any) -> None:
        if isinstance(value, list):
            for one in value:
                self._walk(one)
        if not isinstance(value, dict):
            return
        memory_id, point_id = value.get("memory_id"), value.get("point_id")
        if isinstance(memory_id, str) and point_id == point_id_of(self._source, memory_id):
            value["point_id"] = self._points[point_id] = point_id_of(self._target, memory_id)
        for name, one in value.items():
            if name in self.FREE_FORM:
                continue
            if name in self.POINTS and isinstance(one, list):
                value[name] = [self._points.get(each, each) for each in one]
            else:
                self._walk(one)
