"""Zip archives with XML in them: office documents and e-books."""

import io
import posixpath
import zipfile
import zlib
from urllib.parse import unquote

from lxml import etree

from rayapp.core.errors import TooLarge
from rayapp.documents.rules.kinds import Kind, broken, encrypted

# Of one part, unpacked: more than a person writes, less than the memory of the process.
MAX_PART_BYTES = 100 << 20
_UNREADABLE = (
    *(KeyError, OSError, EOFError, NotImplementedError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)
_CORE = "docProps/core.xml"
_META = "meta.xml"
# How the type of the link to the main part ends, in both editions of the format.
_MAIN = "/officeDocument"
_DC = "{http://purl.org/dc/elements/1.1/}"


class Package:
    """An archive in memory. Nothing of it is written to a disk."""

    def __init__(self, data: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise broken() from error
        self._names = set(self._archive.namelist())

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def bytes_of(self, name: str) -> bytes:
        """Raises InvalidInput where it is not there, locked or broken; TooLarge."""
        try:
            info = self._archive.getinfo(name)
            if info.flag_bits & 1:
                raise encrypted()
            if info.file_size > MAX_PART_BYTES:
                raise TooLarge(
                    "The file unpacks to more than can be read; cut it into parts.",
                    details={"bytes": info.file_size, "limit": MAX_PART_BYTES},
                )
            return self._archive.read(info)
        except _UNREADABLE as error:
            raise broken() from error

    def xml(self, name: str) -> etree._Element:
        """The root of a part."""
        return parse_xml(self.bytes_of(name))

    def main_part(self, usual: str) -> str:
        """The part that an office document begins with; the usual one where none is named."""
        links = (link for link in self._links("") if link.get("Type", "").endswith(_MAIN))
        return next((path_from("", link.get("Target", "")) for link in links), usual)

    def linked(self, part: str) -> dict[str, str]:
        """What a part of an office document links to: names of parts by the ids of the links."""
        return {
            link.get("Id", ""): path_from(part, link.get("Target", ""))
            for link in self._links(part)
        }

    def _links(self, part: str) -> list[etree._Element]:
        folder, _, name = part.rpartition("/")
        links = posixpath.join(folder, "_rels", f"{name}.rels")
        if links not in self:
            return []
        return [
            link
            for link in self.xml(links)
            if isinstance(link.tag, str) and link.get("TargetMode") != "External"
        ]


def path_from(part: str, target: str) -> str:
    """The name of the part that another one names."""
    target = unquote(target.partition("#")[0])
    folder = "/" if target.startswith("/") else "/" + posixpath.dirname(part)
    return posixpath.normpath(posixpath.join(folder, target)).lstrip("/")


def parse_xml(data: bytes) -> etree._Element:
    """Without entities, documents from elsewhere, or trees that are deeper than any text."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise broken() from error
    # What an entity stands for is not looked up, and its name is no text.
    etree.strip_elements(root, etree.Entity, with_tail=False)
    return root


def office_names(data: bytes, kind: Kind) -> tuple[str | None, str | None]:
    """Title and author of an office document."""
    package = Package(data)
    part = _META if kind in (Kind.ODT, Kind.ODS) else _CORE
    if part not in package:
        return None, None
    root = package.xml(part)
    return root.findtext(f".//{_DC}title"), root.findtext(f".//{_DC}creator")
