"""What a message itself says about where its answer lies, and how many questions it holds. Pure."""

import re

from rayapp.assistant.gating.rules.intents import is_about_world, shows_image
from rayapp.assistant.records import HintName
from rayapp.graphs.rules.directives import Side
from rayapp.graphs.rules.question import MAX_CONTEXT_CHARS
from rayapp.memory.rules.instructions import own_words
from rayapp.text.hebrew import STOP_WORDS
from rayapp.text.normalize import normalize, without_marks
from rayapp.text.phrases import phrases_in
from rayapp.text.tokens import tokens
from rayapp.text.utterance import beginning

# Questions of one message that are searched for one by one, and words that make one: "And why?"
# says nothing without the question before it.
MOST_PARTS = 4
PART_WORDS = 2
# Characters of a message that is split: a longer one brings material whose marks are its own.
LONGEST_SPLIT = 1_000

_NUMBERED = re.compile(r"(?:^|(?<=\s))(\d{1,2})[.)]\s+(?=\S)")
_SEMICOLON = re.compile(r";(?=\s|$)")
_QUESTIONS = re.compile(r"[^?;\n]+\?(?=\s|$)")


def hints_of(message: str) -> tuple[HintName, ...]:
    """Where the answer lies by the words of the message: on the web, in documents."""
    plain = normalize(beginning(message, MAX_CONTEXT_CHARS))
    found: list[HintName] = []
    if "hints.quote" in phrases_in(plain):
        found.append("documents")
    if is_about_world(plain) and not shows_image(message):
        found.append("web")
    return tuple(found)


def parts_of(message: str) -> tuple[str, ...]:
    """The questions of a message, as they stand, when there are several: a numbered list, parts
    between semicolons, or sentences that each ask. Empty: it is one."""
    if len(message) > LONGEST_SPLIT:
        return ()
    # Marks of direction stand before a number and behind a question mark in Hebrew texts.
    said = without_marks(own_words(message))
    for found in (_numbered(said), _between_semicolons(said), _asking(said)):
        parts = [one for one in found if len(found) > 1 and _says_enough(one)]
        if len(parts) > 1:
            return tuple(dict.fromkeys(parts))[:MOST_PARTS]
    return ()


def _numbered(said: str) -> list[str]:
    """Items that are counted from 1."""
    marks = list(_NUMBERED.finditer(said))
    if len(marks) < 2 or [int(one[1]) for one in marks] != list(range(1, len(marks) + 1)):
        return []
    ends = [*(one.start() for one in marks[1:]), len(said)]
    return [said[one.end() : end].strip() for one, end in zip(marks, ends, strict=True)]


def _between_semicolons(said: str) -> list[str]:
    """Where something is asked at all: a story has semicolons, too."""
    return [one.strip() for one in _SEMICOLON.split(said)] if _QUESTIONS.search(said) else []


def _asking(said: str) -> list[str]:
    """What is told before a question belongs to it."""
    return [one[0].strip() for one in _QUESTIONS.finditer(said)]


def _says_enough(part: str) -> bool:
    words = [one for one in tokens(normalize(part)) if one.text not in STOP_WORDS]
    return len(words) >= PART_WORDS


_HINTS: dict[HintName, tuple[str, str]] = {
    "web": (
        "ההודעה שואלת על המצב העדכני בעולם: אם מוצע כלי חיפוש ברשת, כדאי להשתמש בו; הזיכרון עלול "
        "להיות ישן.",
        "The message asks for the state of the world today: use a web search tool if one is "
        "offered; memory may be out of date.",
    ),
    "documents": (
        "ההודעה מבקשת ציטוט ממסמך: לצטט רק שורות של מסמך; search_memory עם tiers: documents מוצא "
        "עוד.",
        "The message asks for words of a document: quote lines of documents only; search_memory "
        "with tiers: documents finds more.",
    ),
}


def hint_notes(hints: tuple[HintName, ...], side: Side) -> list[str]:
    """What the assistant is told of where the answer lies, a sentence each."""
    place = 0 if side == "he" else 1
    return [_HINTS[one][place] for one in hints]
