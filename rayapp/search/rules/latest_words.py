"""Does a question ask how a thing stands now? By a table of words (`configs/latest.yaml`). Pure."""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import product

from rayapp.core.settings.access import SettingsSection
from rayapp.text.hebrew import is_hebrew, without_prefixes
from rayapp.text.tokens import tokens

# Shortest word, letters, that is looked for behind Hebrew prefixes.
LETTERS = 3

Phrase = tuple[str, ...]


class LatestTable(SettingsSection):
    """The words of one language; what they mean stands in the file."""

    now: tuple[str, ...] = ()
    now_at_end: tuple[str, ...] = ()
    last_before: tuple[str, ...] = ()
    last_after: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LatestWords:
    """The tables of all languages, as phrases; without any, no question asks."""

    now: frozenset[Phrase] = frozenset()
    at_end: frozenset[Phrase] = frozenset()
    last: frozenset[Phrase] = frozenset()
    past: frozenset[Phrase] = frozenset()
    never: frozenset[Phrase] = frozenset()
    marks: frozenset[str] = frozenset()

    def marks_state(self, word: str) -> bool:
        """Whether a word of a question is in the tables, and does not name what is asked about."""
        return not self.marks.isdisjoint(_forms(word))

    def asked(self, question: str) -> bool:
        """Whether a normalised `question` asks for the latest, current or last state of a thing."""
        words = [_forms(token.text) for token in tokens(question)]
        for start, end in list(_places(words, self.never)):
            words[start:end] = [frozenset[str]()] * (end - start)
        if any(_places(words, self.now)):
            return True
        if any(end == len(words) for _, end in _places(words, self.at_end)):
            return True
        return any(_places(words, self.last)) and not any(_places(words, self.past))


def latest_words(tables: Sequence[LatestTable]) -> LatestWords:
    """One reading of all languages: a question may mix them."""
    asking: list[str] = []
    for one in tables:
        asking += (*one.now, *one.now_at_end, *one.states, *one.last_before, *one.last_after)
    return LatestWords(
        marks=frozenset(word for phrase in _phrases(asking) for word in phrase),
        now=_phrases(text for table in tables for text in table.now),
        at_end=_phrases(text for table in tables for text in table.now_at_end),
        last=_phrases(text for table in tables for text in _last_states(table)),
        past=_phrases(text for table in tables for text in table.past),
        never=_phrases(text for table in tables for text in table.never),
    )


def _last_states(table: LatestTable) -> Iterator[str]:
    for state in table.states:
        yield from (f"{last} {state}" for last in table.last_before)
        yield from (f"{state} {last}" for last in table.last_after)


def _phrases(texts: Iterable[str]) -> frozenset[Phrase]:
    return frozenset(tuple(token.text for token in tokens(text)) for text in texts)


def _forms(word: str) -> Set[str]:
    """A word, and what it may be behind Hebrew prefixes."""
    return {word, *without_prefixes(word, LETTERS)} if is_hebrew(word) else {word}


def _places(words: Sequence[Set[str]], phrases: Set[Phrase]) -> Iterator[tuple[int, int]]:
    """Where the phrases stand: first word, and the one behind the last."""
    for size in sorted({len(phrase) for phrase in phrases}):
        for start in range(len(words) - size + 1):
            if any(phrase in phrases for phrase in product(*words[start : start + size])):
                yield start, start + size
