"""What every store of conversations must do."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from rayapp.assistant.ports import (
    MAX_INJECTED_CHARS,
    MAX_TURNS,
    InjectedContext,
    SessionStore,
    TurnRecord,
)
from rayapp.core.errors import InvalidInput
from rayapp.learning.ports import ScoreGiven
from rayapp.memory.scope import ReadScope, WriteScope

# Later than any clock of a test run, so that nothing expires under it.
AT = datetime(2100, 5, 1, 9, 0, 0, 123_456, tzinfo=UTC)
KEPT_AT = AT.replace(microsecond=123_000)
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
DANA, NOA = WriteScope("dana"), WriteScope("noa")
READS, NOAS = ReadScope("dana"), ReadScope("noa")


@dataclass(frozen=True, slots=True)
class SessionStores:
    sessions: SessionStore


def a_turn(
    message_id: str = "m-1", *, required: bool = True, receipt_id: str | None = "r-1"
) -> TurnRecord:
    return TurnRecord(
        message_id=message_id,
        memory_id=f"memory of {message_id}",
        at=AT,
        required=required,
        receipt_id=receipt_id,
    )


class SessionContract:
    async def test_an_unknown_conversation_has_no_session(self, stores: SessionStores) -> None:
        assert await stores.sessions.get(READS, "c-1") is None
        assert await stores.sessions.by_message(READS, "m-1") is None

    async def test_a_turn_comes_back_to_its_user_only(self, stores: SessionStores) -> None:
        assert await stores.sessions.add_turn(DANA, "שיחה 1", a_turn())
        found = await stores.sessions.get(READS, "שיחה 1")
        assert found is not None
        assert found.turns == (replace(a_turn(), at=KEPT_AT),)
        assert (found.exchanges, found.owed_message, found.owed_receipt) == (1, "m-1", "r-1")
        assert found.updated_at == KEPT_AT
        assert await stores.sessions.get(NOAS, "שיחה 1") is None
        assert await stores.sessions.by_message(NOAS, "m-1") is None
        by_message = await stores.sessions.by_message(READS, "m-1")
        assert by_message is not None
        assert by_message.conversation_id == "שיחה 1"

    async def test_a_known_message_changes_nothing(self, stores: SessionStores) -> None:
        await stores.sessions.add_turn(DANA, "c-1", a_turn())
        await stores.sessions.scored(DANA, ScoreGiven(at=AT, conversation_id="c-1"))
        assert not await stores.sessions.add_turn(DANA, "c-1", a_turn(receipt_id="r-2"))
        found = await stores.sessions.get(READS, "c-1")
        assert found is not None
        assert (found.exchanges, found.owed_message) == (1, None)

    async def test_one_message_at_once_is_one_turn(self, stores: SessionStores) -> None:
        added = await asyncio.gather(
            *(stores.sessions.add_turn(DANA, "c-1", a_turn()) for _ in range(8))
        )
        assert sum(added) == 1
        found = await stores.sessions.get(READS, "c-1")
        assert found is not None
        assert found.exchanges == 1

    async def test_turns_at_once_are_all_kept(self, stores: SessionStores) -> None:
        turns = [a_turn(f"m-{n}") for n in range(8)]
        added = await asyncio.gather(
            *(stores.sessions.add_turn(DANA, "c-1", turn) for turn in turns)
        )
        found = await stores.sessions.get(READS, "c-1")
        assert all(added)
        assert found is not None
        assert {turn.message_id for turn in found.turns} == {turn.message_id for turn in turns}

    async def test_the_oldest_turns_go(self, stores: SessionStores) -> None:
        for n in range(MAX_TURNS + 2):
            await stores.sessions.add_turn(DANA, "c-1", a_turn(f"m-{n}", required=False))
        found = await stores.sessions.get(READS, "c-1")
        assert found is not None
        assert (len(found.turns), found.turns[0].message_id) == (MAX_TURNS, "m-2")
        assert found.exchanges == MAX_TURNS + 2

    async def test_only_a_turn_that_must_be_scored_owes(self, stores: SessionStores) -> None:
        await stores.sessions.add_turn(DANA, "c-1", a_turn("m-1", required=False))
        found = await stores.sessions.get(READS, "c-1")
        assert found is not None
        assert found.owed_message is None
        await stores.sessions.add_turn(DANA, "c-1", a_turn("m-2"))
        await stores.sessions.add_turn(DANA, "c-1", a_turn("m-3", required=False))
        found = await stores.sessions.get(READS, "c-1")
        assert found is not None
        assert found.owed_message == "m-2"

    async def test_a_turn_takes_the_place_of_its_message(self, stores: SessionStores) -> None:
        sessions = stores.sessions
        for name in ("m-1", "m-2"):
            await sessions.add_turn(DANA, "c-1", a_turn(name))
        await sessions.scored(DANA, ScoreGiven(at=AT, message_id="m-1", score=1))
        await sessions.replace_turn(DANA, "c-1", a_turn("m-1", required=False, receipt_id="$r"))
        found = await sessions.get(READS, "c-1")
        assert found is not None
        assert [(one.message_id, one.receipt_id, one.score) for one in found.turns] == [
            ("m-1", "$r", None),
            ("m-2", "r-1", None),
        ]
        assert (found.exchanges, found.owed_message) == (2, "m-2")
        await sessions.replace_turn(DANA, "c-1", a_turn("m-2", required=False))
        found = await sessions.get(READS, "c-1")
        assert found is not None
        assert (found.owed_message, found.owed_receipt) == (None, None)
        await sessions.replace_turn(DANA, "c-1", a_turn("m-2", receipt_id="r-2"))
        found = await sessions.get(READS, "c-1")
        assert found is not None
        assert (found.owed_message, found.owed_receipt) == ("m-2", "r-2")

    async def test_a_score_marks_its_turn_and_ends_the_waiting(self, stores: SessionStores) -> None:
        await stores.sessions.add_turn(DANA, "c-1", a_turn())
        later = AT + timedelta(minutes=1)
        given = ScoreGiven(at=later, message_id="m-1", score=-1)
        assert await stores.sessions.scored(DANA, given)
        found = await stores.sessions.get(READS, "c-1")
        assert found is not None
        assert (found.owed_message, found.owed_receipt) == (None, None)
        turn = found.turn("m-1")
        assert turn is not None
        assert (turn.scored_at, turn.score) == (KEPT_AT + timedelta(minutes=1), -1)

    async def test_a_score_without_a_thumb_keeps_the_thumb(self, stores: SessionStores) -> None:
        await stores.sessions.add_turn(DANA, "c-1", a_turn())
        await stores.sessions.scored(DANA, ScoreGiven(at=AT, message_id="m-1", score=1))
        assert await stores.sessions.scored(DANA, ScoreGiven(at=AT, message_id="m-1"))
        found = await stores.sessions.get(READS, "c-1")
        turn = found.turn("m-1") if found else None
        assert turn is not None
        assert turn.score == 1

    @pytest.mark.parametrize(
        "given",
        [
            ScoreGiven(at=AT, conversation_id="c-1"),
            ScoreGiven(at=AT, receipt_id="r-1"),
            ScoreGiven(at=AT, conversation_id="c-1", receipt_id="another"),
            ScoreGiven(at=AT, conversation_id="c-1", message_id="m-1"),
        ],
    )
    async def test_a_score_finds_the_turn_that_owes(
        self, stores: SessionStores, given: ScoreGiven
    ) -> None:
        await stores.sessions.add_turn(DANA, "c-1", a_turn())
        assert await stores.sessions.scored(DANA, given)
        found = await stores.sessions.get(READS, "c-1")
        assert found is not None
        assert found.owed_message is None

    @pytest.mark.parametrize(
        "given",
        [
            ScoreGiven(at=AT, conversation_id="c-2"),
            ScoreGiven(at=AT, receipt_id="r-2"),
            ScoreGiven(at=AT, message_id="m-2"),
            ScoreGiven(at=AT, conversation_id="c-2", message_id="m-1"),
        ],
    )
    async def test_a_score_of_something_else_changes_nothing(
        self, stores: SessionStores, given: ScoreGiven
    ) -> None:
        await stores.sessions.add_turn(DANA, "c-1", a_turn())
        before = await stores.sessions.get(READS, "c-1")
        assert not await stores.sessions.scored(DANA, given)
        assert not await stores.sessions.scored(NOA, ScoreGiven(at=AT, conversation_id="c-1"))
        assert await stores.sessions.get(READS, "c-1") == before

    async def test_a_score_of_an_older_turn_leaves_the_newer_one_waiting(
        self, stores: SessionStores
    ) -> None:
        await stores.sessions.add_turn(DANA, "c-1", a_turn("m-1"))
        await stores.sessions.add_turn(DANA, "c-1", a_turn("m-2", receipt_id="r-2"))
        await stores.sessions.scored(DANA, ScoreGiven(at=AT, message_id="m-1", score=1))
        found = await stores.sessions.get(READS, "c-1")
        assert found is not None
        assert (found.owed_message, found.owed_receipt) == ("m-2", "r-2")

    async def test_a_score_of_nothing_is_refused(self, stores: SessionStores) -> None:
        with pytest.raises(InvalidInput):
            await stores.sessions.scored(DANA, ScoreGiven(at=AT))

    async def test_injected_texts_are_kept_newest_last(self, stores: SessionStores) -> None:
        sessions = stores.sessions
        await sessions.log_injected(DANA, InjectedContext("c-1", "bac", AT))
        await sessions.log_injected(DANA, InjectedContext("c-1", "da", AT, "r-1"))
        found = await sessions.get(READS, "c-1")
        assert found is not None
        assert found.injected == ("bac", "da")
        assert found.receipt_id == "r-1"
        assert await sessions.get(NOAS, "c-1") is None

    async def test_the_receipt_is_that_of_the_newest_context(self, stores: SessionStores) -> None:
        """A context without one, or without a line, makes the receipt before it void."""
        sessions = stores.sessions
        found = None
        for fingerprints, receipt_id in [("a", "r-1"), ("b", None), ("", "r-2"), ("", None)]:
            await sessions.log_injected(DANA, InjectedContext("c-1", fingerprints, AT, receipt_id))
            found = await sessions.get(READS, "c-1")
            assert found is not None
            assert found.receipt_id == receipt_id
        assert found is not None
        assert found.injected == ("a", "b")

    async def test_the_older_half_of_the_injected_texts_goes(self, stores: SessionStores) -> None:
        quarter = MAX_INJECTED_CHARS // 4
        contexts = [name * quarter for name in "abcde"]
        kept = []
        for one in contexts:
            await stores.sessions.log_injected(DANA, InjectedContext("c-1", one, AT))
            found = await stores.sessions.get(READS, "c-1")
            assert found is not None
            kept.append(found.injected)
        assert kept[3:] == [tuple(contexts[:4]), tuple(contexts[2:])]

    async def test_a_context_that_is_told_again_takes_no_other_place(
        self, stores: SessionStores
    ) -> None:
        """A turn asks for it again after each round of tools."""
        first, again = "a" * 8, "b" * (MAX_INJECTED_CHARS // 8)
        for one in (first, *[again] * 20, first):
            await stores.sessions.log_injected(DANA, InjectedContext("c-1", one, AT))
        found = await stores.sessions.get(READS, "c-1")
        assert found is not None
        assert found.injected == (again, first)

    async def test_injections_at_once_are_all_kept(self, stores: SessionStores) -> None:
        await asyncio.gather(
            *(
                stores.sessions.log_injected(DANA, InjectedContext("c-1", f"f{n}", AT))
                for n in range(8)
            )
        )
        found = await stores.sessions.get(READS, "c-1")
        assert found is not None
        assert len(found.injected) == 8

    async def test_values_are_never_read_as_expressions(self, stores: SessionStores) -> None:
        for text in ("$injected", "$$ROOT"):
            await stores.sessions.log_injected(DANA, InjectedContext("$c", text, AT, "$r"))
        await stores.sessions.add_turn(DANA, "$c", a_turn("$turns", receipt_id="$$NOW"))
        assert await stores.sessions.refine(DANA, "$c", "$turn_id", AT) == 1
        assert await stores.sessions.refine(DANA, "$c", "$turn_id", AT) == 2
        assert await stores.sessions.scored(DANA, ScoreGiven(at=AT, message_id="$turns"))
        found = await stores.sessions.get(READS, "$c")
        assert found is not None
        assert (found.injected, found.receipt_id) == (("$injected", "$$ROOT"), "$r")
        assert found.owed_message is None

    async def test_refinements_are_counted_per_turn(self, stores: SessionStores) -> None:
        refine = stores.sessions.refine
        assert [await refine(DANA, "c-1", "t-1", AT) for _ in range(2)] == [1, 2]
        assert await refine(DANA, "c-1", "t-2", AT) == 1
        assert await refine(NOA, "c-1", "t-2", AT) == 1
        at_once = await asyncio.gather(*(refine(DANA, "c-1", "t-3", AT) for _ in range(5)))
        assert sorted(at_once) == [1, 2, 3, 4, 5]

    async def test_a_conversation_long_silent_is_forgotten(self, stores: SessionStores) -> None:
        old = TurnRecord(message_id="m-1", memory_id="x", at=LONG_AGO, required=True)
        await stores.sessions.add_turn(DANA, "c-1", old)
        assert await stores.sessions.get(READS, "c-1") is None
        assert await stores.sessions.by_message(READS, "m-1") is None
        await stores.sessions.add_turn(DANA, "c-1", a_turn("m-2"))
        assert await stores.sessions.get(READS, "c-1") is not None
