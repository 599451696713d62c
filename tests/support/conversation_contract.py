"""What every store of kept conversations must do; run on the fake and on MongoDB."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rayapp.assistant.history.rules import search_words
from rayapp.assistant.ports import (
    Citation,
    ConversationStore,
    InjectedContext,
    KeptTurn,
    SessionStore,
    TitledBy,
    TurnRecord,
)
from rayapp.memory.item import point_id_of
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier

AT = datetime(2100, 5, 1, 9, 0, 0, 123_456, tzinfo=UTC)
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
DANA, NOA = WriteScope("dana"), WriteScope("noa")
READS, NOAS = ReadScope("dana"), ReadScope("noa")


@dataclass(frozen=True, slots=True)
class ConversationStores:
    kept: ConversationStore
    sessions: SessionStore


def a_kept_turn(message_id: str = "m-1", *, minutes: int = 0, **changes: Any) -> KeptTurn:
    made = KeptTurn(
        user_id="dana",
        conversation_id="c-1",
        message_id=message_id,
        question="איפה גרה $דנה?",
        answer="Dana lives in Haifa, near the sea.",
        at=AT + timedelta(minutes=minutes),
        memory_id=f"x-{message_id}",
        model="dicta:7b",
        tools=("search_memory", "$$ROOT"),
        citations=(Citation("f-1", Tier.MEMORY_BANK, 1), Citation("f-2", Tier.WORKING, 2)),
        receipt_id="r-1",
    )
    return replace(made, **changes)


def as_kept(turn: KeptTurn) -> KeptTurn:
    """Stores keep milliseconds."""
    return replace(turn, at=turn.at.replace(microsecond=turn.at.microsecond // 1000 * 1000))


class ConversationContract:
    @pytest.fixture
    def stores(self) -> ConversationStores:
        raise NotImplementedError

    async def keep(self, stores: ConversationStores, *turns: KeptTurn, title: str = "t") -> None:
        for turn in turns:
            scope = WriteScope(turn.user_id)
            await stores.kept.keep(scope, turn, title)
            record = TurnRecord(message_id=turn.message_id, memory_id=turn.memory_id, at=turn.at)
            await stores.sessions.add_turn(scope, turn.conversation_id, record)

    async def test_a_turn_comes_back_whole_to_its_user_only(
        self, stores: ConversationStores
    ) -> None:
        turn = a_kept_turn()
        await self.keep(stores, turn)
        assert await stores.kept.turn(READS, "c-1", "m-1") == as_kept(turn)
        assert await stores.kept.turn(NOAS, "c-1", "m-1") is None
        assert await stores.kept.turn(READS, "c-2", "m-1") is None
        assert await stores.kept.turns(NOAS, "c-1", limit=9) == []
        assert await stores.kept.get(NOAS, "c-1") is None

    async def test_the_first_turn_makes_a_conversation(self, stores: ConversationStores) -> None:
        await stores.sessions.log_injected(DANA, InjectedContext("c-1", "f", AT, "r-1"))
        assert await stores.kept.get(READS, "c-1") is None
        assert await stores.kept.page(READS, limit=9) == []
        await self.keep(stores, a_kept_turn(), title="$title")
        await self.keep(stores, a_kept_turn("m-2", minutes=5), title="another")
        found = await stores.kept.get(READS, "c-1")
        assert found is not None
        assert (found.title, found.titled_by, found.exchanges) == ("$title", "words", 2)
        assert found.last_at - found.created_at == timedelta(minutes=5)
        session = await stores.sessions.get(READS, "c-1")
        assert session is not None
        assert session.injected == ("f",)

    async def test_the_first_turns_at_once_make_one(self, stores: ConversationStores) -> None:
        turns = [a_kept_turn(f"m-{n}") for n in range(6)]
        await asyncio.gather(*(stores.kept.keep(DANA, one, "t") for one in turns))
        assert len(await stores.kept.page(READS, limit=9)) == 1
        assert len(await stores.kept.turns(READS, "c-1", limit=9)) == 6

    async def test_a_kept_conversation_does_not_end_by_itself(
        self, stores: ConversationStores
    ) -> None:
        await self.keep(stores, a_kept_turn(at=LONG_AGO))
        await stores.sessions.log_injected(DANA, InjectedContext("c-1", "f", LONG_AGO))
        assert await stores.kept.get(READS, "c-1") is not None
        assert await stores.sessions.get(READS, "c-1") is not None

    async def test_the_same_message_is_replaced(self, stores: ConversationStores) -> None:
        await self.keep(stores, a_kept_turn())
        new = a_kept_turn(answer="Dana lives in Eilat.", edited_at=AT)
        await self.keep(stores, new)
        found = await stores.kept.turns(READS, "c-1", limit=9)
        assert [one.answer for one in found] == ["Dana lives in Eilat."]
        assert found[0].edited_at is not None
        assert await stores.kept.find(READS, search_words("Haifa"), 9) == []
        conversation = await stores.kept.get(READS, "c-1")
        assert conversation is not None
        assert conversation.exchanges == 1

    async def test_pages_go_from_the_newest_and_meet_each_once(
        self, stores: ConversationStores
    ) -> None:
        for n in range(5):
            # Two at the same time: their ids make one order.
            turn = a_kept_turn(conversation_id=f"c-{n}", minutes=n // 2)
            await self.keep(stores, turn, a_kept_turn(conversation_id=f"c-{n}", user_id="noa"))
        seen: list[str] = []
        before = None
        while page := await stores.kept.page(READS, limit=2, before=before):
            seen += [one.conversation_id for one in page]
            before = (page[-1].last_at, page[-1].conversation_id)
        assert seen == ["c-4", "c-3", "c-2", "c-1", "c-0"]
        assert await stores.kept.page(READS, limit=0) == []

    async def test_turns_go_from_the_newest_and_meet_each_once(
        self, stores: ConversationStores
    ) -> None:
        await self.keep(stores, *(a_kept_turn(f"m-{n}", minutes=n // 2) for n in range(5)))
        await self.keep(stores, a_kept_turn("other", conversation_id="c-2"))
        seen: list[str] = []
        before = None
        while page := await stores.kept.turns(READS, "c-1", limit=2, before=before):
            seen += [one.message_id for one in page]
            before = (page[-1].at, page[-1].message_id)
        assert seen == ["m-4", "m-3", "m-2", "m-1", "m-0"]

    async def test_a_search_finds_the_newest_turn_of_each_conversation(
        self, stores: ConversationStores
    ) -> None:
        await self.keep(
            stores,
            a_kept_turn("m-1"),
            a_kept_turn("m-2", minutes=3),
            a_kept_turn("m-3", minutes=4, conversation_id="c-2", question="מה שלום החתולים?"),
            a_kept_turn("m-4", user_id="noa"),
            a_kept_turn("m-5", minutes=5, conversation_id="c-3", question="?", answer="Tea."),
        )

        async def found(query: str, limit: int = 9) -> list[str]:
            turns = await stores.kept.find(READS, search_words(query), limit)
            return [one.message_id for one in turns]

        assert await found("haifa seas") == ["m-3", "m-2"]
        assert await found("haifa", 1) == ["m-3"]
        assert await found("בחיפה גרה") == []
        assert await found("גרה") == ["m-2"]
        assert await found("לחתול") == ["m-3"]
        assert await found("teas") == ["m-5"]
        assert await found("haifa moon") == []
        assert await found("  ") == []

    async def test_a_persons_title_stays(self, stores: ConversationStores) -> None:
        await self.keep(stores, a_kept_turn())
        assert await stores.kept.name(DANA, "c-1", "of a model", "model")
        assert not await stores.kept.name(DANA, "c-1", "again", "model")
        assert await stores.kept.name(DANA, "c-1", "$שלי", "person")
        assert not await stores.kept.name(DANA, "c-1", "again", "model")
        assert not await stores.kept.name(NOA, "c-1", "hers", "person")
        assert not await stores.kept.name(DANA, "c-2", "none", "person")
        found = await stores.kept.get(READS, "c-1")
        assert found is not None
        assert (found.title, found.titled_by) == ("$שלי", "person")

    async def test_bullets_are_replaced_by_those_over_more_turns(
        self, stores: ConversationStores
    ) -> None:
        await self.keep(stores, a_kept_turn())
        assert await stores.kept.sum_up(DANA, "c-1", ["a", "b"], 5)
        assert not await stores.kept.sum_up(DANA, "c-1", ["c"], 5)
        assert await stores.kept.sum_up(DANA, "c-1", ["$d"], 9)
        assert not await stores.kept.sum_up(DANA, "none", ["d"], 9)
        found = await stores.kept.get(READS, "c-1")
        assert found is not None
        assert (found.bullets, found.summed) == (("$d",), 9)

    @pytest.mark.parametrize("by", ["words", "model", "person"])
    async def test_what_was_said_of_other_words_goes(
        self, stores: ConversationStores, by: TitledBy
    ) -> None:
        await self.keep(stores, a_kept_turn())
        await stores.kept.name(DANA, "c-1", "In Haifa", by)
        await stores.kept.sum_up(DANA, "c-1", ["Dana lives in Haifa"], 5)
        await stores.kept.untell(NOA, "c-1", "hers")
        await stores.kept.untell(DANA, "c-2", "none")
        for title, wanted in ((None, "In Haifa"), ("$Akko", "$Akko")):
            await stores.kept.untell(DANA, "c-1", title)
            found = await stores.kept.get(READS, "c-1")
            assert found is not None
            assert (found.bullets, found.summed) == ((), 0)
            assert found.title == ("In Haifa" if by == "person" else wanted)

    async def test_a_user_is_in_the_conversation_switched_to_last(
        self, stores: ConversationStores
    ) -> None:
        for name in ("c-1", "c-2"):
            await self.keep(stores, a_kept_turn(conversation_id=name))
        assert await stores.kept.active(READS) is None
        await stores.kept.activate(DANA, "c-2", AT)
        await stores.kept.activate(DANA, "c-1", AT + timedelta(seconds=1))
        assert await stores.kept.active(READS) == "c-1"
        assert await stores.kept.active(NOAS) is None
        await stores.kept.activate(DANA, "not yet there", AT + timedelta(seconds=2))
        assert await stores.kept.active(READS) is None
        await stores.kept.activate(DANA, "c-2", AT + timedelta(seconds=3))
        await stores.kept.activate(NOA, None, AT)
        assert await stores.kept.active(READS) == "c-2"
        await stores.kept.activate(DANA, None, AT + timedelta(seconds=4))
        assert await stores.kept.active(READS) is None

    async def test_words_of_deleted_memories_go(self, stores: ConversationStores) -> None:
        hers = a_kept_turn(user_id="noa")
        await self.keep(stores, a_kept_turn(), a_kept_turn("m-2"), hers)
        await stores.kept.sum_up(DANA, "c-1", ["Dana lives in Haifa"], 5)
        await stores.kept.purge([point_id_of("dana", "x-m-1")])
        conversation = await stores.kept.get(READS, "c-1")
        assert conversation is not None
        assert (conversation.bullets, conversation.summed) == ((), 0)
        await stores.kept.purge([])
        gone = await stores.kept.turn(READS, "c-1", "m-1")
        assert gone is not None
        assert gone.erased
        assert not gone.citations
        left = await stores.kept.find(READS, search_words("Haifa"), 9)
        assert [one.message_id for one in left] == ["m-2"]
        assert await stores.kept.turn(NOAS, "c-1", "m-1") == as_kept(hers)

    @pytest.mark.parametrize("by", ["words", "model", "person"])
    async def test_a_title_goes_with_the_words_that_made_it(
        self, stores: ConversationStores, by: TitledBy
    ) -> None:
        async def title_without(message_id: str) -> str:
            await stores.kept.purge([point_id_of("dana", f"x-{message_id}")])
            found = await stores.kept.get(READS, "c-1")
            assert found is not None
            return found.title

        later = a_kept_turn("m-2", minutes=1, question="Where is the car of Dana?")
        last = a_kept_turn("m-3", minutes=2)
        await self.keep(stores, a_kept_turn(), later, last, title="איפה גרה דנה")
        await stores.kept.name(DANA, "c-1", "איפה גרה דנה", by)
        assert await title_without("m-3") == "איפה גרה דנה"
        stays = by == "person"
        assert (await title_without("m-1") == "Where is the car of Dana?") is not stays
        assert await title_without("m-2") == ("איפה גרה דנה" if stays else "…")

    async def test_words_that_go_at_once_leave_the_title_of_the_first_that_stay(
        self, stores: ConversationStores
    ) -> None:
        turns = [a_kept_turn(f"m-{n}", minutes=n, question=f"Question {n}") for n in range(4)]
        other = replace(turns[1], conversation_id="c-2", memory_id="x-of-c-2")
        await self.keep(stores, *turns, other, title="Question 0")
        gone = [f"x-m-{n}" for n in (2, 1, 0)] + ["x-of-c-2"]
        await stores.kept.purge([point_id_of("dana", one) for one in gone])
        titles = [await stores.kept.get(READS, name) for name in ("c-1", "c-2")]
        assert [one.title for one in titles if one] == ["Question 3", "…"]

    async def test_what_a_person_wrote_of_an_answer_stays_with_it(
        self, stores: ConversationStores
    ) -> None:
        await self.keep(stores, a_kept_turn())
        for words in ("too long", "ארוך מדי"):
            assert await stores.kept.comment(DANA, "c-1", "m-1", words)
        assert not await stores.kept.comment(DANA, "c-1", "m-9", "of no turn")
        kept = await stores.kept.turn(READS, "c-1", "m-1")
        assert kept
        assert kept.feedback == "ארוך מדי"
        await stores.kept.purge([point_id_of("dana", kept.memory_id)])
        gone = await stores.kept.turn(READS, "c-1", "m-1")
        assert gone
        assert (gone.erased, gone.feedback) == (True, None)
        assert not await stores.kept.comment(DANA, "c-1", "m-1", "too late")

    async def test_a_forgotten_conversation_leaves_the_others(
        self, stores: ConversationStores
    ) -> None:
        others = [a_kept_turn(conversation_id="c-2"), a_kept_turn(user_id="noa")]
        await self.keep(stores, a_kept_turn(), a_kept_turn("m-2"), *others)
        removed = await stores.kept.forget(DANA, "c-1")
        assert (removed["turns"], removed["conversation"]) == (2, 1)
        assert await stores.kept.get(READS, "c-1") is None
        assert await stores.sessions.get(READS, "c-1") is None
        assert await stores.kept.turns(READS, "c-1", limit=9) == []
        assert sum((await stores.kept.forget(DANA, "c-1")).values()) == 0
        for turn in others:
            scope = ReadScope(turn.user_id)
            assert await stores.kept.turn(scope, turn.conversation_id, "m-1") == as_kept(turn)
