"""Good files made bad: bytes lost, doubled, turned over, inside the parts of an archive too."""

import io
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping

from tests.support.office_files import zip_of

Mutation = Callable[[bytes, random.Random], bytes]
# Numbers that parsers trust: sizes, counts, offsets.
_NUMBERS = (b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff", b"-1", b"4294967296")


def hostile(good: Mapping[str, bytes], count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """So many (name, content) made of the good files by their names, the same for a seed."""
    draw = random.Random(seed)
    names = sorted(good)
    for number in range(count):
        name = names[number % len(names)]
        data = good[name]
        inside = data.startswith(b"PK") and draw.random() < 0.7
        yield name, _in_a_part(data, draw) if inside else _mutated(data, draw)


def _mutated(data: bytes, draw: random.Random) -> bytes:
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        data = draw.choice(_MUTATIONS)(data, draw)
    return data


def _in_a_part(data: bytes, draw: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
    part = draw.choice([name for name in parts if name != "mimetype"])
    parts[part] = _mutated(bytes(parts[part]), draw)  # type: ignore[arg-type]
    return zip_of(parts)


def _place(data: bytes, draw: random.Random) -> tuple[int, int]:
    start = draw.randrange(len(data) + 1)
    return start, min(len(data), start + draw.choice((1, 8, 100, 5_000)))


def _cut_off(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _lose(data: bytes, draw: random.Random) -> bytes:
    start, end = _place(data, draw)
    return data[:start] + data[end:]


def _double(data: bytes, draw: random.Random) -> bytes:
    start, end = _place(data, draw)
    return data[:end] + data[start:end] * draw.choice((1, 10, 500)) + data[end:]


def _turn_bits(data: bytes, draw: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(draw.choice((1, 10, 200))):
        if made:
            made[draw.randrange(len(made))] ^= 1 << draw.randrange(8)
    return bytes(made)


def _noise(data: bytes, draw: random.Random) -> bytes:
    start, end = _place(data, draw)
    return data[:start] + draw.randbytes(end - start) + data[end:]


def _number(data: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(data) + 1)
    number = draw.choice(_NUMBERS)
    return data[:start] + number + data[start + len(number) :]


def _nest(data: bytes, draw: random.Random) -> bytes:
    """An opening of whatever format, thousands of times."""
    start = draw.randrange(len(data) + 1)
    opening = draw.choice((b"<a>", b"{", b"[", b"<<", b"<table><tr><td>", b"> ", b"- ", b"("))
    return data[:start] + opening * draw.choice((500, 20_000)) + data[start:]


_MUTATIONS: tuple[Mutation, ...] = (_cut_off, _lose, _double, _turn_bits, _noise, _number, _nest)
