"""Letters: what a mail program keeps or sends."""

import email
import email.policy
import re
from collections.abc import Iterator
from email.headerregistry import HeaderRegistry
from email.message import EmailMessage, MIMEPart

from rayapp.documents.readers.decoding import codec_of, decode
from rayapp.documents.readers.found import Found, Order
from rayapp.documents.readers.plain import paragraphs
from rayapp.documents.readers.web import STATED, page_blocks
from rayapp.documents.records import Block, BlockKind

# The label of an encoding in a header: of a word, and of the value of a parameter.
_LABEL = re.compile(r"(?<==\?)[^?*\s]+(?=(?:\*[^?\s]*)?\?[bq]\?)|(?<=\*=)[^'\s;]+(?=')", re.I)


class _Headers:
    """Makes headers, by the labels that programs write. What has none is read as the letter is.

    `stated`: the encoding that the letter names first, if it names one.
    """

    def __init__(self, stated: str | None) -> None:
        self._stated = stated
        self._own = codec_of(stated)
        self._registry = HeaderRegistry()

    def __call__(self, name: str, value: str) -> str:
        raw = value.encode("utf-8", "surrogateescape")  # bytes that are no ASCII, for the parser
        text = value if raw.isascii() else decode(raw, self._stated)
        known = _LABEL.sub(lambda label: codec_of(label[0]) or self._own or label[0], text)
        return self._registry(name, known)


def read(data: bytes, order: Order) -> Found:
    stated = STATED.search(data)
    headers = _Headers(stated[1].decode("ascii") if stated else None)
    policy = email.policy.default.clone(header_factory=headers)
    letter = email.message_from_bytes(data, policy=policy)
    assert isinstance(letter, EmailMessage)
    subject, sender = _header(letter, "subject"), _header(letter, "from")
    return Found(_letter_blocks(letter, subject), subject or None, sender or None)


def _letter_blocks(letter: MIMEPart, subject: str, level: int = 1) -> Iterator[Block]:
    yield Block(BlockKind.HEADING, subject, level)
    told = [(name, _header(letter, name)) for name in ("From", "To", "Cc", "Date")]
    yield Block(BlockKind.PARAGRAPH, "\n".join(f"{name}: {text}" for name, text in told if text))
    yield from _part_blocks(letter, level)


def _part_blocks(part: MIMEPart, level: int) -> Iterator[Block]:
    """Of a part and those within it, in their order; letters within a letter are its sections."""
    kind = part.get_content_type()
    if kind == "message/rfc822":
        yield from _attachment(part)
        if str(part.get("content-transfer-encoding", "")).strip().lower() == "base64":
            return  # the parser leaves its letters as they are
        for inner in part.iter_parts():
            yield from _letter_blocks(inner, _header(inner, "subject"), level + 1)
    elif kind == "multipart/alternative" and part.is_multipart():
        bodies = (part.get_body((kind,)) for kind in ("plain", "html"))
        texts = (list(_text_blocks(body)) for body in bodies if body is not None)
        yield from next((text for text in texts if any(b.text.strip() for b in text)), ())
        for inner in part.walk():
            yield from _attachment(inner) if inner.is_attachment() else ()
    elif part.is_multipart():
        for inner in part.iter_parts():
            yield from _part_blocks(inner, level)
    elif part.is_attachment() or not _is_text(kind):
        yield from _attachment(part)
    else:
        yield from _text_blocks(part)


def _is_text(kind: str) -> bool:
    """One of parts that names no border between them is a text itself."""
    return kind in ("text/plain", "text/html") or kind.startswith("multipart/")


def _text_blocks(part: MIMEPart) -> Iterator[Block]:
    content = part.get_payload(decode=True)
    text = decode(content if isinstance(content, bytes) else b"", part.get_content_charset())
    if part.get_content_subtype() == "html":
        yield from page_blocks(text)
    else:
        yield from paragraphs(text.replace("\r\n", "\n"))


def _attachment(part: MIMEPart) -> Iterator[Block]:
    if name := part.get_filename():
        yield Block(BlockKind.PARAGRAPH, f"Attachment: {name}")


def _header(letter: MIMEPart, name: str) -> str:
    try:
        return str(letter.get(name) or "")
    except (LookupError, AttributeError, ValueError):  # what the parser of addresses cannot read
        raw = (str(text) for key, text in letter.raw_items() if key.lower() == name.lower())
        return decode(next(raw, "").encode("utf-8", "surrogateescape"))
