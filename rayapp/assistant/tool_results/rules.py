"""What of a tool's answer is kept: cleaned, redacted, labelled, cut, summed up. Pure."""

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from rayapp.assistant.tools.rules.definitions import MEMORY_TOOLS, own_name
from rayapp.core.errors import InvalidInput
from rayapp.core.settings.model import ToolResultSettings
from rayapp.memory.item import MemoryItem, Source, SourceType
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import MAX_LABEL_CHARS, MAX_TAGS
from rayapp.memory.tiers import Tier
from rayapp.text.language import detect_language
from rayapp.text.normalize import content_hash
from rayapp.text.redaction import redact, without_marks

# The oldest so many are compared: all of a full conversation would be read for one newcomer.
LOOKED_AT = 50


def surplus_results(oldest: Sequence[MemoryItem], count: int, *, keep: str) -> list[MemoryItem]:
    """The `count` of `oldest` that go: what was replaced, then what helped least, then the oldest.

    `keep`: the newcomer, which stays.
    """
    leaving = sorted((item for item in oldest if item.memory_id != keep), key=_value)
    return leaving[: max(0, count)]


def _value(item: MemoryItem) -> tuple[object, ...]:
    return (
        item.superseded_by is None,
        item.stats.score,
        item.stats.uses,
        item.stored_at,
        item.point_id,
    )


# Colours and cursor moves of terminals.
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]{0,30}[ -/]{0,3}[@-~]|\][^\x07\x1b]{0,500}(?:\x07|\x1b\\))")
# Control characters but tab and newline, lone surrogates, and what no reader sees: zero-width
# characters would hide a secret from its pattern, Unicode tags would carry an unseen instruction.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u00ad\u200b\u2060-\u2064\ufeff\ufff9-\uffff"
    "\U000e0000-\U000e007f]"
)
_BREAK = re.compile("\r\n?|[\u0085\u2028\u2029]")
_DATA_URI = re.compile(
    r"data:(?P<mime>[a-z]{1,20}/[a-z0-9.+-]{1,60})(?:;[a-z0-9=-]{1,40}){0,3};base64,"
    r"[A-Za-z0-9+/=_-]*",
    re.IGNORECASE,
)
# A run that no word, path or hash reaches: SHA-512 in hex has 128 characters.
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{200,}={0,2}")
# The same broken into lines, as mail and PEM do.
_BLOB_LINES = re.compile(
    r"(?<![^\n])(?:[A-Za-z0-9+/]{60,76}\n){3,}[A-Za-z0-9+/]{0,76}={0,2}(?=\n|\Z)"
)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9]{0,15})(?P<rest>[\s/][^<>]*)?>")
_COMMENT = re.compile(r"<!(?:--)?[^<>]*>")
# Names that a text about programs does not hold by chance.
_PAGE_TAG = re.compile(
    "html|head|body|div|span|p|table|tr|td|th|ul|ol|li|script|style|h[1-6]|section|article"
    "|header|footer|nav|main|form|a|br|img|strong|em"
)
# Three tags are a page or a piece of one; one may be an example in a sentence.
_FEWEST_TAGS = 3
_HIDDEN_TAGS = frozenset({"script", "style", "noscript", "template", "svg"})
# What a head holds; any other tag begins the body, whose `<body>` many pages leave out.
_HEAD_TAGS = frozenset(
    {"head", "title", "meta", "link", "base", "script", "style", "noscript", "template"}
)
_INLINE_TAGS = frozenset(
    {"a", "b", "i", "em", "strong", "span", "code", "u", "small", "sub", "sup"}
)
_SPACES = re.compile(r"[ \t\u00a0]{2,}")
# Tried from the first space of a run only: from each of them the work would grow with its square.
_SPACE_AT_END = re.compile(r"(?<![ \t\u00a0])[ \t\u00a0]+(?=\n|\Z)")
_EMPTY_LINES = re.compile(r"\n{3,}")


def as_text(output: Any) -> str:
    """A string as it is; MCP content blocks as their texts; any other JSON as JSON.

    Raises InvalidInput: nested too deeply.
    """
    if isinstance(output, str):
        return output
    blocks = output.get("content") if isinstance(output, dict) else output
    if (
        isinstance(blocks, list)
        and blocks
        and all(isinstance(one, dict) and isinstance(one.get("type"), str) for one in blocks)
    ):
        return "\n\n".join(_block_text(block) for block in blocks)
    try:
        return json.dumps(output, ensure_ascii=False)
    except RecursionError:
        raise InvalidInput("The output is nested too deeply; send it as a text.") from None


