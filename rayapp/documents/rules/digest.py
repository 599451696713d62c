"""What a model says of the passages of a document, and what of it is kept. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rayapp.documents.ports import BookQuote
from rayapp.documents.rules.order import index_of
from rayapp.inference.chat.rules.answers import DocumentNotes, DocumentSummary, faithful
from rayapp.memory.item import MemoryItem
from rayapp.text.hostile import hostile

Helper = Literal["document_notes", "document_summary"]
# Passages that one question is about: with six of 384 tokens the prompt has about 3,000.
PASSAGES = 6
# Summaries that one question joins: 30 of up to 300 characters are within a block of a prompt.
SUMMARIES = 30
MAX_NOTE_CHARS, MAX_SUMMARY_CHARS, MAX_THEME_CHARS, MAX_THEMES = 400, 1_200, 80, 7
# Of a quote, characters; of a document, how many. Our choice.
MIN_QUOTE_CHARS, MAX_QUOTE_CHARS, MAX_QUOTES = 20, 300, 12


@dataclass(frozen=True, slots=True)
class Noted:
    """What is kept of one passage. `category`: also a tag of it."""

    item: MemoryItem
    summary: str
    category: str
    quote: BookQuote | None


def noted(items: Sequence[MemoryItem], said: DocumentNotes) -> list[Noted]:
    """The notes that their passages bear out, the first one of each."""
    by_number = {note.number: note for note in reversed(said.passages)}
    found = []
    for number, item in enumerate(items, start=1):
        note = by_number.get(number)
        summary = note and faithful(note.summary, item.text, MAX_NOTE_CHARS)
        if note is not None and summary:
            found.append(Noted(item, summary, note.category, _quote(item, note.quote)))
    return found


def _quote(item: MemoryItem, quote: str) -> BookQuote | None:
    """Word for word, or it is none."""
    line, text = " ".join(quote.split()), " ".join(item.text.split())
    if not MIN_QUOTE_CHARS <= len(line) <= MAX_QUOTE_CHARS or line not in text or hostile(line):
        return None
    said: Mapping[str, object] = item.source.book or {}
    pages = said.get("pages")
    page = pages[0] if isinstance(pages, list) and pages else None
    return BookQuote(text=line, chunk_index=index_of(item), page=page)


def spread(quotes: Sequence[BookQuote]) -> tuple[BookQuote, ...]:
    """Up to `MAX_QUOTES`, of all parts of the document: beyond twice as many every other goes."""
    while len(quotes) >= 2 * MAX_QUOTES:
        quotes = quotes[::2]
    return tuple(quotes)


def joined_summary(said: DocumentSummary, texts: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The summary and the themes that the summaries of the parts bear out; "" when it does not."""
    basis = "\n".join(texts)
    # One passage may be summed up by its own summary.
    summary = faithful(said.summary, f"{basis}\n{basis}", MAX_SUMMARY_CHARS) or ""
    themes = (faithful(theme, basis, MAX_THEME_CHARS) for theme in said.themes)
    return summary, tuple(dict.fromkeys(filter(None, themes)))[:MAX_THEMES] if summary else ()
