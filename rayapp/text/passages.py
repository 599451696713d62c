"""A long text as passages: what the index finds it by, and what is shown of it. Pure.

A text of many subjects has no one vector and no one bag of words. On chats with an assistant (BEAM,
messages of 10 to 348,000 characters) BM25 and vectors of passages find more than those of whole
messages; on texts of up to a thousand characters whole ones are as good (decision 0054).
"""

from functools import lru_cache

from semantic_text_splitter import TextSplitter

from rayapp.text.passage import Passage

# Part of an index's schema: raised with every change of where texts are cut.
VERSION = "p1"
# A text up to here is one passage, characters: about 250 tokens.
WHOLE_CHARS = 1_000
# Of a passage, characters: cut where paragraphs, sentences or words end.
SHORTEST, LONGEST = 400, 600
# The number of a passage must fit beside its item's point id (index/rules/points.py). The passages
# of a text beyond 38,000 characters are longer instead.
MAX_PASSAGES = 64
# A cut may leave passages of two thirds of the length that is allowed.
SLACK = 1.5
# Texts whose cuts are remembered: those of some searches.
REMEMBERED = 256


def is_whole(text: str) -> bool:
    return len(text) <= WHOLE_CHARS


def passages_of(text: str) -> tuple[Passage, ...]:
    """The passages of a text in their order, 1 to `MAX_PASSAGES`."""
    return (Passage(0, len(text)),) if is_whole(text) else _cut(text)


def passage_at(text: str, number: int) -> Passage:
    """The passage of this number; the first one where the text has none such any more."""
    passages = passages_of(text)
    return passages[number] if number < len(passages) else passages[0]


@lru_cache(maxsize=REMEMBERED)
def _cut(text: str) -> tuple[Passage, ...]:
    longest = LONGEST
    while True:
        splitter = TextSplitter((longest * SHORTEST // LONGEST, longest))
        passages = tuple(Passage(at, at + len(part)) for at, part in splitter.chunk_indices(text))
        if len(passages) <= MAX_PASSAGES:
            # A text of white space alone has no passage: it is one.
            return passages or (Passage(0, len(text)),)
        longest = max(longest * 5 // 4, int(len(text) * SLACK / MAX_PASSAGES))
