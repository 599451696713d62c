"""From one tool answer to the memory it becomes, or to the reason why it becomes none. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from rayapp.assistant.tool_results.rules import labels
from rayapp.assistant.tool_results.rules.cleaning import clean
from rayapp.assistant.tool_results.rules.labels import LabelLanguage
from rayapp.memory.item import Source, SourceType
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import MAX_LABEL_CHARS, MAX_TAGS
from rayapp.memory.tiers import Tier
from rayapp.text.normalize import content_hash
from rayapp.text.redaction import redact, without_marks

# `failed`: the tool reported an error; `memory_tool`: it answers what is remembered already.
SkipReason = Literal["failed", "memory_tool", "too_short"]
ResultStatus = Literal["stored", "duplicate", "skipped"]

# The numbers of the client contract, 4.8.
MIN_CHARS, MAX_CHARS = 100, 10_000
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
class ToolLimits:
    """Characters of the cleaned answer, without its label."""

    min_chars: int = MIN_CHARS
    max_chars: int = MAX_CHARS


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


def prepare(result: ToolResult, limits: ToolLimits) -> Prepared:
    """The memory that `result` becomes. Equal answers get equal ids, whoever asked what."""
    if result.failed:
        return Prepared(new=None, skipped="failed")
    if labels.is_memory_tool(result.tool_name):
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
    category = result.category or labels.category_of(result.tool_name)
    language = labels.label_language(result.language, result.query, body)
    head = labels.label(result.tool_name, category, result.query, language)
    parts = [head, body]
    if len(body) < original:
        parts.append(labels.cut_note(len(body), original, language))
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
