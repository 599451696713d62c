"""Texts that are understood together leave what they leave one by one."""

import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayapp.core.errors import DeadlineExceeded, InvalidInput, StoreDown
from rayapp.core.scope import ReadScope
from rayapp.understanding.batches import MOST_CHARS, MOST_TEXTS, batches, halves
from rayapp.understanding.derived.ports import DerivedWanted
from rayapp.understanding.derived.understanding import TextUnderstander
from rayapp.understanding.ports import SourceText
from rayapp.understanding.statements.ports import KnowledgeReads, StatementsWanted
from rayapp.understanding.statements.records import Statement
from tests.support.clock import FakeClock
from tests.support.knowledge_contract import AT, an_understander
from tests.support.stores.derived import InMemoryDerivedStore, InMemoryUnderstoodStore
from tests.support.stores.knowledge import InMemoryKnowledgeStore

LABELLED = Path("tests/golden/understanding")
# Which texts name again, end and take the place of each other's.
AGAIN = (
    "Dana lives in Haifa.",
    "Dana lives in Oslo.",
    "Dana does not live in Oslo any more.",
    "My sister Dana works at Intel.",
    "My boss is Ruth.",
    "Ruth is not my boss any more.",
    "I felt anxious about the exam.",
    "I want to become a doctor.",
    "I no longer want to become a doctor.",
    "Yesterday I fell at the beach with Noa, broke my arm and felt scared, and decided to rest.",
    "How long should pasta cook?",
)
SOURCES = 12


def texts_of(language: str) -> list[str]:
    rows = yaml.safe_load((LABELLED / f"{language}.yaml").read_text(encoding="utf-8"))
    return [row["text"] for row in rows]


class World:
    def __init__(self) -> None:
        self.knowledge, self.derived = InMemoryKnowledgeStore(), InMemoryDerivedStore()
        store = InMemoryUnderstoodStore(self.knowledge, self.derived)
        self.understander: TextUnderstander = an_understander(store, FakeClock(AT))

    def rows(self) -> list[Any]:
        tables = self.knowledge.tables
        found = [tables.given, tables.entities, tables.statements, self.derived.rows]
        return [*found, self.derived.told]


def some_texts(dice: random.Random, every: Sequence[str], count: int) -> list[SourceText]:
    """Some of which are said anew by the same source."""
    return [
        SourceText(
            "dana",
            f"m-{dice.randrange(SOURCES)}",
            dice.choice(every),
            AT + timedelta(days=dice.randrange(-20, 20)),
            dice.choice((None, "c-1")),
            None,
            None,
            dice.choice(((), ("running",))),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("language", ["en", "he"])
async def test_together_and_one_by_one_are_the_same(language: str, seed: int) -> None:
    dice = random.Random(f"{language} {seed}")
    every = [*dice.sample(texts_of(language), 8), *AGAIN]
    together, alone = World(), World()
    for _ in range(4):
        batch = {one.source_id: one for one in some_texts(dice, every, dice.randrange(1, 9))}
        await together.understander.understand(list(batch.values()))
        for one in batch.values():
            await alone.understander.understand([one])
        assert together.rows() == alone.rows()
        gone = dice.sample(sorted(batch), dice.randrange(len(batch)))
        await together.understander.take_back("dana", gone)
        for source_id in gone:
            await alone.understander.take_back("dana", [source_id])
        assert together.rows() == alone.rows()
    assert together.knowledge.tables.statements
    await together.understander.take_back("dana", [f"m-{at}" for at in range(SOURCES)])
    assert not any(together.rows()[:4])


async def test_a_batch_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    texts = [SourceText("dana", f"m{at}", one, AT, None, None, None, ()) for at, one in
             enumerate(AGAIN)]  # fmt: skip

    async def fails(rows: object, put: Sequence[Statement]) -> None:
        raise StoreDown("MongoDB is away.")

    with monkeypatch.context() as patch:
        rows = type(world.knowledge.reads(ReadScope("dana")))
        patch.setattr(rows, "put_statements", fails)
        with pytest.raises(StoreDown):
            await world.understander.understand(texts)
        assert not any(world.rows())
    await world.understander.understand(texts)
    reads: KnowledgeReads = world.knowledge.reads(ReadScope("dana"))
    assert await reads.statements(StatementsWanted())
    assert await world.derived.reads(ReadScope("dana")).wanted(DerivedWanted())


def test_a_batch_has_bounds() -> None:
    many = list(batches(range(2 * MOST_TEXTS + 1), lambda _: 1))
    assert [len(one) for one in many] == [MOST_TEXTS, MOST_TEXTS, 1]
    sizes = [MOST_CHARS, 1, MOST_CHARS - 1, 2 * MOST_CHARS]
    assert list(batches(sizes, lambda one: one)) == [[sizes[0]], sizes[1:3], [sizes[3]]]


def test_what_failed_together_is_tried_in_halves() -> None:
    assert halves("abc", InvalidInput("bad")) == ("a", "bc")
    assert halves("ab", DeadlineExceeded("late")) == ("a", "b")
    assert halves("a", InvalidInput("bad")) is None
    assert halves("abc", StoreDown("away")) is None