def clean(text: str) -> str:
    """Without terminal codes, unseen characters, binary data, markup and heaps of spaces."""
    text = _UNSEEN.sub("", _ANSI.sub("", _BREAK.sub("\n", text)))
    text = _DATA_URI.sub(lambda match: f"[binary data: {match['mime'].lower()}]", text)
    text = _BLOB_LINES.sub(_blob, text)
    text = _BLOB.sub(_blob, text)
    if _is_markup(text):
        text = _UNSEEN.sub("", _without_markup(text))
    text = _SPACES.sub(" ", _SPACE_AT_END.sub("", text))
    return _EMPTY_LINES.sub("\n\n", text).strip()


def _block_text(block: dict[str, Any]) -> str:
    if isinstance(block.get("text"), str):
        return str(block["text"])
    inner = block.get("resource")
    if isinstance(inner, dict) and isinstance(inner.get("text"), str):
        return str(inner["text"])
    return f"[{block.get('mimeType') or block['type']}]"


def _blob(match: re.Match[str]) -> str:
    """Upper case, lower case and digits together: encoded bytes. Anything else stays."""
    found = match[0]
    encoded = all(re.search(kind, found) for kind in ("[A-Z]", "[a-z]", "[0-9]"))
    hexadecimal = not re.search("[^0-9A-Fa-f\n]", found)
    return f"[binary data: {len(found)} characters]" if encoded or hexadecimal else found


def _is_markup(text: str) -> bool:
    found = 0
    for match in _TAG.finditer(text):
        found += _PAGE_TAG.fullmatch(match["name"].lower()) is not None
        if found >= _FEWEST_TAGS:
            return True
    return False


def _without_markup(text: str) -> str:
    """What stands between the tags, but for the head, scripts and styles."""
    text = _COMMENT.sub("", text)
    lines = html.unescape("".join(_shown(text))).splitlines()
    return "\n".join(line.strip() for line in lines)


def _shown(text: str) -> Iterator[str]:
    """One walk over the tags. What is hidden to the very end was never closed, so it is shown."""
    hidden: str | None = None
    in_head = False
    position = hidden_from = 0
    for match in _TAG.finditer(text):
        name, ends = match["name"].lower(), bool(match["end"])
        opens = not ends and not (match["rest"] or "").endswith("/")
        shown = hidden is None and not in_head
        if hidden is not None:
            hidden = None if ends and name == hidden else hidden
        elif in_head and ((ends and name == "head") or name not in _HEAD_TAGS):
            in_head = False
        if shown:
            yield text[position : match.start()]
            hidden_from = match.end()
            in_head = opens and name == "head"
        if hidden is None and opens and name in _HIDDEN_TAGS:
            hidden = name
        if hidden is None and not in_head:
            yield "" if name in _INLINE_TAGS else "\n"
        position = match.end()
    if hidden is not None or in_head:
        yield _TAG.sub("\n", text[hidden_from:])
    else:
        yield text[position:]


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
    return own_name(tool_name).lower().replace("-", "_") in MEMORY_TOOLS


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


# `failed`: the tool reported an error; `memory_tool`: it answers what is remembered already.
SkipReason = Literal["failed", "memory_tool", "too_short"]
ResultStatus = Literal["stored", "duplicate", "skipped"]

