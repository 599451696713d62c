"""What the newest-first rule gains for who asks for the latest, judged by leave one set out.

    python -m tests.bench.latest

Each set of `tests/unit/search/latest` is judged with the share that is best on the others, its
stores of one thing alone among them; the best of equals is the one in their middle.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.container import bootstrap
from rayapp.core.deadline import Deadline
from rayapp.memory.scope import ReadScope
from rayapp.search.requests import SearchQuery
from rayapp.search.rules.ranking import Ranked
from rayapp.search.rules.recipes import Recipe
from rayapp.search.rules.updates import LATEST_PLACES, latest_first
from rayapp.search.tracing import Trace
from tests.unit.search.latest.stage import PLAIN, LatestSet, alone, latest_sets, told

SHARES = tuple(number / 100 for number in range(5, 41))
TEXTS = bootstrap.load_texts()
WITHOUT = "default-without-latest"


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    answer: str
    ranked: Sequence[Ranked]

    def place(self, recipe: Recipe) -> int:
        """Of the answer; far down when it is no candidate."""
        shown = latest_first(self.ranked, self.question, TEXTS.latest, recipe)
        ids = [one.item.memory_id for one in shown]
        return ids.index(self.answer) + 1 if self.answer in ids else len(ids) + 1


async def asked_of(one: LatestSet) -> list[Asked]:
    world = await told(one)
    search = world.services.search
    found = []
    for question, answer in one.asked:
        query = SearchQuery(query=question, recipe=WITHOUT)
        prepared = search.prepare(ReadScope("dana"), query)
        trace = Trace(search.runtime.clock, search.runtime.metrics)
        deadline = Deadline(10.0, search.runtime.clock.monotonic)
        gathered = await search.gather(prepared, deadline, trace)
        ranked = await search.ranked(prepared, gathered, deadline, trace)
        found.append(Asked(prepared.plan.text, answer, ranked))
    return found


def among_first(rows: Sequence[Asked], share: float) -> int:
    recipe = TEXTS.recipes["default"].model_copy(update={"latest_share": share})
    return sum(row.place(recipe) <= LATEST_PLACES for row in rows)


def best_share(rows: Sequence[Asked]) -> float:
    counts = {share: among_first(rows, share) for share in SHARES}
    best = [share for share, count in counts.items() if count == max(counts.values())]
    return best[len(best) // 2]


async def main() -> None:
    sets: dict[str, dict[str, list[Asked]]] = {}
    for whole in latest_sets():
        if whole.name != PLAIN:
            parts = sets.setdefault(whole.name, {"together": [], "alone": []})
            parts["together"] += await asked_of(whole)
            for piece in alone(whole):
                parts["alone"] += await asked_of(piece)
    for name, parts in sets.items():
        others = [
            row
            for other, rows in sets.items()
            if other != name
            for row in (*rows["together"], *rows["alone"])
        ]
        share = best_share(others)
        for part, rows in parts.items():
            before, after = among_first(rows, 0.0), among_first(rows, share)
            print(f"{name:8} {part:8} {len(rows)}: {before} -> {after} with {share} of the others")
    every = [row for parts in sets.values() for rows in parts.values() for row in rows]
    print(f"all: {best_share(every)}, {among_first(every, best_share(every))} of {len(every)}")


if __name__ == "__main__":
    asyncio.run(main())
