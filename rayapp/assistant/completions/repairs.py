"""An answer mended while it streams: thoughts closed, JSON ended, nothing shown that was hijacked.

What was shown cannot be taken back, so a filter holds only what may become a tag, a mark, a hijack
or broken JSON, and lets all else through as it comes. The same filters mend a whole answer. Pure.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from rayapp.assistant.completions.rules import MarkFilter
from rayapp.inference.chat.rules.hijack import OPENERS, HijackKind, fallback_of, hijack_of

OPEN, CLOSE = "<think>", "</think>"
_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_TAGS = ("<think>", "</think>", "<thinking>", "</thinking>")
# A sentence that may be a hijack is held until it ends, or has so many characters.
MOST_HELD = 200
_END = re.compile(r"[.!?\n]")


def held_from(text: str, literals: Sequence[str]) -> int:
    """Where the longest end of `text` begins that may become one of the literals, in lower case."""
    low = text.lower()
    longest = max(map(len, literals)) - 1
    for size in range(min(longest, len(low)), 0, -1):
        tail = low[-size:]
        if any(one.startswith(tail) for one in literals):
            return len(text) - size
    return len(text)


class ThinkFilter:
    """Each block of thoughts is opened once and closed once, whatever the model forgot.

    dropped: thoughts are not shown at all, where the answer must be JSON.
    """

    def __init__(self, *, dropped: bool = False) -> None:
        self._dropped = dropped
        self._inside = False
        self._held = ""
        self._ticks = 0  # backticks in a row at the end of what was said
        self._fenced = False

    def feed(self, text: str) -> str:
        pending = self._held + text
        end = held_from(pending, _TAGS)
        ready, self._held = pending[:end], pending[end:]
        shown, at = [], 0
        for tag in _TAG.finditer(ready):
            shown.append(self._said(ready[at : tag.start()]))
            at = tag.end()
            if not self._inside and (self._fenced or self._ticks):
                shown.append(self._said(tag[0]))  # spoken of in code
            elif bool(tag[1]) == self._inside:
                shown.append("" if self._dropped else CLOSE if self._inside else OPEN)
                self._inside = not self._inside
        shown.append(self._said(ready[at:]))
        return "".join(shown)

    def close(self) -> str:
        """The end of an open block: before a tool is called, and at the end."""
        if not self._inside:
            return ""
        rest, self._held = self._said(self._held), ""
        self._inside = False
        return rest + ("" if self._dropped else CLOSE)

    def end(self) -> str:
        closing = self.close()
        rest, self._held = self._said(self._held), ""
        return closing + rest

    def _said(self, text: str) -> str:
        if self._inside:
            return "" if self._dropped else text
        for char in text:
            self._ticks = self._ticks + 1 if char == "`" else 0
            if self._ticks == len("```"):
                self._fenced = not self._fenced
        return text


class HijackFilter:
    """Ends what is shown where an answer begins to obey somebody else (`found` says how), with the
    sentence that is said instead."""

    def __init__(self, question: str) -> None:
        self._question = question
        self._held = ""
        self._shown = False
        self.found: HijackKind | None = None

    def feed(self, text: str) -> str:
        if self.found is not None:
            return ""
        self._held += text
        return self._let(final=False)

    def end(self) -> str:
        return "" if self.found is not None else self._let(final=True)

    def _let(self, *, final: bool) -> str:
        pending, end = self._held, len(self._held)
        low = pending.lower()
        begins = min((at for one in OPENERS if (at := low.find(one)) >= 0), default=None)
        if not final and begins is None:
            end = held_from(pending, OPENERS)
        elif begins is not None:
            ends = _END.search(pending, begins)
            if not final and ends is None and len(pending) - begins < MOST_HELD:
                end = begins
            else:
                end = len(pending) if final or ends is None else ends.end()
            self.found = hijack_of(self._context(pending[:end]), self._question)
            # A boast counts at the end of an answer alone.
            if self.found == "payload" and not final:
                self.found = None
                end = begins
        elif final and not self._shown:
            self.found = hijack_of(pending, self._question)
        if self.found is not None:
            return self._instead(pending[:begins] if begins is not None else "", pending)
        said, self._held = pending[:end], pending[end:]
        self._shown = self._shown or bool(said.strip())
        return said

    def _context(self, text: str) -> str:
        """A short answer is judged as one only where it is the whole answer."""
        return text if not self._shown else f"{'.' * MOST_HELD} {text}"

    def _instead(self, before: str, pending: str) -> str:
        instead = fallback_of(self._question, pending)
        gap = "\n\n" if self._shown or before.strip() else ""
        return f"{before.rstrip()}{gap}{instead}"


_CLOSER = {"{": "}", "[": "]"}
_WORDS = {"True": "true", "False": "false", "None": "null", "NaN": "null", "undefined": "null"}
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class JsonFilter:
    """JSON that is whole at its end, whatever of it came: fences and words around it are left out,
    a comma too many goes, what is open is closed. Whole JSON comes through as it is."""

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._before = ""
        self._began = False
        self._in_string = False
        self._is_key = False
        self._escape = ""
        self._wants_key = False
        # Whether a value has just ended, so that a comma must come before the next.
        self._valued = False
        # What is held until a value follows: a comma, a key and its colon.
        self._held = ""
        # A number or a word that has not ended yet.
        self._word = ""

    def feed(self, text: str) -> str:
        return "".join(map(self._step, text))

    def end(self) -> str:
        """What is missing; all that came, when it was no JSON."""
        if not self._began:
            return self._before
        closing = ""
        if self._in_string and not self._is_key:
            closing = '"'
        elif self._word:
            closing = self._value(self._word)
        self._in_string, self._word, self._held, self._escape = False, "", "", ""
        while self._stack:
            closing += _CLOSER[self._stack.pop()]
        return closing

    def _step(self, char: str) -> str:
        if not self._began:
            return self._begin(char)
        if not self._stack:
            return ""
        return self._in_text(char) if self._in_string else self._between(char)

    def _begin(self, char: str) -> str:
        if char not in _CLOSER:
            self._before += char
            return ""
        self._began = True
        return self._open(char)

    def _open(self, char: str) -> str:
        before = self._next() if self._stack else ""
        self._stack.append(char)
        self._wants_key, self._valued = char == "{", False
        return before + char

    def _in_text(self, char: str) -> str:
        if self._escape:
            self._escape += char
            if self._escape[1] == "u" and len(self._escape) < len("\\u0000"):
                return ""
            char, self._escape = self._escape, ""
        elif char == "\\":
            self._escape = char
            return ""
        elif char == '"':
            self._in_string, self._valued = False, not self._is_key
        else:
            char = _ESCAPES.get(char, char)
        if not self._is_key:
            return char
        self._held += char
        return ""

    def _between(self, char: str) -> str:
        if char == '"' and not self._word:
            self._in_string, self._is_key = (
                True,
                self._stack[-1] == "{" and (self._wants_key or self._valued),
            )
            if not self._is_key:
                return self._next() + char
            self._held = (self._held or ("," if self._valued else "")) + char
            return ""
        if char in _CLOSER:
            return self._open(char)
        if char in "}]":
            return self._close()
        if char == ",":
            said = self._ended()
            self._held, self._wants_key = char if self._valued else "", self._stack[-1] == "{"
            return said
        if char == ":":
            self._held, self._wants_key = self._held + char, False
            return ""
        if char.isspace():
            said = self._ended()
            if self._held:
                self._held += char
                return said
            return said + char
        if not self._valued or self._held:
            self._word += char
        return ""

    def _close(self) -> str:
        said = self._ended()
        # A key without a value goes, and the comma before it.
        self._held = ""
        self._wants_key, self._valued = False, True
        return said + _CLOSER[self._stack.pop()]

    def _ended(self) -> str:
        word, self._word = self._word, ""
        return self._value(word) if word else ""

    def _value(self, word: str) -> str:
        if self._stack[-1] == "{" and ":" not in self._held:
            return ""  # a word where a key belongs
        before, self._valued = self._next(), True
        return before + _as_value(word)

    def _next(self) -> str:
        """What stands before the next value."""
        held, self._held = self._held, ""
        return held or ("," if self._valued else "")


def _as_value(word: str) -> str:
    """A number or a word of JSON as it is; another one as text."""
    try:
        json.loads(word, parse_constant=str)
    except ValueError:
        pass
    else:
        return _WORDS.get(word, word)
    begun = next((one for one in ("true", "false", "null") if one.startswith(word)), None)
    return begun or _WORDS.get(word) or json.dumps(word, ensure_ascii=False)


class AnswerFilter:
    """One choice of an answer: marks are left out, thoughts closed, a hijack ended, JSON whole.

    `said` is all that the model wrote, marks included; `hijacked`: what was found in it.
    """

    def __init__(self, question: str, *, json_wanted: bool = False) -> None:
        self._question = question
        self._marks = MarkFilter()
        self._thinking = ThinkFilter(dropped=json_wanted)
        self._hijack = None if json_wanted else HijackFilter(question)
        self._json = JsonFilter() if json_wanted else None

    @property
    def said(self) -> str:
        return self._marks.said

    @property
    def hijacked(self) -> HijackKind | None:
        found = self._hijack.found if self._hijack else None
        return found or hijack_of(self.said, self._question)

    def feed(self, text: str) -> str:
        """What may be shown now."""
        return self._shown(self._thinking.feed(self._marks.feed(text)))

    def called(self) -> str:
        """What is still to be shown before a tool is called."""
        return self._shown(self._thinking.close())

    def end(self) -> str:
        """What was held, and what is missing."""
        rest = self._shown(self._thinking.feed(self._marks.end()) + self._thinking.end())
        rest += self._hijack.end() if self._hijack else ""
        return rest + (self._json.end() if self._json else "")

    def _shown(self, text: str) -> str:
        if self._json is not None:
            return self._json.feed(text)
        return self._hijack.feed(text) if self._hijack else text


def mended_json(text: str) -> str:
    """JSON as it is; broken JSON made whole."""
    try:
        json.loads(text)
    except ValueError:
        mending = JsonFilter()
        return mending.feed(text) + mending.end()
    return text


class AnswerStream:
    """The chunks of one answer as they may be shown: each choice by itself, and each call in it."""

    def __init__(self, question: str, *, json_wanted: bool) -> None:
        self._question, self._json_wanted = question, json_wanted
        self._choices: dict[int, AnswerFilter] = {}
        self._calls: dict[tuple[int, int], JsonFilter] = {}
        self.called = False

    @property
    def first(self) -> AnswerFilter:
        """The choice that is kept."""
        return self._choice(0)

    def pass_on(self, chunk: dict[str, Any]) -> None:
        """Mend the chunk in place."""
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta")
            if isinstance(delta, dict):
                self._pass_on(int(choice.get("index") or 0), choice, delta)

    def _pass_on(self, index: int, choice: dict[str, Any], delta: dict[str, Any]) -> None:
        held = self._choice(index)
        content = delta.get("content")
        if isinstance(content, str):
            delta["content"] = held.feed(content)
        calls = delta.get("tool_calls")
        rest = ""
        if calls:
            self.called = True
            rest = held.called()
            for call in calls:
                self._argue(index, call)
        if choice.get("finish_reason"):
            rest += held.end()
            missing = self._missing(index)
            if missing:
                delta["tool_calls"] = [*(delta.get("tool_calls") or ()), *missing]
        if rest:
            delta["content"] = f"{delta.get('content') or ''}{rest}"

    def _choice(self, index: int) -> AnswerFilter:
        if index not in self._choices:
            made = AnswerFilter(self._question, json_wanted=self._json_wanted)
            self._choices[index] = made
        return self._choices[index]

    def _argue(self, index: int, call: Any) -> None:
        function = call.get("function") if isinstance(call, dict) else None
        said = function.get("arguments") if isinstance(function, dict) else None
        if isinstance(function, dict) and isinstance(said, str):
            mending = self._calls.setdefault((index, int(call.get("index") or 0)), JsonFilter())
            function["arguments"] = mending.feed(said)

    def _missing(self, index: int) -> list[dict[str, Any]]:
        places = [at for one, at in self._calls if one == index]
        ends = [(at, self._calls.pop((index, at)).end()) for at in places]
        return [{"index": at, "function": {"arguments": end}} for at, end in ends if end]


def mend(body: dict[str, Any], question: str, *, json_wanted: bool) -> HijackKind | None:
    """A whole answer in place, as its stream would be shown; how its first choice was hijacked."""
    hijacked: HijackKind | None = None
    for place, choice in enumerate(body.get("choices") or ()):
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            continue
        if isinstance(message.get("content"), str):
            filtering = AnswerFilter(question, json_wanted=json_wanted)
            message["content"] = filtering.feed(message["content"]) + filtering.end()
            hijacked = filtering.hijacked if place == 0 else hijacked
        for call in message.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and isinstance(function.get("arguments"), str):
                function["arguments"] = mended_json(function["arguments"])
    return hijacked
