"""Memories and conversations of other systems as values, and the reading they share. Pure."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any, Literal

import orjson

from rayapp.memory.tiers import Tier
from rayapp.portability.rules.archive import BadArchive
from rayapp.text.normalize import shows_nothing, without_forbidden

# Bytes of one conversation, or of a file that is read as a whole: both are parsed in memory.
MAX_PIECE_BYTES = 32 << 20
MAX_KEY_CHARS = 100
MAX_TITLE_CHARS = 200
# Characters of a question or an answer that are kept; the longest answers of models have a tenth.
MAX_WORDS_CHARS = 200_000
_KEY = re.compile(r"^[A-Za-z0-9._:@-]{1,100}$")
# Seconds above this are milliseconds (the year 5138).
MILLISECONDS_FROM = 1e11
EARLIEST, LATEST = datetime(1990, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMemory:
    """`key` names it where it comes from. `score`: what outcomes made of it there, 0..1."""

    key: str
    text: str
    tier: Tier = Tier.HISTORY
    at: datetime | None = None
    changed_at: datetime | None = None
    tags: tuple[str, ...] = ()
    importance: float | None = None
    confidence: float | None = None
    score: float | None = None
    archived: bool = False
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTurn:
    """A question and its answer; one of them may be empty."""

    key: str
    question: str
    answer: str
    at: datetime | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignConversation:
    key: str
    title: str
    at: datetime | None
    turns: tuple[ForeignTurn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that is not imported, and why."""

    what: str
    why: str
    count: int = 1


Found = ForeignMemory | ForeignConversation | LeftOut
NO_WORDS, OTHER_FORM = "without words", "another form of it is shown"


@dataclass(frozen=True, slots=True)
class Files:
    """An export as it was sent. `at`: when a file was changed, where its archive says so."""

    names: tuple[str, ...]
    open: Callable[[str], AbstractContextManager[IO[bytes]]]
    at: Callable[[str], datetime | None]

    def named(self, *names: str) -> Iterator[str]:
        """The files of this name in any folder, or whose folder and end are as in `x/*.json`."""
        for one in self.names:
            folder, _, base = one.rpartition("/")
            for name in names:
                inside, star, end = name.partition("*")
                under = folder.endswith(inside.rstrip("/")) and base.endswith(end)
                if (under if star else base == name) and not _hidden(one):
                    yield one

    def whole(self, name: str) -> bytes | None:
        """None: it has more than `MAX_PIECE_BYTES`."""
        with self.open(name) as file:
            data = file.read(MAX_PIECE_BYTES + 1)
        return data if len(data) <= MAX_PIECE_BYTES else None

    def json(self, name: str) -> Any:
        """A whole file. Raises BadArchive."""
        data = self.whole(name)
        if data is None:
            raise BadArchive(f"{shown(name)} has more than {MAX_PIECE_BYTES >> 20} MB; split it.")
        data = data.removeprefix(b"\xef\xbb\xbf")
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            return _plain_json(data, name)

    def entries(self, name: str) -> Iterator[Any]:
        """The objects of a JSON list, one at a time in memory. Raises BadArchive."""
        with self.open(name) as file:
            for piece in _pieces(file, name):
                try:
                    yield orjson.loads(piece)
                except orjson.JSONDecodeError:
                    yield _plain_json(piece, name)


def _plain_json(data: bytes, name: str) -> Any:
    """Of a parser that takes half of a surrogate pair, as it stands in what was cut."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise _no_json(name) from None


# A string, the beginning of one, or a bracket. Strings are skipped: they may hold brackets.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*"|["{}\[\]]', re.DOTALL)
CHUNK_BYTES = 1 << 18


def _pieces(file: IO[bytes], name: str) -> Iterator[bytes]:
    """The text of each entry of a list.

    Of our own: ijson takes minutes for what is nested 50,000 deep, because it joins a path for each
    value.
    """
    held = _begun(file)
    if not held.startswith(b"["):
        raise BadArchive(f"{shown(name)} is no list of JSON; send the file as it was.")
    at, depth, start = 1, 0, 1
    while True:
        for token in _TOKEN.finditer(held, at):
            at = token.start() if token[0] == b'"' else token.end()
            if token[0] == b'"':
                break
            if token[0] in b"{[":
                start = token.start() if depth == 0 else start
                depth += 1
            elif token[0] in b"}]":
                depth -= 1
                if depth < 0:
                    return
                if depth == 0:
                    yield _bounded(held[start:at], name)
        else:
            at = len(held)
        start = start if depth else at
        held, at, start = _bounded(held[start:], name), at - start, 0
        more = file.read(max(CHUNK_BYTES, len(held)))
        if not more:
            raise _no_json(name)
        held += more


def _begun(file: IO[bytes]) -> bytes:
    """From its first mark on."""
    held = file.read(3).removeprefix(b"\xef\xbb\xbf").lstrip()
    while not held and (more := file.read(CHUNK_BYTES)):
        held = more.lstrip()
    return held


def _bounded(piece: bytes, name: str) -> bytes:
    if len(piece) > MAX_PIECE_BYTES:
        raise BadArchive(
            f"An entry of {shown(name)} has more than {MAX_PIECE_BYTES >> 20} MB; remove it."
        )
    return piece


def _no_json(name: str) -> BadArchive:
    return BadArchive(f"{shown(name)} is no JSON, or was cut; send the file as it was exported.")


def _hidden(name: str) -> bool:
    """What a Mac or an editor leaves beside files."""
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def shown(name: str) -> str:
    """The name of a file in a sentence."""
    return repr(name[:MAX_KEY_CHARS])


# --- values of files


def rows_of(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; whatever else it is has none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts_of(value: Any) -> list[str]:
    """The strings of a list; whatever else it is has none."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Words that may be stored; empty when there are none."""
    if not isinstance(value, str):
        return ""
    clean = without_forbidden(value).strip()
    return "" if shows_nothing(clean) else clean


