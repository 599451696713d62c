"""What a turn of a conversation owes to the turns around it, and to who says it.

A short turn seldom holds the words of the question that it answers: the turn before it does. So a
turn takes over a share of the relevance of its neighbours, more of it from one that asks. And when
the question names one of the speakers, what that speaker says is nearer. Pure.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np

from rayapp.memory.item import MemoryItem
from rayapp.memory.tiers import Tier
from rayapp.search.rules.recipes import TurnShares
from rayapp.text.hebrew import is_hebrew, without_prefixes
from rayapp.text.language import crosses
from rayapp.text.normalize import normalize
from rayapp.text.passages import is_whole
from rayapp.text.tokens import tokens

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
# Cached beginnings of texts: the candidates of some hundred searches.
CACHE_TEXTS = 1 << 14


def with_turns(
    items: Sequence[MemoryItem],
    relevance: Sequence[float],
    question: str,
    shares: TurnShares,
    query_lang: str = "other",
) -> list[float]:
    """`relevance` of the items with what their speakers and neighbours add, 0..1.

    Nothing is taken from an item, and the order of items without turns stays as it is: when a
    value rises above 1, all are divided by the highest.
    """
    said = _by_speaker(items, relevance, question, shares.speaker)
    added = _from_neighbours(items, said, shares, query_lang) if shares.neighbour > 0.0 else {}
    if not added and said is relevance:
        return list(relevance)
    values = [value + added.get(index, 0.0) for index, value in enumerate(said)]
    highest = max(values, default=0.0)
    return [value / highest for value in values] if highest > 1.0 else values


def speaker_of(text: str) -> str | None:
    """Who speaks in `name: text`, lower case; None when the text names no speaker."""
    start = text.lstrip()[: MAX_LABEL_CHARS + 2]
    return _label(start) if ":" in start else None


@lru_cache(maxsize=CACHE_TEXTS)
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
    items: Sequence[MemoryItem], relevance: Sequence[float], question: str, gain: float
) -> Sequence[float]:
    if gain <= 0.0 or not question:
        return relevance
    labels = [speaker_of(item.text) if item.tier in TURN_TIERS else None for item in items]
    speakers = {label for label in labels if label is not None}
    # Where everybody is one speaker, the name tells nothing apart.
    named = named_speaker(question, speakers) if len(speakers) > 1 else None
    if named is None:
        return relevance
    return [
        value * (1.0 + gain) if label == named else value
        for value, label in zip(relevance, labels, strict=True)
    ]


def _is_turn(item: MemoryItem) -> bool:
    """A long text is a document, or an answer of an assistant, and says itself what it is about:
    what it gives to its neighbours costs a chat a tenth of its questions (decision 0054)."""
    return item.tier in TURN_TIERS and item.sequence > 0 and is_whole(item.text)


def _from_neighbours(
    items: Sequence[MemoryItem], relevance: Sequence[float], shares: TurnShares, query_lang: str
) -> dict[int, float]:
    """Index of an item to what its neighbours give it.

    A turn in the other script gives nothing: only its vector speaks for it, the nearest of a whole
    dialogue is near by chance, and together such turns pass a paragraph that has the words.
    """
    keys = sorted(
        (item.source.conversation_id or "", item.sequence, item.point_id, index)
        for index, item in enumerate(items)
        if _is_turn(item)
    )
    order = [key[-1] for key in keys]
    pairs = close_turns([items[index] for index in order])
    if not pairs:
        return {}
    given = [
        0.0 if crosses(query_lang, item.lang) else value**POWER
        for item, value in zip(items, relevance, strict=True)
    ]
    added: dict[int, float] = {}
    for first, second, apart in pairs:
        before, after = order[first], order[second]
        share = shares.neighbour * (1.0 if apart == 1 else shares.second)
        asks = apart == 1 and "?" in items[before].text
        forward = share * (1.0 + (shares.answer if asks else 0.0))
        added[after] = added.get(after, 0.0) + forward * given[before]
        added[before] = added.get(before, 0.0) + share * given[after]
    return added


def close_turns(items: Sequence[MemoryItem]) -> list[tuple[int, int, int]]:
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
    found: list[tuple[int, int, int]] = []
    for reach in range(1, REACH + 1):
        steps, pause = came[reach:] - came[:-reach], (said[reach:] - said[:-reach]) / 1e6
        minutes = np.maximum(1, np.ceil(pause / TURN_S)).astype(np.int64)
        apart = np.where(steps <= REACH, steps, np.where(pause > 0.0, minutes, REACH + 1))
        near = (talks[reach:] == talks[:-reach]) & (steps > 0) & (apart <= REACH)
        near &= (pause >= 0.0) & (pause <= PAUSE_S)
        places = np.flatnonzero(near)
        columns = (places, places + reach, apart[places])
        found += zip(*(column.tolist() for column in columns), strict=True)
    return sorted(found)
