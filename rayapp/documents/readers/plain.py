"""Plain text."""

import re
from collections.abc import Iterator

from rayapp.documents.readers.decoding import decode
from rayapp.documents.readers.found import Found, Order
from rayapp.documents.records import Block, BlockKind

_BLANK_LINES = re.compile(r"\n[^\S\n\f]*\n\s*")
# Old programs end a page so.
_PAGE_END = "\f"


def read(data: bytes, order: Order) -> Found:
    text = decode(data).replace("\r\n", "\n").replace("\r", "\n")
    pages = text.split(_PAGE_END)
    if len(pages) == 1:
        return Found(paragraphs(text))
    return Found(
        (block for number, page in enumerate(pages, 1) for block in paragraphs(page, number)),
        pages=len(pages),
    )


def paragraphs(text: str, page: int | None = None) -> Iterator[Block]:
    """What blank lines set apart; lines, where there are no blank ones."""
    text = text.strip()
    parts = _BLANK_LINES.split(text)
    for part in parts if len(parts) > 1 else text.split("\n"):
        yield Block(BlockKind.PARAGRAPH, part, page=page)
