"""The seams of the typed graph.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.ports import Event
from rayapp.understanding.ports import SourcePage
from rayapp.understanding.statements.records import (
    Entity,
    Given,
    Merge,
    MergeState,
    Span,
    Statement,
)
from rayapp.understanding.statements.rules.additions import RegistryVersion, Ruling, Witness
from rayapp.understanding.statements.rules.facts import meant_by

T = TypeVar("T")
# More statements of one slot, or around one entity, than are read at once.
MOST_STATEMENTS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementsWanted:
    """Conditions, joined by AND. None = no condition; an empty tuple matches nothing.

    `touching`: subject or object is one of these entities; `naming`: any of its ends is, also as
    its text means it; `premise_ids`: it rests on one of these facts.
    """

    source_ids: tuple[str, ...] | None = None
    slots: tuple[str, ...] | None = None
    fact_ids: tuple[str, ...] | None = None
    subject_ids: tuple[str, ...] | None = None
    object_ids: tuple[str, ...] | None = None
    touching: tuple[str, ...] | None = None
    naming: tuple[str, ...] | None = None
    premise_ids: tuple[str, ...] | None = None
    relations: tuple[str, ...] | None = None
    spans: tuple[Span, ...] | None = None

    def has(self, one: Statement) -> bool:
        """Whether it meets all of them."""
        pairs = (
            (self.source_ids, one.source_id),
            (self.slots, one.slot),
            (self.fact_ids, one.fact_id),
            (self.subject_ids, one.subject_id),
            (self.object_ids, one.object_id),
            (self.relations, one.relation),
            (self.spans, one.span),
        )
        if any(values is not None and value not in values for values, value in pairs):
            return False
        premises = {each.fact_id for each in one.premises}
        if self.premise_ids is not None and premises.isdisjoint(self.premise_ids):
            return False
        if self.touching is None and self.naming is None:
            return True
        ends = {one.subject_id, one.object_id}
        if self.touching is not None and ends.isdisjoint(self.touching):
            return False
        meant = meant_by(one)
        ends |= {one.holder_id, one.target_id, meant.subject_id, meant.object_id}
        ends |= {meant.holder_id, meant.target_id}
        return self.naming is None or not ends.isdisjoint(self.naming)


class KnowledgeReads(Protocol):
    """The rows of one user."""

    async def given(self, source_ids: Sequence[str]) -> list[Given]:
        """What these sources gave, of those that gave something."""

    async def gave(self, source_ids: Sequence[str]) -> set[str]:
        """Those of these sources that have a row."""

    async def entities(self, entity_ids: Sequence[str]) -> list[Entity]: ...

    async def named(self, type_: str | None, keys: Sequence[str]) -> list[Entity]:
        """Those with one of these keys; `type_` None: of any type."""

    async def of_type(self, type_: str | None, limit: int) -> list[Entity]:
        """The ones named most first, then by id; None: of all types. Without those that are a part
        of another one."""

    async def unnamed(self, limit: int) -> list[Entity]:
        """Those that no source names and nobody vouches for, by id."""

    async def parts(self, entity_ids: Sequence[str]) -> list[Entity]:
        """The nodes that are parts of these, by id."""

    async def merges(self, state: MergeState | None, limit: int) -> list[Merge]:
        """The latest first; None: of every state."""

    async def merge(self, merge_id: str) -> Merge | None: ...

    async def statements(
        self, wanted: StatementsWanted, limit: int = MOST_STATEMENTS
    ) -> list[Statement]:
        """The latest said first, then by id."""


class KnowledgeRows(KnowledgeReads, Protocol):
    """The same within a change: what it reads stays as it is until it ends."""

    async def put_given(self, given: Sequence[Given]) -> None: ...
    async def delete_given(self, source_ids: Sequence[str]) -> None: ...
    async def put_entities(self, entities: Sequence[Entity]) -> None: ...
    async def delete_entities(self, entity_ids: Sequence[str]) -> None: ...
    async def put_statements(self, statements: Sequence[Statement]) -> None: ...
    async def delete_statements(self, statement_ids: Sequence[str]) -> None: ...
    async def put_merges(self, merges: Sequence[Merge]) -> None: ...
    async def delete_merges(self, merge_ids: Sequence[str]) -> None: ...


class KnowledgeStore(Protocol):
    """`kg_given`, `kg_entities`, `kg_statements` and `kg_merges`."""

    def reads(self, scope: ReadScope) -> KnowledgeReads: ...

    async def change(self, scope: WriteScope, work: Callable[[KnowledgeRows], Awaitable[T]]) -> T:
        """`work` as one change: all of it is there, or nothing. It may be run again when another
        change came between."""

    async def pending_of_all(self) -> int:
        """How many merges wait for anybody. For operators alone."""

    async def sources_after(self, after: tuple[str, str] | None, limit: int) -> SourcePage:
        """On what the rows of all users rest, by user. For jobs alone."""


class RegistryStore(Protocol):
    """`ontology` and `ontology_rulings`, by tenant, and what statements say under a label."""

    async def version(self, tenant: str, number: int | None) -> RegistryVersion | None:
        """None: the latest."""

    async def versions(self, tenant: str, limit: int) -> list[RegistryVersion]:
        """The latest first."""

    async def rulings(self, tenant: str) -> list[Ruling]:
        """What was decided, the latest first."""

    async def rule(
        self, ruling: Ruling, version: RegistryVersion | None, told: Sequence[Event]
    ) -> bool:
        """Keep a ruling, the version that it makes, and the events that tell of it, as one change.
        False: somebody else has made this version meanwhile, and nothing is kept."""

    async def labels(self, scope: ReadScope) -> list[str]:
        """Those of the user's own statements, in order; not those of details."""

    async def witnesses(self, tenant: str, labels: Sequence[str], limit: int) -> list[Witness]:
        """Statements of a tenant under one of these labels, the latest said first; not details."""

    async def having(self, tenant: str, types: Sequence[str]) -> list[str]:
        """Users of a tenant who have nodes of one of these types, in order."""

    async def is_alone(self, user_id: str) -> bool:
        """Whether nobody else of the tenant has said anything."""

    async def forget(self, tenant: str) -> int:
        """A tenant that is erased keeps no registry; how many rows went."""
