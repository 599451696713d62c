"""Reads a file in a process of its own, which may die of it while the service does not."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from rayapp.core.errors import InvalidInput, TooLarge
from rayapp.core.own_folder import own_folder
from rayapp.documents.records import Block, BlockKind, Extracted
from rayapp.documents.rules.kinds import (
    broken,
    kind_of_name,
    too_many_blocks,
    too_much_memory,
    too_slow,
)
from rayapp.documents.rules.library import checked_size

# Of one read from the pipe, bytes.
CHUNK_BYTES = 1 << 16
# What the answer may be beside four bytes for each character of text: names, marks, commas.
ANSWER_SPARE_BYTES = 64 << 20
# How long a process that was killed may take to be gone, seconds.
GONE_S = 5.0


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What reading one file may cost.

    Attributes:
        seconds: from the start of the process to its last byte.
        memory_mb: address space of the process, MiB.
        pages: of a file that has pages or slides.
        characters: of the text that is read.
        bytes: of the file.
        blocks: paragraphs, headings and rows together: each costs the service some memory.
    """

    seconds: float = 60.0
    memory_mb: int = 500
    pages: int = 5_000
    characters: int = 20_000_000
    bytes: int = 50 << 20
    blocks: int = 500_000


async def read_document(
    data: bytes, name: str, limits: ReadLimits, *, ocr: bool = False
) -> Extracted:
    """The text of a file, with its headings, tables and pages.

    Args:
        data: the whole file.
        name: what it is called; only its ending counts, and the content must agree with it.
        limits: what breaks one of them is refused.
        ocr: pages of a PDF that hold no text are read by `tesseract` where that is installed.

    Raises:
        TooLarge: more bytes, pages or characters than allowed.
        InvalidInput: `code` says why: `document_type`, `document_empty`, `document_encrypted`,
            `document_broken`, `document_too_slow`, `document_memory`.
    """
    kind_of_name(name)
    checked_size(len(data), limits.bytes)
    order = {"name": name, "bytes": len(data), "ocr": ocr, "limits": asdict(limits)}
    with own_folder("rayapp-read-") as folder:
        async with _reader(folder) as process:
            try:
                async with asyncio.timeout(limits.seconds):
                    return await _exchange(process, orjson.dumps(order), data, limits)
            except TimeoutError as error:
                raise too_slow(limits.seconds) from error


@contextlib.asynccontextmanager
async def _reader(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The process, in an empty folder and without our environment; gone at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-B", "-m", "rayapp.documents.reader_process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=folder,
        # One arena: those of threads would count as address space that nobody uses.
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "TMPDIR": str(folder),
            "MALLOC_ARENA_MAX": "1",
            "OMP_THREAD_LIMIT": "1",
        },
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(process.wait()), GONE_S)


async def _exchange(
    process: asyncio.subprocess.Process, order: bytes, data: bytes, limits: ReadLimits
) -> Extracted:
    sending = asyncio.create_task(_send(process, order, data))
    try:
        return await _answer(process, limits)
    finally:
        sending.cancel()
        await asyncio.wait([sending])


async def _send(process: asyncio.subprocess.Process, order: bytes, data: bytes) -> None:
    """A reader that has seen enough closes its end: what it says counts."""
    pipe = process.stdin
    assert pipe is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        pipe.write(order + b"\n")
        pipe.write(data)
        await pipe.drain()
        pipe.close()


async def _answer(process: asyncio.subprocess.Process, limits: ReadLimits) -> Extracted:
    """Lines of JSON: the blocks, the columns before the rows that show them, at last the rest."""
    blocks: list[Block] = []
    columns: list[tuple[str, ...]] = [()]
    async for line in _lines(process, 4 * limits.characters + ANSWER_SPARE_BYTES):
        said = orjson.loads(line)
        if isinstance(said, list):
            kind, text, level, page, shown = said
            blocks.append(Block(BlockKind(kind), text, level, page, columns[shown]))
            if len(blocks) > limits.blocks:
                raise too_many_blocks(limits.blocks)
        elif "columns" in said:
            columns.append(tuple(said["columns"]))
        elif "error" in said:
            raise _refusal(said["error"])
        else:
            return _extracted(said, blocks)
    raise _died(await process.wait(), limits)


async def _lines(process: asyncio.subprocess.Process, most: int) -> AsyncIterator[bytes]:
    """Raises TooLarge for more than so many bytes of them."""
    pipe = process.stdout
    assert pipe is not None
    rest, total = bytearray(), 0
    while chunk := await pipe.read(CHUNK_BYTES):
        total += len(chunk)
        if total > most:
            raise TooLarge("The file holds more than can be read; cut it into parts.")
        rest += chunk
        if b"\n" in chunk:
            whole, _, tail = bytes(rest).rpartition(b"\n")
            rest = bytearray(tail)
            for line in whole.split(b"\n"):
                yield line


def _extracted(said: dict[str, Any], blocks: list[Block]) -> Extracted:
    without_text = tuple(said.pop("pages_without_text"))
    return Extracted(**said, blocks=tuple(blocks), pages_without_text=without_text)


def _refusal(said: dict[str, Any]) -> InvalidInput:
    refused = TooLarge if said["code"] == TooLarge.default_code else InvalidInput
    return refused(said["message"], code=said["code"], details=said["details"])


def _died(status: int, limits: ReadLimits) -> InvalidInput:
    """Why a process ended that said nothing."""
    if -status in (signal.SIGALRM, signal.SIGXCPU):
        return too_slow(limits.seconds)
    if -status == signal.SIGABRT:  # so libraries in Rust and C++ end where no memory is left
        return too_much_memory(limits.memory_mb)
    return broken()
