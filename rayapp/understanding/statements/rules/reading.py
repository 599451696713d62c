"""What a text says, by the tables: entities as it names them, and what it says of them. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from rayapp.text.slots import ME as SLOT_ME
from rayapp.text.slots import slot_of
from rayapp.understanding.statements.records import Span
from rayapp.understanding.statements.rules.matcher import (
    WHO,
    Bound,
    Match,
    Matcher,
    Phrase,
    Phrases,
    compiled,
)
from rayapp.understanding.statements.rules.parts import Parts, Thing, Who
from rayapp.understanding.statements.rules.registry import ANY, DETAIL, EMOTION, EVENT, PERSON
from rayapp.understanding.statements.rules.tables import PhraseRow, Tables
from rayapp.understanding.statements.rules.times import Period, TimeReader
from rayapp.understanding.statements.rules.words import Sentence, Word, sentences

# More of one text is no account of what happened.
MOST_CLAIMS = 60
# Readings that stay: those of one batch.
KEPT_READINGS = 64
_OBJECT_TYPES = {
    "place": "Place",
    "org": "Organization",
    "person": PERSON,
    "goal": "Goal",
    "trait": "Trait",
    "value": "Value",
    "topic": "Value",
    "skill": "Skill",
    "skillverb": "Skill",
    "language": "Skill",
    "word": "Skill",
}
# What they say is no event, though a verb of events may stand in it.
_NO_EVENTS = frozenset({"PURSUES", "HAS_SKILL", "VALUES"})
# Slots of a fact that the relations of the registry say.
_SAID_BY_RELATIONS = frozenset({"home", "work"})
_INTENSE = "high"
_ARTICLE = "ה"
_CAUSE_LETTERS = frozenset("במשלכ")
# Letters that join a clause: of one alone, only the one that hardly begins another word.
JOINED = ("וכש", "כש", "ו")


@dataclass(slots=True)
class Named:
    """An entity as a text names it. `known`: what the tables call it."""

    type: str
    names: list[str] = field(default_factory=list)
    known: str | None = None
    me: bool = False
    role: str | None = None
    owner: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a text says of its entities, by their places in it."""

    subject: int
    relation: str
    object: int | None = None
    value: str | None = None
    label: str | None = None
    span: Span = Span.HOLDS
    begins: datetime | None = None
    ends: datetime | None = None
    change: bool = False
    because: int | None = None
    quote: str = ""
    holder: int | None = None
    target: int | None = None
    intensity: str | None = None

    @property
    def said(self) -> tuple[int | str | None, ...]:
        """What it says, whenever."""
        return self.subject, self.relation, self.object, self.value, self.label, self.holder


@dataclass(frozen=True, slots=True)
class Reading:
    """All of one text."""

    entities: tuple[Named, ...]
    claims: tuple[Claim, ...]


# What is said of a moment, not of a person.
_PASSING = frozenset({"PARTICIPATED_IN", "FELT", "LOCATED_IN"})


class Said(NamedTuple):
    """A phrase of a row, and its script."""

    row: PhraseRow
    phrase: Phrase
    hebrew: bool


@dataclass(slots=True)
class _Happened:
    """An event of a sentence, with its words."""

    entity: int
    sentence: int
    start: int
    end: int


