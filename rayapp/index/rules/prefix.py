"""What is written before a text when it is embedded, so that it is found later. Pure.

The prefix is part of what the vector is made of and of nothing else: it is never shown, and the
lexical words stay those of the text. That of a book follows from fields that no edit changes; what
a model says is stored with the item and part of the vector hash. So equal vector hashes go on
meaning equal vectors.
"""

from collections.abc import Sequence

from rayapp.core.ids import SYSTEM_USER
from rayapp.index.rules.points import was_embedded
from rayapp.inference.chat.rules.answers import refuses
from rayapp.memory.item import MemoryItem, SourceType
from rayapp.memory.tiers import DATAGOV_TIERS, Tier
from rayapp.text.hostile import hostile
from rayapp.text.language import detect_language
from rayapp.text.passages import passages_of

# A longer title would be what the vector speaks of. Our choice.
MAX_PART_CHARS = 200
# A longer answer of a model is no prefix: two short sentences. Our choice.
MAX_PREFIX_CHARS = 400
# A longer answer of a tool is a document, and says itself what it is about. Our choice.
MAX_TOOL_CHARS = 2_000
# Of a turn that came before: enough to see what it speaks of. Our choice.
MAX_TURN_CHARS = 600


def book_prefix(item: MemoryItem) -> str:
    """`Book: {title}. Section: {section}.` of a book's passage; empty for all other memories."""
    book = (item.source.book if item.tier is Tier.BOOKS else None) or {}
    parts = (("Book", book.get("title")), ("Section", book.get("section")))
    return " ".join(f"{name}: {said}." for name, value in parts if (said := _said(value)))


def embedded_texts(item: MemoryItem) -> list[str]:
    """What the vectors of `item` are made of: each of its passages, after the prefix."""
    prefix = book_prefix(item) or item.context_prefix
    passages = [passage.of(item.text) for passage in passages_of(item.text)]
    return [f"{prefix}\n{text}" for text in passages] if prefix else passages


def wants_prefix(item: MemoryItem) -> bool:
    """A model is to be asked: once per text, when the text is first embedded.

    Never of open data and books, which say where they belong, nor of long answers of tools.
    """
    if item.context_prefix or not item.text.strip() or item.index.last_error is not None:
        return False
    if item.user_id == SYSTEM_USER or item.tier is Tier.BOOKS or item.tier in DATAGOV_TIERS:
        return False
    if item.source.type is SourceType.TOOL and len(item.text) > MAX_TOOL_CHARS:
        return False
    return not was_embedded(item)  # a rebuild asks for no prefixes


def accepted_prefix(reply: str, item: MemoryItem) -> str:
    """The answer of a model as one line; empty when it is none that may be kept."""
    line = " ".join(reply.split())
    if not line or len(line) > MAX_PREFIX_CHARS or hostile(reply) is not None or refuses(line):
        return ""
    said = detect_language(line)
    if said == "other" or not _speaks_like(item.text, said):
        return ""
    # What the text says already places nothing.
    return "" if line.casefold() in " ".join(item.text.split()).casefold() else line


def facts_about(item: MemoryItem) -> str:
    """Where an item comes from, as lines for the model."""
    source = item.source
    facts = (
        ("from", source.type.value),
        ("tool", source.tool_name),
        ("document", source.doc_id),
        ("date", item.created_at.date().isoformat()),
        ("tags", ", ".join(item.tags)),
        ("names", ", ".join(item.entities)),
    )
    return "\n".join(f"{name}: {_said(value)}" for name, value in facts if value)


def surroundings_of(turns: Sequence[MemoryItem]) -> str:
    """The turns before, the oldest first."""
    return "\n".join(" ".join(turn.text.split())[:MAX_TURN_CHARS] for turn in turns)


def _speaks_like(text: str, said: str) -> bool:
    """A Hebrew text is not placed by an English sentence, nor the other way round."""
    spoken = detect_language(text)
    return spoken in (said, "mixed", "other") or said == "mixed"


def _said(value: object) -> str:
    return " ".join(value.split()).rstrip(".")[:MAX_PART_CHARS] if isinstance(value, str) else ""
