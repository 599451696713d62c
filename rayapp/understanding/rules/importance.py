"""How much a text matters: four signals, what overrides them, who said it. Pure.

First the weighted sum, then the overrides, then the factor of the speaker: what an assistant said
passes only where it is very telling, or where its topic comes again and again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice, pairwise

from rayapp.core.settings.access import SettingsSection
from rayapp.text.concept_words import phrase_key, scan
from rayapp.text.concepts import concept_key
from rayapp.text.normalize import normalize
from rayapp.understanding.records import (
    MOST_TOPICS,
    Gate,
    Importance,
    Mention,
    Override,
    Signal,
    Speaker,
)
from rayapp.understanding.rules.signals import (
    ReadSentence,
    Signals,
    SignalWords,
    at_least_of,
    read_sentence,
    sentences_of,
    with_kinds,
)

# At least this much with any override but recurrence, which makes it all.
OVERRIDDEN, RECURRENT = 0.75, 1.0
ASSISTANT_FACTOR = 0.5
SCORE_DECIMALS = 4
# A topic that comes on so many days, or in so many conversations, of so many days.
RECURRING_DAYS, RECURRING_CONVERSATIONS = 3, 3
RECURRING_WITHIN = timedelta(days=30)
# Known names that make a text dense: so many, and one for so many words.
DENSE_NAMES, DENSE_WORDS = 2, 12
# What a person alone can claim: an assistant that says "I am" is no person.
OF_PERSONS = frozenset({Override.IDENTITY, Override.GOAL})
# Sentences of a text, from its beginning, that the heads may be asked of: each is a pass of the
# encoder.
MOST_ASKED = 12
# Topics of a document are read from its beginning.
TOPIC_CHARS = 600


class Weights(SettingsSection):
    """Of each signal; together 1."""

    emotional: float
    personal: float
    temporal: float
    decision: float

    def base(self, signals: Signals) -> float:
        found = sum(getattr(self, one.value) * getattr(signals, one.value) for one in Signal)
        return round(float(found), SCORE_DECIMALS)


class ImportanceParams(SettingsSection):
    """The shipped file of weights; `params` names it."""

    params: str
    tables: Weights
    heads: Weights


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known beside the text. `names`: known ones in it; `fact`: of the memory bank;
    `tested`: the test switch."""

    recurs: bool = False
    names: int = 0
    fact: bool = False
    tested: bool = False


class Weighing:
    """A text while it is weighed: by the tables at once, then by the heads, sentence by sentence,
    for as long as they may change on which side of the threshold it is.

    `heads`: they are asked; what they were not asked of counts by the tables alone.
    """

    def __init__(
        self,
        text: str,
        words: SignalWords,
        params: ImportanceParams,
        *,
        speaker: Speaker,
        threshold: float,
        around: Circumstances = Circumstances(),
        heads: bool = False,
    ) -> None:
        self.sentences = sentences_of(text)
        self._params, self._heads = params, heads
        self._speaker, self._threshold, self._around = speaker, threshold, around
        self._by_words = {one: read_sentence(one, words) for one in self.sentences}
        self._read = dict(self._by_words)
        # What is left of each sentence that may still be asked of, whatever the heads say.
        unheard = islice(self._by_words.items(), MOST_ASKED if heads else 0)
        self._unheard = {one: at_least_of(read) for one, read in unheard}

    def to_ask(self) -> str | None:
        """The sentence that promises most; None: what the others are changes nothing."""
        if self._of(self._read | self._unheard).passed:
            return None
        tell = [one for one in self._unheard if self._may_tell(self._by_words[one])]
        return max(tell, key=lambda one: self._promise(self._by_words[one]), default=None)

    def hear(self, sentence: str, kinds: Mapping[str, float]) -> None:
        """What the heads say of it, by kind."""
        self._read[sentence] = with_kinds(self._by_words[sentence], kinds)
        self._unheard.pop(sentence, None)

    def without_heads(self) -> None:
        """They cannot be asked: the tables decide alone."""
        self._heads, self._read = False, self._by_words
        self._unheard = {}

    def importance(self) -> Importance:
        """By what is known so far."""
        return self._of(self._read)

    def _of(self, by_sentence: Mapping[str, ReadSentence]) -> Importance:
        read = [by_sentence[one] for one in self.sentences]
        weights, speaker = self._weights, self._speaker
        best = max(read, key=lambda one: weights.base(one.signals), default=ReadSentence(Signals()))
        base = weights.base(best.signals)
        overrides = _overrides(read, speaker, self._around)
        score = base
        if Override.RECURRENCE in overrides or Override.TESTED in overrides:
            score = RECURRENT
        elif overrides:
            score = max(base, OVERRIDDEN)
        factor = ASSISTANT_FACTOR if speaker is Speaker.ASSISTANT else 1.0
        return Importance(
            speaker=speaker,
            score=round(score * factor, SCORE_DECIMALS),
            base=base,
            signals=best.signals.by_name(),
            overrides=overrides,
            threshold=self._threshold,
            factor=factor,
            params=f"{self._params.params}{'+heads' if self._heads else ''}",
        )

    @property
    def _weights(self) -> Weights:
        return self._params.heads if self._heads else self._params.tables

    def _may_tell(self, read: ReadSentence) -> bool:
        """The heads add nothing to an errand, so one that is below stays below."""
        return not read.errand or self._promise(read) > self._threshold

    def _promise(self, read: ReadSentence) -> float:
        base = self._weights.base(read.signals)
        return max(base, OVERRIDDEN) if read.overrides else base


