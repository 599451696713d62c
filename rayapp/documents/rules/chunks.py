"""Where a document is cut into the memories that it becomes. Pure.

A chunk is a run of whole blocks, or of whole sentences of one: small sections are joined, large
ones cut into equal parts. Code and table rows are never cut while they fit into a chunk.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, zip_longest

from semantic_text_splitter import TextSplitter

from rayapp.documents.records import Block, BlockKind
from rayapp.inference.rules import estimate_tokens

# Of a chunk, tokens by our count. Only what ends a document, or stands before a piece that fits
# nowhere else, is shorter.
SHORTEST, TARGET, LONGEST = 250, 384, 768
# Of the target, how much of the end of a chunk the next one repeats.
OVERLAP = 0.15
OVERLAP_TOKENS = int(OVERLAP * TARGET)
# Where the sentences of an overlap are looked for, characters: four of a token at most, and the
# sentence that the place is in the middle of.
OVERLAP_CHARS = 8 * OVERLAP_TOKENS
# Sentences are put together up to here, tokens: no cut is needed more exactly.
ATOM = 64
# Of a heading in the path of sections, characters: a file may have one of megabytes, and all of its
# chunks repeat it.
SECTION_CHARS = 200
# A block is cut by windows of so many characters: the splitter takes 47 us for each character of a
# text of 2,000,000 without words or sentences, and 2 us of one of 2,000 (measured).
WINDOW_CHARS = 2_000
# A chunk may end with a block from this share of its length on.
NEARLY = 0.85

_WHOLE = (BlockKind.CODE, BlockKind.TABLE_ROW)
# Lines of one list or table stand together, other blocks apart.
_LINES = (BlockKind.LIST_ITEM, BlockKind.TABLE_ROW)
# Code holds blank lines, so what parts blocks is a longer gap.
_GAP, _LINE = "\n\n\n", "\n"
_SENTENCES = TextSplitter.from_callback(estimate_tokens, ATOM)
# What ends a sentence, with what closes after it: Latin, Hebrew, Arabic and CJK; and a line.
_ENDING = re.compile(r"""(?:[.!?…:;׃؟۔。！？；：]["'”’»)\]״׳」』]*|\n)\s*$""")
_CUT = re.compile(r"""[.!?…;׃؟۔。！？；]["'”’»)\]״׳」』]*\s|\n""")
_SPACES = re.compile(r"[^\S\n]{2,}")
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of a document.

    Attributes:
        text: with the overlap before it, if it has one.
        section: the headings that its first words stand under, the highest first.
        headings: those, and of the small or empty sections that are joined to it theirs, each once.
        pages: the first and the last one, from 1; None where the format has no pages.
        position: where in the document its own text begins, 0..1.
        overlap: characters at its beginning that end the chunk before.
    """

    index: int
    text: str
    section: tuple[str, ...]
    headings: tuple[str, ...]
    pages: tuple[int, int] | None
    position: float
    has_code: bool
    tokens: int
    overlap: int = 0


@dataclass(frozen=True, slots=True)
class _Atom:
    """What no cut goes through, with the space after it. `closes`: a chunk may end with it;
    `ends`: it ends a block; `opens`: it begins a section."""

    start: int
    end: int
    tokens: int
    closes: bool
    ends: bool
    opens: bool


@dataclass(frozen=True, slots=True)
class _Laid:
    """The blocks as one text. `starts`: where each begins; `sections`: the headings above each."""

    text: str
    starts: tuple[int, ...]
    sections: tuple[tuple[str, ...], ...]

    def block_at(self, offset: int) -> int:
        return max(0, bisect_right(self.starts, offset) - 1)


def chunks_of(blocks: Sequence[Block]) -> list[Chunk]:
    """The chunks of a document in reading order; none of a document without text."""
    laid = _laid(blocks)
    spans = list(_spans(blocks, laid))
    overlaps = [0, *(_overlap(blocks, laid, *two) for two in pairwise(spans))]
    return [
        _chunk(index, blocks, laid, span, overlap)
        for index, (span, overlap) in enumerate(zip(spans, overlaps, strict=False))
    ]


def _laid(blocks: Sequence[Block]) -> _Laid:
    path: list[tuple[int, str]] = []
    parts: list[str] = []
    sections: list[tuple[str, ...]] = []
    for block, following in zip_longest(blocks, blocks[1:]):
        if block.kind is BlockKind.HEADING:
            path = [one for one in path if one[0] < block.level]
            path.append((block.level, _title(block.text)))
        sections.append(tuple(title for _, title in path))
        together = following is not None and block.kind is following.kind in _LINES
        text = _BLANK_LINES.sub("\n\n", block.text)
        if block.kind is not BlockKind.CODE:
            text = _SPACES.sub(" ", text)
        parts.append(text + (_LINE if together else _GAP))
    starts = accumulate((len(part) for part in parts), initial=0)
    return _Laid("".join(parts), tuple(starts)[: len(parts)], tuple(sections))


def _title(heading: str) -> str:
    """What each chunk below a heading repeats of it."""
    text = " ".join(heading.split())
    return text if len(text) <= SECTION_CHARS else text[: SECTION_CHARS - 1].rstrip() + "…"


def _spans(blocks: Sequence[Block], laid: _Laid) -> Iterator[tuple[int, int]]:
    """Where each chunk begins and ends, without overlap and without the space around it."""
    for group in _groups(_atoms(blocks, laid)):
        for begin, stop in _packed(group):
            text = laid.text[group[begin].start : group[stop - 1].end]
            start = group[begin].start + len(text) - len(text.lstrip())
            yield start, group[begin].start + len(text.rstrip())


def _atoms(blocks: Sequence[Block], laid: _Laid) -> list[_Atom]:
    """Blocks, and the sentences of longer ones."""
    found: list[_Atom] = []
    for at, (start, end) in enumerate(pairwise([*laid.starts, len(laid.text)])):
        block, text = blocks[at], laid.text[start:end]
        tokens = estimate_tokens(text)
        heading = block.kind is BlockKind.HEADING
        # Headings that follow each other begin one section.
        opens = heading and at > 0 and blocks[at - 1].kind is not BlockKind.HEADING
        if tokens <= (LONGEST if block.kind in _WHOLE else ATOM):
            found.append(_Atom(start, end, tokens, closes=not heading, ends=True, opens=opens))
            continue
        for first, last in pairwise([*_sentences(text), len(text)]):
            ends = last == len(text)
            closes = _ENDING.search(text[first:last]) is not None or (ends and not heading)
            found.append(
                _Atom(
                    start + first,
                    start + last,
                    estimate_tokens(text[first:last]),
                    closes=closes,
                    ends=ends and not heading,
                    opens=opens and first == 0,
                )
            )
    return found


def _sentences(text: str) -> Iterator[int]:
    """Where its pieces of whole sentences begin."""
    begin = 0
    while begin < len(text):
        end = _window_end(text, begin)
        yield begin
        found = _SENTENCES.chunk_indices(text[begin:end])
        yield from (begin + index for index, _ in found[1:])
        begin = end


def _window_end(text: str, begin: int) -> int:
    """After a sentence, a line or a word, whichever there is."""
    middle, end = begin + WINDOW_CHARS // 2, begin + WINDOW_CHARS
    if end >= len(text):
        return len(text)
    cuts = [found.end() for found in _CUT.finditer(text, middle, end)]
    space = text.rfind(" ", middle, end)
    return cuts[-1] if cuts else space + 1 if space > 0 else end


def _groups(atoms: Sequence[_Atom]) -> list[Sequence[_Atom]]:
    """Sections joined until they are long enough; the last ones join those before."""
    begins, tokens = [0], 0
    for at, atom in enumerate(atoms):
        if atom.opens and tokens >= SHORTEST:
            begins.append(at)
            tokens = 0
        tokens += atom.tokens
    if len(begins) > 1 and tokens < SHORTEST:
        begins.pop()
    return [atoms[begin:end] for begin, end in pairwise([*begins, len(atoms)]) if begin < end]


def _packed(atoms: Sequence[_Atom]) -> Iterator[tuple[int, int]]:
    """The chunks of one group, of about one size: begin and end among its atoms."""
    left = sum(atom.tokens for atom in atoms)
    begin, held, wanted = 0, 0, _share(left)
    for at, atom in enumerate(atoms):
        full = held + atom.tokens > LONGEST
        if held and (full or (_good_end(held, wanted, atoms[at - 1]) and left >= SHORTEST)):
            yield begin, at
            begin, held, wanted = at, 0, _share(left)
        held += atom.tokens
        left -= atom.tokens
    yield begin, len(atoms)


def _good_end(held: int, wanted: int, last: _Atom) -> bool:
    """A block's end may come a little early; the end of a sentence is waited for."""
    return (last.ends and held >= NEARLY * wanted) or (last.closes and held >= wanted)


def _share(tokens: int) -> int:
    """Of each of the equal parts that are nearest to the target."""
    return max(SHORTEST, tokens // max(1, round(tokens / TARGET)))


def _overlap(
    blocks: Sequence[Block], laid: _Laid, before: tuple[int, int], after: tuple[int, int]
) -> int:
    """How many characters before a chunk it repeats: the last sentences, if they lead to it.

    Nothing leads over a heading, and neither code nor a row is repeated.
    """
    last, first = laid.block_at(before[1] - 1), laid.block_at(after[0])
    if blocks[last].kind in _WHOLE or laid.sections[last] != laid.sections[first]:
        return 0
    if blocks[first].kind is BlockKind.HEADING:
        return 0
    room = min(OVERLAP_TOKENS, LONGEST - estimate_tokens(laid.text[slice(*after)]) - 1)
    begin = max(before[0], laid.starts[last], before[1] - OVERLAP_CHARS)
    if room < 1 or begin >= before[1]:
        return 0
    splitter = TextSplitter.from_callback(estimate_tokens, room)
    found = splitter.chunk_indices(laid.text[begin : before[1]])
    # The first piece begins where the window does, in the middle of a sentence.
    whole = found[1:] if begin > laid.starts[last] else found
    return after[0] - (begin + whole[-1][0]) if whole else 0


def _chunk(
    index: int, blocks: Sequence[Block], laid: _Laid, span: tuple[int, int], overlap: int
) -> Chunk:
    start, end = span
    held = blocks[laid.block_at(start) : laid.block_at(end - 1) + 1]
    pages = [block.page for block in held if block.page is not None]
    text = laid.text[start - overlap : end].replace(_GAP, "\n\n")
    begins, last = laid.block_at(start), laid.block_at(end - 1)
    first = begins
    while blocks[first].kind is BlockKind.HEADING and first < last:
        first += 1
    paths = (laid.sections[first], *laid.sections[begins : last + 1])
    return Chunk(
        index=index,
        text=text,
        section=laid.sections[first],
        headings=tuple(dict.fromkeys(title for path in paths for title in path)),
        pages=(min(pages), max(pages)) if pages else None,
        position=round(start / max(1, len(laid.text)), 4),
        has_code=any(block.kind is BlockKind.CODE for block in held),
        tokens=estimate_tokens(text),
        overlap=len(laid.text[start - overlap : start].replace(_GAP, "\n\n")),
    )
