"""Points and questions of the server profile: memories of many users and of one heavy user."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from rayapp.client.progress import Progress
from rayapp.container import bootstrap
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.load import load_settings
from rayapp.core.vectors import IndexSchema, SparseVector, Vector
from rayapp.index.records import IndexPoint, SubQuery
from rayapp.index.rules.points import point_of
from rayapp.inference.ports import Embedder
from rayapp.memory.item import MemoryItem, point_id_of
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.memory.tiers import CORE_TIERS, TIER_POLICY, Tier
from rayapp.text.normalize import content_hash
from tests.bench.texts import Fact, facts

HEAVY = "bench-heavy"
# One user in this share of all: a graph is only walked where a filter leaves many points.
HEAVY_SHARE = 0.2
# Whose points a question is asked of; ALL has no condition on the user.
LIGHT, HEAVY_USER, ALL = "light user", "heavy user", "all users"
AUDIENCES = (LIGHT, HEAVY_USER, ALL)
# Most memories are turns of a dialogue, as in the open sets.
TIER_WEIGHTS: dict[Tier, float] = {
    Tier.HISTORY: 0.6,
    Tier.MEMORY_BANK: 0.15,
    Tier.WORKING: 0.1,
    Tier.PATTERNS: 0.1,
    Tier.BOOKS: 0.05,
}
NOW = datetime(2026, 1, 15, tzinfo=UTC)
AGE_H = 20  # memories are younger than this: none is expired
EMBED_BATCH = 512  # texts per call of the embedder
EMBED_LIMIT_S = 60.0
TIER_DEPTH = 30  # candidates per tier and sub-query of a search with limit 10
WHERE = ItemFilter(now=NOW)


@dataclass(frozen=True, slots=True)
class Question:
    user_id: str
    dense: Vector
    sparse: SparseVector

    @property
    def scope(self) -> ReadScope:
        return ReadScope(self.user_id)

    def sub_queries(self) -> list[SubQuery]:
        """What a search asks the index in its one round trip: both sub-queries of every tier."""
        near = [
            SubQuery(name=f"dense:{tier}", limit=TIER_DEPTH, dense=self.dense, tiers=(tier,))
            for tier in CORE_TIERS
        ]
        matching = [
            SubQuery(name=f"bm25:{tier}", limit=TIER_DEPTH, sparse=self.sparse, tiers=(tier,))
            for tier in CORE_TIERS
        ]
        return near + matching


class Truth:
    """Exact scores, by one matrix product."""

    def __init__(self, points: Sequence[IndexPoint]) -> None:
        stacked = np.stack([point.dense for point in points]).astype(np.float32)
        self._matrix = stacked / np.linalg.norm(stacked, axis=1, keepdims=True)
        self._row = {point.point_id: row for row, point in enumerate(points)}
        owners: dict[str, list[int]] = {}
        for row, point in enumerate(points):
            owners.setdefault(point.payload["user_id"], []).append(row)
        self._rows = {user: np.array(rows) for user, rows in owners.items()}

    def best(self, question: Question, audience: str, k: int) -> list[float]:
        """The k highest scores among the points of the audience, or all when it has fewer."""
        matrix = self._matrix
        if audience != ALL:
            matrix = matrix[self._rows[question.user_id]]
        scores = matrix @ _unit(question.dense)
        return sorted(map(float, scores), reverse=True)[:k]

    def scores(self, question: Question, point_ids: Sequence[str]) -> list[float]:
        """Exact scores of what an engine found."""
        rows = [self._row[point_id] for point_id in dict.fromkeys(point_ids)]
        return [float(score) for score in self._matrix[rows] @ _unit(question.dense)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    schema: IndexSchema
    points: list[IndexPoint]
    questions: dict[str, list[Question]]
    truth: Truth


def owners_of(items: int, users: int, random_: random.Random) -> list[str]:
    """The user of each item, in random order; light users have equally many."""
    heavy = int(items * HEAVY_SHARE)
    owners = [HEAVY] * heavy + [f"bench-{at % users}" for at in range(items - heavy)]
    random_.shuffle(owners)
    return owners


def item_of(number: int, user_id: str, fact: Fact, random_: random.Random) -> MemoryItem:
    """A memory as the store writes it, with the names that filters and indexes read."""
    memory_id = f"m{number}"
    tier = random_.choices(list(TIER_WEIGHTS), list(TIER_WEIGHTS.values()))[0]
    at = NOW - timedelta(hours=random_.random() * AGE_H)
    hours = TIER_POLICY[tier].ttl_hours
    return MemoryItem(
        memory_id=memory_id,
        point_id=point_id_of(user_id, memory_id),
        user_id=user_id,
        tier=tier,
        text=fact.text,
        content_hash=content_hash(fact.text),
        created_at=at,
        stored_at=at,
        updated_at=at,
        tier_entered_at=at,
        expires_at=None if hours is None else at + timedelta(hours=hours),
        entities=(fact.values["person"].lower(), fact.values["place"].lower()),
        lang=fact.lang,
    )


async def make_corpus(arguments: Any, progress: Progress) -> Corpus:
    """Points under the bundled embedder and analyser; the same arguments give the same ones."""
    random_ = random.Random(arguments.seed)
    owners = owners_of(arguments.items, arguments.users, random_)
    told = list(islice(facts(arguments.seed), arguments.items))
    settings = load_settings(env={})
    embedder = bootstrap.embedding_service(settings, InMemoryMetrics())
    analyser = bootstrap.load_texts().analyser
    schema = bootstrap.schema_of(await embedder.info(), analyser)
    points: list[IndexPoint] = []
    with progress.step("points", arguments.items) as bar:
        for start in range(0, arguments.items, EMBED_BATCH):
            part = told[start : start + EMBED_BATCH]
            vectors = await embedder.embed(
                [fact.text for fact in part], "passage", timeout_s=EMBED_LIMIT_S
            )
            for number, (fact, vector) in enumerate(zip(part, vectors, strict=True), start):
                item = item_of(number, owners[number], fact, random_)
                words = analyser.document(item.text)
                points.append(point_of(item, [(vector, words)], schema))
            bar.advance(len(part))
    asked: dict[str, list[Question]] = {}
    for audience in AUDIENCES:
        rows = [row for row, owner in enumerate(owners) if _belongs(owner, audience)]
        chosen = random_.sample(rows, min(arguments.queries, len(rows)))
        texts = [told[row].question(random_) for row in chosen]
        dense = await _embedded(embedder, texts)
        asked[audience] = [
            Question(owners[row], vector, analyser.query(text))
            for row, text, vector in zip(chosen, texts, dense, strict=True)
        ]
    return Corpus(schema=schema, points=points, questions=asked, truth=Truth(points))


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    vectors: list[Vector] = []
    for start in range(0, len(texts), EMBED_BATCH):
        part = texts[start : start + EMBED_BATCH]
        vectors += await embedder.embed(part, "query", timeout_s=EMBED_LIMIT_S)
    return vectors


def _belongs(owner: str, audience: str) -> bool:
    return audience == ALL or (owner == HEAVY) == (audience == HEAVY_USER)


def _unit(vector: Vector) -> npt.NDArray[np.float32]:
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)
