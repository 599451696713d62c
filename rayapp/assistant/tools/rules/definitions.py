"""The seven tools. This table is the one place that says what they are called and take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rayapp.assistant.tools.records import ToolDefinition
from rayapp.assistant.tools.rules.parameters import (
    Flag,
    MemoryRef,
    MemoryRefs,
    OneOf,
    Parameter,
    Schema,
    Scores,
    Share,
    Tags,
    Text,
    Tiers,
    Whole,
)
from rayapp.memory.item import Outcome

# The schemas of a tool: JSON Schema as MCP and HTTP show it, and the OpenAI function.

# Keywords that strict function calling does not know; what they say is checked when read.
NOT_STRICT = frozenset({"minLength", "maxLength", "examples", "default"})


def json_schema(tool: ToolDefinition) -> Schema:
    """The arguments as a JSON Schema object."""
    properties = {one.name: _described(one) for one in tool.parameters}
    schema: Schema = {"type": "object", "properties": properties}
    required = [one.name for one in tool.parameters if one.required]
    if required:
        schema["required"] = required
    return schema | {"additionalProperties": False}


def openai_function(tool: ToolDefinition, *, strict: bool = True) -> dict[str, Any]:
    """The tool as an entry of `tools` of a chat completion.

    Strict: every argument is required and an optional one may be null, as strict decoding asks.
    """
    parameters = strict_schema(tool) if strict else json_schema(tool)
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": parameters,
            "strict": strict,
        },
    }


def strict_schema(tool: ToolDefinition) -> Schema:
    """The arguments for models whose decoder follows the schema to the letter."""
    properties = {}
    for one in tool.parameters:
        described = _plain(_described(one))
        properties[one.name] = described if one.required else _nullable(described)
    return {
        "type": "object",
        "properties": properties,
        "required": [one.name for one in tool.parameters],
        "additionalProperties": False,
    }


def _described(parameter: Parameter) -> Schema:
    schema = parameter.kind.schema() | {"description": parameter.text}
    if parameter.default is not None:
        schema["default"] = parameter.default
    return schema


def _plain(schema: Any) -> Any:
    if isinstance(schema, dict):
        # Names of arguments stand under `properties`; only keywords are left out.
        return {
            key: {name: _plain(one) for name, one in value.items()}
            if key == "properties"
            else _plain(value)
            for key, value in schema.items()
            if key not in NOT_STRICT
        }
    return [_plain(one) for one in schema] if isinstance(schema, list) else schema


def _nullable(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return schema | {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    wider = schema | {"type": [schema["type"], "null"]}
    return wider | {"enum": [*schema["enum"], None]} if "enum" in schema else wider


# Results of one search tool call (client contract).
DEFAULT_RESULTS = 5
MAX_RESULTS = 20
# The longest fact and the longest takeaway of a tool, characters (client contract).
MAX_FACT_CHARS = 5_000
MAX_TAKEAWAY_CHARS = 1_000
# The longest question, characters; the setting may say less.
MAX_QUESTION_CHARS = 4_000
MAX_ID_CHARS = 512
MAX_REASON_CHARS = 100
# Importance and confidence of a fact that a model keeps without saying how sure it is (client
# contract).
DEFAULT_IMPORTANCE = 0.7
DEFAULT_CONFIDENCE = 0.7
# What a fact is about (client contract); any other tag is taken as well.
FACT_TAGS = (
    "identity",
    "preference",
    "goal",
    "project",
    "system_mastery",
    "agent_growth",
    "workflow",
    "context",
)
DEFAULT_TAGS = ["context"]

OUTCOME = OneOf(
    tuple(one.value for one in Outcome),
    {
        "success": "worked",
        "successful": "worked",
        "helped": "worked",
        "helpful": "worked",
        "good": "worked",
        "👍": "worked",
        "עבד": "worked",
        "הצליח": "worked",
        "עזר": "worked",
        "failure": "failed",
        "fail": "failed",
        "wrong": "failed",
        "bad": "failed",
        "👎": "failed",
        "נכשל": "failed",
        "שגוי": "failed",
        "partly": "partial",
        "partially": "partial",
        "חלקי": "partial",
        "unclear": "unknown",
        "neutral": "unknown",
        "➖": "unknown",
        "לא ידוע": "unknown",
    },
)
SORTS = OneOf(
    ("relevance", "recency", "score"),
    {
        "relevant": "relevance",
        "recent": "recency",
        "newest": "recency",
        "latest": "recency",
        "date": "recency",
        "time": "recency",
        "best": "score",
        "rating": "score",
    },
)

_QUERY = ("q", "search", "search_query", "text", "question", "message", "prompt")
_RECEIPT = Parameter(
    name="receipt_id",
    text="The receipt that the search answered; left out: the last search of this conversation.",
    kind=Text(MAX_ID_CHARS),
    aliases=("receipt",),
)

INSIGHTS = ToolDefinition(
    name="get_context_insights",
    title="What was learned about this",
    text="Ask before searching: what helped and what failed with this subject, which tiers to "
    "search, and whether the same was asked before. Fast; searches nothing.",
    text_he="לפני חיפוש: מה עזר ומה נכשל בנושא, באילו שכבות כדאי לחפש, והאם כבר נשאל אותו דבר.",
    parameters=(
        Parameter(
            name="query",
            text="The user's question, in its own words and language.",
            kind=Text(MAX_QUESTION_CHARS),
            required=True,
            aliases=_QUERY,
        ),
    ),
    idempotent=True,
)

SEARCH = ToolDefinition(
    name="search_memory",
    title="Search memory",
    text="Search what is remembered of the user, of past conversations and of their documents. "
    "Results are numbered from 1; name those numbers in record_response afterwards. Use it when "
    "the context you were given does not answer the question, once per turn.",
    text_he="חיפוש בזיכרון: על המשתמש, על שיחות קודמות ועל המסמכים שלו. התוצאות ממוספרות מ-1.",
    parameters=(
        Parameter(
            name="query",
            text="What to look for, in the user's words; Hebrew and English both work.",
            kind=Text(MAX_QUESTION_CHARS),
            required=True,
            aliases=_QUERY,
        ),
        Parameter(
            name="tiers",
            text="Where to look: memory_bank (facts about the user), patterns (proven solutions), "
            "history and working (past and recent conversations), books (documents). Default: all.",
            kind=Tiers(),
            aliases=("collections", "collection", "tier", "memory_types", "memory_type"),
        ),
        Parameter(
            name="limit",
            text="How many results.",
            kind=Whole(1, MAX_RESULTS),
            default=DEFAULT_RESULTS,
            aliases=("top_k", "k", "n", "max_results", "count", "num_results"),
        ),
        Parameter(
            name="sort_by",
            text="Order: relevance, recency (newest first) or score (what helped most first). "
            "Left out: as the question asks for.",
            kind=SORTS,
            aliases=("sort", "order_by", "order"),
        ),
        Parameter(
            name="tags",
            text="Only memories with one of these tags.",
            kind=Tags(),
            aliases=("tag",),
        ),
        Parameter(
            name="more",
            text="True only when the user asked to search more: it allows a further search in "
            "the same turn.",
            kind=Flag(),
            default=False,
            aliases=("search_more", "again"),
        ),
    ),
    idempotent=True,
)

RESPONSE = ToolDefinition(
    name="record_response",
    title="Record what an answer taught",
    text="Call once after answering. Keeps the takeaway of the exchange and tells memory which "
    "results helped: worked, partial, unknown or failed.",
    text_he="לקרוא פעם אחת אחרי התשובה: שומר את המסקנה ומסמן אילו זיכרונות עזרו ואילו לא.",
    parameters=(
        Parameter(
            name="key_takeaway",
            text="What was learned, in one or two sentences.",
            kind=Text(MAX_TAKEAWAY_CHARS),
            required=True,
            aliases=("takeaway", "summary", "learned", "lesson", "text", "content"),
        ),
        Parameter(
            name="outcome",
            text="How the answer went.",
            kind=OUTCOME,
            default="unknown",
            aliases=("result", "status"),
        ),
        Parameter(
            name="related",
            text="Numbers of the search results that you used, or memory ids. Left out: all that "
            "was shown; an empty list: none.",
            kind=MemoryRefs(),
            aliases=("positions", "memory_ids", "memories", "used", "related_memories"),
        ),
        _RECEIPT,
    ),
    writes=True,
)

ADD = ToolDefinition(
    name="add_to_memory_bank",
    title="Keep a fact",
    text="Keep a fact for good: who the user is, what they prefer, their goals and projects. One "
    "fact per call, in a sentence that makes sense alone; never a whole exchange.",
    text_he="שמירת עובדה לתמיד: מי המשתמש, מה הוא מעדיף, מטרות ופרויקטים. עובדה אחת בכל קריאה.",
    parameters=(
        Parameter(
            name="content",
            text="The fact, in the user's language.",
            kind=Text(MAX_FACT_CHARS),
            required=True,
            aliases=("text", "fact", "memory", "note", "value"),
        ),
        Parameter(
            name="tags",
            text="What it is about.",
            kind=Tags(FACT_TAGS),
            default=DEFAULT_TAGS,
            aliases=("tag", "category", "categories", "labels"),
        ),
        Parameter(
            name="importance",
            text="How much it matters, 0 to 1.",
            kind=Share(),
            default=DEFAULT_IMPORTANCE,
        ),
        Parameter(
            name="confidence",
            text="How sure it is, 0 to 1.",
            kind=Share(),
            default=DEFAULT_CONFIDENCE,
        ),
        Parameter(
            name="always_inject",
            text="True for who the user is: shown with every question.",
            kind=Flag(),
            default=False,
            aliases=("pin", "pinned"),
        ),
    ),
    writes=True,
    idempotent=True,
)

_WHICH = Parameter(
    name="memory_id",
    text="Id of the fact, or its number in the last search.",
    kind=MemoryRef(),
    aliases=("id", "memory", "position", "number"),
)

UPDATE = ToolDefinition(
    name="update_memory",
    title="Correct a fact",
    text="Replace a fact of the memory bank that is no longer right. Name it by memory_id, or by "
    "match_query: words that stand in that one fact. The old text stays in its history.",
    text_he="תיקון עובדה במאגר הזיכרון: לפי מזהה, או לפי מילים שמופיעות רק בה. הנוסח הקודם נשמר.",
    parameters=(
        _WHICH,
        Parameter(
            name="match_query",
            text="Words of the fact, when its id is not known.",
            kind=Text(MAX_FACT_CHARS),
            aliases=("match", "query", "old_content", "old_text", "q"),
        ),
        Parameter(
            name="new_content",
            text="The fact as it is now.",
            kind=Text(MAX_FACT_CHARS),
            required=True,
            aliases=("content", "new_text", "text", "fact"),
        ),
        Parameter(
            name="tags", text="New tags; left out: as before.", kind=Tags(), aliases=("tag",)
        ),
        Parameter(name="importance", text="0 to 1; left out: as before.", kind=Share()),
        Parameter(name="confidence", text="0 to 1; left out: as before.", kind=Share()),
    ),
    writes=True,
    destructive=True,
    idempotent=True,
)

ARCHIVE = ToolDefinition(
    name="archive_memory",
    title="Archive a fact",
    text="Take a fact of the memory bank out of use when the user says that it is over or asks to "
    "forget it. Name it as in update_memory. It can be restored.",
    text_he="הוצאת עובדה משימוש כשהיא כבר לא נכונה או כשהמשתמש מבקש לשכוח. ניתן לשחזר.",
    parameters=(
        _WHICH,
        Parameter(
            name="match_query",
            text="Words of the fact, when its id is not known.",
            kind=Text(MAX_FACT_CHARS),
            aliases=("match", "query", "content", "text", "fact", "q"),
        ),
        Parameter(
            name="reason",
            text="Why, in a few words.",
            kind=Text(MAX_REASON_CHARS),
            aliases=("why",),
        ),
    ),
    writes=True,
    destructive=True,
    idempotent=True,
)

SCORE = ToolDefinition(
    name="score_memories",
    title="Score memories one by one",
    text="Give each memory that was shown its own outcome, for example the first helped and the "
    "second was wrong. Use record_response when all went the same way.",
    text_he="ציון נפרד לכל זיכרון שהוצג: למשל הראשון עזר והשני היה שגוי.",
    parameters=(
        Parameter(
            name="scores",
            text="One entry per memory.",
            kind=Scores(OUTCOME),
            required=True,
            aliases=("memory_scores", "ratings", "outcomes", "memories"),
        ),
        _RECEIPT,
    ),
    writes=True,
)

TOOLS: tuple[ToolDefinition, ...] = (INSIGHTS, SEARCH, RESPONSE, ADD, UPDATE, ARCHIVE, SCORE)
TOOLS_BY_NAME: Mapping[str, ToolDefinition] = {tool.name: tool for tool in TOOLS}


def tools_named(documents: bool) -> tuple[ToolDefinition, ...]:
    """The tools as a caller reads them; `documents`: what it calls the books tier (`tier_name`)."""
    if not documents:
        return TOOLS
    return tuple(
        replace(tool, parameters=tuple(_with_documents(one) for one in tool.parameters))
        for tool in TOOLS
    )


def _with_documents(parameter: Parameter) -> Parameter:
    if not isinstance(parameter.kind, Tiers):
        return parameter
    text = parameter.text.replace("books (documents)", "documents")
    return replace(parameter, text=text, kind=Tiers(documents=True))


# Names that clients give tools of their own that read or keep memories (client contract).
_NAMES_OF_CLIENTS = frozenset({"recall_memory", "memory_bank", "create_memory"})
# Every tool whose answers are memories already: kept as new memories they would confirm
# themselves, their outcomes are those of what they found, and they stay when memory is enough.
MEMORY_TOOLS = _NAMES_OF_CLIENTS | TOOLS_BY_NAME.keys()
