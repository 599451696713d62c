"""Generated histories with an oracle: what is true after facts changed, ended and were deleted.

Seeded, so that everybody measures the same. No judge: the right answer is known when a history is
made. Kinds of questions:

    exact    said once
    track    said again with another value, up to four times, also late and out of order
    as_of    as track, asked about a day in between
    ended    "I quit": nothing is known any more
    delete   the memory that said it is deleted: what it replaced is true again, or nothing is known
    cascade  what rests on a job or a home, after that changed or its memory was deleted
    absence  never said
    several  all that was said of one relation
    twins    two people of one name, or of names one letter apart
    revoked  said, and taken back later: "Noa is not my boss"
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from rayapp.understanding.statements.requests import Knowing, KnowledgeQuestion, NodeEnd

WORDS = Path(__file__).with_name("facts_words.yaml")
LANGUAGES = ("en", "he")
KINDS = (
    *("exact", "track", "as_of", "ended", "delete"),
    *("cascade", "absence", "several", "twins", "revoked"),
)
REVOCABLE = ("home", "home_of", "work", "boss", "partner", "speaks", "skill")
# Histories of each kind and language.
OF_EACH = 24
NOISE = 4
BEGIN = datetime(2025, 1, 6, 9, tzinfo=UTC)
ME = {"en": "I", "he": "אני"}
PERSON = "Person"
RELATIONS = {
    "home": ("LIVES_IN", "places"),
    "home_of": ("LIVES_IN", "places"),
    "work": ("WORKS_AT", "organizations"),
    "boss": ("MANAGED_BY", "people"),
    "colleague": ("COLLEAGUE_OF", "people"),
    "neighbour": ("NEIGHBOUR_OF", "people"),
    "partner": ("PARTNER_OF", "people"),
    "skill": ("HAS_SKILL", "skills"),
    "speaks": ("HAS_SKILL", "languages"),
    "trait": ("HAS_TRAIT", "traits"),
}
RESTS_ON = {"boss": "work", "colleague": "work", "neighbour": "home"}
FUNCTIONAL = ("home", "home_of", "work", "boss", "partner")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A memory of a history."""

    memory_id: str
    text: str
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FactQuestion:
    """What is asked, and what is right. `stale`: what was right once; `text`: in words."""

    question_id: str
    kind: str
    text: str
    asked: KnowledgeQuestion
    knowing: Knowing
    names: frozenset[str]
    stale: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One user: memories in the order in which they arrive, those that are deleted afterwards, and
    how many people of the asked name there are."""

    history_id: str
    lang: str
    told: tuple[Told, ...]
    deleted: tuple[str, ...] = ()
    questions: tuple[FactQuestion, ...]
    people: tuple[tuple[str, int], ...] = ()


@dataclass
class _Maker:
    """One history on its way."""

    lang: str
    name: str
    words: dict[str, Any]
    dice: random.Random
    told: list[Told] = field(default_factory=list)
    at: datetime = BEGIN

    def say(self, text: str, *, at: datetime | None = None) -> Told:
        if at is None:
            self.at += timedelta(days=self.dice.randint(20, 60))
            at = self.at
        one = Told(memory_id=f"{self.name}-{len(self.told)}", text=text, said_at=at)
        self.told.append(one)
        return one

    def sentence(self, what: str, **parts: str) -> str:
        chosen: str = self.dice.choice(self.words[what])
        return chosen.format(**parts)

    def noise(self, count: int = NOISE) -> None:
        for text in self.dice.sample(self.words["noise"], count):
            self.say(text)

    def values(self, what: str, count: int, without: Sequence[str] = ()) -> list[str]:
        pool = [one for one in self.words[RELATIONS[what][1]] if one not in without]
        return self.dice.sample(pool, count)

    def ask(
        self,
        kind: str,
        what: str,
        knowing: Knowing,
        names: Sequence[str] = (),
        *,
        who: str | None = None,
        stale: Sequence[str] = (),
        as_of: datetime | None = None,
    ) -> FactQuestion:
        asked = KnowledgeQuestion(
            source=NodeEnd(type=PERSON, name=who or ME[self.lang]),
            relation=RELATIONS[what][0],
            as_of=as_of,
        )
        text: str = self.words["ask"][what]
        return FactQuestion(
            question_id=f"{self.name}-{what}",
            kind=kind,
            text=text.format(n=who or ""),
            asked=asked,
            knowing=knowing,
            names=frozenset(names),
            stale=frozenset(stale),
        )

    def history(
        self,
        questions: Sequence[FactQuestion],
        deleted: Sequence[Told] = (),
        people: Sequence[tuple[str, int]] = (),
        told: Sequence[Told] | None = None,
    ) -> History:
        return History(
            history_id=self.name,
            lang=self.lang,
            told=tuple(self.told if told is None else told),
            deleted=tuple(one.memory_id for one in deleted),
            questions=tuple(questions),
            people=tuple(people),
        )

    # --- the kinds

    def exact(self) -> History:
        what = self.dice.choice(tuple(RELATIONS))
        (value,), (who,) = self.values(what, 1), self.values("boss", 1)
        if what in RESTS_ON or what == "partner":
            who = ""
        self.noise(2)
        self.say(self.sentence(what, v=value, p=value, n=who))
        self.noise(2)
        named = who if what in ("home_of", "speaks", "trait") else None
        return self.history([self.ask("exact", what, Knowing.KNOWN, [value], who=named)])

    def _changes(self) -> tuple[str, str | None, list[str], list[Told]]:
        what = self.dice.choice(FUNCTIONAL)
        values = self.values(what, self.dice.randint(2, 4))
        (who,) = self.values("boss", 1, values)
        told = []
        for value in values:
            told.append(self.say(self.sentence(what, v=value, p=value, n=who)))
            self.noise(1)
        return what, who if what == "home_of" else None, values, told

    def track(self) -> History:
        what, who, values, _ = self._changes()
        asked = self.ask("track", what, Knowing.KNOWN, values[-1:], who=who, stale=values[:-1])
        arriving = list(self.told)
        if self.dice.random() < 1 / 3:
            self.dice.shuffle(arriving)
        return self.history([asked], told=arriving)

    def as_of(self) -> History:
        what, who, values, told = self._changes()
        at = self.dice.randrange(len(values) - 1)
        day = told[at].said_at + (told[at + 1].said_at - told[at].said_at) / 2
        stale = [one for one in values if one != values[at]]
        asked = self.ask(
            "as_of", what, Knowing.KNOWN, [values[at]], who=who, stale=stale, as_of=day
        )
        return self.history([asked])

    def ended(self) -> History:
        what = self.dice.choice(("home", "work", "partner"))
        (value,) = self.values(what, 1)
        self.say(self.sentence(what, v=value, p=value))
        self.noise(2)
        self.say(self.sentence(f"{what}_over", v=value, p=value))
        return self.history([self.ask("ended", what, Knowing.NO_LONGER, stale=[value])])

    def delete(self) -> History:
        what, who, values, told = self._changes()
        if self.dice.random() < 0.5:
            asked = self.ask(
                "delete", what, Knowing.KNOWN, [values[-2]], who=who, stale=[values[-1]]
            )
            return self.history([asked], [told[-1]])
        asked = self.ask("delete", what, Knowing.UNKNOWN, who=who, stale=values)
        return self.history([asked], told)

    def cascade(self) -> History:
        what = self.dice.choice(tuple(RESTS_ON))
        base = RESTS_ON[what]
        first, second = self.values(base, 2)
        (who,) = self.values(what, 1)
        begun = self.say(self.sentence(base, v=first))
        self.noise(1)
        self.say(self.sentence(what, p=who))
        self.noise(1)
        deleted: list[Told] = []
        way = self.dice.choice(("changed", "ended", "deleted"))
        if way == "changed":
            self.say(self.sentence(base, v=second))
        elif way == "ended":
            self.say(self.sentence(f"{base}_over", v=first))
        else:
            deleted.append(begun)
        self.noise(1)
        asked = self.ask("cascade", what, Knowing.NO_LONGER, stale=[who])
        return self.history([asked], deleted)

    def absence(self) -> History:
        said = self.dice.sample(("home", "work", "skill", "partner"), 2)
        for what in said:
            (value,) = self.values(what, 1)
            self.say(self.sentence(what, v=value, p=value))
        self.noise()
        asked = self.dice.choice(
            [one for one in ("boss", "neighbour", *FUNCTIONAL) if one not in said]
        )
        (who,) = self.values("boss", 1)
        named = who if asked == "home_of" else None
        return self.history([self.ask("absence", asked, Knowing.UNKNOWN, who=named)])

    def several(self) -> History:
        what = self.dice.choice(("skill", "speaks", "trait"))
        values = self.values(what, self.dice.randint(2, 3))
        (who,) = self.values("boss", 1)
        for value in values:
            self.say(self.sentence(what, v=value, n=who))
            self.noise(1)
        named = None if what == "skill" else who
        return self.history([self.ask("several", what, Knowing.KNOWN, values, who=named)])

    def twins(self) -> History:
        first, second = self.values("home", 2)
        if self.dice.random() < 0.5:
            (who,) = self.values("boss", 1)
            self.say(self.sentence("daughter", n=who, v=first))
            self.noise(1)
            self.say(self.sentence("teammate", n=who, v=second))
            asked = self.ask("twins", "home_of", Knowing.KNOWN, [first, second], who=who)
            return self.history([asked], people=[(who, 2)])
        one, other = self.dice.choice(self.words["alike"])
        self.say(self.sentence("home_of", n=one, v=first))
        self.noise(1)
        self.say(self.sentence("home_of", n=other, v=second))
        asked = self.ask("twins", "home_of", Knowing.KNOWN, [first], who=one, stale=[second])
        return self.history([asked], people=[(one, 1), (other, 1)])

    def revoked(self) -> History:
        what = self.dice.choice(REVOCABLE)
        (value,) = self.values(what, 1)
        (who,) = self.values("boss", 1, [value])
        self.say(self.sentence(what, v=value, p=value, n=who))
        self.noise(2)
        self.say(self.sentence(f"{what}_denied", v=value, p=value, n=who))
        named = who if what in ("home_of", "speaks") else None
        asked = self.ask("revoked", what, Knowing.NO_LONGER, who=named, stale=[value])
        return self.history([asked])


def histories(seed: int, of_each: int = OF_EACH) -> Iterator[History]:
    """All kinds in both languages. The same seed makes the same."""
    words = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
    for lang in LANGUAGES:
        for kind in KINDS:
            for number in range(of_each):
                name = f"{lang}-{kind}-{number}"
                maker = _Maker(lang, name, words[lang], random.Random(f"{seed}-{name}"))
                yield getattr(maker, kind)()