def share_of(value: Any) -> float | None:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0.0 <= value <= 1.0 else None


def time_of(value: Any) -> datetime | None:
    """Seconds or milliseconds since 1970, or ISO 8601, without a zone in UTC; None: no such
    time."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
            found = found if found.tzinfo else found.replace(tzinfo=UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if not math.isfinite(value):
                return None
            seconds = value / 1_000 if abs(value) > MILLISECONDS_FROM else value
            found = datetime.fromtimestamp(seconds, UTC)
        else:
            return None
        found = found.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return found if EARLIEST <= found <= LATEST else None


def key_of(*values: Any) -> str:
    """What names a thing: its own name if it is a plain one, else made of these values."""
    first = values[0] if values else None
    if isinstance(first, str) and _KEY.fullmatch(first):
        return first
    return digest(*values)


def digest(*values: Any) -> str:
    """32 hex digits that stand for these values."""
    return hashlib.sha256(repr(values).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def labels_of(value: Any) -> tuple[str, ...]:
    """Tags: a list of words, a word, or a list in JSON."""
    if isinstance(value, str):
        try:
            inside = orjson.loads(value)
        except orjson.JSONDecodeError:
            inside = [value]
        value = inside if isinstance(inside, list) else [value]
    if not isinstance(value, list):
        return ()
    words = (text_of(one)[:MAX_KEY_CHARS].strip() for one in value[:64])
    return tuple(dict.fromkeys(one for one in words if one))


# --- conversations

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMessage:
    key: str
    role: Role
    text: str
    at: datetime | None = None
    model: str | None = None


def path_to(last: str | None, parents: Mapping[str, str]) -> list[str]:
    """The names from the first to the last along their links; of a circle each once."""
    path: dict[str, None] = {}
    while last is not None and last not in path:
        path[last] = None
        last = parents.get(last)
    return list(path)[::-1]


def turns_of(messages: Iterable[ForeignMessage]) -> tuple[ForeignTurn, ...]:
    """Questions and their answers: what one side says in a row is one text."""
    turns: list[ForeignTurn] = []
    asked: list[ForeignMessage] = []
    answered: list[ForeignMessage] = []
    for one in messages:
        if one.role == "user" and answered:
            turns.append(_turn(asked, answered))
            asked, answered = [], []
        (asked if one.role == "user" else answered).append(one)
    if asked or answered:
        turns.append(_turn(asked, answered))
    return tuple(turns)


def _turn(asked: Sequence[ForeignMessage], answered: Sequence[ForeignMessage]) -> ForeignTurn:
    both = [*asked, *answered]
    return ForeignTurn(
        key=both[0].key,
        question="\n\n".join(one.text for one in asked)[:MAX_WORDS_CHARS],
        answer="\n\n".join(one.text for one in answered)[:MAX_WORDS_CHARS],
        at=next((one.at for one in both if one.at), None),
        model=next((one.model for one in answered if one.model), None),
    )


def conversation(
    key: Any, title: Any, at: datetime | None, messages: Sequence[ForeignMessage]
) -> ForeignConversation | LeftOut:
    """One with its turns; left out when nobody says anything in it."""
    turns = turns_of(messages)
    if not turns:
        return LeftOut(what="conversation", why=NO_WORDS)
    name = key_of(key, title, at, turns[0].question, turns[0].answer)
    title = " ".join(text_of(title).split())[:MAX_TITLE_CHARS]
    return ForeignConversation(key=name, title=title, at=at or turns[0].at, turns=turns)
