"""JSON that a model writes piece by piece, whole at its end whatever of it came. Pure."""

import json

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

    @property
    def in_string(self) -> bool:
        """What comes next belongs to a text in it."""
        return self._in_string

    @property
    def whole(self) -> bool:
        """Its end has come."""
        return self._began and not self._stack

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


def mended_json(text: str) -> str:
    """JSON as it is; broken JSON made whole."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        mending = JsonFilter()
        return mending.feed(text) + mending.end()
    return text
