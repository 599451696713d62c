"""The parts of a phrase: who, where, at what, and the rest of a clause. Pure.

A reader says how many words a part takes from a place on, the likeliest first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from simplemma import is_known

from rayapp.text.concept_words import NAMES
from rayapp.text.hebrew import is_hebrew
from rayapp.text.lemmas import lemma
from rayapp.understanding.statements.rules.tables import Lexicon, Tables
from rayapp.understanding.statements.rules.words import Word

# Words of a name, of a place in a language without capitals, of the rest of a clause.
NAME_WORDS, PLACE_WORDS, REST_WORDS = 3, 3, 10
TOPIC_WORDS, SKILL_WORDS, VALUE_WORDS = 4, 4, 5
# A shorter noun names no kind.
KIND_LETTERS = 3
_CONNECTORS = frozenset({"of", "the", "de", "for", "&"})
_ARTICLE = "ה"
_TO, _DOING = "to", "ing"
_JOINED_LETTERS = frozenset("בלמ")


@dataclass(frozen=True, slots=True)
class Who:
    """A person as the text names them: the speaker, by a role, by name, or by a pronoun."""

    me: bool = False
    name: str | None = None
    role: str | None = None
    owner: "Who | None" = None
    pronoun: str | None = None


ME = Who(me=True)


@dataclass(frozen=True, slots=True)
class Thing:
    """What is no person: its name as written, and as the tables call it."""

    name: str
    known: str | None = None
    mine: bool = False
    of: Who | None = None


Part = Who | Thing
Found = tuple[int, Part]
Read = Callable[[Sequence[Word], int], Iterator[Found]]


class Parts:
    """Readers of parts by their kind. `vocabulary`: words of phrases, which are no names."""

    def __init__(self, tables: Tables, vocabulary: frozenset[str]) -> None:
        self._tables = tables
        self._vocabulary = vocabulary
        self._no_names = tables.no_names | vocabulary
        said = (vocabulary, tables.fillers, tables.traits.words, tables.emotions.words)
        self._said_of_people = frozenset[str]().union(*said)
        self.readers: dict[str, Read] = {
            "who": self.person,
            "person": self.person,
            "place": self.place,
            "org": self.organization,
            "rest": self.rest,
            "goal": self.goal,
            "topic": self.topic,
            "word": self.word,
            "emotion": self._listed(tables.emotions),
            "trait": self._listed(tables.traits),
            "feeling": self.feeling,
            "value": self.value,
            "skill": self.skill,
            "skillverb": self.skill_verb,
            "language": self.language,
            "happening": self.happening,
            "hers": self.hers,
            "kind": self.kind,
            "doing": self.doing,
        }

    # --- people

    def person(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        yield from self._people(words, at)

    def _people(self, words: Sequence[Word], at: int) -> Iterator[tuple[int, Who]]:
        if at >= len(words):
            return
        word = words[at]
        if not word.forms.isdisjoint(self._tables.me):
            yield at + 1, ME
            return
        kin = self._my_kin(words, at) if word.hebrew else self._kin(words, at)
        if kin is not None:
            yield kin
            return
        gender = next(
            (self._tables.phrases.pronouns[one] for one in word.forms
             if one in self._tables.phrases.pronouns), None,
        )  # fmt: skip
        if gender is not None:
            yield at + 1, Who(pronoun=gender)
            return
        end = self._name(words, at)
        if end:
            name = _text(words, at, end)
            told = self._kin_behind(words, end)
            if told is not None:
                yield told[0], Who(name=name, role=told[1].role, owner=told[1].owner)
                return
            owned = words[end - 1].owns and self._kin_noun(words, end)
            if owned:
                yield self._with_name(words, owned[0], owned[1], Who(name=name))
                return
            yield end, Who(name=name)

    def _kin_behind(self, words: Sequence[Word], at: int) -> tuple[int, Who] | None:
        """`Sarah, my daughter`."""
        if words[at - 1].ends != "," or at >= len(words):
            return None
        kin = self._my_kin(words, at) if words[at].hebrew else self._kin(words, at)
        return kin if kin is not None and kin[1].name is None else None

    def _kin(self, words: Sequence[Word], at: int) -> tuple[int, Who] | None:
        """`my older daughter Sarah`, `Mom`."""
        word, tables = words[at], self._tables
        bare = tables.phrases.bare_kin.get(word.low)
        if bare is not None and word.capital:
            return self._with_name(words, at + 1, bare, ME, named=False)
        owner = None
        if word.low in tables.mine:
            owner = ME
        elif word.low in tables.phrases.owners:
            owner = Who(pronoun=tables.phrases.owners[word.low])
        if owner is None:
            return None
        found = self._kin_noun(words, at + 1)
        if found is None:
            return None
        end, who = self._with_name(words, found[0], found[1], owner)
        while words[end - 1].owns:
            more = self._kin_noun(words, end)
            if more is None:
                break
            end, who = self._with_name(words, more[0], more[1], who)
        return end, who

    def _kin_noun(self, words: Sequence[Word], at: int) -> tuple[int, str] | None:
        for skipped in range(3):
            if at + skipped >= len(words):
                return None
            found = self._tables.kin.at(_lows(words, at + skipped))
            if found is not None:
                return at + skipped + found[0], found[1]
            if words[at + skipped].low not in self._tables.kin_adjectives:
                return None
        return None

    def _with_name(
        self, words: Sequence[Word], end: int, role: str, owner: Who, *, named: bool = True
    ) -> tuple[int, Who]:
        """The name behind a role, if there is one."""
        if not named or words[end - 1].ends == "." or words[end - 1].owns:
            return end, Who(role=role, owner=owner)
        name_end = self._name(words, end, kin=True)
        if not name_end:
            return end, Who(role=role, owner=owner)
        apart = words[end - 1].ends == "," and words[name_end - 1].ends != ","
        if apart:
            return end, Who(role=role, owner=owner)
        return name_end, Who(role=role, owner=owner, name=_text(words, end, name_end))

    def _my_kin(self, words: Sequence[Word], at: int) -> tuple[int, Who] | None:
        """`הבת הגדולה שלי שרה`, `אחותי`, `אמא של דנה`."""
        tables, word = self._tables, words[at]
        mine = next(
            (found for form in word.forms if (found := tables.my_kin.at((form,))) is not None), None
        )
        if mine is not None:
            return self._with_name(words, at + 1, mine[1], ME)
        # A joined preposition: לשכנה שלי. What follows says that it is somebody's.
        bare_forms = {word.low[1:]} if self._begins_phrase(word) else set()
        for form in sorted({*word.forms, *bare_forms}, key=len, reverse=True):
            rest = _lows(words, at + 1)
            bare = (form.removeprefix(_ARTICLE), *rest)
            found = tables.kin.at((form, *rest)) or tables.kin.at(bare)
            if found is None:
                continue
            end = at + found[0]
            while end < len(words) and words[end].low in tables.kin_adjectives:
                end += 1
            if end < len(words) and words[end].low in tables.mine:
                return self._with_name(words, end + 1, found[1], ME)
            if end < len(words) and words[end].low in tables.phrases.owners:
                owner = Who(pronoun=tables.phrases.owners[words[end].low])
                return self._with_name(words, end + 1, found[1], owner)
            if end < len(words) and words[end].low == tables.phrases.of:
                for owner_end, owner in self._people(words, end + 1):
                    return self._with_name(words, owner_end, found[1], owner)
            if form in tables.phrases.bare_kin:
                return end, Who(role=tables.phrases.bare_kin[form], owner=ME)
        return None

    def _name(self, words: Sequence[Word], at: int, *, kin: bool = False) -> int:
        """Where a name that begins here ends, 0 when none does."""
        if at >= len(words):
            return 0
        if words[at].hebrew:
            return self._hebrew_name(words, at, kin=kin)
        end = at
        while end < len(words) and end - at < NAME_WORDS and self._is_name(words[end]):
            end += 1
            if words[end - 1].ends or words[end - 1].owns:
                break
        return end if end > at else 0

    def _is_name(self, word: Word) -> bool:
        if not word.capital or word.low in self._no_names or not word.text.isalpha():
            return False
        return word.low not in self._tables.kin.words or not word.opens

    def _hebrew_name(self, words: Sequence[Word], at: int, *, kin: bool) -> int:
        if not self._may_be_name(words, at, alone=not kin):
            return 0
        end = at + 1
        return end + 1 if not words[at].ends and self._is_surname(words, end, kin=kin) else end

    def _is_surname(self, words: Sequence[Word], at: int, *, kin: bool) -> bool:
        """A word between a name and what is said of it. At the end of a sentence it is one only
        where the name is what is said."""
        if at >= len(words) or not words[at].hebrew or len(words[at].low) < 2:
            return False
        word = words[at]
        if not word.forms.isdisjoint(self._no_names) or word.low.startswith(_ARTICLE):
            return False
        if word.ends or at + 1 >= len(words):
            return not kin and _is_unknown(word.low) and not self._begins_phrase(word)
        return not words[at + 1].forms.isdisjoint(self._vocabulary)

    def _may_be_name(self, words: Sequence[Word], at: int, *, alone: bool) -> bool:
        """A name of the tables, or a word that no table and no dictionary has. One of the
        dictionary is a name where a clause begins, or behind a role, before a word of the tables
        alone."""
        word = words[at]
        if not word.hebrew or len(word.low) < 2:
            return False
        if word.low in self._tables.given_names or word.low in NAMES:
            return True
        if not word.forms.isdisjoint(self._no_names):
            return False
        if not word.opens and self._begins_phrase(word):
            return False
        article = word.low.startswith(_ARTICLE)
        if _is_unknown(word.low):
            return not (article and not _is_unknown(word.low[1:]))
        if word.ends or article or (alone and not word.opens) or at + 1 >= len(words):
            return False
        return not words[at + 1].forms.isdisjoint(self._said_of_people)

    # --- places and organizations

    def place(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        yield from self._places(words, at, articles=False)

    def organization(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        yield from self._places(words, at, articles=True)

    def _places(self, words: Sequence[Word], at: int, *, articles: bool) -> Iterator[Found]:
        start, tables = at, self._tables
        while start < len(words) and words[start].low in tables.articles | tables.mine:
            start += 1
        if start >= len(words) or words[start].low in tables.places_not | tables.no_names:
            return
        if words[start].hebrew:
            yield from self._hebrew_place(words, start)
            return
        end = self._capitals_end(words, start)
        if end == start:
            article = start > at
            small = not any(word.capital for word in words[1:])
            if (article and articles) or (small and not article):
                end = self._small_end(words, start, PLACE_WORDS if article else 2)
        if end > start:
            yield end, Thing(_text(words, start, end))

    def _capitals_end(self, words: Sequence[Word], start: int) -> int:
        end = start
        while end < len(words) and self._is_of_name(words, end, start):
            end += 1
            if words[end - 1].ends:
                break
        while end > start and words[end - 1].low in _CONNECTORS:
            end -= 1
        return end

    def _small_end(self, words: Sequence[Word], start: int, most: int) -> int:
        """A name in small letters."""
        end = start
        while end < len(words) and end - start < most and not self._stops_at(words[end]):
            end += 1
            if words[end - 1].ends:
                break
        return end

    def _is_of_name(self, words: Sequence[Word], at: int, start: int) -> bool:
        word = words[at]
        if word.low in _CONNECTORS and at > start:
            return at + 1 < len(words) and words[at + 1].capital
        return (word.capital or (word.text.isdigit() and at > start)) and (
            word.low not in self._tables.months and word.low not in self._tables.days
        )

    def _hebrew_place(self, words: Sequence[Word], start: int) -> Iterator[Found]:
        end = start
        while end < len(words) and end - start < PLACE_WORDS:
            word = words[end]
            if end > start and (self._stops_at(word) or self._begins_phrase(word)):
                break
            end += 1
            if word.ends:
                break
        for last in range(end, start, -1):
            yield last, Thing(_text(words, start, last))

    def _begins_phrase(self, word: Word) -> bool:
        """Whether a joined letter begins the next phrase: ושם, בדירה, לחיפה."""
        if word.low in self._tables.phrases.name_parts.split():
            return False
        joined = word.low[:1] in _JOINED_LETTERS and len(word.low) > 2
        return word.low.startswith("ו") or (joined and is_hebrew(word.low))

    def _stops_at(self, word: Word) -> bool:
        tables = self._tables
        if word.low in tables.stops or word.low in tables.fillers or word.low in tables.articles:
            return True
        return not word.forms.isdisjoint(self._vocabulary) and word.hebrew

    def is_name(self, name: str) -> bool:
        """Whether a place is called so, and is no word of the dictionary."""
        return _is_unknown(name.split()[0]) if is_hebrew(name) else name[:1].isupper()

    # --- the rest of a clause

    def rest(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        end = self._clause_end(words, at)
        if end > at:
            yield end, Thing(_text(words, at, end))

    def goal(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        start = at + 1 if at < len(words) and words[at].low == _TO else at
        end = self._clause_end(words, start)
        if end <= start or words[start].low in self._tables.not_goals:
            return
        yield end, Thing(_text(words, start, end))

    def topic(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        if at >= len(words) or not words[at].opens or words[at].low in self._tables.me:
            return
        start = at
        while start < len(words) and words[start].low in self._tables.articles | self._tables.mine:
            start += 1
        if start >= len(words) or words[start].low in self._tables.no_names:
            return
        for end in range(start + 1, min(start + TOPIC_WORDS, len(words)) + 1):
            known = self._tables.values.at(_lows(words, start)[: end - start])
            whole = known[1] if known and known[0] == end - start else None
            yield end, Thing(_text(words, start, end), whole)
            if words[end - 1].ends:
                break

    def word(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        if at < len(words) and words[at].text[0].isalpha():
            yield at + 1, Thing(words[at].text)

    def value(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        start = at
        while start < len(words) and words[start].low in self._tables.articles | self._tables.mine:
            start += 1
        listed = self._tables.values.at(_lows(words, start))
        if listed is not None:
            yield start + listed[0], Thing(_text(words, start, start + listed[0]), listed[1])
            return
        end = self._clause_end(words, start, VALUE_WORDS)
        if end > start:
            yield end, Thing(_text(words, start, end))

    def skill(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        end = self._clause_end(words, at, SKILL_WORDS)
        if end > at:
            yield end, Thing(_text(words, at, end))

    def skill_verb(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        if at < len(words) and words[at].low in self._tables.skill_verbs:
            yield from self.skill(words, at)

    def language(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        if at < len(words) and words[at].low in self._tables.languages:
            yield at + 1, Thing(words[at].text)

    def feeling(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        """A verb that says an emotion; a Hebrew one of the first person says whose."""
        if at >= len(words):
            return
        for form in words[at].forms:
            for lexicon, mine in (
                (self._tables.my_feelings, True),
                (self._tables.feeling_verbs, False),
            ):
                found = lexicon.at((form,))
                if found is not None:
                    yield at + 1, Thing(words[at].text, found[1], mine=mine)
                    return

    def happening(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        end = self._happening_end(words, at)
        if end:
            yield end, Thing(_text(words, at, end))

    def _happening_end(self, words: Sequence[Word], at: int) -> int:
        for skipped in range(3):
            place = at + skipped
            if place >= len(words) or (skipped and words[place - 1].ends):
                return 0
            rest = _lows(words, place + 1)
            readings = ((low, *rest) for low in _behind_letters(words[place]))
            entries = (self._tables.happenings.at(one) for one in readings)
            found = next((one for one in entries if one is not None), None)
            if found is not None:
                end = place + found[0]
                return end + 1 if self._has_second_noun(words, place, end) else end
            if words[place].hebrew or words[place].low in self._tables.stops | self._tables.me:
                return 0
        return 0

    def _has_second_noun(self, words: Sequence[Word], place: int, end: int) -> bool:
        """ראיון עבודה: the second noun belongs to the first."""
        if not words[place].hebrew or end >= len(words) or words[end - 1].ends:
            return False
        tables, word = self._tables, words[end]
        others = tables.mine | tables.causes | {tables.phrases.of} | tables.phrases.owners.keys()
        return not self._stops_at(word) and word.low not in others

    def kind(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        """A noun that says what kind of things something is, as no table does."""
        if at >= len(words) or not words[at].text.isalpha():
            return
        tables, word = self._tables, words[at]
        name = lemma(word.low.removeprefix(_ARTICLE) if word.hebrew else word.low)
        known = (tables.kin, tables.happenings, tables.traits, tables.emotions, tables.values)
        if name in tables.kinds_not or any(not word.forms.isdisjoint(one.words) for one in known):
            return
        if len(name) >= KIND_LETTERS and {name, *word.forms}.isdisjoint(self._no_names):
            yield at + 1, Thing(name)

    def doing(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        if at < len(words) and words[at].low.endswith(_DOING):
            yield from self.skill(words, at)

    def hers(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        """An event of somebody: `my daughter's wedding`, `המבחן של נועה`."""
        if at >= len(words):
            return
        tables, word = self._tables, words[at]
        if word.hebrew:
            yield from self._hebrew_hers(words, at)
            return
        owner_end, owner = at + 1, None
        if word.low in tables.mine:
            owner = ME
        elif word.low in tables.phrases.owners:
            owner = Who(pronoun=tables.phrases.owners[word.low])
        people = [one for one in self._people(words, at) if words[one[0] - 1].owns]
        if people:
            owner_end, owner = people[0]
        end = self._happening_end(words, owner_end) if owner is not None else 0
        if end and owner is not None:
            yield end, Thing(_text(words, at, end), of=owner)

    def _hebrew_hers(self, words: Sequence[Word], at: int) -> Iterator[Found]:
        end = self._happening_end(words, at)
        if not end or end >= len(words):
            return
        if words[end].low in self._tables.mine:
            yield end + 1, Thing(_text(words, at, end + 1), of=ME)
        elif words[end].low == self._tables.phrases.of:
            for owner_end, owner in self._people(words, end + 1):
                yield owner_end, Thing(_text(words, at, owner_end), of=owner)

    def _clause_end(self, words: Sequence[Word], at: int, most: int = REST_WORDS) -> int:
        end, tables = at, self._tables
        if at < len(words) and words[at].low in tables.fillers:
            return at
        while end < len(words) and end - at < most:
            word = words[end]
            if end > at and not word.forms.isdisjoint(tables.boundaries):
                break
            if end > at and word.low in tables.conjunctions and self._begins_clause(words, end + 1):
                break
            if end > at and word.hebrew and word.low[0] in "וש" and self._is_verb(word):
                break
            end += 1
            if word.ends:
                break
        return end

    def _begins_clause(self, words: Sequence[Word], at: int) -> bool:
        """Whether a subject, or a verb of the tables, stands here."""
        if at >= len(words):
            return False
        word = words[at]
        subject = word.low in self._tables.me or word.low in self._tables.phrases.pronouns
        return subject or word.low in self._tables.mine or word.low in self._vocabulary

    def _is_verb(self, word: Word) -> bool:
        return not (word.forms - {word.low}).isdisjoint(self._vocabulary | self._tables.me)

    def _listed(self, lexicon: Lexicon) -> Read:
        def read(words: Sequence[Word], at: int) -> Iterator[Found]:
            found = lexicon.at(_lows(words, at)) if at < len(words) else None
            if found is not None:
                yield at + found[0], Thing(_text(words, at, at + found[0]), found[1])

        return read


def _lows(words: Sequence[Word], at: int) -> tuple[str, ...]:
    return tuple(word.low for word in words[at : at + NAME_WORDS])


def _text(words: Sequence[Word], start: int, end: int) -> str:
    parts = [word.text + ("'s" if word.owns and at < end - 1 else "")
             for at, word in enumerate(words[start:end], start)]  # fmt: skip
    return " ".join(parts)


def _behind_letters(word: Word) -> tuple[str, ...]:
    """A word, and a Hebrew one behind a preposition and the article."""
    if not word.hebrew:
        return (word.low,)
    return tuple(word.low[cut:] for cut in range(min(3, len(word.low) - 1)))


def _is_unknown(word: str) -> bool:
    return is_hebrew(word) and not is_known(word, lang="he")
