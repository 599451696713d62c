"""What a turn of a conversation owes to the turns around it, and to who says it.

A short turn seldom holds the words of the question that it answers: the turn before it does. So a
turn takes over a share of the relevance of its neighbours, more of it from one that asks. And when
the question names one of the speakers, what that speaker says is nearer. Pure.
"""

import re
from collections.abc import Collection, Sequence

import numpy as np

from rayapp.memory.item import MemoryItem
from rayapp.memory.tiers import Tier
from rayapp.search.rules.candidates import Floats, Ints
from rayapp.search.rules.recipes import TurnShares
from rayapp.text.hebrew import is_hebrew, without_prefixes
from rayapp.text.language import crosses
from rayapp.text.normalize import normalize
from rayapp.text.passages import is_whole
from rayapp.text.tokens import tokens
from rayapp.text.utterance import word_reading

# Where exchanges are kept; a fact, a page or a dataset next to another one has no turn.
TURN_TIERS = frozenset({Tier.WORKING, Tier.HISTORY})
# Turns before and after that count. A third one adds nothing (measured on LoCoMo).
REACH = 2
# A pause that ends a conversation, seconds, our choice.
PAUSE_S = 3_600.0
# Memories that were not stored in one batch: seconds per turn of a live chat, our choice.
TURN_S = 60.0
# A neighbour counts by its relevance to this power: the weak ones together must not outweigh a
# strong one. Measured on LoCoMo, cross-validated: hit@10 .824 squared, .808 as it is.
POWER = 2
# A speaker's label is a few words at the start of the text.
MAX_LABEL_CHARS = 40
# A Hebrew name of two letters may follow a prefix (לגל, ורז); the name itself is compared whole.
MIN_NAME_LETTERS = 2

_LABEL = re.compile(rf"\s*([^\W\d_][^:\n?!]{{0,{MAX_LABEL_CHARS - 1}}}):(?=\s)")


def with_turns(
    items: Sequence[MemoryItem],
    relevance: Floats,
    question: str,
    shares: TurnShares,
    query_lang: str = "other",
) -> Floats:
    """`relevance` of the items with what their speakers and neighbours add, 0..1.

    Nothing is taken from an item, and the order of items without turns stays as it is: when a
    value rises above 1, all are divided by the highest.
    """
    values = _by_speaker(items, relevance, question, shares.speaker)
    if shares.neighbour > 0.0:
        values = values + _from_neighbours(items, values, shares, query_lang)
    highest = np.max(values, initial=0.0)
    return values / highest if highest > 1.0 else values


def speaker_of(text: str) -> str | None:
    """Who speaks in `name: text`, lower case; None when the text names no speaker."""
    start = text.lstrip()[: MAX_LABEL_CHARS + 2]
    return _label(start) if ":" in start else None


@word_reading
def _label(start: str) -> str | None:
    match = _LABEL.match(start)
    return None if match is None else normalize(match[1]).casefold()


def named_speaker(question: str, speakers: Collection[str]) -> str | None:
    """The one of `speakers` that the question names; None when it names none or several.

    A speaker of several words is named by the first of them. Hebrew prefixes are taken off.
    """
    words: set[str] = set()
    for token in tokens(normalize(question)):
        words.add(token.text)
        if is_hebrew(token.text):
            words.update(without_prefixes(token.text, MIN_NAME_LETTERS))
    named = [name for name in speakers if name.split()[0] in words]
    return named[0] if len(named) == 1 else None


def _by_speaker(
    items: Sequence[MemoryItem], relevance: Floats, question: str, gain: float
) -> Floats:
    if gain <= 0.0 or not question:
        return relevance
    labels = [speaker_of(item.text) if item.tier in TURN_TIERS else None for item in items]
    speakers = {label for label in labels if label is not None}
    # Where everybody is one speaker, the name tells nothing apart.
    named = named_speaker(question, speakers) if len(speakers) > 1 else None
    if named is None:
        return relevance
    return relevance * np.where([label == named for label in labels], 1.0 + gain, 1.0)


def _turns_among(items: Sequence[MemoryItem]) -> list[int]:
    """Places of the turns, those of a conversation beside each other, as they came.

    A long text is a document, or an answer of an assistant, and says itself what it is about: what
    it gives to its neighbours costs a chat a tenth of its questions (decision 0054).
    """
    turns = [
        (item.source.conversation_id or "", item.sequence, item.point_id, at)
        for at, item in enumerate(items)
        if item.sequence > 0 and item.tier in TURN_TIERS and is_whole(item.text)
    ]
    turns.sort()
    return [turn[-1] for turn in turns]


def _from_neighbours(
    items: Sequence[MemoryItem], relevance: Floats, shares: TurnShares, query_lang: str
) -> Floats:
    """What its neighbours give each of the items.

    A turn in the other script gives nothing: only its vector speaks for it, the nearest of a whole
    dialogue is near by chance, and together such turns pass a paragraph that has the words.
    """
    added, order = np.zeros(len(items)), _turns_among(items)
    turns = [items[at] for at in order]
    first, second, apart = close_turns(turns)
    if not len(first):
        return added
    before, after = np.array(order)[first], np.array(order)[second]
    silent = {lang for lang in {turn.lang for turn in turns} if crosses(query_lang, lang)}
    given = relevance**POWER
    if silent:
        given[[item.lang in silent for item in items]] = 0.0
    asks = np.array(["?" in turn.text for turn in turns])[first] & (apart == 1)
    share = shares.neighbour * np.where(apart == 1, 1.0, shares.second)
    forward = share * np.where(asks, 1.0 + shares.answer, 1.0)
    np.add.at(added, after, forward * given[before])
    np.add.at(added, before, share * given[after])
    return added


def close_turns(items: Sequence[MemoryItem]) -> tuple[Ints, Ints, Ints]:
    """Places of two turns of one conversation, and how many turns the second follows the first by:
    1 to `REACH`. `items`: those of a conversation beside each other, as they came.

    The order within a batch says it exactly. Otherwise the time between them does, so what was
    said in a minute is one turn apart.
    """
    came = np.array([item.sequence for item in items], np.int64)
    said = np.rint(np.array([item.created_at.timestamp() for item in items]) * 1e6)
    known: dict[tuple[str, str | None], int] = {}
    spoken = [(item.user_id, item.source.conversation_id) for item in items]
    talks = np.array([known.setdefault(one, len(known)) for one in spoken], np.int64)
    found: list[tuple[Ints, Ints, Ints]] = []
    for reach in range(1, REACH + 1):
        steps, pause = came[reach:] - came[:-reach], (said[reach:] - said[:-reach]) / 1e6
        minutes = np.maximum(1, np.ceil(pause / TURN_S)).astype(np.int64)
        apart = np.where(steps <= REACH, steps, np.where(pause > 0.0, minutes, REACH + 1))
        near = (talks[reach:] == talks[:-reach]) & (steps > 0) & (apart <= REACH)
        near &= (pause >= 0.0) & (pause <= PAUSE_S)
        places = np.flatnonzero(near)
        found.append((places, places + reach, apart[places]))
    first, second, distance = (np.concatenate(column) for column in zip(*found, strict=True))
    return first, second, distance
