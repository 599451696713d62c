"""Which format a file has: its content says so, and its name must agree."""

import re
from collections.abc import Mapping
from enum import StrEnum

from rayapp.core.errors import InvalidInput, TooLarge


class Kind(StrEnum):
    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    XLS = "xls"
    ODS = "ods"
    CSV = "csv"
    TSV = "tsv"
    HTML = "html"
    RTF = "rtf"
    ODT = "odt"
    EPUB = "epub"
    TXT = "txt"
    MD = "md"
    EML = "eml"


# What a file may be called, by the end of its name.
ENDINGS: Mapping[str, Kind] = {
    **{kind.value: kind for kind in Kind},
    "htm": Kind.HTML,
    "xhtml": Kind.HTML,
    "markdown": Kind.MD,
    "text": Kind.TXT,
}
# Text alone does not say which of these it is: the name does.
TEXTS = frozenset({Kind.CSV, Kind.TSV, Kind.HTML, Kind.TXT, Kind.MD, Kind.EML})
# How many bytes at the start may hold the mark of a format.
HEAD_BYTES = 1024

# Why a file is refused, for programs.
WRONG_TYPE, BROKEN, ENCRYPTED = "document_type", "document_broken", "document_encrypted"
EMPTY, TOO_SLOW, MEMORY = "document_empty", "document_too_slow", "document_memory"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Names of streams in an OLE file, as they stand in its folder.
_OLE_STREAMS = {name: name.encode("utf-16-le") for name in ("EncryptedPackage", "Workbook", "Book")}
_PARTS = {
    b"word/document": Kind.DOCX,
    b"ppt/presentation": Kind.PPTX,
    b"xl/workbook": Kind.XLSX,
    b"META-INF/container.xml": Kind.EPUB,
}
_MIMETYPES = {
    b"application/epub+zip": Kind.EPUB,
    b"application/vnd.oasis.opendocument.text": Kind.ODT,
    b"application/vnd.oasis.opendocument.spreadsheet": Kind.ODS,
}
_SAMPLE = 20_000
# What no text holds; a share of it is forgiven, for old files end with control characters.
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MAX_CONTROLS = 0.01
# Upper halves of the characters of a text in UTF-16: its scripts, signs, currency.
_SCRIPT_BYTES = 16
# The list of a zip archive is found from its end, before which a comment may stand.
_ZIP_END, _ZIP_END_BYTES = b"PK\x05\x06", (1 << 16) + 22
# Of a zip archive, where its first entry and what that holds begin.
_FIRST_ENTRY = 200
# Where the first mark of HTML is looked for.
_HTML_BYTES = 1 << 20
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_TAG = re.compile(rb"<\s*(?:!doctype|html|head|body|meta|title|div|p|table|h[1-6]|br)\b", re.I)
_MAIL_HEADER = re.compile(rb"\A(?:\xef\xbb\xbf)?[A-Za-z][A-Za-z0-9-]*:[^\r\n]*\r?\n")


def kind_of_name(name: str) -> Kind:
    """By the end of a file's name. Raises InvalidInput for one that no reader reads."""
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    kind = ENDINGS.get(ending)
    if kind is None:
        readable = ", ".join(sorted(kind.value for kind in Kind))
        raise InvalidInput(
            f"Files of this type cannot be read; save it as one of {readable}.",
            code=WRONG_TYPE,
            details={"ending": ending[:20]},
        )
    return kind


def kind_of(data: bytes, name: str) -> Kind:
    """The format of a file, in milliseconds. Raises InvalidInput where content and name disagree
    or where the content says that it is locked or cut."""
    named = kind_of_name(name)
    found = _kind_of_content(data)
    if found is None:
        if named in TEXTS and _may_be(named, data):
            return named
        raise InvalidInput(
            f"This is no {named} file, whatever its name says; save it as {named} again, "
            "or give it the ending of what it is.",
            code=WRONG_TYPE,
            details={"named": named.value},
        )
    if found is not named:
        raise InvalidInput(
            f"The file is called .{named} but holds {found}; give it the ending .{found}.",
            code=WRONG_TYPE,
            details={"named": named.value, "found": found.value},
        )
    return found


def _kind_of_content(data: bytes) -> Kind | None:
    """By its marks; None for text and for what has none of them."""
    head = data[:HEAD_BYTES]
    if b"%PDF-" in head:
        return Kind.PDF
    if head.startswith(b"{\\rtf"):
        return Kind.RTF
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_zip(data)
    if head.startswith(_OLE):
        return _kind_of_ole(data)
    return None


def _kind_of_zip(data: bytes) -> Kind | None:
    """By the names in the list at its end. The list is searched, not parsed: the service looks at
    a file before the process that may die of it does."""
    for mimetype, kind in _MIMETYPES.items():  # the first entry, stored as it is
        if b"mimetype" + mimetype in data[:_FIRST_ENTRY]:
            return kind
    end = data.rfind(_ZIP_END, -_ZIP_END_BYTES)
    if end < 0 or len(data) < end + 20:
        raise broken()
    listed = data[int.from_bytes(data[end + 16 : end + 20], "little") :]
    return next((kind for name, kind in _PARTS.items() if name in listed), None)


def _kind_of_ole(data: bytes) -> Kind | None:
    if _OLE_STREAMS["EncryptedPackage"] in data:
        raise encrypted()
    return Kind.XLS if any(_OLE_STREAMS[name] in data for name in ("Workbook", "Book")) else None


def _may_be(kind: Kind, data: bytes) -> bool:
    """Whether bytes without a mark can be this kind of text."""
    sample = data[:_SAMPLE]
    wide = data.startswith(_WIDE_MARKS) or _is_wide(sample)
    if not wide and len(_CONTROLS.findall(sample)) > _MAX_CONTROLS * len(sample):
        return False
    if kind is Kind.HTML:
        return _TAG.search(data[:_HTML_BYTES].replace(b"\x00", b"")) is not None
    return kind is not Kind.EML or _MAIL_HEADER.match(data) is not None


def _is_wide(sample: bytes) -> bool:
    """Whether it looks like UTF-16 without a mark: one byte of each pair has few values, zero
    among them, and the other one is none."""
    halves = sorted((sample[::2], sample[1::2]), key=lambda half: len(set(half)))
    script, letters = halves
    has_zeros = 0 in script and letters.count(0) <= _MAX_CONTROLS * len(letters)
    return has_zeros and len(set(script)) <= _SCRIPT_BYTES


def broken() -> InvalidInput:
    return InvalidInput(
        "The file is broken; open it in the program that made it and save it again.", code=BROKEN
    )


def encrypted() -> InvalidInput:
    return InvalidInput(
        "The file is locked with a password; save a copy without one and send that.", code=ENCRYPTED
    )


def too_much_memory(limit_mb: int) -> InvalidInput:
    return InvalidInput(
        f"Reading the file takes more than {limit_mb} MB of memory; cut it into parts.", code=MEMORY
    )


def too_slow(limit_s: float) -> InvalidInput:
    return InvalidInput(
        f"Reading the file takes more than {limit_s:g} s; cut it into parts.", code=TOO_SLOW
    )


def too_many_blocks(limit: int) -> TooLarge:
    return TooLarge(
        f"The file has more than {limit:,} paragraphs and rows; cut it into parts.",
        details={"limit": limit},
    )
