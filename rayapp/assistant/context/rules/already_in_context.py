"""Stored turns that the assistant still has before it, in the messages of its conversation. Pure.

A program sends the last messages with a question, so a memory of one of them tells nothing new and
takes the room of one that does.
"""

from collections.abc import Sequence
from functools import cached_property

from rayapp.assistant.conversations import rules
from rayapp.inference.ports import Message
from rayapp.memory.item import MemoryItem

# Characters: a question that was cut to fit is longer, and people end short ones in "…" themselves.
LEAST_CUT_CHARS = 100


class _Said:
    """A message of the user, and what was answered until the next one. Read when it is needed."""

    def __init__(self, asked: str, answers: Sequence[str]) -> None:
        self._asked = asked
        self._answers = answers

    @cached_property
    def question(self) -> str:
        return _plain(rules.cleaned(self._asked, "user"))

    @cached_property
    def lines(self) -> list[str]:
        return [
            line for one in self._answers for line in rules.cleaned(one, "assistant").splitlines()
        ]

    @cached_property
    def prints(self) -> frozenset[str]:
        return frozenset(rules.fingerprints_of(self.lines))


# Of the answer of a turn; its rows held a mark for it before.
NOTHING_KEPT = ("", "…")


class AlreadyInContext:
    """Made once for the last messages of a conversation, and asked about each memory.

    A text is cleaned and fingerprinted once, however many memories are compared with it.
    """

    def __init__(self, conversation_id: str | None, recent: Sequence[Message]) -> None:
        self._conversation_id = conversation_id
        self._said = _said_in(recent[-rules.RECENT_MESSAGES :])

    def holds(self, item: MemoryItem) -> bool:
        """Whether `item` is a turn of this conversation whose question and answer both stand in
        its messages. "yes" alone is not enough: it is said many times, and answered otherwise."""
        wanted = self._conversation_id
        if wanted is None or item.source.conversation_id != wanted:
            return False
        if rules.EXCHANGE_TAG not in item.tags or not item.text.startswith(rules.ASKED):
            return False
        asked, _, answer = item.text.removeprefix(rules.ASKED).partition(rules.ANSWERED)
        question = _plain(asked)
        return any(
            _same_question(question, said.question) and _same_answer(question, answer, said)
            for said in self._said
        )


def _said_in(recent: Sequence[Message]) -> list[_Said]:
    found: list[tuple[str, list[str]]] = []
    for one in recent:
        if one.role == "user":
            found.append((one.content, []))
        elif one.role == "assistant" and found:
            found[-1][1].append(one.content)
    return [_Said(asked, answers) for asked, answers in found]


def _plain(text: str) -> str:
    return " ".join(text.split())


def _same_question(kept: str, heard: str) -> bool:
    if kept == heard:
        return True
    cut = len(kept) > LEAST_CUT_CHARS and kept.endswith(rules.CUT)
    return cut and heard.startswith(kept.removesuffix(rules.CUT))


def _same_answer(question: str, stored: str, said: _Said) -> bool:
    """A turn is stored without the sentences that repeat a memory, so it is looked for sentence by
    sentence. Of one that only repeated nothing is left to look for: any answer will do, but only
    to a question of so many words that it is not said twice."""
    if stored.strip() in NOTHING_KEPT:
        return bool(said.lines) and len(question.split()) >= rules.SHINGLE
    return rules.already_known(stored, said.prints)
