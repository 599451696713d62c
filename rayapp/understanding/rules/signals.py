"""The four signals of a text, and what overrides them, by tables of words and by heads. Pure.

A text is read sentence by sentence; what counts is its most telling one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice

from rayapp.core.settings.access import SettingsSection
from rayapp.text.hebrew import STOP_WORDS, is_hebrew, without_prefixes
from rayapp.text.lemmas import lemmas
from rayapp.text.normalize import normalize
from rayapp.text.tokens import tokens
from rayapp.text.utterance import reading, word_reading
from rayapp.understanding.records import Override, Signal

# Shortest word, letters, that is looked for behind Hebrew prefixes.
LETTERS = 2
# Letters of a verb before its ending.
STEM = 3
# Sentences of a text that are read: a chunk of a document has fewer.
MOST_SENTENCES = 200
# Where a sentence ends.
ENDS = frozenset(".!?…\n;")
# A head sees something in a sentence from here on, is sure of it, is certain.
SEEN, SURE, CERTAIN = 0.25, 0.5, 0.8
FULL, HALF = 1.0, 0.5
# Where a question, a task or an order begins, and how many words are few.
FIRST_WORDS, SHORT = 4, 8

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
    weighed: tuple[str, ...] = ()
    errands: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    no_identity: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    then: tuple[str, ...] = ()


# Tables of which a word counts wherever it stands.
WHOLE = tuple(frozenset(SignalTable.model_fields) - {"me_endings", "asks", "keeps", "then"})


class _Words:
    """Phrases by each form of their first word."""

    def __init__(self, phrases: Iterable[Phrase]) -> None:
        self._by_first: dict[str, list[Phrase]] = {}
        for phrase in phrases:
            for form in phrase[0]:
                self._by_first.setdefault(form, []).append(phrase)

    def places(self, words: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
        """Where one begins and ends, the longest at each place."""
        for at, word in enumerate(words):
            found = {
                len(phrase)
                for form in word
                for phrase in self._by_first.get(form, ())
                if _stands(phrase, words, at)
            }
            if found:
                yield at, at + max(found)


class SignalWords:
    """The tables of all languages: a text may mix them. Built once."""

    def __init__(self, tables: Sequence[SignalTable]) -> None:
        joined = {
            name: [one for table in tables for one in getattr(table, name)]
            for name in SignalTable.model_fields
        }
        self.endings = tuple(joined.pop("me_endings"))
        phrases = {name: list(map(_phrase, found)) for name, found in joined.items()}
        self._words = {name: _Words(found) for name, found in phrases.items()}
        # Of the tables of which a word counts wherever it stands.
        self._by_first: dict[str, list[tuple[str, Phrase]]] = {}
        for name in WHOLE:
            for phrase in phrases[name]:
                for form in phrase[0]:
                    self._by_first.setdefault(form, []).append((name, phrase))

    def __getitem__(self, name: str) -> _Words:
        return self._words[name]

    def said(self, words: Sequence[frozenset[str]]) -> set[str]:
        """Of which of these tables something is said, all found in one pass."""
        found: set[str] = set()
        for at, word in enumerate(words):
            for form in word:
                for name, phrase in self._by_first.get(form, ()):
                    if name not in found and _stands(phrase, words, at):
                        found.add(name)
        return found


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
    """What a sentence gives. `errand`: it tells of nobody, but of a passing need."""

    signals: Signals
    overrides: frozenset[Override] = frozenset()
    words: int = 0
    errand: bool = False


def sentences_of(text: str) -> list[str]:
    """Cut at the ends of sentences and at new lines."""
    found, start = [], 0
    for at, sign in enumerate(text):
        if sign in ENDS and (at + 1 == len(text) or text[at + 1].isspace() or sign == "\n"):
            found.append(text[start : at + 1].strip())
            start = at + 1
    found.append(text[start:].strip())
    return list(islice((one for one in found if one), MOST_SENTENCES))


def count_said(name: str, text: str, words: SignalWords) -> int:
    """How often words of a table are said."""
    said = [_forms(token.text) for token in tokens(normalize(text))]
    return sum(1 for _ in words[name].places(said))


@reading
def read_sentence(sentence: str, tables: SignalWords) -> ReadSentence:
    """What the tables alone find in it."""
    raw = [token.text for token in tokens(normalize(sentence))]
    words = [_forms(one) for one in raw]
    said = tables.said(words)
    asks = _opens(tables["asks"], words) and not _opens(tables["keeps"], words)
    asks = asks or sentence.rstrip().endswith("?")
    errand = "errands" in said
    speaks = "me" in said or any(_ends(one, tables.endings) for one in raw)
    strong = "feelings" in said or ("moods" in said and "very" in said)
    # Somebody who says little of a feeling leaves out whose it is.
    speaks = speaks or (strong and not asks and len(raw) <= SHORT)
    kin = "kin_of_me" in said or ("kin" in said and speaks)
    me = speaks and not errand
    person = me or kin
    emotional = FULL if strong and person else HALF if strong or ("moods" in said and me) else 0.0
    weighs = "between" in said and "weighed" in said and (asks or person)
    weighs = weighs or ("wonders" in said and (kin or "weighed" in said or "between" in said))
    chose = "choices" in said and person and (not asks or kin or "between" in said)
    decision = FULL if weighs or chose else HALF if "choices" in said or "wonders" in said else 0.0
    temporal = (
        FULL if "past" in said and person else HALF if "past" in said or "now" in said else 0.0
    )
    if asks:
        temporal = min(temporal, HALF)
    tells = person and (not asks or emotional == FULL or decision == FULL)
    personal = FULL if tells or weighs else HALF if person else 0.0
    overrides = set()
    if not asks and "identity" in said and "no_identity" not in said:
        overrides.add(Override.IDENTITY)
    if not asks and ("goals" in said or "values" in said):
        overrides.add(Override.GOAL)
    signals = Signals(emotional, personal, temporal, decision)
    return ReadSentence(signals, frozenset(overrides), len(raw), errand and not person)


def _opens(table: _Words, words: Sequence[frozenset[str]]) -> bool:
    """Whether the first words are in the table."""
    return any(start == 0 for start, _ in table.places(words[:FIRST_WORDS]))


def with_kinds(read: ReadSentence, kinds: Mapping[str, float]) -> ReadSentence:
    """`kinds`: what the heads say of it, by kind.

    They add what the tables do not know of the speaker, and take back what asks something
    of the assistant. An errand stays one: the heads take it for a plan."""
    if sum(kinds.get(name, 0.0) for name in ASKED) >= CERTAIN:
        return at_least_of(read)
    if read.errand:
        return read
    chose = kinds.get("decision", 0.0) >= SURE
    heard = Signals(
        emotional=_level(kinds.get("emotion", 0.0)),
        personal=_level(sum(kinds.get(name, 0.0) for name in TOLD)),
        decision=(FULL if read.signals.personal else HALF) if chose else 0.0,
    )
    sure = {of for kind, of in OVERRIDES.items() if kinds.get(kind, 0.0) >= SURE}
    return replace(
        read, signals=read.signals.at_least(heard), overrides=read.overrides | frozenset(sure)
    )


def at_least_of(read: ReadSentence) -> ReadSentence:
    """What is left of it whatever the heads say."""
    halved = Signals(*(min(one, HALF) for one in read.signals.by_name().values()))
    return replace(read, signals=halved, overrides=frozenset())


# Kinds that tell of the speaker, and kinds that want something of the assistant.
TOLD = ("emotion", "identity", "preference", "goal")
ASKED = ("general", "small_talk", "documents", "forget", "past")
OVERRIDES = {"identity": Override.IDENTITY, "goal": Override.GOAL}


def _level(share: float) -> float:
    return FULL if share >= SURE else HALF if share >= SEEN else 0.0


def _ends(word: str, endings: tuple[str, ...]) -> bool:
    return any(word.endswith(one) and len(word) >= len(one) + STEM for one in endings)


def _phrase(text: str) -> Phrase:
    return tuple(_entry_forms(token.text) for token in tokens(normalize(text)))


def _stands(phrase: Phrase, words: Sequence[frozenset[str]], at: int) -> bool:
    """Whether the words from a place on are the phrase."""
    end = at + len(phrase)
    return end <= len(words) and all(map(_meets, phrase, words[at:end]))


def _meets(one: frozenset[str], other: frozenset[str]) -> bool:
    return not one.isdisjoint(other)


@word_reading
def _forms(word: str) -> frozenset[str]:
    """A word of a text: itself, behind its prefixes, and its dictionary forms."""
    rests = without_prefixes(word, LETTERS) if is_hebrew(word) else []
    return frozenset((word, *rests)) | _meant(word)


@word_reading
def _entry_forms(word: str) -> frozenset[str]:
    """A word of a table: itself and its dictionary form."""
    return frozenset((word,)) | _meant(word)


def _meant(word: str) -> frozenset[str]:
    """Dictionary forms; one that says nothing by itself is none."""
    return frozenset(one for one in lemmas(word)[:1] if one not in STOP_WORDS)