class Reader:
    """Reads texts by the tables; built once."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        said = tables.phrases
        vocabulary: frozenset[str] = frozenset()
        kinds = tuple(Parts(tables, vocabulary).readers)

        def rows(of: Sequence[PhraseRow]) -> Phrases[Said]:
            found = [
                Said(row, compiled(text, said.groups, kinds), hebrew)
                for row in of
                for texts, hebrew in ((row.en, False), (row.he, True))
                for text in texts
            ]
            return Phrases(found, lambda one: one.phrase)

        self.relations = rows(said.relations)
        self.events = rows(said.events)
        self.namings = rows((said.namings,))
        self.denials = rows((said.denials,))
        self.feelings = rows((said.feelings,))
        self.of_mine = rows((said.of_mine,))
        for one in (*self.relations, *self.events, *self.feelings):
            vocabulary = vocabulary.union(*one.phrase.needs[:1])
        self.vocabulary = vocabulary | tables.me | said.pronouns.keys()
        parts = Parts(tables, vocabulary - tables.happenings.words)
        self.times = TimeReader(tables)
        continues = frozenset(said.continues.split())
        self.matcher = Matcher({**parts.readers, **self.times.readers}, tables.fillers, continues)
        self.parts = parts
        self._kept: dict[tuple[str, datetime], Reading] = {}

    def read(self, text: str, said_at: datetime) -> Reading:
        """What the text says, as said at this time. Whoever decides whether texts matter has just
        read them, so the last ones are kept."""
        found = self._kept.get((text, said_at))
        if found is None:
            while len(self._kept) >= KEPT_READINGS:
                del self._kept[next(iter(self._kept))]
            found = self._kept[text, said_at] = _Text(self, said_at).read(text)
        return found

    def states_fact(self, text: str, said_at: datetime) -> bool:
        """Whether it says something lasting of a person."""
        read = self.read(text, said_at)
        return any(
            claim.relation not in _PASSING and read.entities[claim.subject].type == PERSON
            for claim in read.claims
        )


class _Text:
    """One text on its way through the tables."""

    def __init__(self, reader: Reader, said_at: datetime) -> None:
        self._reader, self._tables, self._said_at = reader, reader.tables, said_at
        self._entities: list[Named] = []
        self._claims: list[Claim] = []
        self._events: list[_Happened] = []
        self._spoken_of: int | None = None

    def read(self, text: str) -> Reading:
        for number, sentence in enumerate(sentences(text, self._tables.contractions)):
            if sentence.asks or len(self._claims) >= MOST_CLAIMS:
                continue
            self._sentence(number, sentence)
        return self._whole()

    # --- one sentence

    def _sentence(self, number: int, sentence: Sentence) -> None:
        words = sentence.words
        periods = list(self._periods(words))
        taken = frozenset(at for one in periods for at in range(one.start, one.end))
        begun = len(self._claims)
        self._spoken_of = None
        for _, match in self._found(self._reader.namings, words, taken):
            self._naming(match)
        denied = self._found(self._reader.denials, words, taken)
        self._roles(words, frozenset(at for _, one in denied for at in range(one.start, one.end)))
        for _, match in denied:
            self._denial(match, sentence)
        wishes: list[Match] = []
        for row, match in self._found(self._reader.relations, words, taken):
            self._relation(row, match, sentence, periods)
            if row.relation in _NO_EVENTS:
                wishes.append(match)
        events = []
        for row, match in self._found(self._reader.events, words, taken):
            if row.where or any(match.start < one.end and one.start < match.end for one in wishes):
                continue
            event = self._event(row, match, number, sentence, periods)
            if event is not None:
                events.append(event)
        self._events += events
        for _, match in self._found(self._reader.feelings, words, taken):
            self._feeling(match, number, sentence, periods)
        self._wheres(words, events, taken)
        self._held(words)
        if not self._detail(sentence):
            self._kinds(sentence, taken)
        self._because(words, begun)

    def _found(
        self, rows: Phrases[Said], words: Sequence[Word], taken: frozenset[int]
    ) -> list[tuple[PhraseRow, Match]]:
        """The phrases that stand in a sentence, in its order; the longest of those that overlap."""
        scripts = {word.hebrew for word in words}
        found = [
            (row, match)
            for row, phrase, hebrew in rows.among(_said_in(words))
            if hebrew in scripts
            for match in self._reader.matcher.matches(phrase, words, taken)
            if not self._is_unsure(words, match.start)
        ]
        found.sort(key=lambda one: (one[1].start - one[1].end, one[1].start))
        kept: list[tuple[PhraseRow, Match]] = []
        for row, match in found:
            clash = any(
                match.start < other.end and other.start < match.end and row.where == kind.where
                for kind, other in kept
            )
            if not clash:
                kept.append((row, match))
        return sorted(kept, key=lambda one: one[1].start)

    def _is_unsure(self, words: Sequence[Word], at: int) -> bool:
        return any(not word.forms.isdisjoint(self._tables.unsure) for word in words[: at + 2])

    def _periods(self, words: Sequence[Word]) -> Iterator[Period]:
        found: set[int] = set()
        for phrase, row in self._reader.times.phrases.among(_said_in(words)):
            for match in self._reader.matcher.matches(phrase, words, frozenset(found)):
                places = range(match.start, match.end)
                if not found.isdisjoint(places):
                    continue
                when = self._reader.times.period(row, words[match.start : match.end], self._said_at)
                if when is not None:
                    found.update(places)
                    yield Period(match.start, match.end, *when)

    # --- people

    def _roles(self, words: Sequence[Word], denied: frozenset[int]) -> None:
        """Everybody who is named by a role: that they are there is said as well."""
        at = 0
        while at < len(words):
            end = at + 1
            for stop, part in () if at in denied else self._reader.parts.person(words, at):
                if isinstance(part, Who) and part.role is not None:
                    self._person(part)
                    end = max(stop, end)
            at = end

    def _person(self, who: Who | None) -> int | None:
        """The place of a person among the entities; None: nobody can say who it is."""
        if who is None:
            return self._spoken_of
        if who.pronoun is not None:
            return self._by_pronoun(who.pronoun)
        if who.me:
            return self._named(Named(PERSON, me=True))
        owner = self._person(who.owner) if who.owner is not None else None
        if who.role is not None and owner is None:
            return None
        names = [who.name] if who.name else []
        place = self._named(Named(PERSON, names, role=who.role, owner=owner))
        if who.role is not None and owner is not None:
            self._claim(
                Claim(subject=owner, relation=self._tables.roles[who.role].relation, object=place)
            )
        return place

    def _by_pronoun(self, gender: str) -> int | None:
        """The one person whom it can mean; of two, nobody."""
        others = [
            at for at, one in enumerate(self._entities)
            if one.type == PERSON and not one.me and self._gender(one) in ("", gender)
        ]  # fmt: skip
        return others[0] if len(others) == 1 else None

    def _gender(self, one: Named) -> str:
        return self._tables.roles[one.role].gender if one.role else ""

    def _named(self, new: Named) -> int:
        """Where the entity stands; what the text called it before, it is."""
        for at, old in enumerate(self._entities):
            if old.type == new.type and _is_same(old, new):
                old.names += [name for name in new.names if name not in old.names]
                if old.role is None:
                    old.role, old.owner = new.role, new.owner
                return at
        self._entities.append(new)
        return len(self._entities) - 1

    def _naming(self, match: Match) -> None:
        """`My boss is Ruth`: a role without a name, and a name without a role."""
        who, other = match.parts[WHO].part, match.parts["person"].part
        if not isinstance(who, Who) or not isinstance(other, Who):
            return
        if who.role and not who.name and other.name and not other.role:
            self._person(replace(who, name=other.name))

    def _denial(self, match: Match, sentence: Sentence) -> None:
        """`Ruth is not my boss`: the relation that the role says does not hold with that name."""
        parts = (match.parts[WHO].part, match.parts["person"].part)
        roles = [one for one in parts if isinstance(one, Who) and one.role and not one.name]
        names = [one for one in parts if isinstance(one, Who) and one.name and not one.role]
        owner = self._person(roles[0].owner) if roles and names else None
        if owner is None:
            return
        self._claim(
            Claim(
                subject=owner,
                relation=self._tables.roles[roles[0].role or ""].relation,
                object=self._person(names[0]),
                span=Span.ENDS,
                quote=sentence.text(match.start, match.end),
            )
        )

    # --- relations

    def _relation(
        self, row: PhraseRow, match: Match, sentence: Sentence, periods: Sequence[Period]
    ) -> None:
        subject = self._subject(match)
        bound = match.parts.get("object") or _object(match)
        if subject is None or bound is None:
            return
        place = self._part(bound)
        if place is None or place == subject:
            return
        period = _beside(periods, match)
        quote = sentence.text(match.start, match.end)
        claim = Claim(
            subject=subject,
            relation=row.relation,
            object=place,
            span=Span.ENDS if row.ends else Span.HOLDS,
            begins=period.begins if period else None,
            ends=period.ends if period else None,
            change=row.change,
            quote=quote,
        )
        left = match.parts.get("ended")
        if left is not None:
            self._claim(replace(claim, object=self._part(left), span=Span.ENDS))
        self._claim(claim)

    def _subject(self, match: Match) -> int | None:
        bound = match.parts.get(WHO)
        if bound is not None:
            who = bound.part if isinstance(bound.part, Who) else None
            found = self._person(who) if who is not None else None
            if found is not None:
                self._spoken_of = found
            return found
        if match.goes_on:
            return self._spoken_of
        self._spoken_of = self._named(Named(PERSON, me=True))
        return self._spoken_of

    def _part(self, bound: Bound) -> int | None:
        part = bound.part
        if isinstance(part, Who):
            return self._person(part)
        return self._thing(_OBJECT_TYPES[bound.kind], part)

    def _claim(self, claim: Claim) -> int:
        for at, old in enumerate(self._claims):
            if old.said == claim.said:
                if claim.span is Span.ENDS:
                    self._claims[at] = claim
                return at
        self._claims.append(claim)
        return len(self._claims) - 1

    def _thing(self, type_: str, part: Thing) -> int:
        return self._named(Named(type_, [part.name], known=part.known))

    # --- events

    def _event(
        self,
        row: PhraseRow,
        match: Match,
        number: int,
        sentence: Sentence,
        periods: Sequence[Period],
    ) -> _Happened | None:
        bound = match.parts.get("hers")
        if bound is not None and isinstance(bound.part, Thing):
            subject = self._person(bound.part.of) if bound.part.of else None
            name = bound.part.name
        else:
            subject = self._subject(match)
            name = self._told(sentence, match.start, match.end)
        if subject is None:
            return None
        if bound is None and match.goes_on:
            owner = self._entities[subject]
            name = f"{owner.names[0]} {name}" if owner.names else name
        event = self._named(Named(EVENT, [name]))
        self._takes_part(subject, event, sentence, match, periods)
        org = match.parts.get("org")
        if org is not None and isinstance(org.part, Thing) and row.label:
            target = self._thing("Organization", org.part)
            self._claim(
                Claim(
                    subject=subject, relation=ANY, object=target, label=row.label,
                    quote=sentence.text(match.start, match.end),
                )
            )  # fmt: skip
        return _Happened(event, number, match.start, match.end)

    def _told(self, sentence: Sentence, start: int, end: int) -> str:
        """The words of an event, without the letters that join its clause to another."""
        first = sentence.words[start]
        known = first.forms & self._reader.vocabulary
        plain = next((one for one in JOINED if first.low.startswith(one)), "")
        if known and first.low not in known:
            plain = first.low[: -len(max(known, key=len))]
        text = sentence.text(start, end)
        return text[len(plain) :] if first.low[len(plain) :] in first.forms and plain else text

    def _takes_part(
        self, subject: int, event: int, sentence: Sentence, match: Match, periods: Sequence[Period]
    ) -> None:
        period = _beside(periods, match)
        self._claim(
            Claim(
                subject=subject,
                relation="PARTICIPATED_IN",
                object=event,
                begins=period.begins if period else None,
                ends=period.ends if period else None,
                change=True,
                quote=sentence.text(match.start, match.end),
            )
        )

    def _wheres(
        self, words: Sequence[Word], events: Sequence[_Happened], taken: frozenset[int]
    ) -> None:
        """Where the events of a sentence were."""
        for row, phrase, _ in self._reader.events:
            if not row.where or not events:
                continue
            for match in self._reader.matcher.matches(phrase, words, taken):
                bound = match.parts.get("place")
                inside = [one for one in events if one.start < match.start <= one.end]
                if bound is None or not inside or not isinstance(bound.part, Thing):
                    continue
                if not self._reader.parts.is_name(bound.part.name):
                    continue
                if self._is_organization(bound.part.name):
                    continue
                place = self._thing("Place", bound.part)
                self._claim(Claim(subject=inside[-1].entity, relation="LOCATED_IN", object=place))

    def _is_organization(self, name: str) -> bool:
        named = (one.names for one in self._entities if one.type == "Organization")
        return any(name in names for names in named)

    # --- feelings

    def _feeling(
        self, match: Match, number: int, sentence: Sentence, periods: Sequence[Period]
    ) -> None:
        words = sentence.words
        bound = match.parts.get("emotion") or match.parts.get("feeling")
        if bound is None or not isinstance(bound.part, Thing) or bound.part.known is None:
            return
        before = words[match.start : bound.start]
        negations = frozenset(self._tables.phrases.negations.split())
        if any(word.low in negations for word in before):
            return
        spoken = match.parts.get(WHO) is not None or match.goes_on
        if bound.kind == "feeling" and not bound.part.mine and not spoken:
            return
        holder = self._subject(match)
        if holder is None:
            return
        event = self._cause(match, bound, number, sentence)
        if event is None:
            name = self._told(sentence, match.start, match.end)
            event = self._named(Named(EVENT, [name]))
        emotion = self._named(Named(EMOTION, [bound.part.known], known=bound.part.known))
        self._takes_part(holder, event, sentence, match, periods)
        intense = any(
            word.low in self._tables.intensifiers for word in words[match.start : match.end]
        )
        self._claim(
            Claim(
                subject=event,
                relation="FELT",
                object=emotion,
                holder=holder,
                target=self._target(words, bound.end, holder),
                intensity=_INTENSE if intense else None,
                quote=sentence.text(match.start, match.end),
            )
        )

    def _cause(self, match: Match, bound: Bound, number: int, sentence: Sentence) -> int | None:
        """The event that a feeling is about: in its sentence, in the words behind it, before it."""
        words = sentence.words
        here = [one for one in self._events if one.sentence == number]
        behind = [one for one in here if one.start >= bound.end]
        if behind:
            return behind[0].entity
        if here and here[-1].end <= match.start + 1:
            return here[-1].entity
        start = bound.end
        if start < len(words) and words[start - 1].ends != ".":
            cause = self._words_behind(sentence, start)
            if cause and not set(cause.casefold().split()) <= self._tables.no_names:
                return self._named(Named(EVENT, [cause]))
        last = self._events[-1] if self._events else None
        if last is not None and last.sentence == number - 1:
            return last.entity
        return None

    def _words_behind(self, sentence: Sentence, start: int) -> str:
        """The words that say why: behind `about`, `that`, `כי`, or behind a joined letter."""
        words = sentence.words
        end = next((at + 1 for at in range(start, len(words)) if words[at].ends), len(words))
        if words[start].low in self._tables.causes:
            return sentence.text(start + 1, end)
        if words[start].hebrew and words[start].low[0] in _CAUSE_LETTERS:
            rest = words[start].behind(words[start].low[0])
            return sentence.text(start, end)[1:] if rest is not None else ""
        return ""

    def _target(self, words: Sequence[Word], start: int, holder: int) -> int | None:
        for at in range(start, len(words)):
            if words[at].low in self._tables.phrases.owners:
                found = self._by_pronoun(self._tables.phrases.owners[words[at].low])
                if found is not None and found != holder:
                    return found
            for _, part in self._reader.parts.person(words, at):
                if isinstance(part, Who) and part.role is not None:
                    found = self._person(part)
                    if found is not None and found != holder:
                        return found
                name = part.name if isinstance(part, Who) else None
                for place, one in enumerate(self._entities):
                    if name is not None and name in one.names and place != holder:
                        return place
        return None

    # --- what somebody has

    def _held(self, words: Sequence[Word]) -> None:
        """A value that somebody has is one of theirs: `her hard work`, `היושר של דנה`."""
        for at, word in enumerate(words):
            found = self._hebrew_held(words, at) if word.hebrew else self._english_held(words, at)
            if found is None:
                continue
            owner, value, end = found
            place = self._thing("Value", value)
            quote = " ".join(one.text for one in words[at:end])
            self._claim(Claim(subject=owner, relation="VALUES", object=place, quote=quote))

    def _english_held(self, words: Sequence[Word], at: int) -> tuple[int, Thing, int] | None:
        found = self._tables.values.at(tuple(one.low for one in words[at + 1 : at + 4]))
        if found is None:
            return None
        owners, owner = self._tables.phrases.owners, None
        if words[at].low in owners:
            owner = self._by_pronoun(owners[words[at].low])
        elif words[at].owns:
            owner = self._by_name(words[at].text)
        if owner is None:
            return None
        end = at + 1 + found[0]
        name = " ".join(one.text for one in words[at + 1 : end])
        return owner, Thing(name, found[1]), end

    def _hebrew_held(self, words: Sequence[Word], at: int) -> tuple[int, Thing, int] | None:
        tables = self._tables
        rest = tuple(one.low.removeprefix(_ARTICLE) for one in words[at + 1 : at + 3])
        forms = [(words[at].low[cut:], *rest) for cut in range(3)]
        listed = ((form, tables.values.at(form)) for form in forms)
        form, found = next(((form, one) for form, one in listed if one is not None), ((), None))
        end = at + found[0] if found else len(words)
        if found is None or end >= len(words):
            return None
        owner = None
        if words[end].low in tables.phrases.owners:
            owner = self._by_pronoun(tables.phrases.owners[words[end].low])
        elif words[end].low == tables.phrases.of and end + 1 < len(words):
            owner = self._by_name(words[end + 1].text)
        if owner is None:
            return None
        return owner, Thing(" ".join(form[: found[0]]), found[1]), end + 1

    def _by_name(self, name: str) -> int | None:
        return next(
            (
                at
                for at, one in enumerate(self._entities)
                if one.type == PERSON and name in one.names
            ),
            None,
        )

    def _kinds(self, sentence: Sentence, taken: frozenset[int]) -> None:
        """`Chess is my hobby`: a relation under the label that the text gives it."""
        words, tables = sentence.words, self._tables
        for _, match in self._found(self._reader.of_mine, words, taken):
            kind, what = match.parts["kind"].part, match.parts["topic"].part
            goes_on = match.end < len(words) and not words[match.end - 1].ends
            ends = not goes_on or words[match.end].low in tables.stops | tables.conjunctions
            if not isinstance(kind, Thing) or not isinstance(what, Thing):
                continue
            if ends and what.name != kind.name and any(map(str.isalpha, what.name)):
                me = self._named(Named(PERSON, me=True))
                quote = sentence.text(match.start, match.end)
                self._claim(
                    Claim(subject=me, relation=ANY, label=kind.name, value=what.name, quote=quote)
                )

    def _detail(self, sentence: Sentence) -> bool:
        """A detail with one value: `my phone number is …`. Whether the sentence says one."""
        text = sentence.text(0, len(sentence.words))
        slot = slot_of(text)
        if slot is None or slot.name in _SAID_BY_RELATIONS:
            return False
        if self._tables.kin.at((slot.name,)) is not None:  # a person, and no detail
            return True
        if slot.value.split()[0] in self._tables.no_details:
            return True
        if slot.subject == SLOT_ME:
            owner: int | None = self._named(Named(PERSON, me=True))
        else:
            owner = self._by_name_form(slot.subject)
        if owner is not None:
            self._claim(
                Claim(
                    subject=owner, relation=DETAIL, label=slot.name, value=slot.value, quote=text
                )
            )  # fmt: skip
        return True

    def _by_name_form(self, name: str) -> int | None:
        plain = name.removeprefix("my ")
        for at, one in enumerate(self._entities):
            if one.type == PERSON and any(each.casefold() == plain for each in one.names):
                return at
            if one.type == PERSON and one.role == plain:
                return at
        if plain != name or " " in plain or plain in self._tables.no_names:
            return None
        return self._named(Named(PERSON, [plain.title()]))

    def _because(self, words: Sequence[Word], begun: int) -> None:
        """What a sentence gives as the reason rests under what it is the reason for."""
        made = range(begun, len(self._claims))
        at = next((at for at, word in enumerate(words) if word.low in self._tables.reasons), None)
        if at is None or len(made) < 2:
            return
        behind = " ".join(word.text for word in words[at + 1 :])
        kept = [one for one in made if self._claims[one].quote and self._is_state(one)]
        causes = [one for one in kept if self._claims[one].quote in behind]
        effects = [one for one in kept if one not in causes]
        if at == 0:
            # "Since I work at …, I take the train": the reason comes first.
            causes, effects = kept[:1], kept[1:]
        for effect in effects if causes else ():
            self._claims[effect] = replace(self._claims[effect], because=causes[0])

    def _is_state(self, at: int) -> bool:
        one = self._claims[at]
        return one.span is Span.HOLDS and one.relation not in ("PARTICIPATED_IN", "FELT")

    # --- the whole

    def _whole(self) -> Reading:
        """Without entities of which nothing is said."""
        used = {
            at
            for one in self._claims
            for at in (one.subject, one.object, one.holder, one.target)
            if at is not None
        }
        used |= {owner for at in used if (owner := self._entities[at].owner) is not None}
        places = {old: new for new, old in enumerate(sorted(used))}
        entities = [replace(self._entities[at]) for at in sorted(used)]
        for one in entities:
            one.owner = places[one.owner] if one.owner is not None else None
        moved = [
            replace(
                one,
                subject=places[one.subject],
                object=_moved(places, one.object),
                holder=_moved(places, one.holder),
                target=_moved(places, one.target),
            )
            for one in self._claims
        ]
        return Reading(tuple(entities), tuple(moved))


def _moved(places: dict[int, int], at: int | None) -> int | None:
    return None if at is None else places[at]


def _object(match: Match) -> Bound | None:
    names = (name for name in match.parts if name not in (WHO, "ended"))
    return next((match.parts[name] for name in names), None)


def _beside(periods: Sequence[Period], match: Match) -> Period | None:
    """The period in the words of a phrase, or the nearest behind or before it."""
    apart = sorted(periods, key=lambda one: _distance(one, match))
    return apart[0] if apart else None


def _distance(period: Period, match: Match) -> int:
    if period.start >= match.start:
        return max(period.start - match.end, 0)
    return match.start - period.end + 1


def _is_same(old: Named, new: Named) -> bool:
    if old.me or new.me:
        return old.me and new.me
    if new.known is not None or old.known is not None:
        return new.known == old.known
    names = {name.casefold() for name in old.names} & {name.casefold() for name in new.names}
    if old.type != PERSON:
        return bool(names)
    if old.role and new.role and (old.role, old.owner) != (new.role, new.owner):
        return False
    if old.names and new.names:
        return bool(names)
    return bool(old.role) and (old.role, old.owner) == (new.role, new.owner)


def _said_in(words: Sequence[Word]) -> frozenset[str]:
    return frozenset(form for word in words for form in word.forms)
