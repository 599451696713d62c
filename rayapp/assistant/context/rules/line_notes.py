"""What stands before the text of a memory line: when, how it did, and whose word it is. Pure.

A reader who sees "lives in Haifa" and "lives in Tel Aviv" can only choose by these. The note is in
the language of the text that it stands before, so that a line reads in one direction.
"""

from collections.abc import Mapping
from datetime import datetime

from rayapp.assistant.conversations.rules import EXCHANGE_TAG
from rayapp.graphs.rules.directives import Side, side_of
from rayapp.memory.item import LEARNED_TAG, MemoryItem, Outcome, SourceType, subject_of
from rayapp.memory.rules.filtering import heading_of
from rayapp.memory.tiers import DATAGOV_TIERS, Tier
from rayapp.text.language import detect_language

# Characters of the name of a document or a tool: enough to know it by.
NAME_CHARS = 40

_USED: dict[Side, str] = {"he": "שימש {uses}×", "en": "used {uses}×"}
_ABOUT: dict[Side, str] = {"he": "על {whom}", "en": "about {whom}"}
_OUTDATED: dict[Side, str] = {"he": "לא עדכני", "en": "outdated"}
_UNTIL: dict[Side, str] = {"he": "עד {day}", "en": "until {day}"}
# `unknown` says nothing.
_OUTCOMES: dict[Side, Mapping[Outcome, str]] = {
    "he": {Outcome.WORKED: "עבד", Outcome.PARTIAL: "עבד חלקית", Outcome.FAILED: "נכשל"},
    "en": {Outcome.WORKED: "worked", Outcome.PARTIAL: "worked partly", Outcome.FAILED: "failed"},
}
_WHO: dict[Side, Mapping[SourceType, str]] = {
    "he": {
        SourceType.USER: "דברי המשתמש",
        SourceType.ASSISTANT: "דברי העוזר",
        SourceType.TOOL: "כלי",
        SourceType.DOCUMENT: "מסמך",
        SourceType.DATAGOV: "מידע ציבורי",
        SourceType.SYSTEM: "המערכת",
        SourceType.IMPORT: "יובא",
    },
    "en": {
        SourceType.USER: "user said",
        SourceType.ASSISTANT: "assistant said",
        SourceType.TOOL: "tool",
        SourceType.DOCUMENT: "document",
        SourceType.DATAGOV: "open data",
        SourceType.SYSTEM: "system",
        SourceType.IMPORT: "imported",
    },
}
_TALK: dict[Side, str] = {"he": "שיחה", "en": "conversation"}
_PAGES: dict[Side, tuple[str, str]] = {"he": ("עמ׳", "עמ׳"), "en": ("p.", "pp.")}

# What a person keeps on purpose and what a document says goes before what was said in passing.
_AUTHORITY: Mapping[Tier, int] = {
    Tier.MEMORY_BANK: 0,
    Tier.BOOKS: 1,
    **dict.fromkeys(DATAGOV_TIERS, 1),
}
_IN_PASSING = 2


def authority_of(item: MemoryItem) -> int:
    """Its place in the order of authority: 0 is the highest."""
    return _AUTHORITY.get(item.tier, _IN_PASSING)


def note_of(item: MemoryItem, *, stable: bool = False, outdated: bool = False) -> str:
    """`about Ruth, date, used 3×, worked, user said`, raw: the caller escapes it.

    stable: without what outcomes move, so that the line stays until the memory itself changes.
    outdated: a newer line gives another value for the same thing.
    """
    side, about = _side(item), subject_note(item)
    parts = [_day(item.created_at)] if about is None else [about, _day(item.created_at)]
    if item.valid_to is not None:
        parts.append(_UNTIL[side].format(day=_day(item.valid_to)))
    elif outdated:
        parts.append(_OUTDATED[side])
    stats = item.stats
    if stats.uses and not stable:
        parts.append(_USED[side].format(uses=stats.uses))
        if stats.last_outcome is not None and stats.last_outcome in _OUTCOMES[side]:
            parts.append(_OUTCOMES[side][stats.last_outcome])
    return ", ".join([*parts, _who(item, side)])


def subject_note(item: MemoryItem) -> str | None:
    """About whom it is, raw; None: about the user."""
    whom = subject_of(item)
    return None if whom is None else _ABOUT[_side(item)].format(whom=_name(whom))


def _side(item: MemoryItem) -> Side:
    # Rows of earlier versions say nothing of their language.
    return side_of(item.lang if item.lang != "other" else detect_language(item.text))


def _who(item: MemoryItem, side: Side) -> str:
    source = item.source
    if source.type is SourceType.DOCUMENT:
        return place_of(item, side)
    if source.type is SourceType.TOOL and source.tool_name:
        return f"{_WHO[side][source.type]} {_name(source.tool_name)}"
    if source.type is SourceType.ASSISTANT and {EXCHANGE_TAG, LEARNED_TAG}.intersection(item.tags):
        return _TALK[side]
    return _WHO[side][source.type]


def place_of(item: MemoryItem, side: Side) -> str:
    """Title, section and page of what a document says, raw."""
    book = item.source.book or {}
    title, pages = book.get("title"), book.get("pages")
    name = (
        _name(title) if isinstance(title, str) and title.strip() else _WHO[side][item.source.type]
    )
    heading = heading_of(item.source)
    if heading is not None and heading != title:
        name = f"{name}, {_name(heading)}"
    if not isinstance(pages, list) or not pages:
        return name
    first, last = pages[0], pages[-1]
    one, several = _PAGES[side]
    return f"{name}, {one} {first}" if first == last else f"{name}, {several} {first}-{last}"


def _name(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= NAME_CHARS else f"{plain[: NAME_CHARS - 1]}…"


def _day(at: datetime) -> str:
    return at.date().isoformat()
