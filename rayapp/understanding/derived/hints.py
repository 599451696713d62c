"""Hints: what is known of somebody that helps with a question, read anew each time.

Nothing is kept in a process: a few reads are cheaper than a wrong answer after a deletion.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rayapp.core.ids import user_of
from rayapp.core.runtime import Clock
from rayapp.core.scope import ReadScope
from rayapp.understanding.derived.ports import DerivedStore, DerivedWanted
from rayapp.understanding.derived.records import Derived, DerivedKind, State
from rayapp.understanding.derived.requests import Hint, HintKind, Hints, HintsRequest
from rayapp.understanding.derived.rules.choosing import CAPS, QuestionReader, chosen
from rayapp.understanding.derived.rules.support import confidence_of, trend_of
from rayapp.understanding.derived.rules.wording import TongueName, Wording, tongue_of
from rayapp.understanding.derived.standing import fallen
from rayapp.understanding.statements.ports import KnowledgeStore
from rayapp.understanding.statements.records import Level

# Rows of each sort that are chosen from, the ones said last.
MOST_CHOSEN_FROM = 100
MOST_EXAMPLES, MOST_EXAMPLE = 3, 160
# What the recap line calls the best of each kind, in its order.
RECAP = (
    (HintKind.TRAITS, "trait"),
    (HintKind.EPISODES, "episode"),
    (HintKind.GOALS, "goal"),
    (HintKind.TOPICS, "topic"),
    (HintKind.PATTERNS, "pattern"),
)


@dataclass(eq=False)
class HintsService:
    """Raises StoreDown."""

    store: DerivedStore
    knowledge: KnowledgeStore
    wording: Wording
    questions: QuestionReader
    clock: Clock

    async def hints(self, scope: ReadScope, asked: HintsRequest) -> Hints:
        """What was said outright, and what a person accepted; nothing that waits or is in doubt."""
        began, now = self.clock.monotonic(), self.clock.now()
        rows, pending = await asyncio.gather(self._rows(scope, asked), self.store.pending(scope))
        picked = chosen(rows, self.questions.read(asked.query), asked, now)
        every = [one for found in picked.values() for one in found]
        down = await fallen(self.knowledge, scope, every, now)
        tongue = asked.language or tongue_of(asked.query or " ".join(one.text for one in every))
        found = {
            kind: tuple(
                self._hint(kind, one, tongue, now) for one in best if one.derived_id not in down
            )[: min(CAPS[kind], asked.limit or CAPS[kind])]
            for kind, best in picked.items()
        }
        return Hints(
            found=found,
            recap=self._recap(found, tongue),
            waiting=sum(pending.values()),
            built_ms=round((self.clock.monotonic() - began) * 1000, 3),
        )

    async def lines(self, scope: ReadScope, query: str, most: int) -> tuple[str, ...]:
        """The same as lines of a prompt, then the three ways in which they may be mentioned."""
        found = (await self.hints(scope, HintsRequest(query=query))).all()[:most]
        if not found:
            return ()
        tongue, words = tongue_of(query), self.wording.words
        ways = " ".join(getattr(one, tongue) for one in words.ways.values())
        told = (
            f"{one.title if one.kind is HintKind.EPISODES else one.text} ({one.when})"
            for one in found
        )
        return *told, f"{getattr(words.ways_title, tongue)}: {ways}"

    async def _rows(self, scope: ReadScope, asked: HintsRequest) -> list[Derived]:
        """What was said counts from its first time on; what was seen, once it is accepted."""
        reads = self.store.reads(scope)

        me = (None, user_of(scope.user_id))
        # What is about a child is told to who asks for the child, and the other way round.
        about = me if asked.subject_id is None else (asked.subject_id,)
        told_by = None if asked.perspective_owner_id is None else (asked.perspective_owner_id,)

        def of(kind: DerivedKind, *states: State) -> DerivedWanted:
            return DerivedWanted(
                kind=kind, states=states, subject_ids=about, perspective_ids=told_by
            )

        pages = await asyncio.gather(
            reads.wanted(of(DerivedKind.THOUGHT, State.ACCEPTED), MOST_CHOSEN_FROM),
            reads.wanted(of(DerivedKind.THOUGHT, State.FORMING), MOST_CHOSEN_FROM),
            reads.wanted(of(DerivedKind.EPISODE, State.ACCEPTED), MOST_CHOSEN_FROM),
        )
        rows = [one for page in pages for one in page]
        return [one for one in rows if one.state is State.ACCEPTED or one.level is Level.EXPLICIT]

    def _hint(self, kind: HintKind, row: Derived, tongue: TongueName, now: datetime) -> Hint:
        newest = sorted(row.agreeing, key=lambda one: one.said_at, reverse=True)
        quotes = dict.fromkeys(one.quote[:MOST_EXAMPLE] for one in newest if one.quote)
        named = row.pattern is not None and row.worded_by is None
        name = self.wording.named(row.pattern.what, tongue) if named and row.pattern else row.title
        return Hint(
            id=row.derived_id,
            kind=kind,
            name=name,
            title=row.title,
            text=row.text,
            said=row.level is Level.EXPLICIT,
            confidence=confidence_of(row),
            trend=trend_of(row, now),
            when=self.wording.age(row.last_at, now, tongue),
            last_at=row.last_at,
            support=row.support,
            examples=tuple(quotes)[:MOST_EXAMPLES],
            emotions=tuple(self.wording.named(one, tongue) for one in row.emotions),
            source_ids=tuple(one.source_id for one in newest)[:MOST_EXAMPLES],
        )

    def _recap(self, found: Mapping[HintKind, Sequence[Hint]], tongue: TongueName) -> str:
        """The best of each kind in one line."""
        names = self.wording.words.recap
        best = [
            f"[{getattr(names[name], tongue)}: {found[kind][0].name}]"
            for kind, name in RECAP
            if found.get(kind)
        ]
        return ", ".join(best)
