"""Understanding texts: what they say, and what rests on it, as one change of one user's rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from rayapp.core.scope import WriteScope
from rayapp.understanding.derived.held import HeldDerived
from rayapp.understanding.derived.ports import DerivedRows, UnderstoodStore
from rayapp.understanding.derived.service import DerivingService
from rayapp.understanding.ports import SourceText
from rayapp.understanding.statements.held import HeldKnowledge
from rayapp.understanding.statements.ports import KnowledgeRows
from rayapp.understanding.statements.service import News, StatementsService


@dataclass(eq=False)
class TextUnderstander:
    """Implements `understanding.ports.Understander`."""

    store: UnderstoodStore
    statements: StatementsService
    deriving: DerivingService

    async def understand(self, sources: Sequence[SourceText]) -> None:
        """Derive from texts of one user; what the same sources gave before is replaced."""
        texts = list({one.source_id: one for one in sources}.values())
        if not texts:
            return
        user_id = texts[0].user_id
        ontology = await self.statements.ontology(user_id)
        # Before the change, which is to be short.
        read = [self.statements.read(one, ontology) for one in texts]

        async def work(known: KnowledgeRows, derived: DerivedRows) -> News:
            rows, thoughts = HeldKnowledge(known), HeldDerived(derived)
            graphs, news = await self.statements.settle(rows, read, ontology)
            await self.deriving.settle(thoughts, texts, graphs)
            await rows.write()
            await thoughts.write()
            return news

        news = await self.store.change(WriteScope(user_id), work)
        await self.statements.look(user_id, news)

    async def take_back(self, user_id: str, source_ids: Sequence[str]) -> None:
        """What only these sources gave goes."""
        if not source_ids:
            return
        ontology = await self.statements.ontology(user_id)

        async def work(known: KnowledgeRows, derived: DerivedRows) -> None:
            rows, thoughts = HeldKnowledge(known), HeldDerived(derived)
            await self.statements.take_back(rows, source_ids, ontology)
            await self.deriving.take_back(thoughts, user_id, source_ids)
            await rows.write()
            await thoughts.write()

        await self.store.change(WriteScope(user_id), work)
