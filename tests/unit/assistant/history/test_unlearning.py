"""What a deleted conversation or turn had replaced is current again, also when a call died."""

from collections.abc import Sequence
from typing import Any

import pytest

from rayapp.assistant.history.unlearning import Unlearning
from rayapp.core.errors import StoreDown
from rayapp.memory.item import LEARNED_TAG, MemoryItem, Source, SourceType
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.harness import Harness

DANA = WriteScope("dana")
SAID = Source(
    type=SourceType.ASSISTANT, conversation_id="c1", message_id="m1", tool_run_id="exchange"
)


async def unlearn(unlearning: Unlearning, what: str) -> None:
    if what == "turn":
        await unlearning.turn(DANA, "c1", "m1")
    else:
        await unlearning.conversation(DANA, "c1")


@pytest.mark.parametrize("what", ["conversation", "turn"])
async def test_a_call_that_died_leaves_nothing_hidden(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    world = await Harness.open()
    unlearning = world.services.conversations.unlearning
    old = await world.store("Dana lives in Haifa", tier=Tier.HISTORY)
    fields: dict[str, Any] = {"tier": Tier.HISTORY, "tags": (LEARNED_TAG,), "source": SAID}
    newer = await world.store("Dana lives in Eilat", supersedes=old, **fields)
    reopen = unlearning._reopen

    async def dies(scope: WriteScope, gone: Sequence[MemoryItem], *, before: bool) -> None:
        if not before:
            raise StoreDown("The process died here.")
        await reopen(scope, gone, before=before)

    monkeypatch.setattr(unlearning, "_reopen", dies)
    with pytest.raises(StoreDown):
        await unlearn(unlearning, what)
    monkeypatch.undo()
    await unlearn(unlearning, what)
    found = await world.services.memories.get(ReadScope("dana"), old)
    assert (found.superseded_by, found.valid_to) == (None, None)
    assert newer not in await world.found("Where does Dana live?")


async def test_a_chain_within_the_conversation_gives_back_what_was_before_it() -> None:
    world = await Harness.open()
    last = await world.store("Dana lives in Haifa", tier=Tier.HISTORY)
    fields: dict[str, Any] = {"tier": Tier.HISTORY, "source": SAID}
    for town in ("Eilat", "Acre"):
        last = await world.store(f"Dana lives in {town}", supersedes=last, **fields)
    assert await world.services.conversations.unlearning.conversation(DANA, "c1") == 2
    hits = (await world.search("Where does Dana live?")).hits
    assert [hit.item.text for hit in hits] == ["Dana lives in Haifa"]
