"""Fills a MongoDB with users who have learned: memories, outcomes, receipts and grown graphs.

The rows are those that the outbox would write, computed by the same pure rules and written in
bulk: 100,000 memories through transactions would take an hour and read the same.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pymongo import WriteConcern

from rayapp.graphs.records import CO_OCCURS
from rayapp.graphs.rules.content import MEMORY_IDS, contribution_of, edges_between
from rayapp.graphs.rules.question import context_type_of
from rayapp.learning.records import OutcomeEvent
from rayapp.learning.rules.graph_effects import outcome_changes
from rayapp.learning.rules.outcomes import applied_to, with_outcome
from rayapp.memory.item import MemoryItem, Outcome, Quality
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt
from rayapp.storage.mongo.convert import to_document
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.graph_writes import outcome_writes
from rayapp.storage.mongo.indexes import EDGES, ITEMS, NODES, OUTCOMES
from rayapp.storage.mongo.outcome_convert import event_document
from rayapp.storage.mongo.receipts import MongoReceiptStore
from rayapp.text.concepts import extract_concepts
from rayapp.text.expansions import Expansions
from tests.bench.texts import Fact
from tests.support.builders import an_item

Document = dict[str, Any]

BATCH = 2_000
TIERS = (Tier.MEMORY_BANK, Tier.HISTORY, Tier.PATTERNS, Tier.WORKING)
ACTIONS = ("search_memory", "add_to_memory_bank", "web_search", "record_response")
OUTCOMES_OF = (Outcome.WORKED,) * 6 + (Outcome.FAILED,) * 2 + (Outcome.PARTIAL, Outcome.UNKNOWN)
EVENTS_PER_ITEM = 0.5  # outcomes recorded per memory
RECEIPTS_EACH = 10  # searches in the newest conversation of a user: as many as are read
CONVERSATION = "c1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """One user. `graph_caps`: nodes and edges to which the content graph is filled up."""

    user_id: str
    memories: int
    graph_caps: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a user; the ones asked before have known solutions."""

    user_id: str
    query: str
    recent: tuple[str, ...]


