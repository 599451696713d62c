"""A turn of a conversation: found in the messages, cleaned, put into words. Pure."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from rayapp.assistant.conversations.rules.attribution import code_spans, read_attribution
from rayapp.assistant.conversations.rules.fingerprint import without_known
from rayapp.inference.chat.rules.thinking import find_thinking
from rayapp.inference.ports import Message, Role
from rayapp.memory.item import POINT_NAMESPACE
from rayapp.memory.rules.creation import MAX_LABEL_CHARS, MAX_TAGS

# A turn that must be scored is longer than this, characters (client contract).
TRIVIAL_QUESTION_CHARS = 10
TRIVIAL_ANSWER_CHARS = 50
# The last messages that a question is read with (client contract).
RECENT_MESSAGES = 10
# What stands for an answer that only repeats what memory had put before the assistant.
NOTHING_NEW = "…"
# Where a text was cut to fit.
CUT = "…"
# How a stored turn is written.
ASKED, ANSWERED = "User: ", "\nAssistant: "
# Tools by which an assistant scores its own turn.
SCORING_TOOLS = frozenset({"record_response", "score_memories"})
EXCHANGE_TAG = "exchange"

OPEN_BLOCK = "<memory_context>"
CLOSE_BLOCK = "</memory_context>"
# Only a block as we write it: its marks alone on their lines, and none of them in between. A
# prompt that merely speaks of the block keeps all of its text.
_BLOCK = re.compile(
    rf"\n{{0,2}}^{OPEN_BLOCK}\n(?:(?!^{OPEN_BLOCK}$|^{CLOSE_BLOCK}$)[^\n]*\n)*^{CLOSE_BLOCK}$",
    re.MULTILINE,
)
# The beginning of a thought on a line of its own: no sentence speaks of the tag like that.
_BEGIN_ALONE = re.compile(r"\s*<think(?:ing)?>[ \t]*(?:\n|\Z)", re.IGNORECASE)
# Some servers send the end of a thought without its beginning, on a line of its own.
_END_ALONE = re.compile(r"(?:\A|\n)[ \t]*</think(?:ing)?>\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question and its answer without marks, thoughts and injected text.

    `tools`: each call of one. `trivial`: too short to be worth a score.
    """

    question: str
    answer: str
    tools: tuple[str, ...]

    @property
    def trivial(self) -> bool:
        short = len(self.question) <= TRIVIAL_QUESTION_CHARS
        return short or len(self.answer) <= TRIVIAL_ANSWER_CHARS

    @property
    def scoring_calls(self) -> int:
        """Calls of tools that score, with or without a server's name before them."""
        return sum(bare_name(tool) in SCORING_TOOLS for tool in self.tools)

    def scored_itself(self, *, owed_before: bool) -> bool:
        """Whether a call was about this turn; the first one pays what an earlier turn owed."""
        return self.scoring_calls > (1 if owed_before else 0)


def bare_name(tool: str) -> str:
    """The name of a tool without that of its server."""
    return re.split(r"__|[./:]", tool)[-1]


def last_question(messages: Sequence[Message]) -> int | None:
    """Where the last message of the user stands; one without text is none."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "user" and messages[at].content.strip():
            return at
    return None


def recent_before(messages: Sequence[Message], question: int) -> tuple[Message, ...]:
    """The last messages before the question, oldest first, without what systems said."""
    talk = [one for one in messages[:question] if one.role in ("user", "assistant")]
    return tuple(
        replace(one, content=cleaned(one.content, one.role)) for one in talk[-RECENT_MESSAGES:]
    )


def finished_turn(messages: Sequence[Message], tools_called: Sequence[str]) -> Turn | None:
    """The turn that the last message ends; None when it is not the assistant's, or is empty."""
    at = last_question(messages)
    if at is None or messages[-1].role != "assistant":
        return None
    said = (one.content for one in messages[at + 1 :] if one.role == "assistant")
    answer = "\n".join(part for one in said if (part := cleaned(one, "assistant")))
    question = cleaned(messages[at].content, "user")
    if not question or not answer:
        return None
    return Turn(question=question, answer=answer, tools=tuple(tools_called))


