"""The tables by which texts are read, as the files of `configs/understanding` have them. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rayapp.core.settings.access import SettingsSection
from rayapp.text.normalize import normalize

# In tables a word of several words is written with this between them.
JOINT = "-"

Form = tuple[str, ...]


class PhraseRow(SettingsSection):
    """Phrases that say one relation.

    `change`: they tell of a change, at its own time; `ends`: it holds no more; `label`: what it is
    called where the registry lacks it; `where`: it says where an event was.
    """

    relation: str = ""
    change: bool = False
    ends: bool = False
    label: str | None = None
    where: bool = False
    en: tuple[str, ...] = ()
    he: tuple[str, ...] = ()


class Phrases(SettingsSection):
    """`phrases.yaml`; what its parts mean stands there."""

    groups: Mapping[str, str]
    contractions: Mapping[str, str]
    fillers: str
    intensifiers: str
    articles: str
    me: str
    mine: str
    owners: Mapping[str, str]
    pronouns: Mapping[str, str]
    of: str
    negations: str
    stops: str
    boundaries: str
    conjunctions: str
    continues: str
    question_words: str
    names_not: str
    reasons: str
    kin_adjectives: str
    bare_kin: Mapping[str, str]
    unsure: str
    places_not: str
    relations: tuple[PhraseRow, ...]
    events: tuple[PhraseRow, ...]
    namings: PhraseRow
    denials: PhraseRow
    of_mine: PhraseRow
    kinds_not: str
    feelings: PhraseRow
    name_parts: str
    given_names: str
    causes: str
    details_not: str
    not_goals: str
    skill_verbs: str
    languages: str
    happenings: str


class RoleRow(SettingsSection):
    """What somebody is to a person."""

    relation: str
    single: bool = False
    gender: str = ""
    en: str
    he: str
    mine: str = ""


class EmotionRow(SettingsSection):
    """An emotion and its forms."""

    valence: int
    opposite: str = ""
    en: str
    he: str
    verbs: str = ""
    mine: str = ""


class Forms(SettingsSection):
    """A word and its forms."""

    en: str
    he: str


class Valued(SettingsSection):
    """`values.yaml`."""

    values: Mapping[str, Forms]
    traits: Mapping[str, Forms]


class TimeRow(SettingsSection):
    """When something was, by a phrase."""

    en: tuple[str, ...]
    he: tuple[str, ...]
    back: int = 0
    long: int = 1
    each: bool = False
    year: bool = False
    month: bool = False


class Times(SettingsSection):
    """`times.yaml`."""

    phrases: tuple[TimeRow, ...]
    numbers: Mapping[str, int]
    days: str
    months: tuple[str, ...]


def word_set(words: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(normalize(words).casefold().split())


def forms_of(words: str) -> Iterator[Form]:
    """The forms of a table, each as its words."""
    for word in normalize(words).casefold().split():
        yield tuple(word.split(JOINT))


@dataclass(frozen=True)
class Lexicon:
    """Forms to what they mean; the longest form at a place counts."""

    entries: Mapping[Form, str]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str]]) -> "Lexicon":
        """Rows of (meaning, forms); of a form with two meanings the first counts."""
        found: dict[Form, str] = {}
        for meaning, words in rows:
            for form in forms_of(words):
                found.setdefault(form, meaning)
                # What is written with a hyphen stands as one word, too.
                found.setdefault((JOINT.join(form),), meaning)
        return cls(found)

    @cached_property
    def longest(self) -> int:
        return max((len(form) for form in self.entries), default=0)

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(word for form in self.entries for word in form)

    def at(self, words: tuple[str, ...]) -> tuple[int, str] | None:
        """Words used and the meaning of the longest form that begins the words."""
        for size in range(min(self.longest, len(words)), 0, -1):
            meaning = self.entries.get(words[:size])
            if meaning is not None:
                return size, meaning
        return None


@dataclass(frozen=True)
class Tables:
    """All tables of one reading."""

    phrases: Phrases
    roles: Mapping[str, RoleRow]
    emotion_rows: Mapping[str, EmotionRow]
    valued: Valued
    times: Times
    contractions: Mapping[str, Form] = field(init=False)

    def __post_init__(self) -> None:
        expanded = {
            short: tuple(whole.split()) for short, whole in self.phrases.contractions.items()
        }
        object.__setattr__(self, "contractions", expanded)

    @cached_property
    def emotions(self) -> Lexicon:
        return Lexicon.of((name, f"{row.en} {row.he}") for name, row in self.emotion_rows.items())

    @cached_property
    def feeling_verbs(self) -> Lexicon:
        return Lexicon.of((name, row.verbs) for name, row in self.emotion_rows.items())

    @cached_property
    def my_feelings(self) -> Lexicon:
        return Lexicon.of((name, row.mine) for name, row in self.emotion_rows.items())

    @cached_property
    def every_emotion(self) -> Lexicon:
        """As a question names them: by their own name and every form."""
        rows = self.emotion_rows.items()
        own = [(name, name) for name, _ in rows]
        return Lexicon.of(
            [*own, *((name, f"{row.en} {row.he} {row.verbs} {row.mine}") for name, row in rows)]
        )

    @cached_property
    def values(self) -> Lexicon:
        return Lexicon.of((name, f"{row.en} {row.he}") for name, row in self.valued.values.items())

    @cached_property
    def traits(self) -> Lexicon:
        return Lexicon.of((name, f"{row.en} {row.he}") for name, row in self.valued.traits.items())

    @cached_property
    def kin(self) -> Lexicon:
        return Lexicon.of((name, f"{row.en} {row.he}") for name, row in self.roles.items())

    @cached_property
    def my_kin(self) -> Lexicon:
        return Lexicon.of((name, row.mine) for name, row in self.roles.items())

    @cached_property
    def languages(self) -> frozenset[str]:
        return word_set(self.phrases.languages)

    @cached_property
    def happenings(self) -> Lexicon:
        return Lexicon.of([("", self.phrases.happenings)])

    @cached_property
    def fillers(self) -> frozenset[str]:
        return word_set(self.phrases.fillers)

    @cached_property
    def intensifiers(self) -> frozenset[str]:
        return word_set(self.phrases.intensifiers)

    @cached_property
    def articles(self) -> frozenset[str]:
        return word_set(self.phrases.articles)

    @cached_property
    def me(self) -> frozenset[str]:
        return word_set(self.phrases.me)

    @cached_property
    def mine(self) -> frozenset[str]:
        return word_set(self.phrases.mine)

    @cached_property
    def stops(self) -> frozenset[str]:
        return word_set(self.phrases.stops)

    @cached_property
    def boundaries(self) -> frozenset[str]:
        return word_set(self.phrases.boundaries)

    @cached_property
    def conjunctions(self) -> frozenset[str]:
        return word_set(self.phrases.conjunctions)

    @cached_property
    def unsure(self) -> frozenset[str]:
        return word_set(self.phrases.unsure)

    @cached_property
    def causes(self) -> frozenset[str]:
        return word_set(self.phrases.causes)

    @cached_property
    def given_names(self) -> frozenset[str]:
        return word_set(self.phrases.given_names)

    @cached_property
    def no_details(self) -> frozenset[str]:
        """With which no value of a detail begins."""
        return self.stops | self.fillers | word_set(self.phrases.details_not)

    @cached_property
    def reasons(self) -> frozenset[str]:
        return word_set(self.phrases.reasons)

    @cached_property
    def kin_adjectives(self) -> frozenset[str]:
        return word_set(self.phrases.kin_adjectives)

    @cached_property
    def places_not(self) -> frozenset[str]:
        return word_set(self.phrases.places_not)

    @cached_property
    def kinds_not(self) -> frozenset[str]:
        return word_set(self.phrases.kinds_not)

    @cached_property
    def not_goals(self) -> frozenset[str]:
        return word_set(self.phrases.not_goals)

    @cached_property
    def skill_verbs(self) -> frozenset[str]:
        return word_set(self.phrases.skill_verbs)

    @cached_property
    def days(self) -> frozenset[str]:
        return word_set(self.times.days)

    @cached_property
    def months(self) -> Mapping[str, int]:
        return {
            name: number
            for number, names in enumerate(self.times.months, start=1)
            for name in names.split()
        }

    @cached_property
    def no_names(self) -> frozenset[str]:
        """Words that are no name of anybody."""
        said = self.phrases
        lists = (said.names_not, said.question_words, said.me, said.mine, said.negations)
        found = frozenset[str]().union(*map(word_set, lists))
        found |= self.stops | self.fillers | self.articles | self.conjunctions | self.unsure
        found |= self.emotions.words | self.traits.words | self.days | self.months.keys()
        found |= self.feeling_verbs.words | self.my_feelings.words
        return found | said.owners.keys() | said.pronouns.keys()
