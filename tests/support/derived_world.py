"""Episodes and thoughts over stores in memory, with the tables as they are shipped."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np

from rayapp.container.understanding import load_reader, load_wording
from rayapp.core.errors import EmbedderDown
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.understanding.derived.hints import HintsService
from rayapp.understanding.derived.reading import DerivedReview, DerivedService
from rayapp.understanding.derived.records import Derived, DerivedKind
from rayapp.understanding.derived.requests import Decided, Decision, Hints, HintsRequest, ReviewItem
from rayapp.understanding.derived.rules.choosing import QuestionReader
from rayapp.understanding.ports import SourceText
from tests.support.knowledge_world import NOW, USER, KnowledgeWorld
from tests.support.models import HashEmbedder

READS, WRITES = ReadScope(USER), WriteScope(USER, "dana's key")


class TopicEmbedder(HashEmbedder):
    """Texts that name the same of its topics mean the same; it can be away."""

    def __init__(self, topics: Sequence[str]) -> None:
        super().__init__()
        self.topics, self.away = topics, False

    async def embed(self, texts: Sequence[str], kind: str, *, timeout_s: float) -> list[np.ndarray]:
        if self.away:
            raise EmbedderDown("The embedder is away.")
        rows = np.eye(len(self.topics) + 1, dtype=np.float32)
        places = [
            next((at for at, topic in enumerate(self.topics) if topic in text), len(self.topics))
            for text in texts
        ]
        return [rows[at] for at in places]


@dataclass
class DerivedWorld(KnowledgeWorld):
    """What derives, and what is asked of it."""

    embedder: TopicEmbedder = field(default_factory=lambda: TopicEmbedder(["arm", "exam", "יד"]))

    def __post_init__(self) -> None:
        super().__post_init__()
        tables = load_reader().tables
        self.reading = DerivedService(
            self.derived,
            self.store,
            None,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            tables,
            self.clock,
        )
        self.review = DerivedReview(DerivedKind.THOUGHT, self.derived, self.clock)
        questions = QuestionReader(tables)
        self.hinting = HintsService(self.derived, self.store, load_wording(), questions, self.clock)

    async def tell(
        self,
        source_id: str,
        text: str,
        *,
        days: float = 0,
        topics: tuple[str, ...] = (),
        subject: str | None = None,
        perspective: str | None = None,
        user_id: str = USER,
    ) -> None:
        """Understand a text, as said so many days before now."""
        said_at = NOW - timedelta(days=days)
        source = SourceText(user_id, source_id, text, said_at, "c-1", subject, perspective, topics)
        await self.understander.understand([source])

    async def untell(self, source_id: str, user_id: str = USER) -> None:
        """The source is gone."""
        await self.understander.take_back(user_id, [source_id])

    def rows(self, kind: DerivedKind = DerivedKind.THOUGHT) -> list[Derived]:
        return [one for one in self.derived.rows.values() if one.kind is kind]

    async def thoughts(self) -> list[tuple[str, str]]:
        """Title and state, in their order."""
        found = await self.reading.thoughts(READS)
        return [(one.row.title, one.state.value) for one in found]

    async def decide(
        self, decision: Decision, title: str | None = None, text: str | None = None
    ) -> ReviewItem:
        """Of the only thought that is shown."""
        (only,) = [one for one in self.rows() if one.is_shown]
        decided = Decided(decision=decision, title=title, text=text)
        return await self.review.decide(WRITES, only.derived_id, decided)

    async def hints(self, query: str = "", **asked: object) -> Hints:
        return await self.hinting.hints(READS, HintsRequest(query=query, **asked))  # type: ignore[arg-type]
