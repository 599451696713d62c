"""Does the service keep silent where a memory knows nothing, and speak where it does?

Every store is asked over the context that a chat program gets: its own questions, those of other
stores of its language and of others, messages of every day, and near misses, which speak of what is
there and ask for what is not. Stores are those of LoCoMo, BEAM and HeQ whole, and small ones of
some memories of LoCoMo and HeQ, as a memory is while it is young.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from jobs.build.silence import everyday, plans_of
from jobs.suites.beam import load_beam
from jobs.suites.heq import load_heq
from jobs.suites.locomo import HEADLINE, load_locomo
from jobs.suites.parashoot import load_parashoot
from jobs.suites.runner import (
    HELD_S,
    ServiceSuite,
    StoredSuite,
    reply_or_code,
    side_by_side,
    store_suite,
    user_of,
)
from jobs.suites.searched import Searched
from jobs.suites.suite import Corpus, Question, Suite, spread

NAME = "silence"
WHOLE = "whole"
# Memories of the small stores that are asked.
SMALL = ("20", "40")
# Questions of a kind that a store is asked.
MOST, MOST_OF_SMALL = 40, 16
SEED = 7
OWN, FOREIGN, DAILY, NEAR = "own", "foreign", "everyday", "near"
ABSTENTION = "abstention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """One user's memories. `size`: `whole`, or how many. `near`: what they almost answer."""

    source: str
    size: str
    corpus: Corpus
    near: tuple[Question, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceSet:
    """The stores, and Hebrew questions of none of them."""

    stores: tuple[Store, ...]
    others: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a kind to a store."""

    store: Store
    kind: str
    question: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one question was told.

    Attributes:
        lines: memories that were found for it.
        chars: of the whole block.
        shown: share of its evidence among the lines.
    """

    asked: Asked
    lines: int = 0
    chars: int = 0
    shown: float = 0.0
    degraded: tuple[str, ...] = ()
    error: str | None = None


@dataclass(slots=True)
class SilenceRun:
    """Everything a report needs."""

    stored: int = 0
    rejected: list[str] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return len(self.rejected) + sum(one.error is not None for one in self.told)

    @property
    def searched(self) -> Searched:
        return Searched.of(one.degraded for one in self.told if one.error is None)


def load_silence(data: Path) -> SilenceSet:
    """Raises ConfigError: a set is missing or is another."""
    heq = load_heq(data).corpora[0]
    stores = [_whole("locomo", one) for one in load_locomo(data).corpora]
    stores += [
        _whole("beam", one, [ask for ask in one.questions if ask.category == ABSTENTION])
        for one in load_beam(data).corpora
    ]
    stores.append(_whole("heq", heq, [one for one in heq.questions if not one.gold]))
    chance = random.Random(SEED)
    small = [one for store in stores if store.source != "beam" for one in _small(store, chance)]
    others = tuple(load_parashoot(data).every_question())
    return SilenceSet(stores=(*stores, *small), others=others)


def _whole(source: str, corpus: Corpus, near: Sequence[Question] = ()) -> Store:
    """Its own questions are those that its memories answer; of LoCoMo those of the headline."""
    own = [one for one in corpus.questions if one.gold]
    if source == "locomo":
        own = [one for one in own if one.category in HEADLINE]
    asked = Corpus(corpus.name, corpus.documents, tuple(own))
    return Store(source=source, size=WHOLE, corpus=asked, near=tuple(near))


def _small(store: Store, chance: random.Random) -> Iterator[Store]:
    corpus = store.corpus
    for number, (size, places, asked) in enumerate(plans_of(corpus, corpus.questions, chance)):
        if size in SMALL:
            documents = tuple(corpus.documents[at] for at in places)
            part = Corpus(f"{corpus.name}-{number}", documents, tuple(asked))
            yield Store(source=store.source, size=size, corpus=part)


def asked_of(loaded: SilenceSet) -> Iterator[Asked]:
    """All questions of all stores, the same in every run."""
    chance = random.Random(SEED)
    daily = [
        Question(f"{DAILY}:{number}", one.text, (), DAILY, one.lang)
        for number, one in enumerate(everyday())
        # The others taught the service.
        if one.held_out
    ]
    for store in loaded.stores:
        most = MOST if store.size == WHOLE else MOST_OF_SMALL
        kinds = {
            OWN: spread(store.corpus.questions, most),
            FOREIGN: list(_foreign(loaded, store, chance, most)),
            DAILY: chance.sample(daily, min(len(daily), most)),
            NEAR: spread(store.near, most),
        }
        yield from (Asked(store, kind, one) for kind, asked in kinds.items() for one in asked)


def _foreign(
    loaded: SilenceSet, store: Store, chance: random.Random, most: int
) -> Iterator[Question]:
    """Of each other source as many, and of other stores of the same one."""
    pools: dict[str, list[Question]] = {"parashoot": list(loaded.others)}
    for other in loaded.stores:
        # A small store is cut out of a whole one.
        if other.size == WHOLE and not store.corpus.name.startswith(other.corpus.name):
            pools.setdefault(other.source, []).extend(other.corpus.questions)
    for pool in pools.values():
        yield from chance.sample(pool, min(len(pool), most // len(pools)))


@dataclass
class SilenceSuite(ServiceSuite[SilenceSet]):
    """Runs all stores under users of this run alone."""

    name: ClassVar[str] = NAME

    async def run(self) -> SilenceRun:
        """Raises RayappError: the service is away or refuses the caller."""
        suite = Suite(name=NAME, corpora=tuple(store.corpus for store in self.loaded.stores))
        kept = await store_suite(self.client, suite, self.options.run_id, self.progress)
        run = SilenceRun(stored=kept.stored, rejected=list(kept.rejected))
        asked = spread(list(asked_of(self.loaded)), self.limit_questions)
        first = {one.store.corpus.name: one for one in reversed(asked)}
        with self.progress.step("silence: ask", len(first) + len(asked)) as bar:

            async def ask(one: Asked) -> Told:
                return await self._ask(kept, one)

            # Not counted; the service holds each user afterwards.
            await side_by_side(ask, first.values(), self.options, bar)
            await asyncio.sleep(HELD_S)
            run.told = await side_by_side(ask, asked, self.options, bar)
        return run

    async def _ask(self, kept: StoredSuite, asked: Asked) -> Told:
        corpus = asked.store.corpus
        user_id = user_of(kept.suite, corpus, kept.run_id)
        text = asked.question.text
        reply = await reply_or_code(self.client.context(text, user_id=user_id), self.options)
        if isinstance(reply, str):
            return Told(asked=asked, error=reply)
        meta: dict[str, Any] = reply.memory_meta
        found = [one["memory_id"] for one in meta["known_context"]["known_context_items"]]
        names = kept.names[corpus.name]
        shown = set(names.of_memories(found))
        gold = set(names.of_documents(asked.question.gold)) if asked.kind == OWN else set()
        return Told(
            asked=asked,
            lines=len(found),
            chars=len(f"{reply.stable_text or ''}{reply.volatile_text or ''}"),
            shown=len(shown & gold) / len(gold) if gold else 0.0,
            degraded=tuple(meta["debug"]["fallbacks_used"]),
        )
