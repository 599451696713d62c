"""A call of the completions protocol of OpenAI, with memory around it: what is read of it, and what
goes on to the model. Pure.

The protocol belongs to the caller and the model: every field passes that is not about memory.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from rayapp.assistant.conversations.rules import (
    is_cut_short,
    last_question,
    read_attribution,
    with_fields,
    with_roles,
)
from rayapp.inference.ports import Message
from rayapp.text.normalize import without_forbidden

# Names by which a caller asks for the model of the settings.
OWN_MODEL = frozenset({"", "rayapp", "default"})
DIGEST_CHARS = 24
MAX_ID_CHARS = 128
# Fields that say how tools are called: without tools an endpoint refuses them.
TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call. `body` as it was sent; `messages` of it, in the same order, as plain text.

    `question`: where the user's last message stands; None: there is none.
    """

    body: Mapping[str, Any]
    messages: tuple[Message, ...]
    question: int | None
    conversation_id: str
    message_id: str

    @property
    def told(self) -> tuple[Message, ...]:
        """Up to the question: what follows it belongs to the answer that is being made."""
        return self.messages[: self.question + 1] if self.question is not None else ()

    @property
    def raw(self) -> list[dict[str, Any]]:
        """The messages as they were sent."""
        return list(self.body["messages"])

    @property
    def by_role(self) -> list[Mapping[str, Any]]:
        """The same, each with the role that it counts as."""
        return with_roles(self.messages, self.raw)

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the functions that are offered."""
        return tools_of(self.body)

    @property
    def asks(self) -> str:
        """The words of the question; empty where there is none."""
        return self.messages[self.question].content if self.question is not None else ""

    @property
    def wants_json(self) -> bool:
        """The answer is to be JSON and nothing else."""
        wanted = self.body.get("response_format")
        kind = wanted.get("type") if isinstance(wanted, Mapping) else None
        return kind in ("json_object", "json_schema")

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))


def asked_of(
    body: Mapping[str, Any], messages: Sequence[Message], conversation_id: str | None
) -> Asked:
    """`conversation_id`: as a header names it; otherwise it is the caller's `user`, or what the
    conversation began with: programs send all of it each time."""
    plain = tuple(replace(one, content=without_forbidden(one.content)) for one in messages)
    question = last_question(plain)
    told = plain[: question + 1] if question is not None else plain
    first = next((one.content for one in plain if one.role == "user"), "")
    user = body.get("user")
    named = conversation_id or (user if isinstance(user, str) else "")
    # The same question after the same words is the same turn, answered once more.
    said = [(one.role, one.content) for one in told if one.role != "system"]
    return Asked(
        body=body,
        messages=plain,
        question=question,
        conversation_id=_id(named) if named.strip() else f"chat-{_digest(first)}",
        message_id=f"turn-{_digest(orjson.dumps(said).decode())}",
    )


def forwarded(
    asked: Asked, told: Sequence[Message], *, model: str, allowed: Sequence[str] | None
) -> dict[str, Any]:
    """What the model is asked: the body of the caller with memory in its system message.

    Args:
        told: `asked.told` with the context in it.
        model: the settings' model, for a caller that names none.
        allowed: tools that stay; None: all of them.
    """
    body = dict(asked.body)
    raw, end = asked.raw, len(asked.told)
    body["messages"] = [*with_fields(asked.told, raw[:end], told), *raw[end:]]
    if str(body.get("model") or "") in OWN_MODEL:
        body["model"] = model
    if allowed is not None and body.get("tool_choice") in (None, "auto"):
        body["tools"] = [one for one in body.get("tools") or () if _tool_name(one) in allowed]
    if not body.get("tools"):
        for name in TOOL_FIELDS:
            body.pop(name, None)
    return body


def tools_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the functions that a body offers."""
    return tuple(filter(None, map(_tool_name, body.get("tools") or ())))


def callable_tools(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of those that the model may call."""
    return () if body.get("tool_choice") == "none" else tools_of(body)


def answer_of(body: Mapping[str, Any]) -> Message | None:
    """The text that ends the turn; None when the model calls tools first, or says nothing."""
    message = _first(body.get("choices")).get("message")
    if not isinstance(message, Mapping) or calls_tools(body):
        return None
    content = message.get("content")
    return Message("assistant", content) if isinstance(content, str) and content.strip() else None


def is_half(body: Mapping[str, Any]) -> bool:
    """Whether the first choice of an answer was cut, at its limit of tokens or by a filter."""
    return is_cut_short(_first(body.get("choices")))


def calls_tools(body: Mapping[str, Any]) -> bool:
    """Whether the first choice of an answer calls tools."""
    message = _first(body.get("choices")).get("message")
    return isinstance(message, Mapping) and bool(message.get("tool_calls"))


# What may be the beginning of a comment of marks, at the end of a text.
_OPENING = re.compile(r"(?:<(?:!(?:-(?:-(?:[^>]{0,8})?)?)?)?)?\Z")
_COMMENT = re.compile(r"<!--[^A-Za-z]{0,8}MEM", re.IGNORECASE)
# So many blanks before one are held back with it: models write them by the thousand.
MOST_BLANKS = 200


class MarkFilter:
    """Holds the marks of a streamed answer back, which come at its end: nobody reads them."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._held = ""

    @property
    def said(self) -> str:
        """All of it, marks included."""
        return "".join(self._parts)

    def feed(self, text: str) -> str:
        """What may be shown now."""
        self.note(text)
        self._held += text
        found = _COMMENT.search(self._held) or _OPENING.search(self._held)
        begin = found.start() if found else len(self._held)
        end = max(len(self._held[:begin].rstrip()), begin - MOST_BLANKS)
        shown, self._held = self._held[:end], self._held[end:]
        return shown

    def note(self, text: str) -> None:
        """Of what is shown as it is."""
        self._parts.append(text)

    def end(self) -> str:
        """What was held and is no mark."""
        held, self._held = self._held, ""
        return read_attribution(held).text if _COMMENT.search(held) else held


def _tool_name(tool: object) -> str:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""


def _first(rows: object) -> Mapping[str, Any]:
    first = rows[0] if isinstance(rows, list) and rows else None
    return first if isinstance(first, Mapping) else {}


def _id(name: str) -> str:
    """A name as an id; one that is too long, or holds what no id or header may, by its digest."""
    plain = name.strip()
    fits = re.fullmatch(rf"[\w.:@-]{{1,{MAX_ID_CHARS}}}", plain, re.ASCII)
    return plain if fits else _digest(plain)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
