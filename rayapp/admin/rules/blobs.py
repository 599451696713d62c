"""Finds encoded files (base64) in texts, and takes them out. Pure.

A file that was pasted or uploaded as text is no memory: it cannot be found by its words, and it
fills prompts. A long run of base64 characters is one when it looks like none of the long things
that people do write: paths, addresses, hashes, words without spaces.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

# Characters of the shortest run looked at: longer than a SHA-512 in hexadecimal (128) and than an
# address that somebody typed.
MIN_BLOB_CHARS = 200
# Bits per character. Base64 of compressed data has about 5.9, of plain text 4.9 and more; long
# hexadecimal has 4, Hebrew and English words without spaces about 4.2.
MIN_ENTROPY = 4.6
# Characters looked at for that: enough for a stable value.
ENTROPY_SAMPLE = 4_096

_DATA_URI = r"(?:data:[a-z0-9.+-]{1,40}/[a-z0-9.+-]{1,80}(?:;[a-z0-9=.+-]{1,40}){0,3};base64,)?"
_CHAR = r"[A-Za-z0-9+/_-]"
# Encoders break lines at 64 or 76 characters; a shorter last line is known by its padding only,
# because a line of prose may be one word.
_RUN = rf"{_CHAR}{{40,}}(?:\r?\n{_CHAR}{{40,}})*(?:\r?\n{_CHAR}+={{1,2}}|={{0,2}})"
_BLOB = re.compile(f"{_DATA_URI}{_RUN}", re.IGNORECASE)
_PADDING = "="


@dataclass(frozen=True, slots=True)
class Blob:
    """A place in a text: characters from `start` up to `end`."""

    start: int
    end: int

    @property
    def chars(self) -> int:
        return self.end - self.start


def blobs(text: str) -> tuple[Blob, ...]:
    """The encoded files in `text`, in order."""
    return tuple(_found(text))


def without_blobs(text: str, found: tuple[Blob, ...]) -> str:
    """`text` with a short note where each file stood; empty when it said nothing else."""
    parts: list[str] = []
    at = 0
    for blob in found:
        parts += [text[at : blob.start], _note(blob)]
        at = blob.end
    rest = "".join([*parts[::2], text[at:]])
    if not any(char.isalnum() for char in rest):
        return ""
    return "".join([*parts, text[at:]]).strip()


def _found(text: str) -> Iterator[Blob]:
    for match in _BLOB.finditer(text):
        if match.end() - match.start() >= MIN_BLOB_CHARS and _encoded(match.group()):
            yield Blob(match.start(), match.end())


def _encoded(run: str) -> bool:
    """Mixed case and digits in about the measure of chance."""
    body = run.rpartition(",")[2][:ENTROPY_SAMPLE].rstrip(_PADDING)
    lower = any(char.islower() for char in body)
    upper = any(char.isupper() for char in body)
    digit = any(char.isdigit() for char in body)
    return lower and upper and digit and _entropy(body) >= MIN_ENTROPY


def _entropy(text: str) -> float:
    size = len(text)
    return -sum(n / size * log2(n / size) for n in Counter(text).values()) if size else 0.0


def _note(blob: Blob) -> str:
    return f"[encoded file removed: {blob.chars} characters]"
