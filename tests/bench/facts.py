"""What the typed graph knows after facts changed, ended and were deleted, beside plain search.

    python -m tests.bench.facts --seed 7

In this process, over the store of the tests; nothing is asked of a service. `plain search` is BM25
over the memories that are left: its first hit must hold what is right, and nothing where nothing is
known.
"""

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from jobs.suites.facts import plain, plainly_found, says_what_is_right
from jobs.suites.facts_set import KINDS, FactQuestion, History, histories
from rayapp.core.scope import ReadScope
from rayapp.understanding.ports import SourceText
from rayapp.understanding.statements.ports import StatementsWanted
from rayapp.understanding.statements.requests import KnowledgeAnswer
from tests.support.knowledge_world import KnowledgeWorld


class Outcome(NamedTuple):
    """One question of a kind: whether it was answered rightly, by the graph and by search."""

    kind: str
    lang: str
    right: bool
    searched: bool


def is_right(question: FactQuestion, answer: KnowledgeAnswer) -> bool:
    """Whether exactly what is right was said."""
    names = (one.target.name if one.target else str(one.relationship.value) for one in answer.found)
    return says_what_is_right(question, answer.knowing.value, frozenset(map(plain, names)))


async def tell(world: KnowledgeWorld, history: History) -> None:
    """Store and understand a history, and delete what it deletes."""
    for one in history.told:
        said = (one.memory_id, one.text, one.said_at, None, None, None, ())
        await world.understander.understand([SourceText(history.history_id, *said)])
    for memory_id in history.deleted:
        await world.understander.take_back(history.history_id, [memory_id])


async def wrong_merges(world: KnowledgeWorld, history: History) -> int:
    """People who live where two of them do."""
    if not history.people:
        return 0
    reads = world.store.reads(ReadScope(history.history_id))
    said = await reads.statements(StatementsWanted(relations=("LIVES_IN",)))
    homes: dict[str, set[str]] = defaultdict(set)
    for one in said:
        homes[one.subject_id].add(one.fact_id)
    return sum(len(facts) > 1 for facts in homes.values())


async def measure(seed: int, show: str | None) -> tuple[list[Outcome], int]:
    outcomes, merged = [], 0
    world = KnowledgeWorld()
    for history in histories(seed):
        await tell(world, history)
        merged += await wrong_merges(world, history)
        for question in history.questions:
            answer = await world.knowledge.query(ReadScope(history.history_id), question.asked)
            right = is_right(question, answer)
            if show == question.kind and not right:
                found = [one.target.name if one.target else "" for one in answer.found]
                print(question.question_id, question.knowing, sorted(question.names), "->", end=" ")
                print(answer.knowing, found, [one.text for one in history.told], history.deleted)
            searched = plainly_found(history, question)
            outcomes.append(Outcome(question.kind, history.lang, right, searched))
    return outcomes, merged


def table_of(outcomes: Sequence[Outcome], merged: int) -> Table:
    """A row per kind."""
    table = Table(title=f"facts: share answered rightly; wrong merges {merged}")
    for name in ("kind", "n", "graph en", "graph he", "plain search en", "plain search he"):
        table.add_column(name)
    by_kind: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for one in outcomes:
        by_kind[one.kind, one.lang].append(one)
    for kind in KINDS:
        sides = [by_kind[kind, lang] for lang in ("en", "he")]
        graph = [f"{sum(one.right for one in side) / len(side):.3f}" for side in sides]
        plain = [f"{sum(one.searched for one in side) / len(side):.3f}" for side in sides]
        table.add_row(kind, str(sum(map(len, sides))), *graph, *plain)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--show", choices=KINDS, help="questions of a kind that were missed")
    options = parser.parse_args()
    outcomes, merged = asyncio.run(measure(options.seed, options.show))
    Console().print(table_of(outcomes, merged))


if __name__ == "__main__":
    main()
