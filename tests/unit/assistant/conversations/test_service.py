"""The hooks when something dies half-way, comes twice at once, or is away."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from rayapp.assistant.conversations.service import HooksService
from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.assistant.ports import TurnRecord
from rayapp.assistant.records import ContextRequest, ExchangeRequest, ScoreRequest
from rayapp.core.errors import InvalidInput, StoreDown
from rayapp.core.settings.load import load_settings
from rayapp.inference.ports import Message
from rayapp.learning.outcomes import OutcomesService
from rayapp.learning.ports import ScoreGiven
from rayapp.learning.records import FeedbackRequest, OutcomeAnswer, OutcomeRequest
from rayapp.memory.item import Outcome
from rayapp.memory.requests import ItemQuery
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from tests.support.builders import an_item
from tests.support.harness import AT_ONCE, Harness, unsuspended
from tests.support.stores.exchanges import InMemoryExchangeQueue
from tests.support.stores.sessions import InMemorySessionStore

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


class DyingOutcomes(OutcomesService):
    """Dies before an outcome is recorded, so many times."""

    deaths = 0

    async def record(self, scope: WriteScope, request: OutcomeRequest) -> OutcomeAnswer:
        if self.deaths > 0:
            self.deaths -= 1
            raise Died
        return await super().record(scope, request)


class LostSessions(InMemorySessionStore):
    """Cannot be written to."""

    async def log_injected(self, *_: Any, **__: Any) -> None:
        raise StoreDown("MongoDB does not answer: retry.")

    async def scored(self, scope: WriteScope, given: ScoreGiven) -> bool:
        raise StoreDown("MongoDB does not answer: retry.")


class Rig:
    def __init__(self) -> None:
        self.world = world = Harness(load_settings("local", env={}))
        world.sessions = self.sessions = DyingSessions(world.clock)
        self.queue = DyingQueue(world.clock)
        unsuspended(world.opened())
        services, runtime = world.services, world.runtime
        self.outcomes = DyingOutcomes(
            world.outcomes,
            world.receipts,
            services.memories,
            self.sessions,
            tools=world.container.tool_verdicts,
            runtime=runtime,
        )
        self.hooks = HooksService(
            services.context,
            services.memories,
            self.outcomes,
            sessions=self.sessions,
            receipts=world.receipts,
            exchanges=self.queue,
            conversations=world.conversations,
            unlearning=world.container.unlearning,
            tools=world.container.tool_verdicts,
            prompts=services.prompt,
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
        await self.world.items.insert(item)
        await self.hooks.exchange(DANA, exchange(answer=None))

    async def turn(
        self, message_id: str, tools: tuple[str, ...] = (), *, answer: str = PLAIN
    ) -> None:
        """A question, the tools of its answer, and the answer; each some seconds later."""
        self.world.clock.advance(5)
        await self.hooks.exchange(DANA, exchange(message_id, answer=None))
        self.world.clock.advance(5)
        for _ in tools[:1]:
            given = ScoreGiven(at=self.world.clock.now(), conversation_id="c-1")
            await self.sessions.scored(DANA, given)
        self.world.clock.advance(5)
        asked = exchange(message_id, f"{message_id}: {answer}")
        await self.hooks.exchange(DANA, replace(asked, tools_called=tools))

    async def owes(self) -> str | None:
        owed = await self.hooks.owed(READS, "c-1")
        return owed.message_id if owed else None

    async def newer(self) -> None:
        """A memory that stands before the other one in the next context."""
        now = self.world.clock.now()
        item = an_item(
            user_id="dana", memory_id="mem-2", text="Dana", stored_at=now, always_inject=True
        )
        await self.world.items.insert(item)

    async def uses(self, memory_id: str = "mem-1") -> int:
        item = await self.world.items.get(READS, memory_id)
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


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Where does Dana live now?", "asked before in this conversation"),
        ("איפה דנה גרה עכשיו?", "השאלה כבר נשאלה בשיחה הזאת"),
    ],
)
async def test_a_call_sent_again_later_is_not_told_that_its_question_was_asked_before(
    rig: Rig, question: str, told: str
) -> None:
    messages = (Message("user", question), Message("assistant", ANSWER))
    for _ in range(3):
        found = await rig.hooks.exchange(DANA, replace(exchange(), messages=messages))
        assert told not in found.context.block.text
        rig.world.clock.advance(60)
    found = await rig.hooks.exchange(DANA, replace(exchange("m-2"), messages=messages))
    assert told in found.context.block.text


@pytest.mark.parametrize("where", ["outcomes", "queue", "sessions"])
async def test_a_repetition_scores_what_the_answer_was_given_with(rig: Rig, where: str) -> None:
    await rig.asked()
    await rig.newer()
    dying: DyingOutcomes | DyingQueue | DyingSessions = getattr(rig, where)
    dying.deaths = 1
    with pytest.raises(Died):
        await rig.hooks.exchange(DANA, exchange())
    found = await rig.hooks.exchange(DANA, exchange())
    # The memory at the first place is another one by now.
    assert found.context.block.lines[0].memory_id == "mem-2"
    assert found.stored is not None
    assert (found.stored.attributed, found.stored.reason) == (1, "scored")
    assert (await rig.uses("mem-1"), await rig.uses("mem-2")) == (1, 0)
    assert await rig.hooks.owed(READS, "c-1") is None
    session = await rig.sessions.get(READS, "c-1")
    assert session is not None
    assert session.receipt_id == found.context.receipt_id


async def test_marks_that_an_earlier_try_counted_pay_for_the_turn(rig: Rig) -> None:
    await rig.asked()
    await rig.newer()
    rig.queue.deaths = 1
    with pytest.raises(Died):
        await rig.hooks.exchange(DANA, exchange())
    await rig.hooks.exchange(DANA, exchange("m-2", answer=None))
    found = await rig.hooks.exchange(DANA, exchange())
    assert found.stored is not None
    assert (found.stored.scoring_required, found.stored.reason) == (False, "scored")
    assert (await rig.uses("mem-1"), await rig.uses("mem-2")) == (1, 0)
    assert await rig.hooks.owed(READS, "c-1") is None


async def test_what_a_repetition_would_inject_is_no_echo_of_the_answer(rig: Rig) -> None:
    now = rig.world.clock.now()
    await rig.world.items.insert(
        an_item(user_id="dana", memory_id="mem-1", text=f"Where {PLAIN}", stored_at=now)
    )
    rig.outcomes.deaths = rig.queue.deaths = 1
    with pytest.raises(Died):
        await rig.hooks.exchange(DANA, exchange())
    await rig.hooks.exchange(DANA, exchange())
    (claimed,) = await rig.queue.claim(token="t", limit=5, claim_s=9.0)
    assert claimed.exchange.injected == ()


async def test_an_empty_context_makes_the_receipt_before_it_void(rig: Rig) -> None:
    await rig.asked()
    await rig.world.services.memories.delete(DANA, "mem-1")
    empty = await rig.hooks.exchange(DANA, exchange("m-2", answer=None))
    assert not empty.context.block.lines
    found = await rig.hooks.exchange(DANA, exchange("m-2"))
    assert found.stored is not None
    assert (found.stored.attributed, found.stored.skipped_positions) == (0, (1,))


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
    assert await rig.world.lifecycle.activity(since) == [("dana", 3, 1)]


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
    await rig.newer()
    found = await rig.hooks.exchange(DANA, exchange())
    assert found.stored is not None
    assert found.stored.attributed == 1
    assert await rig.uses() == 1


async def test_a_session_that_is_away_fails_no_context_and_no_score() -> None:
    world = Harness(load_settings("local", env={}, overrides={"search": AT_ONCE}))
    world.sessions = LostSessions(world.clock)
    await world.opened()
    now = world.clock.now()
    item = an_item(user_id="dana", memory_id="mem-1", text="Dana live in Haifa", stored_at=now)
    await world.items.insert(item)
    context = world.services.context
    found = await context.prefetch(READS, ContextRequest(query="Dana live", conversation_id="c-1"))
    assert found.block.lines
    assert "session" in found.degraded
    cold = await context.cold_start(READS, "c-1")
    assert not cold.items or "session" in cold.degraded
    outcomes = world.services.outcomes
    request = OutcomeRequest(outcome=Outcome.WORKED, memory_ids=("mem-1",), conversation_id="c-1")
    assert (await outcomes.record(DANA, request)).updated
    thumb = FeedbackRequest(message_id="m-1", score=1, citations=("mem-1",))
    assert (await outcomes.feedback(DANA, thumb)).updated


async def test_without_a_conversation_nothing_is_remembered(rig: Rig) -> None:
    await rig.world.services.context.prefetch(READS, ContextRequest(query="Dana live"))
    assert not rig.sessions.rows


@pytest.mark.parametrize(
    ("tools", "owed"),
    [
        ((), "m-2"),
        (("record_response",), "m-2"),
        (("record_response", "memory__record_response"), None),
    ],
)
async def test_what_was_owed_before_takes_the_first_score(
    rig: Rig, tools: tuple[str, ...], owed: str | None
) -> None:
    await rig.turn("m-1")
    await rig.turn("m-2", tools)
    assert await rig.owes() == owed
    session = await rig.sessions.get(READS, "c-1")
    turn = session.turn("m-1") if session else None
    assert turn is not None
    assert (turn.scored_at is not None) is bool(tools)


async def test_every_turn_is_paid_for_and_not_every_second(rig: Rig) -> None:
    await rig.turn("m-0")
    for n in range(1, 5):
        await rig.turn(f"m-{n}", ("record_response",))
        assert await rig.owes() == f"m-{n}"


async def test_marks_pay_for_the_turn_and_the_call_for_the_one_before(rig: Rig) -> None:
    await rig.asked()
    await rig.turn("m-1")
    await rig.turn("m-2", ("record_response",), answer=ANSWER)
    assert await rig.owes() is None


async def test_a_thumb_between_two_turns_leaves_the_call_to_the_second(rig: Rig) -> None:
    await rig.turn("m-1")
    await rig.hooks.score(DANA, ScoreRequest(message_id="m-1", score=1))
    await rig.turn("m-2", ("record_response",))
    assert await rig.owes() is None


async def test_a_score_before_the_question_leaves_the_call_to_the_turn(rig: Rig) -> None:
    await rig.turn("m-1")
    given = ScoreGiven(at=rig.world.clock.now(), conversation_id="c-1")
    await rig.sessions.scored(DANA, given)
    await rig.turn("m-2", ("record_response",))
    assert await rig.owes() is None


async def test_a_thumb_without_memories_judges_no_standing_one(rig: Rig) -> None:
    now = rig.world.clock.now()
    standing = an_item(
        user_id="dana", memory_id="mem-2", text="כתוב בקצרה", stored_at=now, always_inject=True
    )
    await rig.world.items.insert(standing)
    await rig.asked()
    asked = await rig.hooks.exchange(DANA, exchange(answer=PLAIN))
    assert {line.memory_id for line in asked.context.block.lines} >= {"mem-1", "mem-2"}
    found = await rig.hooks.score(DANA, ScoreRequest(message_id="m-1", score=-1))
    assert len(found.updated) == 1
    assert (await rig.uses("mem-1"), await rig.uses("mem-2")) == (1, 0)


async def test_a_score_of_an_unknown_answer_moves_nothing(rig: Rig) -> None:
    found = await rig.hooks.score(DANA, ScoreRequest(message_id="never", score=1))
    assert (found.updated, found.skipped, found.duplicate) == ((), (), False)
