"""The four signals of a text, and what overrides them, by tables of words and by heads. Pure.

A text is read sentence by sentence; what counts is its most telling one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import islice

from rayapp.core.settings.access import SettingsSection
from rayapp.text.hebrew import STOP_WORDS, is_hebrew, without_prefixes
from rayapp.text.lemmas import lemmas
from rayapp.text.normalize import normalize
from rayapp.text.tokens import tokens
from rayapp.understanding.records import Override, Signal

# Shortest word, letters, that is looked for behind Hebrew prefixes.
LETTERS = 2
# Letters of a verb before its ending.
STEM = 3
# Sentences of a text that are read: a chunk of a document has fewer.
MOST_SENTENCES = 200
# Where a sentence ends.
ENDS = frozenset(".!?…\n;")
# A head is sure of a sentence from here on, and sees something in it from there.
SURE, SEEN = 0.5, 0.25
FULL, HALF = 1.0, 0.5
# What of a text may be taken for the speaker's own: the first words of a question or task.
FIRST_WORDS = 3

Phrase = tuple[frozenset[str], ...]


class SignalTable(SettingsSection):
    """The words of one language; what they mean stands in the file."""

    me: tuple[str, ...] = ()
    me_endings: tuple[str, ...] = ()
    kin: tuple[str, ...] = ()
    kin_of_me: tuple[str, ...] = ()
    life: tuple[str, ...] = ()
    feelings: tuple[str, ...] = ()
    moods: tuple[str, ...] = ()
    very: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    now: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    wonders: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    no_identity: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


class _Words:
    """Phrases by each form of their first word."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_first: dict[str, list[Phrase]] = {}
        for one in phrases:
            phrase = tuple(_entry_forms(token.text) for token in tokens(normalize(one)))
            for form in phrase[0]:
                self._by_first.setdefault(form, []).append(phrase)

    def places(self, words: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
        """Where one begins and ends, the longest at each place."""
        for at, word in enumerate(words):
            found = {
                len(phrase)
                for form in word
                for phrase in self._by_first.get(form, ())
                if len(words) - at >= len(phrase)
                and all(map(_meets, phrase, words[at : at + len(phrase)]))
            }
            if found:
                yield at, at + max(found)

    def said(self, words: Sequence[frozenset[str]]) -> bool:
        return next(self.places(words), None) is not None


class SignalWords:
    """The tables of all languages: a text may mix them. Built once."""

    def __init__(self, tables: Sequence[SignalTable]) -> None:
        joined = {
            name: [one for table in tables for one in getattr(table, name)]
            for name in SignalTable.model_fields
        }
        self.endings = tuple(joined.pop("me_endings"))
        self._words = {name: _Words(found) for name, found in joined.items()}

    def __getitem__(self, name: str) -> _Words:
        return self._words[name]


@dataclass(frozen=True, slots=True)
class Signals:
    """0 to 1 each, in the order of `Signal`."""

    emotional: float = 0.0
    personal: float = 0.0
    temporal: float = 0.0
    decision: float = 0.0

    def by_name(self) -> dict[str, float]:
        return {one.value: float(getattr(self, one.value)) for one in Signal}

    def at_least(self, other: "Signals") -> "Signals":
        """The stronger of each."""
        return Signals(
            *(max(getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        )


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """What a sentence gives."""

    signals: Signals
    overrides: frozenset[Override] = frozenset()
    words: int = 0


def sentences_of(text: str) -> list[str]:
    """Cut at the ends of sentences and at new lines."""
    found, start = [], 0
    for at, sign in enumerate(text):
        if sign in ENDS and (at + 1 == len(text) or text[at + 1].isspace() or sign == "\n"):
            found.append(text[start : at + 1].strip())
            start = at + 1
    found.append(text[start:].strip())
    return list(islice((one for one in found if one), MOST_SENTENCES))


def read_sentence(
    sentence: str, words: SignalWords, kinds: Mapping[str, float] | None = None
) -> ReadSentence:
    """`kinds`: what the heads say of it, by kind; None: there are no heads."""
    by_words = _by_words(sentence, words)
    return by_words if kinds is None else _with_kinds(by_words, kinds)


def _by_words(sentence: str, tables: SignalWords) -> ReadSentence:
    raw = [token.text for token in tokens(normalize(sentence))]
    words = [_forms(one) for one in raw]
    said = {name: tables[name].said(words) for name in SignalTable.model_fields if name in NAMES}
    me = said["me"] or any(_ends(one, tables.endings) for one in raw)
    kin = said["kin_of_me"] or (said["kin"] and me)
    asks = sentence.rstrip().endswith("?") or any(
        start == 0 for start, _ in tables["asks"].places(words[:FIRST_WORDS])
    )
    person = me or kin
    strong = said["feelings"] or (said["moods"] and said["very"])
    emotional = FULL if strong and person else HALF if strong or (said["moods"] and me) else 0.0
    chosen = said["choices"] or (said["wonders"] and said["between"] and person)
    decision = FULL if chosen and person and not (asks and not kin and not said["between"]) else 0.0
    if not decision and (said["choices"] or said["wonders"]):
        decision = HALF
    temporal = FULL if said["past"] and person else HALF if said["past"] or said["now"] else 0.0
    tells = kin or (me and (said["life"] or bool(emotional) or decision == FULL or said["past"]))
    personal = FULL if tells else HALF if person else 0.0
    if asks and personal == FULL and decision < FULL and emotional < FULL:
        personal = HALF
    if asks:
        temporal = min(temporal, HALF)
    overrides = set()
    if not asks and said["identity"] and not said["no_identity"]:
        overrides.add(Override.IDENTITY)
    if not asks and (said["goals"] or said["values"]):
        overrides.add(Override.GOAL)
    signals = Signals(emotional, personal, temporal, decision)
    return ReadSentence(signals, frozenset(overrides), len(raw))


NAMES = frozenset(SignalTable.model_fields) - {"me_endings", "asks"}


def _with_kinds(read: ReadSentence, kinds: Mapping[str, float]) -> ReadSentence:
    """The heads add what the tables do not know, and take back what is a question or a task."""
    told = {name: kinds.get(name, 0.0) for name in (*TOLD, *ASKED)}
    own = sum(told[name] for name in TOLD)
    heard = Signals(
        emotional=_level(told["emotion"]),
        personal=_level(own - told["fact"] * FACT_IS_NOT_MINE),
        temporal=_level(told["plan"]) * HALF,
        decision=_level(told["decision"]),
    )
    signals, overrides = read.signals.at_least(heard), set(read.overrides)
    if told["identity"] >= SURE and Override.IDENTITY not in overrides:
        overrides.add(Override.IDENTITY)
    if told["goal"] >= SURE:
        overrides.add(Override.GOAL)
    if sum(told[name] for name in ASKED) >= SURE:
        signals = Signals(*(min(one, HALF) for one in signals.by_name().values()))
        overrides.clear()
    return ReadSentence(signals, frozenset(overrides), read.words)


# Kinds that tell of the speaker's life, and kinds that want something of the assistant.
TOLD = ("emotion", "identity", "preference", "goal", "decision", "plan", "fact")
ASKED = ("general", "small_talk", "documents", "forget", "past")
# A fact is one of the world or of somebody's life: half of it counts.
FACT_IS_NOT_MINE = 0.5


def _level(share: float) -> float:
    return FULL if share >= SURE else HALF if share >= SEEN else 0.0


def _ends(word: str, endings: tuple[str, ...]) -> bool:
    return any(word.endswith(one) and len(word) >= len(one) + STEM for one in endings)


def _meets(one: frozenset[str], other: frozenset[str]) -> bool:
    return not one.isdisjoint(other)


@lru_cache(maxsize=1 << 14)
def _forms(word: str) -> frozenset[str]:
    """A word of a text: itself, behind its prefixes, and its dictionary forms."""
    rests = without_prefixes(word, LETTERS) if is_hebrew(word) else []
    return frozenset((word, *rests)) | _meant(word)


@lru_cache(maxsize=1 << 13)
def _entry_forms(word: str) -> frozenset[str]:
    """A word of a table: itself and its dictionary form."""
    return frozenset((word,)) | _meant(word)


def _meant(word: str) -> frozenset[str]:
    """Dictionary forms; one that says nothing by itself is none."""
    return frozenset(one for one in lemmas(word)[:1] if one not in STOP_WORDS)
