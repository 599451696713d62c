"""The hooks when something dies half-way, comes twice at once, or is away."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import pytest

from rayapp.adapters.in_memory_exchanges import InMemoryExchangeQueue
from rayapp.adapters.in_memory_sessions import InMemorySessionStore
from rayapp.context_protocols import ScoreGiven, TurnRecord
from rayapp.domain.context.records import ContextRequest, ExchangeRequest, Message
from rayapp.domain.context.scores import ScoreRequest
from rayapp.domain.extraction.exchange import LearnedExchange
from rayapp.domain.learning_requests import FeedbackRequest, OutcomeRequest
from rayapp.domain.memory import Outcome
from rayapp.domain.requests import ItemQuery
from rayapp.domain.scope import ItemFilter, ReadScope, WriteScope
from rayapp.errors import InvalidInput, StoreDown
from rayapp.services.hooks import HooksService, HookStores
from rayapp.services.injected import RememberedContext
from rayapp.services.scoring import ScoredOutcomes
from rayapp.testing.builders import an_item
from rayapp.testing.fake_services import World, fake_world

DANA, READS = WriteScope("dana", "key-1"), ReadScope("dana")
QUESTION = "איפה דנה גרה? Where does Dana live now?"
PLAIN = "Dana moved to Haifa in May, near the port, and she is happy there."
ANSWER = f"{PLAIN} <!-- MEM: 1👍 -->"


class Died(Exception):
    """The process ends here."""


class DyingSessions(InMemorySessionStore):
    """Dies before a turn is recorded, so many times."""

    deaths = 0

    async def add_turn(self, scope: WriteScope, conversation_id: str, turn: TurnRecord) -> bool:
        if self.deaths > 0:
            self.deaths -= 1
            raise Died
        return await super().add_turn(scope, conversation_id, turn)


class DyingQueue(InMemoryExchangeQueue):
    """Dies before a turn is queued, so many times."""

    deaths = 0

    async def offer(self, scope: WriteScope, exchange: LearnedExchange) -> bool:
        if self.deaths > 0:
            self.deaths -= 1
            raise Died
        return await super().offer(scope, exchange)


class LostSessions(InMemorySessionStore):
    """Cannot be written to."""

    async def remember_injected(
        self,
        scope: WriteScope,
        conversation_id: str,
        fingerprints: Sequence[str],
        at: datetime,
        receipt_id: str | None = None,
    ) -> None:
        raise StoreDown("MongoDB does not answer: retry.")

    async def scored(self, scope: WriteScope, given: ScoreGiven) -> bool:
        raise StoreDown("MongoDB does not answer: retry.")


class Rig:
    def __init__(self) -> None:
        self.world: World = fake_world()
        self.sessions = DyingSessions(self.world.clock)
        self.queue = DyingQueue(self.world.clock)
        runtime = self.world.hooks.runtime
        services = self.world.services
        self.hooks = HooksService(
            RememberedContext(services.context, self.sessions, runtime=runtime),
            services.memories,
            ScoredOutcomes(services.outcomes, self.sessions, runtime=runtime),
            HookStores(
                sessions=self.sessions,
                receipts=self.world.learning.receipts,
                exchanges=self.queue,
            ),
            runtime=runtime,
        )

    async def turns(self) -> int:
        where = ItemFilter(tags_any=("exchange",))
        page = await self.world.services.memories.page(READS, where, ItemQuery())
        return len(page.items)

    async def asked(self) -> None:
        """A context was put before the assistant, with one memory in it."""
        now = self.world.clock.now()
        item = an_item(user_id="dana", memory_id="mem-1", text="Dana live in Haifa", stored_at=now)
        await self.world.store.insert(item)
        await self.hooks.exchange(DANA, exchange(answer=None))

    async def uses(self) -> int:
        item = await self.world.store.get(READS, "mem-1")
        assert item is not None
        return item.stats.uses


def exchange(message_id: str = "m-1", answer: str | None = ANSWER) -> ExchangeRequest:
    messages = [Message("user", QUESTION)]
    if answer is not None:
        messages.append(Message("assistant", answer))
    return ExchangeRequest(
        conversation_id="c-1", message_id=message_id, messages=tuple(messages), limit=5
    )


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.parametrize("where", ["queue", "sessions"])
async def test_a_call_that_died_half_way_is_finished_by_its_repetition(
    rig: Rig, where: str
) -> None:
    await rig.asked()
    (rig.queue if where == "queue" else rig.sessions).deaths = 1
    with pytest.raises(Died):
        await rig.hooks.exchange(DANA, exchange())
    found = await rig.hooks.exchange(DANA, exchange())
    assert found.stored is not None
    assert (await rig.turns(), await rig.queue.waiting(), await rig.uses()) == (1, 1, 1)
    session = await rig.sessions.get(READS, "c-1")
    assert session is not None
    assert session.exchanges == 1


async def test_one_turn_at_once_is_kept_once(rig: Rig) -> None:
    await rig.asked()
    found = await asyncio.gather(*(rig.hooks.exchange(DANA, exchange()) for _ in range(6)))
    assert len({one.stored.memory_id for one in found if one.stored}) == 1
    assert (await rig.turns(), await rig.queue.waiting(), await rig.uses()) == (1, 1, 1)
    session = await rig.sessions.get(READS, "c-1")
    assert session is not None
    assert session.exchanges == 1


async def test_turns_of_a_conversation_are_counted_and_the_last_one_owes(rig: Rig) -> None:
    for n in range(3):
        await rig.hooks.exchange(DANA, exchange(f"m-{n}", f"Answer number {n}. {PLAIN}"))
    session = await rig.sessions.get(READS, "c-1")
    assert session is not None
    assert (session.exchanges, session.owed_message) == (3, "m-2")


async def test_stored_turns_count_for_the_promotion_of_their_user(rig: Rig) -> None:
    since = rig.world.clock.now()
    for n in range(3):
        await rig.hooks.exchange(DANA, exchange(f"m-{n}", f"Answer number {n}. {ANSWER}"))
    await rig.hooks.exchange(DANA, exchange("m-1", "said again"))
    assert await rig.world.learning.lifecycle.activity(since) == [("dana", 3, 1)]


async def test_no_question_is_refused(rig: Rig) -> None:
    request = ExchangeRequest(
        conversation_id="c-1", message_id="m-1", messages=(Message("assistant", ANSWER),)
    )
    with pytest.raises(InvalidInput, match="no message of the user"):
        await rig.hooks.exchange(DANA, request)


async def test_a_question_longer_than_a_search_takes_is_cut(rig: Rig) -> None:
    long = ExchangeRequest(
        conversation_id="c-1",
        message_id="m-1",
        messages=(Message("user", "Dana " * 5_000), Message("assistant", ANSWER)),
    )
    found = await rig.hooks.exchange(DANA, long)
    most = rig.world.services.settings.http.query_limit_chars
    assert len(found.context.request.query) == most
    assert found.stored is not None


async def test_the_marks_mean_the_context_before_the_answer(rig: Rig) -> None:
    await rig.asked()
    now = rig.world.clock.now()
    newer = an_item(
        user_id="dana", memory_id="mem-2", text="Where does Dana live now? Eilat", stored_at=now
    )
    await rig.world.store.insert(newer)
    found = await rig.hooks.exchange(DANA, exchange())
    assert found.stored is not None
    assert found.stored.attributed == 1
    assert await rig.uses() == 1


async def test_a_session_that_is_away_fails_no_context_and_no_score() -> None:
    world = fake_world()
    lost, runtime = LostSessions(world.clock), world.hooks.runtime
    now = world.clock.now()
    item = an_item(user_id="dana", memory_id="mem-1", text="Dana live in Haifa", stored_at=now)
    await world.store.insert(item)
    context = RememberedContext(world.services.context, lost, runtime=runtime)
    found = await context.prefetch(READS, ContextRequest(query="Dana live", conversation_id="c-1"))
    assert found.block.lines
    assert "session" in found.degraded
    cold = await context.cold_start(READS, "c-1")
    assert not cold.items or "session" in cold.degraded
    outcomes = ScoredOutcomes(world.services.outcomes, lost, runtime=runtime)
    request = OutcomeRequest(outcome=Outcome.WORKED, memory_ids=("mem-1",), conversation_id="c-1")
    assert (await outcomes.record(DANA, request)).updated
    thumb = FeedbackRequest(message_id="m-1", score=1, citations=("mem-1",))
    assert (await outcomes.feedback(DANA, thumb)).updated


async def test_without_a_conversation_nothing_is_remembered(rig: Rig) -> None:
    runtime = rig.world.hooks.runtime
    context = RememberedContext(rig.world.services.context, rig.sessions, runtime=runtime)
    await context.prefetch(READS, ContextRequest(query="Dana live"))
    assert not rig.sessions.rows


async def test_a_score_of_an_unknown_answer_moves_nothing(rig: Rig) -> None:
    found = await rig.hooks.score(DANA, ScoreRequest(message_id="never", score=1))
    assert (found.updated, found.skipped, found.duplicate) == (0, (), False)
