"""What comes from elsewhere as the rows of an archive, so that it is imported as one. Pure."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import asdict, fields, replace
from datetime import datetime, timedelta
from typing import Any

from rayapp.assistant.conversations.rules import EXCHANGE_TAG, Turn, exchange_id, stored_text
from rayapp.assistant.history.rules import first_words, turn_terms
from rayapp.assistant.ports import KeptTurn
from rayapp.core.errors import RayappError
from rayapp.memory.item import MemoryItem, Source, SourceType, Stats, Status, point_id_of
from rayapp.memory.requests import NewMemory
from rayapp.memory.rules.creation import (
    DEFAULT_CONFIDENCE,
    DEFAULT_IMPORTANCE,
    TextLimits,
    check_new,
    new_item,
    sequence_at,
)
from rayapp.memory.tiers import Tier
from rayapp.portability.rules.archive import Row
from rayapp.portability.rules.collections import ITEMS
from rayapp.portability.rules.foreign import (
    MAX_WORDS_CHARS,
    ForeignConversation,
    ForeignMemory,
    ForeignTurn,
    Found,
    LeftOut,
    digest,
)
from rayapp.portability.rules.kinds import Origin

SESSIONS, TURNS = "sessions", "turns"
CONVERSATIONS = "conversations"
LONG = "longer than is stored: its beginning is kept"
TWICE = "said twice in the file"
# Between turns of which nobody says when they were said: the least that MongoDB tells apart.
APART = timedelta(milliseconds=1)


ITEM_FIELDS = tuple(one.name for one in fields(MemoryItem) if one.name not in ("user_id", "index"))


class ForeignRows:
    """Turns what a reader finds into rows, by collection; counts what comes and what does not.

    `room`: facts that the memory bank still takes; what comes after them goes to the history.
    Nothing that comes from elsewhere ends by itself, whatever its tier: its time is over already.
    """

    def __init__(
        self,
        user_id: str,
        origin: Origin,
        now: datetime,
        *,
        limits: TextLimits,
        bank: Set[str],
        capacity: int,
    ) -> None:
        """`bank`: ids of what is kept in it already."""
        self._user_id, self._origin, self._now = user_id, origin, now
        self._limits = limits
        self._bank, self._room = bank, capacity - len(bank)
        self._ids: set[str] = set()
        self._texts: dict[tuple[Tier, str], str] = {}
        self.counts: Counter[str] = Counter()
        self.left_out: Counter[tuple[str, str]] = Counter()

    def rows(self, found: Found) -> Iterator[tuple[str, Row]]:
        """Names of collections and rows for them; none for what is left out."""
        if isinstance(found, LeftOut):
            self.left_out[found.what, found.why] += found.count
        elif isinstance(found, ForeignMemory):
            if (item := self._fact(found)) is not None:
                self.counts[item.tier.value] += 1
                yield ITEMS, item_row(item)
        else:
            yield from self._conversation(found)

    # --- memories

    def _fact(self, found: ForeignMemory) -> MemoryItem | None:
        name = digest(self._origin.value, found.key, found.text)
        new = NewMemory(
            text=found.text,
            tier=found.tier,
            tags=(self._origin.value, *found.tags)[:64],
            importance=DEFAULT_IMPORTANCE if found.importance is None else found.importance,
            confidence=DEFAULT_CONFIDENCE if found.confidence is None else found.confidence,
            memory_id=f"{self._origin.value}-{name}",
            source=Source(type=SourceType.IMPORT),
            valid_to=found.valid_to,
        )
        if new.tier is Tier.MEMORY_BANK and not found.archived and not self._bank_takes(new):
            new = replace(new, tier=Tier.HISTORY)
        item = self._item(new, found.at, found.changed_at)
        if item is None:
            return None
        if found.score is not None:
            item = replace(item, stats=Stats(score=found.score))
        if found.archived:
            gone: dict[str, Any] = {"archived_at": item.updated_at, "archived_reason": "import"}
            return replace(item, status=Status.ARCHIVED, **gone)
        if (item.tier, item.content_hash) in self._texts:
            self.left_out["memory", TWICE] += 1
            return None
        self._texts[item.tier, item.content_hash] = item.memory_id
        self._room -= item.tier is Tier.MEMORY_BANK and item.memory_id not in self._bank
        return item

    def _bank_takes(self, new: NewMemory) -> bool:
        """It keeps facts in a few words, and so many of them; one that it has it has room for."""
        try:
            check_new(new, self._limits)
        except RayappError:
            return False
        return self._room > 0 or new.memory_id in self._bank

    def _item(
        self, new: NewMemory, at: datetime | None, changed: datetime | None, place: int = 0
    ) -> MemoryItem | None:
        """None: it is left out, and that is counted."""
        memory_id = new.memory_id or ""
        try:
            if memory_id in self._ids:
                raise ValueError(TWICE)
            check_new(new, self._limits)
        except (RayappError, ValueError) as error:
            why = error.message if isinstance(error, RayappError) else str(error)
            self.left_out["memory", why.rstrip(".")] += 1
            return None
        self._ids.add(memory_id)
        at = min(at or self._now, self._now)
        item = new_item(new, user_id=self._user_id, memory_id=memory_id, now=self._now)
        updated = min(max(changed or at, at), self._now)
        return replace(
            item,
            created_at=at,
            updated_at=updated,
            expires_at=None,
            sequence=sequence_at(at) + place,
        )

    # --- conversations

    def _conversation(self, found: ForeignConversation) -> Iterator[tuple[str, Row]]:
        name = f"{self._origin.value}-{found.key}"
        times = times_of([turn.at for turn in found.turns], found.at, self._now)
        begun, last, turns = min(found.at or times[0], times[0]), None, 0
        for number, (turn, at) in enumerate(zip(found.turns, times, strict=True)):
            item = self._item(self._turn_memory(name, turn), at, None, number)
            if item is None:
                continue
            last, turns = at, turns + 1
            known = self._texts.setdefault((item.tier, item.content_hash), item.memory_id)
            if known == item.memory_id:
                yield ITEMS, item_row(item)
            else:
                self.left_out["memory", TWICE] += 1
            yield TURNS, self._turn_row(name, turn, at, known)
        if not turns:
            return
        self.counts[CONVERSATIONS] += 1
        self.counts[TURNS] += turns
        yield (
            SESSIONS,
            {
                "conversation_id": name,
                "title": found.title or first_words(found.turns[0].question),
                "titled_by": "model" if found.title else "words",
                "created_at": begun,
                "last_at": last,
                "updated_at": last,
                "exchanges": turns,
                "expires_at": None,
            },
        )

    def _turn_memory(self, conversation: str, turn: ForeignTurn) -> NewMemory:
        said = Turn(question=turn.question, answer=turn.answer, tools=())
        text, cut = stored_text(said, (), self._limits.text)
        if not (turn.question and turn.answer):
            said_by_one = turn.question or turn.answer
            text, cut = said_by_one[: self._limits.text], len(said_by_one) > self._limits.text
        if cut or max(len(turn.question), len(turn.answer)) >= MAX_WORDS_CHARS:
            self.left_out["turn", LONG] += 1
        return NewMemory(
            text=text,
            tier=Tier.HISTORY,
            tags=(self._origin.value, EXCHANGE_TAG),
            memory_id=exchange_id(self._user_id, conversation, turn.key),
            source=Source(
                type=SourceType.IMPORT, conversation_id=conversation, message_id=turn.key
            ),
        )

    def _turn_row(self, conversation: str, turn: ForeignTurn, at: datetime, memory: str) -> Row:
        kept = KeptTurn(
            user_id=self._user_id,
            conversation_id=conversation,
            message_id=turn.key,
            question=turn.question,
            answer=turn.answer,
            at=at,
            memory_id=memory,
            model=turn.model,
        )
        row = asdict(kept)
        del row["user_id"]
        words = list(turn_terms(turn.question, turn.answer))
        return row | {"point_id": point_id_of(self._user_id, memory), "words": words}


def times_of(
    stated: Sequence[datetime | None], begun: datetime | None, now: datetime
) -> list[datetime]:
    """When each turn was said, one after the other: turns are shown by their times.

    A time is believed where it lies in one order with the most others; what has none or another
    was said right after the turn before it.
    """
    believed = _in_order([at if at and at <= now else None for at in stated])
    times: list[datetime] = []
    last = min(filter(None, (begun, *believed, now))) - APART
    for at in believed:
        last = max(at or last, last + APART)
        times.append(last)
    late = now
    for place in reversed(range(len(times))):
        times[place] = min(times[place], late)
        late = times[place] - APART
    return times


def _in_order(times: Sequence[datetime | None]) -> list[datetime | None]:
    """The most that do not go back, each at its place."""
    ends: list[tuple[datetime, int]] = []  # of the best runs, by their length
    before: dict[int, int | None] = {}
    for place, at in enumerate(times):
        if at is not None:
            length = bisect_right(ends, at, key=lambda end: end[0])
            before[place] = ends[length - 1][1] if length else None
            ends[length : length + 1] = [(at, place)]
    kept: set[int] = set()
    last = ends[-1][1] if ends else None
    while last is not None:
        kept.add(last)
        last = before[last]
    return [at if place in kept else None for place, at in enumerate(times)]


def item_row(item: MemoryItem) -> Row:
    """As an export writes it; values in it are written like rows of their own."""
    return {name: getattr(item, name) for name in ITEM_FIELDS}
