"""What a reader is asked and what it answers."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rayapp.documents.records import Block
from rayapp.documents.rules.kinds import Kind


@dataclass(frozen=True, slots=True)
class Order:
    """What to read.

    Attributes:
        kind: the format.
        max_pages: more are refused.
        ocr: pages without text are to be read by `tesseract`, where it is installed.
    """

    kind: Kind
    max_pages: int
    ocr: bool = False


@dataclass(slots=True)
class Found:
    """A file that is being read: `blocks` may come one by one while it is.

    Attributes:
        blocks: in reading order; texts need not be clean, blank ones are left out.
        title, author: as the file states them.
        pages: None where the format has none.
        pages_without_text: filled at the latest when the last block was taken.
    """

    blocks: Iterable[Block]
    title: str | None = None
    author: str | None = None
    pages: int | None = None
    pages_without_text: list[int] = field(default_factory=list)
