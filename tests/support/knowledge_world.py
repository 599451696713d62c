"""The typed graph over its store in memory, with the tables as they are shipped."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rayapp.container.bootstrap import load_texts
from rayapp.container.understanding import load_derived_rules, load_reader, load_registry
from rayapp.understanding.derived.service import DerivingService
from rayapp.understanding.derived.understanding import TextUnderstander
from rayapp.understanding.ports import SourceText
from rayapp.understanding.statements.growth import GrowthService
from rayapp.understanding.statements.knowledge import KnowledgeService
from rayapp.understanding.statements.merging import MergeService
from rayapp.understanding.statements.registries import Registries
from rayapp.understanding.statements.resolving import Resolver
from rayapp.understanding.statements.service import StatementsService
from tests.support.clock import FakeClock
from tests.support.models import HashEmbedder
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.derived import InMemoryDerivedStore, InMemoryUnderstoodStore
from tests.support.stores.knowledge import InMemoryKnowledgeStore
from tests.support.stores.ontology import InMemoryRegistryStore
from tests.support.stores.understandings import InMemoryUnderstandingStore

NOW = datetime(2026, 5, 20, 9, tzinfo=UTC)
USER = "dana"


@dataclass
class KnowledgeWorld:
    """What understands and what is asked, over one store."""

    store: InMemoryKnowledgeStore = field(default_factory=InMemoryKnowledgeStore)
    derived: InMemoryDerivedStore = field(default_factory=InMemoryDerivedStore)
    embedder: HashEmbedder = field(default_factory=HashEmbedder)
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))

    def __post_init__(self) -> None:
        reader, expansions = load_reader(), load_texts().expansions
        ontology = load_registry()
        self.merges = MergeService(self.store, ontology, self.clock)
        self.resolver = Resolver(self.store, self.merges, ontology, self.clock)
        self.registry = InMemoryRegistryStore(self.store)
        self.registries = Registries(ontology, self.registry, self.clock)
        sources = InMemoryUnderstandingStore(self.clock, InMemoryMemoryStore(self.clock))
        self.growth = GrowthService(self.registries, self.registry, self.store, sources, self.clock)
        statements = StatementsService(
            reader, self.registries, expansions, self.resolver, self.growth, clock=self.clock
        )
        # No memory is asked for here.
        deriving = DerivingService(
            None,  # type: ignore[arg-type]
            self.embedder,
            load_derived_rules(),
            self.clock,
        )
        understood = InMemoryUnderstoodStore(self.store, self.derived)
        self.understander = TextUnderstander(understood, statements, deriving)
        self.knowledge = KnowledgeService(
            self.store, self.registries, reader.tables, expansions, HashEmbedder(),
            clock=self.clock,
        )  # fmt: skip

    async def say(
        self,
        source_id: str,
        text: str,
        *,
        days: float = 0,
        user_id: str = USER,
        perspective: str | None = None,
    ) -> None:
        """Understand a text, as said so many days after the first one."""
        said_at = NOW - timedelta(days=300) + timedelta(days=days)
        source = SourceText(user_id, source_id, text, said_at, None, None, perspective, ())
        await self.understander.understand([source])
