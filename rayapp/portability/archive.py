"""Archives: written as a stream, and opened without trust."""

import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

import orjson

from rayapp.core.ids import org_of, user_of
from rayapp.portability.ports import ExportRequest
from rayapp.portability.rules.archive import (
    FORMAT,
    MANIFEST,
    MAX_LINE_BYTES,
    MAX_MANIFEST_BYTES,
    MAX_RATIO,
    SUFFIX,
    VERSION,
    BadArchive,
    Manifest,
    Part,
    Row,
    bad_row,
    plain_line,
    read_manifest,
    renewed_fields,
    to_line,
)
from rayapp.portability.rules.collections import BY_NAME, EXPORTED, Collection

# The one member of a zip that is the JSON document.
DOCUMENT = "rayapp-export.json"
# 3 times as fast as the default level, for a tenth more bytes (our rows).
ZIP_LEVEL = 1
ENCRYPTED = 0x1
# What reading a zip raises that is none, or was cut or changed.
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, RuntimeError, ValueError)


class _Sink(io.RawIOBase):
    """What is written and not taken yet; it cannot be sought, like a socket."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        found, self._parts = b"".join(self._parts), []
        return found


class PartSum:
    """What its manifest says of the rows of one collection, as they are written."""

    def __init__(self, collection: str) -> None:
        self.collection = collection
        self._rows = self._bytes = 0
        self._seen = hashlib.sha256()

    def add(self, data: bytes, rows: int) -> None:
        self._seen.update(data)
        self._rows, self._bytes = self._rows + rows, self._bytes + len(data)

    @property
    def empty(self) -> bool:
        return not self._rows

    def part(self) -> Part:
        return Part(
            collection=self.collection,
            rows=self._rows,
            bytes=self._bytes,
            sha256=self._seen.hexdigest(),
            schema_version=BY_NAME[self.collection].schema,
        )


class ArchiveWriter:
    """One archive, collection by collection; each call answers the bytes that it adds. As JSON it
    is the same rows as one document, which a zip may hold."""

    def __init__(self, request: ExportRequest, *, user_id: str, at: datetime) -> None:
        self._user_id, self._at, self._wanted = user_id, at, request.wanted
        self._parts: list[PartSum] = []
        self._sink = _Sink()
        self._zip: zipfile.ZipFile | None = None
        self._member: IO[bytes] | None = None
        self._document: IO[bytes] | _Sink | None = None
        if request.format == "zip":
            self._zip = zipfile.ZipFile(
                self._sink, "w", zipfile.ZIP_DEFLATED, compresslevel=ZIP_LEVEL
            )
        if self._zip is None:
            self._document = self._sink
        elif request.as_document:
            self._document = self._zip.open(DOCUMENT, "w", force_zip64=True)
        if self._document is not None:
            said = {"format": FORMAT, "version": VERSION, "exportedAt": at}
            said |= {"userId": user_of(user_id)}
            self._document.write(orjson.dumps(said)[:-1] + b',"collections":{')

    def begin(self, collection: Collection) -> bytes:
        """The rows to come are of this one. The end of the one before is answered; its own first
        bytes come later, so that no file begins before the store gave something."""
        self._end_part()
        ended = self._sink.taken() if self._parts else b""
        if self._document is not None:
            start = b"," if self._parts else b""
            self._document.write(start + orjson.dumps(collection.name) + b":[")
        elif self._zip is not None:
            self._member = self._zip.open(collection.name + SUFFIX, "w", force_zip64=True)
        self._parts.append(PartSum(collection.name))
        return ended

    def rows(self, rows: Iterable[Row]) -> bytes:
        lines, part = [to_line(row) for row in rows], self._parts[-1]
        first = part.empty
        if self._document is not None:
            lines = [plain_line(orjson.loads(line)) for line in lines]
        data = b"".join(lines)
        part.add(data, len(lines))
        if self._member is not None:
            self._member.write(data)
        elif lines and self._document is not None:
            self._document.write((b"" if first else b",") + b",".join(lines))
        return self._sink.taken()

    def end(self) -> bytes:
        """The manifest, and the end."""
        self._end_part()
        manifest = Manifest(
            format=FORMAT,
            version=VERSION,
            exported_at=self._at,
            user_id=user_of(self._user_id),
            org_id=org_of(self._user_id),
            partial=not self._wanted.whole,
            tiers=self._wanted.tiers,
            archived=self._wanted.archived,
            parts=tuple(one.part() for one in self._parts),
            renewed=renewed_fields([BY_NAME[one.collection] for one in self._parts]),
        )
        if self._document is not None:
            self._document.write(b'},"manifest":' + manifest.model_dump_json().encode() + b"}")
        elif self._zip is not None:
            self._zip.writestr(MANIFEST, manifest.model_dump_json(indent=1))
        self.close()
        return self._sink.taken()

    def close(self) -> None:
        """After the end, or instead of it when the export broke off."""
        if self._member is not None:
            self._member.close()
        if self._zip is not None:
            if self._document is not None:
                self._document.close()
            self._zip.close()

    def _end_part(self) -> None:
        if self._member is not None:
            self._member.close()
        elif self._parts and self._document is not None:
            self._document.write(b"]")


# --- reading


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that was opened. `lines`: those of a collection, each with its end. `made_of`: the
    hash of a file that it is made of, each time with other times in it."""

    manifest: Manifest
    lines: Callable[[str], Iterator[bytes]]
    made_of: str = ""

    @property
    def fingerprint(self) -> str:
        """Of all it holds."""
        if self.made_of:
            return self.made_of
        parts = sorted(f"{one.collection}:{one.sha256}" for one in self.manifest.parts)
        return hashlib.sha256("\n".join([self.manifest.owner_id, *parts]).encode()).hexdigest()

    def collections(self) -> tuple[Collection, ...]:
        """Those of its parts, in the order of an import."""
        held = {part.collection for part in self.manifest.parts}
        return tuple(one for one in EXPORTED if one.name in held)

    def checked_lines(self, name: str) -> Iterator[bytes]:
        """The lines of a part, which must be what the manifest says once they have all been read.

        Raises BadArchive.
        """
        part = next(one for one in self.manifest.parts if one.collection == name)
        seen = hashlib.sha256()
        rows = size = 0
        for line in self.lines(name):
            rows, size = rows + 1, size + len(line)
            if rows > part.rows or size > part.bytes:
                break
            seen.update(line)
            yield line
        if (rows, size, seen.hexdigest()) != (part.rows, part.bytes, part.sha256):
            raise BadArchive(
                f"{name} in the archive is not what its manifest says (count, size or SHA-256); "
                "export it again, or copy it again."
            )


