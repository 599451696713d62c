"""What is kept of the text of a block."""

import re

from rayapp.documents.records import Block, BlockKind
from rayapp.text.normalize import shows_nothing, without_forbidden
from rayapp.text.utterance import word_reading

# Of a title or an author; what is longer is cut.
MAX_NAME = 300
MAX_LEVEL = 6
_SPACES = re.compile(r"[^\S\n]+")
_AROUND_NEWLINE = re.compile(r" ?\n ?")
_MANY_NEWLINES = re.compile(r"\n{2,}")


def clean_block(block: Block) -> Block | None:
    """The block as it is kept: printable, spaces collapsed (lines of code as they are), levels
    within 1 to 6; None for one that shows nothing."""
    text = without_forbidden(block.text.replace("\r\n", "\n").replace("\r", "\n"))
    if block.kind is BlockKind.CODE:
        text = text.strip("\n").rstrip()
    else:
        text = tidy(text)
        if block.kind is not BlockKind.PARAGRAPH:
            text = text.replace("\n", " ")
    if not text or shows_nothing(text):
        return None
    level = block.level
    if block.kind is BlockKind.HEADING:
        level = min(max(level, 1), MAX_LEVEL)
    return Block(block.kind, text, level, block.page, tuple(map(_clean_column, block.columns)))


@word_reading  # each row of a table has the same
def _clean_column(name: str) -> str:
    return tidy(without_forbidden(name))


def tidy(text: str) -> str:
    """One space for many, no empty lines, none around."""
    if "\n" not in text:
        return " ".join(text.split())
    text = _AROUND_NEWLINE.sub("\n", _SPACES.sub(" ", text))
    return _MANY_NEWLINES.sub("\n", text).strip()


def clean_name(name: str | None) -> str | None:
    """A title or an author in one line; None for none."""
    text = " ".join(without_forbidden(name or "").split())
    return text[:MAX_NAME].strip() or None if not shows_nothing(text) else None
