"""Sentences and their words, with what stands around them. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rayapp.text.hebrew import is_hebrew, without_prefixes
from rayapp.text.normalize import normalize

# More of a text, or of a sentence, is not read.
READ_CHARS, SENTENCE_WORDS = 4_000, 60
_SENTENCE_ENDS = frozenset(".!?…")
_PAUSES = frozenset(",;:—–()")
_AROUND = '"“”„«»()[]*_`'
_APOSTROPHE = "’"
_OWNS = "'s"
# What joins a clause to the one before it, as a letter in front of its first word.
JOINERS = frozenset({"ו", "ש", "כש", "וש", "וכש", "מש"})


@dataclass(frozen=True, slots=True)
class Word:
    """One word.

    Attributes:
        text: as it is written; `low`: in lower case.
        forms: `low`, and what is left of it without the letters that join Hebrew clauses.
        owns: an English word with 's behind it.
        ends: "." the sentence ends here, "," a pause, "" neither; `opens`: a clause begins here.
    """

    text: str
    low: str
    forms: frozenset[str]
    owns: bool = False
    ends: str = ""
    opens: bool = False
    hebrew: bool = False

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()

    def behind(self, prefix: str) -> "Word | None":
        """The word behind a joined letter, None when it does not begin with it."""
        rest = self.text[len(prefix) :].lstrip("-")
        if not self.low.startswith(prefix) or len(rest) < 2:
            return None
        low = rest.casefold()
        forms, hebrew = frozenset((low,)), is_hebrew(rest)
        return Word(rest, low, forms, self.owns, self.ends, self.opens, hebrew)


@dataclass(frozen=True, slots=True)
class Sentence:
    """The words of a sentence; `asks`: it is a question."""

    words: tuple[Word, ...]
    asks: bool

    def text(self, start: int, end: int) -> str:
        return " ".join(word.text for word in self.words[start:end])


def sentences(text: str, contractions: Mapping[str, tuple[str, ...]]) -> Iterator[Sentence]:
    """The sentences of a text, in order."""
    plain = normalize(text[:READ_CHARS].replace("\n", " . ")).replace(_APOSTROPHE, "'")
    words: list[Word] = []
    opens = True
    for raw in plain.split(" "):
        bare, ends, opened = _without_marks(raw)
        if bare:
            words += _words_of(bare, ends, opens or opened, contractions)
        elif words and ends:
            words[-1] = replace(words[-1], ends=ends)
        opens = bool(ends) or (opens and not bare)
        if ends == "." or len(words) >= SENTENCE_WORDS:
            if words:
                yield Sentence(tuple(words), "?" in raw)
            words, opens = [], True
    if words:
        yield Sentence(tuple(words), asks=False)


def _without_marks(raw: str) -> tuple[str, str, bool]:
    """The word, how it ends, and whether a bracket opens before it."""
    bare = raw.lstrip(_AROUND + "-–—")
    opened = bare != raw and raw[0] in "(–—-"
    ends = ""
    while bare and (bare[-1] in _SENTENCE_ENDS or bare[-1] in _PAUSES or bare[-1] in _AROUND + "-"):
        if bare[-1] in _SENTENCE_ENDS:
            ends = "."
        elif bare[-1] in _PAUSES and not ends:
            ends = ","
        bare = bare[:-1]
    if not bare and raw:
        ends = "." if not _SENTENCE_ENDS.isdisjoint(raw) else ","
    return bare, ends, opened


def _words_of(
    bare: str, ends: str, opens: bool, contractions: Mapping[str, tuple[str, ...]]
) -> list[Word]:
    parts: list[str] = []
    owns = False
    whole = contractions.get(bare.casefold())
    if whole is not None:
        parts = [bare[0] + whole[0][1:], *whole[1:]]
    elif is_hebrew(bare) and "-" in bare:
        first, *others = bare.split("-")
        # A letter before a hyphen is a joined one: it stays with its word.
        parts = [first + others[0], *others[1:]] if len(first) == 1 else [first, *others]
    else:
        owns = bare.casefold().endswith(_OWNS) and len(bare) > len(_OWNS)
        parts = [bare[: -len(_OWNS)] if owns else bare]
    parts = [part for part in parts if part]
    last = len(parts) - 1
    return [
        _word(part, owns and at == last, ends if at == last else "", opens and at == 0)
        for at, part in enumerate(parts)
    ]


def _word(text: str, owns: bool, ends: str, opens: bool) -> Word:
    low = text.casefold()
    if not is_hebrew(low):
        return Word(text, low, frozenset((low,)), owns, ends, opens)
    rests = [rest for rest in without_prefixes(low, 2) if low[: -len(rest)] in JOINERS]
    return Word(text, low, frozenset((low, *rests)), owns, ends, opens, hebrew=True)