# The first client's numbers.
IMPORTANCE, CONFIDENCE = 0.6, 0.7
HASH_CHARS = 16
# Redaction makes a text shorter now and then: it sees a fifth more than is kept. What was never
# looked at is never kept.
WINDOW = 1.2
# A paragraph or sentence that ends in the last fifth is a good end; before that too much is lost.
GOOD_END = 0.8
_SENTENCE_END = re.compile(r"[.!?…׃](?:[\"'”)\]])?\s|\n")
_WORD_ENDS = " \n,;}]"
_ID_PREFIX = "tool-"
_ID_HASH_CHARS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered in a conversation; `text` as it came.

    `category`: of the tool, else the words of its name say it. `linked_docs`: documents that the
    answer is about. `created_at`: when the tool answered.
    """

    tool_name: str
    text: str
    query: str = ""
    category: str | None = None
    conversation_id: str | None = None
    message_id: str | None = None
    tool_run_id: str | None = None
    entities: tuple[str, ...] = ()
    linked_docs: tuple[str, ...] = ()
    language: LabelLanguage | None = None
    failed: bool = False
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """`new` is None when the answer is not kept: `skipped` says why.

    `original_chars`: after cleaning, `kept_chars`: of these without label and note.
    """

    new: NewMemory | None
    skipped: SkipReason | None = None
    redacted: Mapping[str, int] = field(default_factory=dict)
    original_chars: int = 0
    kept_chars: int = 0

    @property
    def truncated(self) -> bool:
        return self.new is not None and self.kept_chars < self.original_chars


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What became of one result. `archived`: what left the full conversation for it."""

    status: ResultStatus
    prepared: Prepared
    memory_id: str | None = None
    archived: tuple[str, ...] = ()


def prepare(result: ToolResult, limits: ToolResultSettings) -> Prepared:
    """The memory that `result` becomes. Equal answers get equal ids, whoever asked what."""
    if result.failed:
        return Prepared(new=None, skipped="failed")
    if is_memory_tool(result.tool_name):
        return Prepared(new=None, skipped="memory_tool")
    cleaned = clean(result.text)
    seen = _window(cleaned, round(limits.max_chars * WINDOW))
    found = redact(seen)
    original = len(cleaned) - len(seen) + len(found.text)
    body = cut(found.text, limits.max_chars)
    if len(without_marks(body).strip()) < limits.min_chars:
        return Prepared(
            new=None, skipped="too_short", redacted=found.counts, original_chars=original
        )
    return Prepared(
        new=_memory(result, body, original),
        redacted=found.counts,
        original_chars=original,
        kept_chars=len(body),
    )


def cut(text: str, limit: int) -> str:
    """At most `limit` characters: to the end of a paragraph, else of a sentence, else of a word."""
    if len(text) <= limit:
        return text
    head, good = text[:limit], round(limit * GOOD_END)
    paragraph = head.rfind("\n\n", good)
    if paragraph >= 0:
        return head[:paragraph].rstrip()
    ends = [match.end() for match in _SENTENCE_END.finditer(text, good, limit + 1)]
    if ends:
        return text[: ends[-1]].rstrip()[:limit]
    space = head.rfind(" ", good)
    return head[: space if space > 0 else limit].rstrip()


def conversation_tag(conversation_id: str) -> str:
    return f"conversation:{conversation_id}"


def _window(text: str, size: int) -> str:
    """The beginning, without the word that the end falls into: half a secret has no form."""
    if len(text) <= size:
        return text
    return text[: max(text.rfind(end, 0, size) for end in _WORD_ENDS) + 1].rstrip()


def _memory(result: ToolResult, body: str, original: int) -> NewMemory:
    category = result.category or category_of(result.tool_name)
    language = label_language(result.language, result.query, body)
    head = label(result.tool_name, category, result.query, language)
    parts = [head, body]
    if len(body) < original:
        parts.append(cut_note(len(body), original, language))
    hashed = content_hash(body)
    return NewMemory(
        text="\n\n".join(parts),
        tier=Tier.WORKING,
        tags=_tags(result, category, hashed),
        entities=result.entities,
        importance=IMPORTANCE,
        confidence=CONFIDENCE,
        memory_id=_ID_PREFIX + hashed[:_ID_HASH_CHARS],
        created_at=result.created_at,
        source=Source(
            type=SourceType.TOOL,
            conversation_id=result.conversation_id,
            message_id=result.message_id,
            tool_name=result.tool_name,
            tool_run_id=result.tool_run_id,
        ),
    )


def _tags(result: ToolResult, category: str, hashed: str) -> tuple[str, ...]:
    """What the conversation is found by comes first: the number of tags has a bound."""
    tags = [
        f"tool:{result.tool_name}",
        f"tool_category:{category}",
        f"content_hash:{hashed[:HASH_CHARS]}",
    ]
    if result.conversation_id is not None:
        tags.append(conversation_tag(result.conversation_id))
    tags += [f"linked_doc:{doc}" for doc in result.linked_docs]
    tags += [f"entity:{entity}" for entity in result.entities]
    return tuple(dict.fromkeys(tag[:MAX_LABEL_CHARS].strip() for tag in tags))[:MAX_TAGS]