def raw_answer(messages: Sequence[Message]) -> str:
    """The last message as the assistant wrote it, thoughts apart: there the marks stand."""
    return _without_thoughts(messages[-1].content)


def cleaned(text: str, role: Role) -> str:
    """A message without an injected block and marks; of the assistant's, without thoughts too."""
    text = _BLOCK.sub("", text)
    if role == "assistant":
        text = _without_thoughts(text)
    return read_attribution(text).text.strip()


def _without_thoughts(text: str) -> str:
    """Without the thoughts before the answer; where an answer speaks of the tags, they stay."""
    lower = text.lower()
    if "</think" not in lower and "<think" not in lower:
        return text
    found = find_thinking(text, code_spans(text))
    if not found.outer and _BEGIN_ALONE.match(text):
        # The end stands behind code that the thought began and never closed.
        found = find_thinking(text)
    end = 0
    for start, after in found.outer:
        if text[end:start].strip():
            break
        if found.unopened and end == 0 and not _END_ALONE.search(text, 0, after):
            break
        end = after
    cut_off = found.unclosed is not None and _BEGIN_ALONE.match(text, end)
    return "" if cut_off else text[end:]


def enriched(messages: Sequence[Message], block: str) -> tuple[Message, ...]:
    """The messages with `block` at the end of the first system message, or in a new one.

    A block of an earlier call is replaced. An empty `block` only takes that one out.
    """
    clean = [
        replace(one, content=without_block(one.content)) if one.role == "system" else one
        for one in messages
    ]
    if not block:
        return tuple(new for new, old in zip(clean, messages, strict=True) if not only_block(old))
    wrapped = f"{OPEN_BLOCK}\n{block.strip(chr(10))}\n{CLOSE_BLOCK}"
    at = next((at for at, one in enumerate(clean) if one.role == "system"), None)
    if at is None:
        return (Message("system", wrapped), *clean)
    said = clean[at].content
    clean[at] = Message("system", f"{said}\n\n{wrapped}" if said else wrapped)
    return tuple(clean)


def only_block(message: Message) -> bool:
    """Whether it is a system message that was made for the block of an earlier call."""
    said = message.content
    return message.role == "system" and said != "" and without_block(said) == ""


def without_block(text: str) -> str:
    """A system message without the block of an earlier call."""
    return _BLOCK.sub("", text) if OPEN_BLOCK in text else text


def stored_text(turn: Turn, known: Collection[str], limit: int) -> tuple[str, bool]:
    """The turn as one text of at most `limit` characters, and whether something was cut.

    Of the answer, only what was not put before the assistant: an echo is not learned.
    """
    question = turn.question
    # What lies beyond the limit is not compared: each of its words costs some microseconds.
    answer = without_known(turn.answer[:limit], known) or NOTHING_NEW
    room = limit - len(ASKED + ANSWERED)
    if len(question) + len(answer) <= room:
        return f"{ASKED}{question}{ANSWERED}{answer}", len(turn.answer) > limit
    question = _cut(question, max(room // 2, room - len(answer)))
    answer = _cut(answer, room - len(question))
    return f"{ASKED}{question}{ANSWERED}{answer}", True


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)] + CUT


def tags_of(turn: Turn, *, with_memory: bool) -> tuple[str, ...]:
    """The tags of a stored turn (client contract)."""
    tags = [EXCHANGE_TAG]
    if with_memory:
        tags.append("memory_assisted")
    if turn.tools:
        tags.append("tool_assisted")
    tags += [f"tool:{tool.strip()}"[:MAX_LABEL_CHARS] for tool in turn.tools if tool.strip()]
    return tuple(dict.fromkeys(tags))[:MAX_TAGS]


def exchange_id(user_id: str, conversation_id: str, message_id: str) -> str:
    """The memory id of a stored turn: the same call again meets it."""
    name = f"exchange\x00{user_id}\x00{conversation_id}\x00{message_id}"
    return str(uuid.uuid5(POINT_NAMESPACE, name))