class Filler:
    def __init__(self, database: MongoDatabase, expansions: Expansions, seed: int) -> None:
        self._database = database
        self._receipts = MongoReceiptStore(database)
        self._expansions = expansions
        self._random = random.Random(seed)
        self._now = datetime.now(UTC)

    async def fill(self, learner: Learner, facts: Iterator[Fact]) -> list[Asked]:
        """Everything of one user; questions to measure with, half of them asked before."""
        told = list(itertools.islice(facts, learner.memories))
        items = [self._item(learner.user_id, fact) for fact in told]
        events = self._events(learner.user_id, told, items)
        items = _judged(items, events)
        await self._insert(ITEMS, [to_document(item) for item in items])
        await self._insert(OUTCOMES, [_settled(event) for event in events])
        await self._outcome_rows(learner.user_id, events)
        await self._content_rows(learner, items)
        await self._searches(learner.user_id, events)
        new = [fact.question(self._random) for fact in told[: len(events)]]
        old = [event.query for event in events]
        return [
            Asked(learner.user_id, query, tuple(fact.text for fact in told[-4:]))
            for query in itertools.chain(*zip(new, old, strict=False))
        ]

    def _item(self, user_id: str, fact: Fact) -> MemoryItem:
        at = self._now - timedelta(hours=self._random.randint(1, 20))
        return an_item(
            user_id=user_id,
            text=fact.text,
            lang=fact.lang,
            tier=self._random.choice(TIERS),
            quality=Quality(importance=self._random.random(), confidence=self._random.random()),
            stored_at=at,
        )

    def _events(
        self, user_id: str, told: Sequence[Fact], items: Sequence[MemoryItem]
    ) -> list[OutcomeEvent]:
        events = []
        for number in range(max(2, int(len(items) * EVENTS_PER_ITEM))):
            at = self._random.randrange(len(items))
            query = told[at].question(self._random)
            also = self._random.sample(range(len(items)), k=min(2, len(items)))
            shown = [items[one] for one in dict.fromkeys([at, *also])]
            event = OutcomeEvent(
                user_id=user_id,
                idempotency_key=f"k-{number}",
                principal="local",
                outcome=self._random.choice(OUTCOMES_OF),
                at=self._now - timedelta(minutes=self._random.randint(1, 1000)),
                memory_ids=tuple(item.memory_id for item in shown),
                query=query,
                concepts=tuple(c.key for c in extract_concepts(query, expansions=self._expansions)),
                context_type=context_type_of(query),
                action=self._random.choice(ACTIONS),
            )
            applied = tuple(applied_to(item, event) for item in shown)
            events.append(replace(event, applied=applied))
        return sorted(events, key=lambda event: event.at)

    async def _outcome_rows(self, user_id: str, events: Sequence[OutcomeEvent]) -> None:
        changes = outcome_changes(events, self._expansions)
        for name, operations in outcome_writes(user_id, changes).items():
            await self._fast(name).bulk_write(operations, ordered=True)

    async def _content_rows(self, learner: Learner, items: Sequence[MemoryItem]) -> None:
        nodes: dict[str, Document] = {}
        edges: dict[tuple[str, str], float] = {}
        for item in items:
            added = contribution_of(item, self._expansions)
            for concept in added.concepts:
                row = nodes.setdefault(
                    concept.key,
                    self._node(learner.user_id, concept.key, concept.label, concept.type),
                )
                row["mentions"] += 1
                row["quality_sum"] += added.quality
                row["memory_ids"] = [*row["memory_ids"], item.memory_id][-MEMORY_IDS:]
            for pair in edges_between(added.concepts):
                edges[pair] = edges.get(pair, 0.0) + 1.0
        self._fill_up(learner, nodes, edges)
        await self._insert(NODES, list(nodes.values()))
        await self._insert(
            EDGES,
            [
                {
                    "user_id": learner.user_id,
                    "source": source,
                    "target": target,
                    "relation": CO_OCCURS,
                    "weight": weight,
                    "first_seen_at": self._now,
                    "last_seen_at": self._now,
                }
                for (source, target), weight in edges.items()
            ],
        )

    def _fill_up(
        self, learner: Learner, nodes: dict[str, Document], edges: dict[tuple[str, str], float]
    ) -> None:
        """Concepts beyond the vocabulary of the texts, linked with those of the texts too."""
        most_nodes, most_edges = learner.graph_caps
        for number in range(len(nodes), most_nodes):
            key = f"topic {number}"
            row = self._node(learner.user_id, key, key, "concept")
            nodes[key] = row | {"mentions": 1, "quality_sum": self._random.random()}
        names = sorted(nodes)
        while len(edges) < most_edges:
            source, target = sorted(self._random.sample(names, 2))
            edges[source, target] = edges.get((source, target), 0.0) + 1.0

    def _node(self, user_id: str, key: str, label: str, kind: str) -> Document:
        return {
            "user_id": user_id,
            "node_id": key,
            "label": label,
            "type": kind,
            "mentions": 0,
            "quality_sum": 0.0,
            "memory_ids": [],
            "first_seen_at": self._now,
            "last_seen_at": self._now,
        }

    async def _searches(self, user_id: str, events: Sequence[OutcomeEvent]) -> None:
        for number, event in enumerate(events[-RECEIPTS_EACH:]):
            await self._receipts.put_many(
                [
                    Receipt(
                        receipt_id=f"{user_id}-{number}",
                        user_id=user_id,
                        query=event.query,
                        recipe="default",
                        shown=(),
                        at=event.at,
                        expires_at=self._now + timedelta(days=1),
                        conversation_id=CONVERSATION,
                        concepts=event.concepts,
                        context_type=event.context_type,
                    )
                ]
            )

    async def _insert(self, name: str, documents: Sequence[Document]) -> None:
        for batch in _batches(documents):
            await self._fast(name).insert_many(batch, ordered=False)

    def _fast(self, name: str) -> Any:
        # The fill may be lost with the server: nobody waits for its journal.
        return self._database.collection(name).with_options(write_concern=WriteConcern(w=1))


def _batches(documents: Sequence[Document]) -> Iterator[list[Document]]:
    for start in range(0, len(documents), BATCH):
        yield list(documents[start : start + BATCH])


def _settled(event: OutcomeEvent) -> Document:
    return event_document(event, token="bench") | {"effects": {}}


def _judged(items: Sequence[MemoryItem], events: Sequence[OutcomeEvent]) -> list[MemoryItem]:
    """The items with the counters that the events leave behind."""
    by_id = {item.memory_id: item for item in items}
    for event in events:
        for memory_id in event.memory_ids:
            item = by_id[memory_id]
            stats = with_outcome(item.stats, event.outcome, event.at)
            by_id[memory_id] = replace(item, stats=stats)
    return list(by_id.values())
