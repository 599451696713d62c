"""What stands above a remembered tool result, in the language of the conversation. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from rayapp.assistant.tool_results.rules.cleaning import clean
from rayapp.assistant.tools.rules.definitions import MEMORY_TOOLS
from rayapp.text.language import detect_language
from rayapp.text.redaction import redact

LabelLanguage = Literal["he", "en"]
# A label is one line: of a longer question its beginning says enough.
MAX_QUERY_CHARS = 200

OTHER = "other"
# Name of a category in English and in Hebrew, as it stands in a label.
CATEGORIES: Mapping[str, tuple[str, str]] = {
    "search": ("web search", "חיפוש באינטרנט"),
    "research": ("research", "מחקר"),
    "official_data": ("official data", "נתונים רשמיים"),
    "documents": ("document reading", "קריאת מסמכים"),
    "code": ("code", "קוד"),
    "calendar": ("calendar", "יומן"),
    "mail": ("mail", "דואר"),
    "maps": ("maps", "מפות"),
    OTHER: ("a tool", "כלי"),
}
# The first category with a word of the tool's name is its category.
_WORDS: tuple[tuple[str, frozenset[str]], ...] = (
    (
        "official_data",
        frozenset(["datagov", "ckan", "gov", "israel", "government", "knesset", "cbs"]),
    ),
    ("research", frozenset(["research", "perplexity", "arxiv", "scholar", "pubmed"])),
    (
        "documents",
        frozenset(
            ["docling", "document", "documents", "pdf", "fetch", "read", "scrape", "crawl", "file"]
        ),
    ),
    ("code", frozenset(["code", "python", "github", "gitlab", "sql", "shell", "bash", "repo"])),
    ("calendar", frozenset(["calendar", "event", "events", "meeting"])),
    ("mail", frozenset(["mail", "email", "gmail", "inbox"])),
    ("maps", frozenset(["map", "maps", "places", "route", "geocode"])),
    (
        "search",
        frozenset(
            ["search", "tavily", "brave", "google", "bing", "duckduckgo", "serp", "web", "news"]
        ),
    ),
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HEBREW_QUERY = frozenset({"he", "mixed"})


def category_of(tool_name: str) -> str:
    """The category that a word of the name says, `other` when none does."""
    words = {word.lower() for word in _WORD.findall(tool_name)}
    return next((category for category, known in _WORDS if words & known), OTHER)


def is_memory_tool(tool_name: str) -> bool:
    """Whether it is one of this service's own tools, with or without a prefix of its server."""
    return re.split(r"[./:]|__", tool_name.lower())[-1].replace("-", "_") in MEMORY_TOOLS


def label_language(given: LabelLanguage | None, query: str, text: str) -> LabelLanguage:
    """What the caller says, else the language of the question, else that of the answer."""
    if given is not None:
        return given
    known = detect_language(query)
    known = detect_language(text) if known == "other" else known
    return "he" if known in _HEBREW_QUERY else "en"


def label(tool_name: str, category: str, query: str, language: LabelLanguage) -> str:
    """One line; a category that is not in the table stands for itself. Secrets are taken out."""
    english, hebrew = CATEGORIES.get(category, (category, category))
    asked = " ".join(redact(clean(query)).text.split())[:MAX_QUERY_CHARS]
    if language == "he":
        line = f"תוצאה של {hebrew} ({tool_name})"
        return f"{line}, לשאלה: {asked}" if asked else line
    line = f"Result of {english} ({tool_name})"
    return f"{line} for: {asked}" if asked else line


def cut_note(kept: int, of: int, language: LabelLanguage) -> str:
    """The last line of a text that was cut."""
    if language == "he":
        return f"[קוצר: נשמרו {kept:,} מתוך {of:,} תווים]"
    return f"[cut: {kept:,} of {of:,} characters kept]"
