"""What a reader finds in a file."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from rayapp.text.language import Language


class BlockKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    CODE = "code"
    TABLE_ROW = "table_row"


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document that belongs together, in reading order.

    Attributes:
        kind: what it is.
        text: without marks of a format; of a table row "Column: value; Column: value".
        level: of a heading 1 to 6, of a list item its depth from 1; else 0.
        page: from 1; None where the format has no pages.
        columns: names of the columns of the table that a row stands in, none where it has none.
    """

    kind: BlockKind
    text: str
    level: int = 0
    page: int | None = None
    columns: tuple[str, ...] = ()


def text_block(text: str, heading: int, depth: int, page: int | None = None) -> Block:
    """A heading where it has a level, an item where it stands in a list, else a paragraph."""
    kind = BlockKind.LIST_ITEM if depth else BlockKind.PARAGRAPH
    return Block(BlockKind.HEADING if heading else kind, text, heading or depth, page)


@dataclass(frozen=True, slots=True)
class Extracted:
    """A document as it was read.

    Attributes:
        kind: the format by its usual ending, such as "pdf".
        title, author: as the file states them; the title else its first heading.
        language: by the scripts of the text.
        blocks: in reading order, none of them blank; never none at all.
        pages: how many the file has; None where the format has no pages.
        pages_without_text: numbers of the pages, from 1, that show no text: scans, blank ones.
    """

    kind: str
    title: str | None
    author: str | None
    language: Language
    blocks: tuple[Block, ...]
    pages: int | None = None
    pages_without_text: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The blocks, joined by blank lines."""
        return "\n\n".join(block.text for block in self.blocks)

    @property
    def sha256(self) -> str:
        """Of `text`, 64 hex digits: equal for two files that say the same."""
        return hashlib.sha256(self.text.encode("utf-8")).hexdigest()
