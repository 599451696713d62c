"""How episodes, thoughts and hints are worded, by the tables in both languages. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Literal

from rayapp.core.settings.access import SettingsSection
from rayapp.text.language import detect_language
from rayapp.understanding.derived.records import Pattern, SubjectType
from rayapp.understanding.statements.rules.tables import Tables

TongueName = Literal["en", "he"]
EN, HE = "en", "he"
# Characters of a title.
MOST_TITLE = 60
ELLIPSIS = "…"


class Tongues(SettingsSection):
    """The same in both languages."""

    en: str
    he: str


class ThoughtWords(SettingsSection):
    """A title, and a sentence about the speaker or about somebody else; `themed`: with what an
    emotion is about."""

    title: Tongues
    me: Tongues
    other: Tongues
    themed_title: Tongues | None = None
    themed_me: Tongues | None = None
    themed_other: Tongues | None = None


class AgeWords(SettingsSection):
    """How long ago something was: up to so many days, in units of so many."""

    within: int
    unit: int
    one: Tongues
    many: Tongues


class DerivedWords(SettingsSection):
    """`derived.yaml`; what its parts mean stands there."""

    thoughts: Mapping[SubjectType, ThoughtWords]
    ages: tuple[AgeWords, ...]
    recap: Mapping[str, Tongues]
    ways: Mapping[str, Tongues]
    ways_title: Tongues


class Wording:
    """Words of all that is derived; built once."""

    def __init__(self, words: DerivedWords, tables: Tables) -> None:
        self.words, self._tables = words, tables

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Hebrew names of what the tables know, by what they call it."""
        valued = self._tables.valued
        rows = [(name, row.he) for name, row in self._tables.emotion_rows.items()]
        rows += [(name, row.he) for name, row in (*valued.values.items(), *valued.traits.items())]
        return {name: forms.split()[0].replace("-", " ") for name, forms in rows}

    def named(self, what: str, tongue: TongueName) -> str:
        """What the tables know, in this language; other words as they were said."""
        return self._names.get(what, what) if tongue == HE else what

    def of_thought(self, pattern: Pattern, quote: str) -> tuple[str, str]:
        """Title and text, in the language of who says it."""
        tongue = tongue_of(quote)
        rows = self.words.thoughts[pattern.type]
        title, said = rows.title, rows.other if pattern.name else rows.me
        if pattern.theme:
            title = rows.themed_title or title
            said = (rows.themed_other if pattern.name else rows.themed_me) or said
        parts = {
            "who": pattern.name,
            "what": self.named(pattern.what, tongue),
            "theme": pattern.theme,
        }
        named = getattr(title, tongue).format(**parts)
        return cut(_upper(named)), _upper(getattr(said, tongue).format(**parts))

    def age(self, at: datetime, now: datetime, tongue: TongueName) -> str:
        """How long ago."""
        days = max(0, (now - at) // timedelta(days=1))
        rows = self.words.ages
        row = next((one for one in rows if days < one.within), rows[-1])
        count = max(1, days // row.unit)
        return str(getattr(row.one if count == 1 else row.many, tongue).format(n=count))


def tongue_of(text: str) -> TongueName:
    """The language to answer a text in."""
    return "he" if detect_language(text) in ("he", "mixed") else "en"


def cut(text: str) -> str:
    """At most a title's characters, cut at a word; an ellipsis says so."""
    line = " ".join(text.split())
    if len(line) <= MOST_TITLE:
        return line
    head = line[: MOST_TITLE - 1]
    return (head.rpartition(" ")[0] or head) + ELLIPSIS


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
