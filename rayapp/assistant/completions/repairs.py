"""An answer mended while it streams: thoughts closed, JSON ended, nothing shown that was hijacked.

What was shown cannot be taken back, so a filter holds only what may become a tag, a mark, a hijack
or broken JSON, and lets all else through as it comes. The same filters mend a whole answer. Pure.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rayapp.assistant.completions.calls import CallFilter
from rayapp.assistant.completions.json_filter import JsonFilter, mended_json
from rayapp.assistant.completions.rules import MarkFilter
from rayapp.assistant.conversations.rules import is_cut_short
from rayapp.inference.chat.rules.hijack import OPENERS, HijackKind, fallback_of, hijack_of

OPEN, CLOSE = "<think>", "</think>"
_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_TAGS = ("<think>", "</think>", "<thinking>", "</thinking>")
# A sentence that may be a hijack is held until it ends, or has so many characters.
MOST_HELD = 200
_END = re.compile(r"[.!?\n]")
# Parts of JSON, each of which ends where a text in it may begin or end.
_TO_QUOTE = re.compile(r'[^"]*"|[^"]+')


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


class AnswerFilter:
    """One choice of an answer: marks are left out, thoughts closed, a hijack ended, JSON whole.

    `said` is all that the model wrote, marks included; `hijacked`: what was found in it; `calls`:
    what it wrote into its text instead of calling one of the `tools` that it was offered.
    """

    def __init__(
        self, question: str, *, json_wanted: bool = False, tools: Collection[str] = ()
    ) -> None:
        self._question = question
        self._marks = MarkFilter()
        self._thinking = ThinkFilter(dropped=json_wanted)
        self._calls = CallFilter(tools, question) if tools and not json_wanted else None
        self._hijack = None if json_wanted else HijackFilter(question)
        self._json = JsonFilter() if json_wanted else None

    @property
    def said(self) -> str:
        return self._marks.said

    @property
    def hijacked(self) -> HijackKind | None:
        found = self._hijack.found if self._hijack else None
        return found or hijack_of(self.said, self._question)

    @property
    def calls(self) -> Sequence[dict[str, Any]]:
        return self._calls.calls if self._calls else ()

    def feed(self, text: str) -> str:
        """What may be shown now."""
        if self._json is None:
            return self._shown(self._thinking.feed(self._marks.feed(text)))
        return "".join(self._of_json(part, self._json) for part in _TO_QUOTE.findall(text))

    def called(self) -> str:
        """What is still to be shown before a tool is called."""
        return self._shown(self._thinking.close())

    def end(self) -> str:
        """What was held, and what is missing."""
        rest = self._shown(self._thinking.feed(self._marks.end()) + self._thinking.end())
        rest += self._safe(self._calls.end()) if self._calls else ""
        rest += self._hijack.end() if self._hijack else ""
        return rest + (self._json.end() if self._json else "")

    def _of_json(self, part: str, json: JsonFilter) -> str:
        """What looks like a tag or a mark within a text of JSON is data."""
        if json.in_string:
            self._marks.note(part)
            return json.feed(part)
        return json.feed(self._thinking.feed(self._marks.feed(part)))

    def _shown(self, text: str) -> str:
        if self._json is not None:
            return self._json.feed(text)
        return self._safe(self._calls.feed(text) if self._calls else text)

    def _safe(self, text: str) -> str:
        return self._hijack.feed(text) if self._hijack else text


class AnswerStream:
    """The chunks of one answer as they may be shown: each choice by itself, and each call in it."""

    def __init__(self, question: str, *, json_wanted: bool, tools: Collection[str] = ()) -> None:
        self._question, self._json_wanted, self._tools = question, json_wanted, tools
        self._choices: dict[int, AnswerFilter] = {}
        self._calls: dict[tuple[int, int], JsonFilter] = {}
        # By choice and the number that was sent: id and name of the newest such call, its number.
        self._places: dict[tuple[int, int], tuple[Any, Any, int]] = {}
        # By choice: calls that were sent, of those that it wrote into its text, and of all.
        self._written: Counter[int] = Counter()
        self._numbers: Counter[int] = Counter()
        self._finished: set[int] = set()
        self._last: dict[str, Any] = {}
        self.called = False
        # The choice that is kept came to its limit before its end.
        self.cut = False
        # The server said that it could not go on: what came is no answer.
        self.failed = False

    @property
    def first(self) -> AnswerFilter:
        """The choice that is kept."""
        return self._choice(0)

    @property
    def finished(self) -> bool:
        """Whether the choice that is kept has come to its end."""
        return 0 in self._finished

    def pass_on(self, chunk: dict[str, Any]) -> None:
        """Mend the chunk in place."""
        self._last = chunk
        self.failed = self.failed or bool(chunk.get("error"))
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta")
            if not isinstance(delta, dict) and choice.get("finish_reason"):
                delta = choice["delta"] = {}  # some servers leave it out of the last chunk
            if isinstance(delta, dict):
                self._pass_on(int(choice.get("index") or 0), choice, delta)

    def end(self) -> dict[str, Any] | None:
        """A chunk with what is held, where the stream ended without saying why."""
        rows: list[dict[str, Any]] = [
            {
                "index": at,
                "delta": {},
                "finish_reason": "tool_calls" if self._numbers[at] else "stop",
            }
            for at in self._choices
            if at not in self._finished
        ]
        if not rows or self.failed:
            return None
        chunk = {**self._last, "choices": rows}
        chunk.pop("usage", None)
        self.pass_on(chunk)
        return chunk

    def _pass_on(self, index: int, choice: dict[str, Any], delta: dict[str, Any]) -> None:
        held = self._choice(index)
        content = delta.get("content")
        if isinstance(content, str):
            delta["content"] = held.feed(content)
        calls = list(delta.get("tool_calls") or ())
        rest = ""
        if calls:
            self.called = True
            rest = held.called()
            for call in calls:
                self._argue(index, call)
        if choice.get("finish_reason"):
            rest += held.end()
            self._finished.add(index)
            self.cut = self.cut or (index == 0 and is_cut_short(choice))
            calls += self._missing(index)
        calls += self._read(index, held)
        if calls:
            delta["tool_calls"] = calls
        if self._written[index] and choice.get("finish_reason") == "stop":
            choice["finish_reason"] = "tool_calls"
        if rest:
            delta["content"] = f"{delta.get('content') or ''}{rest}"

    def _choice(self, index: int) -> AnswerFilter:
        if index not in self._choices:
            self._choices[index] = AnswerFilter(
                self._question, json_wanted=self._json_wanted, tools=self._tools
            )
        return self._choices[index]

    def _argue(self, index: int, call: Any) -> None:
        if not isinstance(call, dict):
            return
        given = call.get("function")
        function: dict[str, Any] = given if isinstance(given, dict) else {}
        number = call["index"] = self._number(index, call, function)
        said = function.get("arguments")
        if isinstance(said, str):
            mending = self._calls.setdefault((index, number), JsonFilter())
            function["arguments"] = mending.feed(said)

    def _number(self, index: int, call: Mapping[str, Any], function: Mapping[str, Any]) -> int:
        """Some servers give all calls one number, or none, and some send a name, and a new id, with
        each part of one call: where that is whole, or of another name, a name begins another."""
        sent, own = int(call.get("index") or 0), call.get("id")
        name, said = function.get("name"), function.get("arguments")
        known, before, number = self._places.get((index, sent), (None, None, -1))
        told = self._calls.get((index, number))
        whole = told is not None and told.whole
        begins = whole and str(said or "").strip() if name == before else whole or own
        if number < 0 or (name and begins and not (own and own == known)):
            number = max(sent, self._numbers[index])
            self._places[index, sent] = (own, name, number)
        self._numbers[index] = max(self._numbers[index], number + 1)
        return number

    def _read(self, index: int, held: AnswerFilter) -> list[dict[str, Any]]:
        """Calls that were read out of the text since the last chunk."""
        found = []
        for call in held.calls[self._written[index] :]:
            self.called = True
            found.append({"index": self._numbers[index], **call})
            self._numbers[index] += 1
        self._written[index] += len(found)
        return found

    def _missing(self, index: int) -> list[dict[str, Any]]:
        places = [at for one, at in self._calls if one == index]
        ends = [(at, self._calls.pop((index, at)).end()) for at in places]
        return [{"index": at, "function": {"arguments": end}} for at, end in ends if end]


def mend(
    body: dict[str, Any], question: str, *, json_wanted: bool, tools: Collection[str] = ()
) -> HijackKind | None:
    """A whole answer in place, as its stream would be shown; how its first choice was hijacked."""
    hijacked: HijackKind | None = None
    for place, choice in enumerate(body.get("choices") or ()):
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            continue
        if isinstance(message.get("content"), str):
            filtering = AnswerFilter(question, json_wanted=json_wanted, tools=tools)
            message["content"] = filtering.feed(message["content"]) + filtering.end()
            hijacked = filtering.hijacked if place == 0 else hijacked
            if filtering.calls:
                message["tool_calls"] = [*(message.get("tool_calls") or ()), *filtering.calls]
                choice["finish_reason"] = "tool_calls"
        for call in message.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and isinstance(function.get("arguments"), str):
                function["arguments"] = mended_json(function["arguments"])
    return hijacked
