"""The process that reads one file: bytes on its standard input, lines of JSON on its output.

First the limits, then everything else. It may read its own installation, and writes nothing.
"""

import contextlib
import importlib
import os
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from rayapp.core.errors import InvalidInput, TooLarge
from rayapp.documents.readers.found import Found, Order
from rayapp.documents.records import Block, BlockKind
from rayapp.documents.rules.kinds import (
    EMPTY,
    Kind,
    broken,
    kind_of,
    too_many_blocks,
    too_much_memory,
)
from rayapp.documents.rules.texts import clean_block, clean_name
from rayapp.text.language import detect_language

SHEETS = (Kind.XLSX, Kind.XLS, Kind.ODS, Kind.CSV, Kind.TSV)
# The module that reads a format; it alone imports the library of the format.
MODULES: Mapping[Kind, str] = {
    Kind.PDF: "pdf",
    **dict.fromkeys(SHEETS, "sheets"),
    Kind.DOCX: "word",
    Kind.PPTX: "slides",
    Kind.ODT: "opendocument",
    **dict.fromkeys((Kind.HTML, Kind.EPUB, Kind.MD), "web"),
    Kind.EML: "letters",
    Kind.RTF: "rtf",
    Kind.TXT: "plain",
}
# It ends itself so long after the limit when nobody is left to end it, seconds.
ORPHAN_S = 2
OPEN_FILES = 64
MIB = 1 << 20
# Of each block so many characters are counted for the language, of all together so many.
BLOCK_SAMPLE, SAMPLE = 200, 200_000
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# What Python code may not do here, by the names of its audit events. A file is data.
REFUSED = frozenset(
    f"os.{name}"
    for name in (
        *("chmod", "chown", "exec", "fork", "forkpty", "kill", "link", "mkdir", "posix_spawn"),
        *("putenv", "remove", "rename", "rmdir", "symlink", "system", "truncate", "utime"),
    )
) | {"socket.bind", "socket.connect", "socket.getaddrinfo", "socket.sendto"}

# Searches come before reading.
NICENESS = 15
AUTOGROUP = Path("/proc/self/autogroup")


def main() -> None:
    pipe = sys.stdin.buffer
    order = orjson.loads(pipe.readline())
    limits = order["limits"]
    make_nice()
    limit_process(limits)
    try:
        _read(_whole(pipe, order["bytes"]), order)
    except InvalidInput as error:
        _refuse(error)
    except MemoryError:
        _refuse(too_much_memory(limits["memory_mb"]))
    except BaseException:  # noqa: BLE001  # of a hostile file, whatever a library says of it: panics too
        _refuse(broken())
    sys.stdout.buffer.flush()


def make_nice() -> None:
    """Within the session, and the session among others: Linux shares out among sessions first
    (autogroups), so that niceness in one of its own says nothing to searches."""
    os.nice(NICENESS)
    with contextlib.suppress(OSError):  # no such kernel, or not allowed
        AUTOGROUP.write_text(str(NICENESS))


def limit_process(limits: Mapping[str, Any]) -> None:
    """Memory, time and files of this process, from here on."""
    space = limits["memory_mb"] * MIB
    seconds = int(limits["seconds"]) + ORPHAN_S
    for what, most in (
        (resource.RLIMIT_AS, space),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),  # the pipes are no files
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
    ):
        resource.setrlimit(what, (most, most))
    signal.alarm(seconds)
    sys.addaudithook(refuse_writing)


def refuse_writing(event: str, arguments: tuple[Any, ...]) -> None:
    """The audit hook. Raises PermissionError."""
    writes = (
        event == "open"
        and not isinstance(arguments[0], int)  # a pipe that is open already
        and isinstance(arguments[2], int)
        and arguments[2] & WRITING
    )
    if writes or event in REFUSED:
        raise PermissionError(f"A reader does not {event}.")


def _whole(pipe: BinaryIO, size: int) -> bytes:
    data = pipe.read(size)
    if len(data) != size:
        sys.exit("The service is gone.")
    return data


def _read(data: bytes, order: Mapping[str, Any]) -> None:
    limits = order["limits"]
    kind = kind_of(data, order["name"])
    module = importlib.import_module(f"rayapp.documents.readers.{MODULES[kind]}")
    found: Found = module.read(data, Order(kind, limits["pages"], order["ocr"]))
    answer = _Answer(limits["characters"], limits["blocks"])
    for block in found.blocks:
        answer.add(block)
    answer.end(kind, found)


class _Answer:
    """Says the blocks as they come, and counts them."""

    def __init__(self, max_characters: int, max_blocks: int) -> None:
        self._max, self._max_blocks = max_characters, max_blocks
        self._characters = self._blocks = 0
        self._columns: dict[tuple[str, ...], int] = {(): 0}
        self._sample: list[str] = []
        self._sampled = 0
        self._heading: str | None = None

    def add(self, found: Block) -> None:
        block = clean_block(found)
        if block is None:
            return
        self._blocks += 1
        if self._blocks > self._max_blocks:
            raise too_many_blocks(self._max_blocks)
        self._count(len(block.text))
        if self._heading is None and block.kind is BlockKind.HEADING:
            self._heading = block.text
        if self._sampled < SAMPLE:
            self._sample.append(block.text[:BLOCK_SAMPLE])
            self._sampled += len(self._sample[-1])
        shown = self._columns.get(block.columns)
        if shown is None:
            self._count(sum(map(len, block.columns)))
            shown = self._columns[block.columns] = len(self._columns)
            _say({"columns": block.columns})
        _say([block.kind.value, block.text, block.level, block.page, shown])

    def _count(self, characters: int) -> None:
        self._characters += characters
        if self._characters > self._max:
            raise TooLarge(
                f"The file holds more than {self._max:,} characters; cut it into parts.",
                details={"limit": self._max},
            )

    def end(self, kind: Kind, found: Found) -> None:
        """Raises InvalidInput where no text was found."""
        if self._characters == 0:
            raise _no_text(found)
        _say(
            {
                "kind": kind.value,
                # The name of a sheet says nothing of the whole.
                "title": clean_name(found.title)
                or (None if kind in SHEETS else clean_name(self._heading)),
                "author": clean_name(found.author),
                "language": detect_language("\n".join(self._sample)),
                "pages": found.pages,
                "pages_without_text": found.pages_without_text,
            }
        )


def _no_text(found: Found) -> InvalidInput:
    if found.pages_without_text:
        message = (
            "The file shows pictures of pages and holds no text; "
            "run text recognition (OCR) over it and send what it makes."
        )
    else:
        message = "The file holds no text; send one that does."
    return InvalidInput(
        message, code=EMPTY, details={"pages_without_text": found.pages_without_text}
    )


def _refuse(error: InvalidInput) -> None:
    _say({"error": {"message": error.message, "code": error.code, "details": error.details}})


def _say(what: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(what, option=orjson.OPT_APPEND_NEWLINE))


if __name__ == "__main__":
    main()
