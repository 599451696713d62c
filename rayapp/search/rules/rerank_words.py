"""What the feature reranker knows of words and texts: a growing table, and texts as its rows.

A text is read once and kept as row numbers; a question is then compared with the distinct words of
all candidates in a few matrix products. Reading is two passes in C (a pattern, a dictionary): the
analyser of the lexical retriever looks at a word the first time that it is seen, not at every text.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from rayapp.core.vectors import Vector
from rayapp.text.concept_words import name_in
from rayapp.text.hebrew import HAS_HEBREW, POINTS, STOP_WORDS
from rayapp.text.normalize import normalize
from rayapp.text.tokens import token_terms, tokens

Ints = npt.NDArray[np.int64]
# What is kept per text: half the memory.
ShortInts = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
# Words `[n]` to float32 `[n, dims]`, not normalised: the length of a vector is the word's weight.
EmbedWords = Callable[[Sequence[str]], Vector]

# 1.1 KB each at 256 dimensions (measured): 130 MB, the vocabulary of a thousand users, of whom each
# has words of their own. Then it starts anew, which costs each text read again four times as much.
MAX_WORDS = 120_000
# Bytes of texts kept as rows: 70,000 turns or 20,000 paragraphs. Reading 27 turns anew takes 1.5
# times as long as everything else here (our benchmark), so all that people look through now and
# then should fit.
MAX_TEXT_BYTES = 64_000_000
# Of one text beside its characters, rows and marks: three arrays, the record, its place in the
# cache (measured).
TEXT_OVERHEAD = 560
FIRST_CAPACITY = 1_024  # rows; doubled when full
EMPTY = -1  # the first reading of a mark; no slot is negative
# A sentence longer than this is a list or lacks its full stops (our choice), tokens.
LONGEST_SENTENCE = 40
# "Dana Levi: ..." A speaker has at most that many words (our choice).
SPEAKER_WORDS = 3

_PIECE = re.compile(r"""\w+(?:['’"״׳.,:/@+#-]\w+)*[+#]*|[.!?…;\n]+""")
_SPEAKER = re.compile(r"\s*([^\W\d_][^:\n.!?]{0,40}):\s")
_CAPITAL = re.compile(r"[A-Z](?:[a-z]|[A-Z])")
_NUMBER_WORDS = frozenset(
    """
    one two three four five six seven eight nine ten eleven twelve dozen hundred thousand million
    billion once twice first second third half couple
    אחד אחת שני שתי שניים שתיים שלוש שלושה ארבע ארבעה חמש חמישה שש שישה שבע שבעה שמונה תשע תשעה
    עשר עשרה עשרים שלושים ארבעים חמישים שישים שבעים שמונים תשעים מאה מאתיים אלף אלפיים אלפי מיליון
    מיליארד פעמיים ראשון ראשונה שנייה שלישי חצי רבע
    """.split()  # noqa: SIM905 - prose reads better than a list of quotes
)
_TIME_WORDS = frozenset(
    """
    january february march april june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday today yesterday tomorrow tonight morning
    evening night week weekend month year years ago last next since until century summer winter
    spring autumn
    ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר תשרי חשוון כסלו טבת
    שבט אדר ניסן אייר סיוון תמוז אב אלול היום אתמול מחר שלשום בוקר ערב לילה שבוע חודש שנה שנת בשנת
    שנים המאה קיץ חורף אביב סתיו
    """.split()  # noqa: SIM905
)
_CAUSE_WORDS = frozenset(
    """
    because since due so therefore reason thanks cause caused wanted helps
    כי בגלל מפני משום עקב לכן כדי בשל סיבה הודות גרם גרמה מאחר היות
    """.split()  # noqa: SIM905
)
_FIRST_PERSON = frozenset(
    """
    i i'm i've i'll i'd me my mine we we're we've our us אני אנחנו שלי שלנו לי לנו אותי
    """.split()  # noqa: SIM905
)


class Kind(IntEnum):
    """What is known of a word; the columns of `WordTable.kinds`."""

    NUMBER = 0
    TIME = 1
    CAUSE = 2
    NAME = 3
    STOP = 4
    CAPITAL = 5
    FIRST_PERSON = 6
    MARK = 7
    ASKS = 8
    HEBREW = 9


@dataclass(frozen=True, slots=True)
class Analysed:
    """One text.

    Attributes:
        rows: its words in the table, without marks.
        names: which of them look like names: a capital inside a sentence, or a known name.
        starts: first word of each sentence.
        speaker: words at the start that name who says it; 0 = nobody.
        asks: share of sentences that end with a question mark.
        first_person: somebody speaks of themselves.
        hebrew: so are at least half of its words.
    """

    rows: ShortInts
    names: Bools
    starts: ShortInts
    speaker: int
    asks: float
    first_person: bool
    hebrew: bool

    @property
    def nbytes(self) -> int:
        """Memory of one reading that is kept."""
        return self.rows.nbytes + self.names.nbytes + self.starts.nbytes + TEXT_OVERHEAD


class WordTable:
    """Spellings as numbers. Rows never change, so what was read stays valid until `clear`."""

    def __init__(self, embed: EmbedWords, vocabulary: frozenset[str] = frozenset()) -> None:
        self._embed = embed
        self._vocabulary = vocabulary
        self._dims = int(embed(["a"]).shape[1])
        self.clear()

    def clear(self) -> None:
        self._row: dict[str, int] = {}
        self._texts: OrderedDict[str, Analysed] = OrderedDict()
        self._text_bytes = 0
        # Terms of each row, and the rows of each term.
        self.readings: list[tuple[int, ...]] = []
        self.grams: list[tuple[int, ...]] = []
        self.with_reading: dict[int, list[int]] = {}
        self.with_gram: dict[int, list[int]] = {}
        self._allocate(FIRST_CAPACITY)

    def _allocate(self, capacity: int) -> None:
        self.first_reading = np.full(capacity, EMPTY, dtype=np.int64)
        self.gram_count = np.zeros(capacity, dtype=np.int64)
        self.kinds = np.zeros((capacity, len(Kind)), dtype=np.bool_)
        # The weights of the reranker were learned from vectors of half precision.
        self.vectors = np.zeros((capacity, self._dims), dtype=np.float16)
        self.norms = np.ones(capacity, dtype=np.float32)

    def read(self, texts: Sequence[str]) -> list[Analysed]:
        """The texts as rows, from memory where they were read before."""
        if len(self._row) > MAX_WORDS:
            self.clear()
        fresh = {text: _pieces(text) for text in texts if text not in self._texts}
        self._learn(set().union(*fresh.values()).difference(self._row))
        if fresh:
            self._keep(self._analysed(fresh))
        found = []
        for text in texts:
            self._texts.move_to_end(text)
            found.append(self._texts[text])
        while self._text_bytes > MAX_TEXT_BYTES:
            text, dropped = self._texts.popitem(last=False)
            self._text_bytes -= _kept_bytes(text, dropped)
        return found

    def vectors_of(self, rows: Ints | ShortInts) -> Vector:
        """float32 `[rows, dims]`, not normalised."""
        return self.vectors[rows].astype(np.float32)

    def _keep(self, fresh: Mapping[str, Analysed]) -> None:
        self._texts.update(fresh)
        self._text_bytes += sum(_kept_bytes(text, one) for text, one in fresh.items())

    def _learn(self, unknown: set[str]) -> None:
        """Add spellings, all in one call of the model."""
        if not unknown:
            return
        new = sorted(unknown)
        known = len(self._row)
        self._grow(known + len(new))
        vectors = self._embed(new)
        span = slice(known, known + len(new))
        self.vectors[span] = vectors
        self.norms[span] = np.maximum(np.linalg.norm(vectors, axis=1), 1e-3)
        for row, piece in enumerate(new, start=known):
            self._row[piece] = row
            self._describe(row, piece)

    def _grow(self, needed: int) -> None:
        old = self._arrays()
        capacity = len(self.first_reading)
        if needed <= capacity:
            return
        while capacity < needed:
            capacity *= 2
        self._allocate(capacity)
        for before, after in zip(old, self._arrays(), strict=True):
            after[: len(before)] = before

    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return (self.first_reading, self.gram_count, self.kinds, self.vectors, self.norms)

    def _describe(self, row: int, piece: str) -> None:
        found = list(tokens(normalize(piece)))
        terms = [term for token in found for term in token_terms(token, self._vocabulary)]
        readings = tuple(dict.fromkeys(term.slot for term in terms if term.kind != "c4"))
        grams = tuple({term.slot for term in terms if term.kind == "c4"})
        self.readings.append(readings)
        self.grams.append(grams)
        for slot in readings:
            self.with_reading.setdefault(slot, []).append(row)
        for slot in grams:
            self.with_gram.setdefault(slot, []).append(row)
        self.first_reading[row] = readings[0] if readings else EMPTY
        self.gram_count[row] = len(grams)
        words = {token.text for token in found}
        kinds = self.kinds[row]
        kinds[Kind.NUMBER] = any(t.kind == "number" for t in found) or bool(words & _NUMBER_WORDS)
        kinds[Kind.TIME] = bool(words & _TIME_WORDS) or any(map(_is_year, words))
        kinds[Kind.CAUSE] = bool(words & _CAUSE_WORDS)
        # Every word as if the dictionary held it: only ל is taken off (לדנה), it misleads least.
        kinds[Kind.NAME] = any(name_in(word, known=True) for word in words)
        kinds[Kind.STOP] = words <= STOP_WORDS
        kinds[Kind.CAPITAL] = _CAPITAL.match(piece) is not None
        kinds[Kind.FIRST_PERSON] = bool(words & _FIRST_PERSON)
        kinds[Kind.MARK] = not words
        kinds[Kind.ASKS] = "?" in piece
        kinds[Kind.HEBREW] = HAS_HEBREW.search(piece) is not None
        if not words:
            self.vectors[row] = 0.0

    def _analysed(self, fresh: Mapping[str, Sequence[str]]) -> dict[str, Analysed]:
        """Texts by their pieces: all in the same few array operations, then cut apart."""
        size, row = len(fresh), self._row.__getitem__
        every = np.array([row(one) for pieces in fresh.values() for one in pieces], dtype=np.int64)
        owner = np.repeat(np.arange(size), [len(pieces) for pieces in fresh.values()])
        kinds = self.kinds[every]
        words = ~kinds[:, Kind.MARK]
        rows, of_text, word_kinds = every[words], owner[words], kinds[words]
        starts = _starts(np.cumsum(~words, dtype=np.int64)[words] + of_text)
        ends = np.cumsum(np.bincount(of_text, minlength=size))
        starts_end = np.searchsorted(starts, ends)

        def counted(kind: Kind) -> list[int]:
            return [int(n) for n in np.bincount(owner[kinds[:, kind]], minlength=size)]

        asks, own, hebrew = map(counted, (Kind.ASKS, Kind.FIRST_PERSON, Kind.HEBREW))
        names = word_kinds[:, Kind.CAPITAL]
        names[starts] = False  # what starts a sentence has a capital whatever it is
        named = word_kinds[:, Kind.NAME]
        found: dict[str, Analysed] = {}
        begin = starts_begin = 0
        for at, text in enumerate(fresh):
            end, starts_to = int(ends[at]), int(starts_end[at])
            speaker = _speaker_words(text)
            if speaker >= end - begin:
                speaker = 0
            if speaker:
                names[begin + speaker] = False
            found[text] = Analysed(
                # Copies: a part of a larger array would keep all of it.
                rows=rows[begin:end].astype(np.int32),
                names=names[begin:end] | named[begin:end],
                starts=(starts[starts_begin:starts_to] - begin).astype(np.int32),
                speaker=speaker,
                asks=min(1.0, asks[at] / max(1, starts_to - starts_begin)),
                first_person=own[at] > 0,
                hebrew=2 * hebrew[at] >= max(1, end - begin),
            )
            begin, starts_begin = end, starts_to
        return found


def _pieces(text: str) -> list[str]:
    """Words as they are spelled, and the marks that end sentences."""
    if not text.isascii() and POINTS.search(text):
        text = normalize(text)
    return _PIECE.findall(text)


def _kept_bytes(text: str, read: Analysed) -> int:
    """The same whenever it is asked for: `sys.getsizeof` of a text grows when somebody writes it.

    Hebrew takes two bytes per character, and as many for what has been written of it.
    """
    return len(text) * (1 if text.isascii() else 4) + read.nbytes


def _starts(sentence: Ints) -> Ints:
    """First word of each sentence; a long one is cut. `sentence`: its number, per word."""
    if not len(sentence):
        return np.zeros(0, dtype=np.int64)
    first = np.flatnonzero(np.concatenate([[True], sentence[1:] != sentence[:-1]]))
    lengths = np.diff(np.append(first, len(sentence)))
    inside = np.arange(len(sentence)) - np.repeat(first, lengths)
    return np.flatnonzero(inside % LONGEST_SENTENCE == 0)


def _speaker_words(text: str) -> int:
    said = _SPEAKER.match(text)
    count = len(_PIECE.findall(said[1])) if said is not None else 0
    return count if count <= SPEAKER_WORDS else 0


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdigit() and word[0] in "12"
