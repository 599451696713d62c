"""The sets of questions for the latest state of something, asked of the whole search in memory."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from rayapp.memory.tiers import Tier
from rayapp.search.feature_reranker import FeaturesRerankBackend
from tests.support.harness import FixedReranker, Harness

SETS = Path(__file__).with_name("sets.yaml")
PLAIN = "plain"  # the set in which "last" asks for no state
START = datetime(2025, 11, 1, 9, tzinfo=UTC)
# Days: between two tellings, when the last word comes, when what was told after it.
EVERY, NEW_AT, ASIDE_AT = 3.0, 80.0, 82.0


@dataclass(frozen=True, slots=True)
class Told:
    memory_id: str
    text: str
    day: float


@dataclass(frozen=True, slots=True)
class LatestSet:
    """One person's memories, and questions with the id of the memory that answers."""

    name: str
    lang: str
    told: tuple[Told, ...]
    asked: tuple[tuple[str, str], ...]


def latest_sets() -> Iterator[LatestSet]:
    tree: dict[str, dict[str, Any]] = yaml.safe_load(SETS.read_text(encoding="utf-8"))
    for name, langs in tree.items():
        for lang, rows in langs.items():
            make = _plain if name == PLAIN else _repeated
            told, asked = make(rows)
            told = sorted(told, key=lambda one: one.day)
            yield LatestSet(name, lang, tuple(told), tuple(asked))


def _plain(rows: Sequence[Any]) -> tuple[list[Told], list[tuple[str, str]]]:
    told, asked = [], []
    for number, (answer, question, asides) in enumerate(rows):
        told.append(Told(f"answer-{number}", answer, number))
        told += [
            Told(f"aside-{number}-{place}", text, ASIDE_AT + place)
            for place, text in enumerate(asides)
        ]
        asked.append((question, f"answer-{number}"))
    return told, asked


def _repeated(row: dict[str, Any]) -> tuple[list[Told], list[tuple[str, str]]]:
    told, asked = [], []
    for number, thing in enumerate(row["things"]):
        apart = number / 10  # days: no two are of one moment
        for time in range(1, row["times"] + 1):
            text = row["old"][time % len(row["old"])].format(x=thing, n=time)
            told.append(Told(f"old-{number}-{time}", text, EVERY * time + apart))
        new = row["new"][number].format(x=thing)
        told.append(Told(f"new-{number}", new, NEW_AT + apart))
        for place, aside in enumerate(row["asides"]):
            if "{x}" in aside or number == 0:
                at = ASIDE_AT + place + apart
                told.append(Told(f"aside-{number}-{place}", aside.format(x=thing), at))
        asked += [(question.format(x=thing), f"new-{number}") for question in row["asks"]]
    return told, asked


def alone(one: LatestSet) -> Iterator[LatestSet]:
    """The same, with a store for each thing: there every memory holds its name."""
    for number in dict.fromkeys(row.memory_id.split("-")[1] for row in one.told):
        told = tuple(row for row in one.told if row.memory_id.split("-")[1] == number)
        asked = tuple(row for row in one.asked if row[1].split("-")[1] == number)
        yield LatestSet(f"{one.name} alone", one.lang, told, asked)


@lru_cache(maxsize=1)
def _backend() -> FeaturesRerankBackend:
    return FeaturesRerankBackend()


class BundledReranker(FixedReranker):
    """The reranker that is shipped, in place of one that is away."""

    async def rerank(
        self, query: str, documents: Sequence[str], *, timeout_s: float
    ) -> list[float] | None:
        logits = await _backend().logits(query, documents)
        return [1.0 / (1.0 + math.exp(-logit)) for logit in logits]


async def told(one: LatestSet) -> Harness:
    """A service in which all of it was stored on its day."""
    world = await Harness.open()
    world.reranker.inner = BundledReranker()
    for row in one.told:
        at = START + timedelta(days=row.day)
        await world.store(row.text, memory_id=row.memory_id, tier=Tier.HISTORY, created_at=at)
    await world.indexed()
    return world