def open_zip(file: IO[bytes], *, max_bytes: int) -> Archive:
    """Nothing is unpacked yet. Raises BadArchive."""
    try:
        found = zipfile.ZipFile(file)
        members = {one.filename: one for one in found.infolist()}
        if list(members) == [DOCUMENT]:
            check_unpacked(found.infolist(), max_bytes, MAX_MANIFEST_BYTES)
            payload = orjson.loads(found.read(DOCUMENT))
            return of_payload(payload if isinstance(payload, dict) else {})
        _check_members(found.infolist(), max_bytes)
        with found.open(members[MANIFEST]) as opened:
            manifest = read_manifest(opened.read(MAX_MANIFEST_BYTES + 1)[:MAX_MANIFEST_BYTES])
    except (*BROKEN, NotImplementedError, KeyError):
        raise BadArchive(
            "The archive is no zip that an export of this service made; send the file as it was."
        ) from None
    names = {part.collection + SUFFIX for part in manifest.parts}
    if names != members.keys() - {MANIFEST}:
        raise BadArchive("The archive holds other files than its manifest names; export it again.")
    for part in manifest.parts:
        if members[part.collection + SUFFIX].file_size != part.bytes:
            raise BadArchive(
                f"{part.collection} in the archive has another size than its manifest says; "
                "export it again, or copy it again."
            )
    return Archive(manifest, lambda name: _zip_lines(found, name))


def _check_members(members: Sequence[zipfile.ZipInfo], max_bytes: int) -> None:
    known = {MANIFEST, *(one.name + SUFFIX for one in EXPORTED)}
    names = [one.filename for one in members]
    strange = sorted(set(names) - known)
    if strange:
        raise BadArchive(
            f"The archive holds the file {strange[0][:100]!r}, which no export writes; remove it."
        )
    if len(set(names)) < len(names) or MANIFEST not in names:
        raise BadArchive(
            "The archive has no manifest, or a file twice; send one that an export made."
        )
    if any(one.flag_bits & ENCRYPTED for one in members):
        raise BadArchive("The archive is encrypted; send it as the export made it.")
    check_unpacked(members, max_bytes, MAX_MANIFEST_BYTES)


def check_unpacked(members: Sequence[zipfile.ZipInfo], max_bytes: int, spare_bytes: int) -> None:
    """`spare_bytes`: what a small zip may unpack to, however well it is packed."""
    total = sum(one.file_size for one in members)
    packed = sum(one.compress_size for one in members)
    if total > max_bytes or total > MAX_RATIO * packed + spare_bytes:
        raise BadArchive(
            f"The zip says that it unpacks to {total:,} bytes, which is too much for its size or "
            f"above {max_bytes:,} (backup.max_unpacked_bytes); send less at a time."
        )


def _zip_lines(found: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    try:
        with found.open(name + SUFFIX) as member:
            while line := member.readline(MAX_LINE_BYTES + 1):
                yield _bounded(line, name)
    except BROKEN as error:
        raise BadArchive(
            f"{name} in the archive is broken ({type(error).__name__}); copy it again."
        ) from None


def _bounded(line: bytes, name: str) -> bytes:
    if len(line) > MAX_LINE_BYTES:
        raise BadArchive(
            f"A row of {name} in the archive has more than {MAX_LINE_BYTES:,} bytes; remove it."
        )
    return line


def of_payload(payload: Mapping[str, Any]) -> Archive:
    """The same of an archive that was sent as JSON. Raises BadArchive."""
    said, collections = payload.get("manifest"), payload.get("collections")
    if not isinstance(said, Mapping) or not isinstance(collections, Mapping):
        raise BadArchive(
            "payload is no export: it needs `manifest` and `collections`, as "
            "GET /api/memory/backup/export?format=json answers them."
        )
    manifest = read_manifest(orjson.dumps(said))
    if collections.keys() != {part.collection for part in manifest.parts}:
        raise BadArchive("payload holds other collections than its manifest names; export it anew.")
    if not all(isinstance(rows, list) for rows in collections.values()):
        raise BadArchive("A collection of the payload is no list of rows; export it again.")

    def lines(name: str) -> Iterator[bytes]:
        for number, row in enumerate(collections[name], 1):
            try:
                line = plain_line(row)
            except ValueError as error:
                raise bad_row(name, number, error) from None
            yield line

    return Archive(manifest, lines)
