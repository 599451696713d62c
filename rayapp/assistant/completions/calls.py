"""Calls that a model wrote into its text, as JSON with `tool_calls`, taken out of it. Pure."""

import hashlib
import re
from collections.abc import Collection, Sequence
from typing import Any

from rayapp.assistant.completions.json_filter import JsonFilter
from rayapp.inference.chat.rules.integrity import check_response

ID_CHARS = 24


def _begun(parts: Sequence[str]) -> str:
    """A pattern of whatever may be the beginning of these parts, one after the other."""
    pattern = ""
    for part in reversed(parts):
        pattern = f"(?:{part}{pattern})?"
    return pattern


_FENCE = ("`", "`", "`", r"[\w+-]{0,20}", r"\s{0,12}")
_OBJECT = (r"\{", r"\s{0,16}", *'"tool_calls"', r"\s{0,16}", ":")
_BEGIN = re.compile(rf"<think>|(?P<fence>{''.join(_FENCE)})?(?P<json>{''.join(_OBJECT)})")
# What may become one, at the end of a text: with a fence before it, or without.
_MAYBE = re.compile(rf"(?:{_begun((*_FENCE, *_OBJECT))}|{_begun(_OBJECT)})\Z")
_THOUGHT = "</think>"
_CLOSING = re.compile(r"\s*```")
_MAYBE_CLOSING = re.compile(r"\s*`{0,2}")


class CallFilter:
    """Lets a text through but for calls of the tools that were offered, which `calls` holds then.

    What a model only thinks of calling, and JSON that calls nothing of these, stays text. Its input
    is the output of `ThinkFilter`: tags of thoughts come whole.
    """

    def __init__(self, tools: Collection[str], question: str) -> None:
        self._tools = frozenset(tools)
        self._question = question
        self._held = ""
        self._thinks = False
        # A call that has begun: its text, and where its end is looked for.
        self._raw = ""
        self._object = JsonFilter()
        # Whether the fence around a call has still to be left out.
        self._fenced = False
        self.calls: list[dict[str, Any]] = []

    def feed(self, text: str) -> str:
        self._held += text
        return self._let(final=False)

    def end(self) -> str:
        said = self._let(final=True)
        return said + (self._ended() if self._raw else "")

    def _let(self, *, final: bool) -> str:
        said: list[str] = []
        while self._held and (part := self._step(final=final)) is not None:
            said.append(part)
        return "".join(said)

    def _step(self, *, final: bool) -> str | None:
        """What may be shown of the next part of what is held; None while it is undecided."""
        if self._raw:
            return self._call()
        if self._fenced:
            if not final and _MAYBE_CLOSING.fullmatch(self._held):
                return None
            self._fenced = False
            closing = _CLOSING.match(self._held)
            self._take(closing.end() if closing else 0)
            return ""
        if self._thinks:
            at = self._held.find(_THOUGHT)
            self._thinks = at < 0
            return self._take(len(self._held) if at < 0 else at + len(_THOUGHT))
        found = _BEGIN.search(self._held)
        if found is None:
            maybe = None if final else _MAYBE.search(self._held)
            end = maybe.start() if maybe else len(self._held)
            return self._take(end) if end else None
        if found["json"] is None:
            self._thinks = True
            return self._take(found.end())
        said = self._take(found.start())
        self._raw = self._take(len(found["fence"] or ""))
        self._object = JsonFilter()
        return said + self._call()

    def _take(self, end: int) -> str:
        taken, self._held = self._held[:end], self._held[end:]
        return taken

    def _call(self) -> str:
        for at, char in enumerate(self._held):
            self._object.feed(char)
            if self._object.whole:
                self._raw += self._take(at + 1)
                return self._ended()
        self._raw += self._take(len(self._held))
        return ""

    def _ended(self) -> str:
        """The text of what began as a call and is none."""
        raw, self._raw = self._raw, ""
        found = check_response(raw[raw.index("{") :]).tool_calls
        if not found or any(one["function"]["name"] not in self._tools for one in found):
            return raw
        for one in found:
            seed = f"{self._question}\x00{len(self.calls)}\x00{raw}"
            name = hashlib.sha256(seed.encode()).hexdigest()[:ID_CHARS]
            self.calls.append({**one, "id": f"call_{name}"})
        self._fenced = raw.startswith("`")
        return ""
