"""The seam of portability: the rows of a user by collection, as an archive holds them.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import astuple, dataclass, field, fields
from datetime import datetime
from operator import add
from typing import Literal, Protocol

import orjson

from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.portability.rules.archive import Row
from rayapp.portability.rules.collections import EXPORTED, Collection, exported
from rayapp.portability.rules.kinds import DEFAULT_KINDS, Format, Kind, Merge, Part


@dataclass(frozen=True, slots=True)
class RowsSize:
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PutCounts:
    """`same_text`: memories whose text an active memory with another id has."""

    added: int = 0
    changed: int = 0
    present: int = 0
    same_text: int = 0

    def __add__(self, other: "PutCounts") -> "PutCounts":
        return PutCounts(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Putting:
    """How rows are written.

    Attributes:
        newer: a memory takes the place of an older version of itself.
        derive: what the graphs know is learned anew from memories and outcomes, because the graphs
            of the archive are not imported.
        dry_run: only count.
        onto_nothing: what is there goes first, which a dry run leaves.
    """

    at: datetime
    newer: bool = True
    derive: bool = True
    dry_run: bool = False
    onto_nothing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportState:
    """How far the import of one archive has come. `lines`: rows written, by collection."""

    archive: str
    merge: Merge
    exact: bool
    erased: bool
    at: datetime
    lines: Mapping[str, int] = field(default_factory=dict)
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsWanted:
    """Of the memories of an export. None = all of them."""

    tiers: tuple[Tier, ...] | None = None
    archived: bool = True

    @property
    def whole(self) -> bool:
        return self.tiers is None and self.archived


ALL_ROWS = RowsWanted()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptArchive:
    """A file: an export of a user, or a backup of the whole store."""

    name: str
    bytes: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """`without`: collections left out by name. `as_document`: a zip is that of the JSON document,
    for whoever sends back the one JSON file that a zip holds."""

    format: Format = "zip"
    kinds: frozenset[Kind] = DEFAULT_KINDS
    without: frozenset[str] = frozenset()
    wanted: RowsWanted = ALL_ROWS
    as_document: bool = False

    @property
    def collections(self) -> tuple[Collection, ...]:
        """A document is of the tier of its passages."""
        tiers = self.wanted.tiers
        kinds = self.kinds
        if tiers is not None and Tier.BOOKS not in tiers:
            kinds -= {Kind.DOCUMENTS}
        return tuple(one for one in exported(kinds) if one.name not in self.without)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Bytes as the store holds them; an archive takes a tenth to a fifth."""

    at: datetime
    collections: dict[str, RowsSize]

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.collections.values())

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.collections.values())

    @property
    def kinds(self) -> dict[str, RowsSize]:
        found: dict[str, RowsSize] = {}
        for one in EXPORTED:
            if one.kind is not None and one.name in self.collections:
                size, before = self.collections[one.name], found.get(one.kind, RowsSize(0, 0))
                found[one.kind] = RowsSize(before.rows + size.rows, before.bytes + size.bytes)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """`map_user`: an archive of another user becomes this one's, instead of being refused."""

    merge: Merge = Merge.MERGE
    dry_run: bool = False
    map_user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """`complete` False: the time was up; the same request goes on.

    Attributes:
        cleared: rows that had to go first, by collection.
        derived: the graphs are learned anew, in the background.
        left_out: collections of the archive that are not written, and why.
        resumed: it went on where an earlier one ended.
    """

    counts: dict[str, PutCounts]
    cleared: dict[str, int] = field(default_factory=dict)
    derived: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    resumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """`before`: the export that was taken first."""

    before: KeptArchive
    report: ImportReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What was there and what is left, by place: collections, the index, archives on disk.

    Attributes:
        user_sha256: the user, so that the certificate names nobody.
        part: what was erased of the user; `part_sha256`: its id. All of it: the user, and no id.
        removed: rows, points and files that this call removed.
        left: what still names the user; all 0 when it is `complete`.
        unseen: places that could not be looked at; none when it is `complete`.
        sha256: of all the rest, as `text` gives it.
    """

    user_sha256: str
    at: datetime
    removed: dict[str, int]
    left: dict[str, int]
    part: Literal["user"] | Part = "user"
    part_sha256: str = ""
    unseen: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not any(self.left.values()) and not self.unseen

    @property
    def text(self) -> bytes:
        """JSON with sorted names."""
        said = {one.name: getattr(self, one.name) for one in fields(self)}
        return orjson.dumps(said, option=orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text).hexdigest()


class RowReader(Protocol):
    """The rows as they stood at one moment."""

    def pages(self, collection: Collection, wanted: RowsWanted) -> AsyncIterator[Iterable[Row]]:
        """All rows of the user but deleted ones, without what an import makes anew. They may be
        decoded as they are taken: not on the loop. A time without a zone is UTC."""


class UserArchive(Protocol):
    """All that the truth keeps of a user."""

    def snapshot(self, scope: ReadScope) -> AbstractAsyncContextManager[RowReader]: ...
    async def sizes(self, scope: ReadScope, wanted: RowsWanted) -> dict[str, RowsSize]:
        """Of each exported collection, with these memories."""

    async def put(
        self, scope: WriteScope, collection: Collection, rows: Sequence[Row], how: Putting
    ) -> PutCounts:
        """Add checked rows, each once: what is there already stays, but an older memory. Memories
        are due for the index. A repeat adds nothing."""

    async def clear(
        self, scope: WriteScope, collection: Collection, limit: int, wanted: RowsWanted = ALL_ROWS
    ) -> int:
        """Delete up to `limit` rows, or more, as `Collection.erasing` says; how many; 0 when none
        is left. Of memories only those that are `wanted`, with what was merged into them. Deleted
        memories stay as tombstones until the index has let go of them."""

    async def left_of(self, scope: ReadScope, part: Part, part_id: str) -> dict[str, int]:
        """How many rows name a part of the user, tombstones too, by collection of `PARTS`."""

    async def left(self, scope: ReadScope) -> dict[str, int]:
        """How many rows name the user, tombstones too, by collection of users."""

    async def owners(self, org_id: str) -> dict[str, int]:
        """All owners of a tenant with a row in any collection of users; how many memories each
        has, tombstones not counted."""

    async def last_state(self, scope: ReadScope) -> ImportState | None:
        """Of the import that was begun last."""

    async def keep_state(self, scope: WriteScope, state: ImportState) -> None: ...