def importance_of(
    text: str,
    words: SignalWords,
    params: ImportanceParams,
    *,
    speaker: Speaker,
    threshold: float,
    around: Circumstances = Circumstances(),
    kinds: Callable[[str], Mapping[str, float]] | None = None,
) -> Importance:
    """`kinds`: what the heads say of a sentence, each of which is asked; None: the tables alone."""
    weighing = Weighing(
        text,
        words,
        params,
        speaker=speaker,
        threshold=threshold,
        around=around,
        heads=kinds is not None,
    )
    if kinds is not None:
        for one in weighing.sentences:
            weighing.hear(one, kinds(one))
    return weighing.importance()


def _overrides(
    read: Sequence[ReadSentence], speaker: Speaker, around: Circumstances
) -> tuple[Override, ...]:
    found = {one for sentence in read for one in sentence.overrides}
    if speaker is not Speaker.USER:
        found -= OF_PERSONS
    if around.recurs:
        found.add(Override.RECURRENCE)
    if around.fact:
        found.add(Override.FACT)
    if around.tested:
        found.add(Override.TESTED)
    said = sum(sentence.words for sentence in read)
    if around.names >= DENSE_NAMES and said <= DENSE_WORDS * around.names:
        found.add(Override.DENSITY)
    return tuple(one for one in Override if one in found)


def topics_of(text: str, named: Sequence[str]) -> tuple[str, ...]:
    """Keys of what a text is about: the topics that were named, and words that stand side by side.

    Single words are too common to come again by more than chance.
    """
    keys = [concept_key(one) for one in named]
    words = scan(normalize(text[:TOPIC_CHARS]), frozenset()).words
    for first, second in pairwise(words):
        if not (first.stop or second.stop):
            keys.append(phrase_key((first, second)))
    return tuple(dict.fromkeys(key for key in keys if key))[:MOST_TOPICS]


def recurs(said: Mention, earlier: Sequence[Mention]) -> bool:
    """Whether one of its topics comes on several days, or in several conversations, this time
    among them."""
    since = said.at - RECURRING_WITHIN
    for topic in said.topics:
        same = [one for one in earlier if topic in one.topics and since < one.at <= said.at]
        days = {one.at.date() for one in (*same, said)}
        places = {one.conversation_id for one in (*same, said)} - {None}
        if len(days) >= RECURRING_DAYS or len(places) >= RECURRING_CONVERSATIONS:
            return True
    return False


def is_derived(sides: Sequence[Importance], gate: Gate) -> bool:
    """Whether anything of a source is derived from."""
    return gate is Gate.OFF or any(side.passed for side in sides)
