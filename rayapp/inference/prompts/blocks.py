"""Puts texts of users into a prompt so that they stay data."""

from __future__ import annotations

import hashlib
import re

# Longest text of one variable. Beyond it a helper should choose what matters itself.
MAX_BLOCK_CHARS = 12_000
# Longest value that stands within a sentence of the prompt: a number, a name.
MAX_INLINE_CHARS = 200
# 64 bits: nobody finds a text that holds its own code.
CODE_DIGITS = 16

# Tokens by which chat templates tell roles apart; a server may read them within a message.
_ROLE_TOKEN = re.compile(r"<\|(?=\w)|(?<=\w)\|>|\[(?=/?INST\])|<<(?=/?SYS>>)", re.IGNORECASE)
_FENCE = re.compile(r"\[(?=\s*+/?\s*+(?:DATA|END)\b)", re.IGNORECASE)
# Controls but tab and newline, directions and joiners that hide text, halves of characters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_NEWLINES = re.compile("\r\n?|[\u2028\u2029]")


class Block(str):
    """A text that is fenced already."""

    __slots__ = ()


def data_block(text: str, name: str, max_chars: int = MAX_BLOCK_CHARS) -> Block:
    """`text` between two marks that it cannot contain; what is left out is said."""
    body = plain(text)
    if len(body) > max_chars:
        body = f"{body[:max_chars]}\n[… {len(body) - max_chars} more characters left out]"
    code = hashlib.sha256(f"{name}\n{body}".encode()).hexdigest()[:CODE_DIGITS]
    return Block(f"[DATA {name} {code}]\n{body}\n[END {name} {code}]")


def plain(text: str) -> str:
    """`text` without hidden characters, role tokens and marks of a block."""
    text = _HIDDEN.sub("", _NEWLINES.sub("\n", text))
    text = _ROLE_TOKEN.sub(lambda found: f"{found.group()[0]} {found.group()[1:]}", text)
    return _FENCE.sub("(", text).strip()


def inline(value: object) -> str:
    """A value within a sentence: one line, short, without marks. A fenced block as it is."""
    if isinstance(value, Block):
        return str(value)
    return " ".join(plain(str(value)).split())[:MAX_INLINE_CHARS]


def listed(texts: list[str] | tuple[str, ...]) -> str:
    """One line per text, numbered from 1."""
    lines = [" ".join(plain(text).split()) for text in texts]
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))
