"""Exports of other systems as they are sent: of a zip or a folder only what is read."""

import io
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rayapp.client.calls import read_file
from rayapp.core.errors import InvalidInput

# Ends of the files that are read, by source; the images of an export may be some gigabytes.
READ = {
    "mem0": (".json",),
    "chatgpt": (".json",),
    "claude": (".json",),
    "markdown": (".md", ".markdown"),
    "roampal": (".jsonl", ".sqlite3"),
}
# Years that a zip can say.
FIRST, LAST = 1980, 2107


def packed(path: Path, source: str) -> tuple[str, bytes]:
    """A name and the bytes to send of a file, a zip or a folder. Raises InvalidInput."""
    ends = READ.get(source)
    if ends is None:
        raise InvalidInput(f"source: {source!r} is none of {', '.join(READ)}.")
    if path.is_dir():
        return f"{path.name}.zip", _zipped(_of_folder(path, ends))
    if not zipfile.is_zipfile(path):
        return path.name, read_file(path)
    try:
        with zipfile.ZipFile(path) as found:
            members = [one for one in found.infolist() if one.filename.lower().endswith(ends)]
            if len(members) == len(found.infolist()):
                return path.name, read_file(path)
            return path.name, _zipped((one, found.read(one)) for one in members)
    except (zipfile.BadZipFile, RuntimeError, OSError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}); export it again.") from None


def _of_folder(folder: Path, ends: tuple[str, ...]) -> Iterator[tuple[zipfile.ZipInfo, bytes]]:
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or not path.name.lower().endswith(ends):
            continue
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        when = changed if FIRST <= changed.year <= LAST else datetime(FIRST, 1, 1, tzinfo=UTC)
        name = path.relative_to(folder).as_posix()
        yield zipfile.ZipInfo(name, when.timetuple()[:6]), read_file(path)


def _zipped(files: Iterator[tuple[zipfile.ZipInfo, bytes]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for info, data in files:
            made.writestr(info, data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
