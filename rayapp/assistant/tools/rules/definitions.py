"""The tools: one model each, from which every schema and every reading of arguments comes."""

import inspect
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from rayapp.assistant.tools.rules import parameters
from rayapp.memory.item import Outcome

Schema = dict[str, Any]

# The longest fact and the longest takeaway of a tool, characters (client contract).
MAX_FACT_CHARS = 5_000
MAX_TAKEAWAY_CHARS = 1_000
# The longest question, characters; the setting may say less.
MAX_QUESTION_CHARS = 4_000
MAX_ID_CHARS = 512
MAX_REASON_CHARS = 100
MAX_NAME_CHARS = 200
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
DEFAULT_TAGS = ("context",)


class Tool(BaseModel):
    """A tool is called with these fields; their aliases are other names that models give them.

    A field that is None was left out. The docstring of a tool is what a model reads before it
    chooses it, `text_he` the same in Hebrew.

    Attributes:
        writes: changes memories, so that a key needs the scope `write`.
        destructive: what it changes is not only added to.
        idempotent: the same call again changes nothing more.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=False
    )

    name: ClassVar[str]
    title: ClassVar[str]
    text_he: ClassVar[str]
    description: ClassVar[str]
    writes: ClassVar[bool] = False
    destructive: ClassVar[bool] = False
    idempotent: ClassVar[bool] = False

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """The description is English for the model, then one line of Hebrew."""
        if hasattr(cls, "text_he"):
            cls.description = f"{' '.join((inspect.getdoc(cls) or '').split())}\n{cls.text_he}"


Fact = Annotated[parameters.Text, Field(max_length=MAX_FACT_CHARS)]
Question = Annotated[parameters.Text, Field(max_length=MAX_QUESTION_CHARS)]
Takeaway = Annotated[parameters.Text, Field(max_length=MAX_TAKEAWAY_CHARS)]
Reason = Annotated[parameters.Text, Field(max_length=MAX_REASON_CHARS)]
ReceiptId = Annotated[
    Annotated[parameters.Text, Field(max_length=MAX_ID_CHARS)] | None,
    Field(
        description="The receipt that the search answered; left out: the last search of this "
        "conversation.",
        validation_alias=AliasChoices("receipt"),
    ),
]
_QUERY = AliasChoices("q", "search", "search_query", "text", "question", "message", "prompt")
SearchWords = Annotated[
    Question,
    Field(
        description="What to look for, in the user's words; Hebrew and English both work.",
        validation_alias=_QUERY,
    ),
]
ResultCount = Annotated[
    parameters.Count,
    Field(
        description="How many results.",
        validation_alias=AliasChoices("top_k", "k", "n", "max_results", "count", "num_results"),
    ),
]
More = Annotated[
    parameters.Flag,
    Field(
        description="True only when the user asked to search more: it allows a further search in "
        "the same turn.",
        validation_alias=AliasChoices("search_more", "again"),
    ),
]


class GetContextInsights(Tool):
    """Ask before searching: what helped and what failed with this subject, which tiers to
    search, and whether the same was asked before. Fast; searches nothing."""

    name: ClassVar = "get_context_insights"
    title: ClassVar = "What was learned about this"
    text_he: ClassVar = (
        "לפני חיפוש: מה עזר ומה נכשל בנושא, באילו שכבות כדאי לחפש, והאם כבר נשאל אותו דבר."
    )
    idempotent: ClassVar = True

    query: Question = Field(
        description="The user's question, in its own words and language.", validation_alias=_QUERY
    )


_TIERS_TEXT = (
    "Where to look: memory_bank (facts about the user), patterns (proven solutions), "
    "history and working (past and recent conversations), {books}. Default: all."
)
_TIERS_NAMES = AliasChoices("collections", "collection", "tier", "memory_types", "memory_type")


class SearchMemory(Tool):
    """Search what is remembered of the user, of past conversations and of their documents.
    Results are numbered from 1; name those numbers in record_response afterwards. Use it when
    the context you were given does not answer the question, once per turn."""

    name: ClassVar = "search_memory"
    title: ClassVar = "Search memory"
    text_he: ClassVar = (
        "חיפוש בזיכרון: על המשתמש, על שיחות קודמות ועל המסמכים שלו. התוצאות ממוספרות מ-1."
    )
    idempotent: ClassVar = True

    query: SearchWords
    tiers: Annotated[parameters.Tiers, parameters.tiers_schema(documents=False)] | None = Field(
        None,
        description=_TIERS_TEXT.format(books="books (documents)"),
        validation_alias=_TIERS_NAMES,
    )
    limit: ResultCount = parameters.DEFAULT_RESULTS
    sort_by: parameters.SortWord | None = Field(
        None,
        description="Order: relevance, recency (newest first) or score (what helped most first). "
        "Left out: as the question asks for.",
        validation_alias=AliasChoices("sort", "order_by", "order"),
    )
    tags: parameters.Tags | None = Field(
        None,
        description="Only memories with one of these tags.",
        validation_alias=AliasChoices("tag"),
    )
    more: More = False


class _SearchDocuments(SearchMemory):
    # The same for callers that call the books tier `documents` (`tier_name`).
    tiers: Annotated[parameters.Tiers, parameters.tiers_schema(documents=True)] | None = Field(
        None, description=_TIERS_TEXT.format(books="documents"), validation_alias=_TIERS_NAMES
    )


class SearchBooks(Tool):
    """Search the documents that the user uploaded: books, reports, sheets. Results name title,
    section and page; quote them. Name documents, sections or pages only when the user did. The
    search of a turn may be this one or search_memory."""

    name: ClassVar = "search_books"
    title: ClassVar = "Search the documents"
    text_he: ClassVar = (
        "חיפוש במסמכים שהמשתמש העלה: ספרים, דוחות, גיליונות. כל תוצאה מציינת כותר, פרק ועמוד."
    )
    idempotent: ClassVar = True

    query: SearchWords
    titles: parameters.Names | None = Field(
        None,
        description="Only in what has one of these titles, or ids, as results show them.",
        validation_alias=AliasChoices("title", "document", "documents", "book", "books", "book_id"),
    )
    authors: parameters.Names | None = Field(
        None,
        description="Only documents of these authors.",
        validation_alias=AliasChoices("author"),
    )
    sections: parameters.Names | None = Field(
        None,
        description="Only under these headings, as they are written.",
        validation_alias=AliasChoices("section", "chapter", "chapters", "heading"),
    )
    page_from: parameters.Page | None = Field(
        None, description="First page.", validation_alias=AliasChoices("page", "from_page")
    )
    page_to: parameters.Page | None = Field(
        None, description="Last page.", validation_alias=AliasChoices("to_page")
    )
    has_code: parameters.Flag | None = Field(
        None, description="True: only passages with code.", validation_alias=AliasChoices("code")
    )
    limit: ResultCount = parameters.DEFAULT_RESULTS
    more: More = False


class RecordResponse(Tool):
    """Call once after answering. Keeps the takeaway of the exchange and tells memory which
    results helped: worked, partial, unknown or failed."""

    name: ClassVar = "record_response"
    title: ClassVar = "Record what an answer taught"
    text_he: ClassVar = (
        "לקרוא פעם אחת אחרי התשובה: שומר את המסקנה ומסמן אילו זיכרונות עזרו ואילו לא."
    )
    writes: ClassVar = True

    key_takeaway: Takeaway = Field(
        description="What was learned, in one or two sentences.",
        validation_alias=AliasChoices(
            "takeaway", "summary", "learned", "lesson", "text", "content"
        ),
    )
    outcome: parameters.OutcomeWord = Field(
        Outcome.UNKNOWN,
        description="How the answer went.",
        validation_alias=AliasChoices("result", "status"),
    )
    related: parameters.MemoryRefs | None = Field(
        None,
        description="Numbers of the search results that you used, or memory ids. Left out: all "
        "that was shown; an empty list: none.",
        validation_alias=AliasChoices(
            "positions", "memory_ids", "memories", "used", "related_memories"
        ),
    )
    receipt_id: ReceiptId = None


class AddToMemoryBank(Tool):
    """Keep a fact for good: who the user is, what they prefer, their goals and projects. One
    fact per call, in a sentence that makes sense alone; never a whole exchange."""

    name: ClassVar = "add_to_memory_bank"
    title: ClassVar = "Keep a fact"
    text_he: ClassVar = (
        "שמירת עובדה לתמיד: מי המשתמש, מה הוא מעדיף, מטרות ופרויקטים. עובדה אחת בכל קריאה."
    )
    writes: ClassVar = True
    idempotent: ClassVar = True

    content: Fact = Field(
        description="The fact, in the user's language.",
        validation_alias=AliasChoices("text", "fact", "memory", "note", "value"),
    )
    tags: parameters.Tags = Field(
        DEFAULT_TAGS,
        description="What it is about.",
        examples=[list(FACT_TAGS)],
        validation_alias=AliasChoices("tag", "category", "categories", "labels"),
    )
    importance: parameters.Share = Field(
        DEFAULT_IMPORTANCE, description="How much it matters, 0 to 1."
    )
    confidence: parameters.Share = Field(DEFAULT_CONFIDENCE, description="How sure it is, 0 to 1.")
    always_inject: parameters.Flag = Field(
        False,
        description="True for who the user is: shown with every question.",
        validation_alias=AliasChoices("pin", "pinned"),
    )


class FactTool(Tool):
    """What changes one fact: which one it is."""

    writes: ClassVar = True
    destructive: ClassVar = True
    idempotent: ClassVar = True

    memory_id: parameters.MemoryRef | None = Field(
        None,
        description="Id of the fact, or its number in the last search.",
        validation_alias=AliasChoices("id", "memory", "position", "number"),
    )
    match_query: Fact | None = Field(
        None,
        description="Words of the fact, when its id is not known.",
        validation_alias=AliasChoices("match", "query", "content", "text", "fact", "q"),
    )


class UpdateMemory(FactTool):
    """Replace a fact of the memory bank that is no longer right. Name it by memory_id, or by
    match_query: words that stand in that one fact. The old text stays in its history."""

    name: ClassVar = "update_memory"
    title: ClassVar = "Correct a fact"
    text_he: ClassVar = (
        "תיקון עובדה במאגר הזיכרון: לפי מזהה, או לפי מילים שמופיעות רק בה. הנוסח הקודם נשמר."
    )

    # Here `content` and its like are the new text.
    match_query: Fact | None = Field(
        None,
        description="Words of the fact, when its id is not known.",
        validation_alias=AliasChoices("match", "query", "old_content", "old_text", "q"),
    )
    new_content: Fact = Field(
        description="The fact as it is now.",
        validation_alias=AliasChoices("content", "new_text", "text", "fact"),
    )
    tags: parameters.Tags | None = Field(
        None, description="New tags; left out: as before.", validation_alias=AliasChoices("tag")
    )
    importance: parameters.Share | None = Field(None, description="0 to 1; left out: as before.")
    confidence: parameters.Share | None = Field(None, description="0 to 1; left out: as before.")


class ArchiveMemory(FactTool):
    """Take a fact of the memory bank out of use when the user says that it is over or asks to
    forget it. Name it as in update_memory. It can be restored."""

    name: ClassVar = "archive_memory"
    title: ClassVar = "Archive a fact"
    text_he: ClassVar = "הוצאת עובדה משימוש כשהיא כבר לא נכונה או כשהמשתמש מבקש לשכוח. ניתן לשחזר."

    reason: Reason | None = Field(
        None, description="Why, in a few words.", validation_alias=AliasChoices("why")
    )


class ScoreMemories(Tool):
    """Give each memory that was shown its own outcome, for example the first helped and the
    second was wrong. Use record_response when all went the same way."""

    name: ClassVar = "score_memories"
    title: ClassVar = "Score memories one by one"
    text_he: ClassVar = "ציון נפרד לכל זיכרון שהוצג: למשל הראשון עזר והשני היה שגוי."
    writes: ClassVar = True

    scores: parameters.Scores = Field(
        description="One entry per memory.",
        validation_alias=AliasChoices("memory_scores", "ratings", "outcomes", "memories"),
    )
    receipt_id: ReceiptId = None


class MemorySummary(Tool):
    """What is known of the user that helps with this message: traits, goals, topics, feelings
    that come back, and what happened. Let it shape the answer; never list it."""

    name: ClassVar = "memory_summary"
    title: ClassVar = "What is known of the user"
    text_he: ClassVar = (
        "מה ידוע על המשתמש שעוזר כאן: תכונות, מטרות, נושאים, רגשות שחוזרים ומה שקרה."
    )
    idempotent: ClassVar = True

    query: Question = Field(
        description="The user's message, in its own words and language.", validation_alias=_QUERY
    )


class WhoIs(Tool):
    """Who or what somebody or something of the user's life is: family, work, home, and what else
    was said of them, as it stands now."""

    name: ClassVar = "who_is"
    title: ClassVar = "Who somebody is"
    text_he: ClassVar = "מי זה: משפחה, עבודה, בית ומה עוד נאמר עליו, כפי שזה נכון עכשיו."
    idempotent: ClassVar = True

    who: Annotated[parameters.Text, Field(max_length=MAX_NAME_CHARS)] = Field(
        description="A name or a role of the user's, such as Dana or boss.",
        validation_alias=AliasChoices("person", "query", "name_of", "entity"),
    )


class Timeline(Tool):
    """What happened in the user's life, the newest first: about a person or a topic, or
    everything."""

    name: ClassVar = "timeline"
    title: ClassVar = "What happened when"
    text_he: ClassVar = "מה קרה ומתי בחיי המשתמש: על אדם, על נושא או הכול, מהחדש לישן."
    idempotent: ClassVar = True

    about: Annotated[parameters.Text, Field(max_length=MAX_NAME_CHARS)] = Field(
        description="A person or a topic, or: everything.",
        validation_alias=AliasChoices("query", "topic", "who", "person"),
    )
    limit: ResultCount = parameters.DEFAULT_RESULTS


# What asks for all that happened.
EVERYTHING = frozenset({"everything", "all", "הכול", "הכל"})

TOOLS: tuple[type[Tool], ...] = (
    GetContextInsights,
    SearchMemory,
    SearchBooks,
    RecordResponse,
    AddToMemoryBank,
    UpdateMemory,
    ArchiveMemory,
    ScoreMemories,
    MemorySummary,
    WhoIs,
    Timeline,
)
TOOLS_BY_NAME: Mapping[str, type[Tool]] = {tool.name: tool for tool in TOOLS}


def tools_named(documents: bool) -> tuple[type[Tool], ...]:
    """The tools as a caller reads them; `documents`: what it calls the books tier (`tier_name`)."""
    search = _SearchDocuments if documents else SearchMemory
    return tuple(search if tool is SearchMemory else tool for tool in TOOLS)


# Names that clients give tools of their own that read or keep memories (client contract).
_NAMES_OF_CLIENTS = frozenset({"recall_memory", "memory_bank", "create_memory"})
# Every tool whose answers are memories already: kept as new memories they would confirm
# themselves, their outcomes are those of what they found, and they stay when memory is enough.
MEMORY_TOOLS = _NAMES_OF_CLIENTS | TOOLS_BY_NAME.keys()


def own_name(tool: str) -> str:
    """The name without the server that programs put before it: `mcp__time__get_current_time`."""
    return re.split(r"__|[./:]", tool)[-1] or tool


# Keywords that strict function calling does not know; what they say is checked when read.
NOT_STRICT = frozenset({"minLength", "maxLength", "examples", "default"})


class _ToolSchema(GenerateJsonSchema):
    """Objects inline and without titles; a field that may be left out is shown as what it holds."""

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        return super().generate_inner({key: schema[key] for key in schema if key != "ref"})

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        return {key: found[key] for key in found if key not in {"title", "description"}}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        left_out = schema.get("default") is None
        return self.generate_inner(schema["schema"]) if left_out else super().default_schema(schema)

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def json_schema(tool: type[Tool]) -> Schema:
    """The arguments as a JSON Schema object."""
    return tool.model_json_schema(by_alias=False, schema_generator=_ToolSchema)


def openai_function(tool: type[Tool], *, strict: bool = True) -> dict[str, Any]:
    """The tool as an entry of `tools` of a chat completion.

    Strict: every argument is required and an optional one may be null, as strict decoding asks.
    """
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": strict_schema(tool) if strict else json_schema(tool),
            "strict": strict,
        },
    }


def strict_schema(tool: type[Tool]) -> Schema:
    """The arguments for models whose decoder follows the schema to the letter."""
    schema: Schema = _plain(json_schema(tool))
    properties, required = schema["properties"], schema.get("required", [])
    return schema | {
        "properties": {
            name: one if name in required else _nullable(one) for name, one in properties.items()
        },
        "required": list(properties),
    }


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
