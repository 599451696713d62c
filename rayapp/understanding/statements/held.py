"""The typed graph of one user as a change of many texts holds it.

What is read is read once, what one text puts is what the next one reads, and all of it is written
at the end: each row once, however many texts changed it. A row that was put is written also where
it is as it was: two changes that touch one node must meet.
"""

from collections.abc import Hashable, Sequence
from dataclasses import fields

from rayapp.understanding.held import Held, lacking
from rayapp.understanding.statements.ports import MOST_STATEMENTS, KnowledgeRows, StatementsWanted
from rayapp.understanding.statements.records import (
    Entity,
    Given,
    Merge,
    MergeState,
    Span,
    Statement,
)

_PART, _NAMED = "part", "named"
_SOURCE, _SLOT, _ENDS, _SAID = "source", "slot", "ends", "said"
_ONLY_ENDS = (Span.ENDS,)


class HeldKnowledge:
    """Implements `KnowledgeRows` over those of a change; `write` is called at its end."""

    def __init__(self, rows: KnowledgeRows) -> None:
        self._rows = rows
        self._given = Held[Given](lambda one: one.source_id, lambda _: ())
        self._entities = Held[Entity](lambda one: one.entity_id, _entity_marks)
        self._statements = Held[Statement](lambda one: one.statement_id, _statement_marks)
        self._merges = Held[Merge](lambda one: one.merge_id, lambda _: ())

    async def write(self) -> None:
        """Everything that was changed, in a few writes."""
        given, taken = self._given.changes()
        await self._rows.put_given(given)
        await self._rows.delete_given(taken)
        entities, gone = self._entities.changes()
        await self._rows.put_entities(entities)
        await self._rows.delete_entities(gone)
        statements, dropped = self._statements.changes()
        await self._rows.put_statements(statements)
        await self._rows.delete_statements(dropped)
        merges, undone = self._merges.changes()
        await self._rows.put_merges(merges)
        await self._rows.delete_merges(undone)

    # --- what sources gave

    async def given(self, source_ids: Sequence[str]) -> list[Given]:
        unknown = self._given.unknown(source_ids)
        if unknown:
            self._given.learn(await self._rows.given(unknown), unknown)
        return self._given.by_ids(source_ids)

    async def gave(self, source_ids: Sequence[str]) -> set[str]:
        return {one.source_id for one in await self.given(source_ids)}

    async def put_given(self, given: Sequence[Given]) -> None:
        self._given.put(given)

    async def delete_given(self, source_ids: Sequence[str]) -> None:
        self._given.delete(source_ids)

    # --- nodes

    async def entities(self, entity_ids: Sequence[str]) -> list[Entity]:
        unknown = self._entities.unknown(entity_ids)
        if unknown:
            self._entities.learn(await self._rows.entities(unknown), unknown)
        return self._entities.by_ids(entity_ids)

    async def named(self, type_: str | None, keys: Sequence[str]) -> list[Entity]:
        marks: list[Hashable] = [(_NAMED, key) for key in keys]
        missing = lacking(self._entities.whole, marks)
        if missing:
            asked = [key for key in keys if (_NAMED, key) in set(missing)]
            self._entities.learn(await self._rows.named(None, asked))
            self._entities.whole.update(missing)
        wanted = set(keys)
        found = [
            one
            for one in self._entities.at(marks)
            if type_ in (None, one.type) and not wanted.isdisjoint(key.name for key in one.keys)
        ]
        return sorted(found, key=lambda one: one.entity_id)

    async def parts(self, entity_ids: Sequence[str]) -> list[Entity]:
        marks: list[Hashable] = [(_PART, one) for one in entity_ids]
        missing = lacking(self._entities.whole, marks)
        if missing:
            asked = [one for one in entity_ids if (_PART, one) in set(missing)]
            self._entities.learn(await self._rows.parts(asked))
            self._entities.whole.update(missing)
        found = [one for one in self._entities.at(marks) if one.merged_into in entity_ids]
        return sorted(found, key=lambda one: one.entity_id)

    async def of_type(self, type_: str | None, limit: int) -> list[Entity]:
        await self.write()
        return await self._rows.of_type(type_, limit)

    async def unnamed(self, limit: int) -> list[Entity]:
        await self.write()
        return await self._rows.unnamed(limit)

    async def put_entities(self, entities: Sequence[Entity]) -> None:
        self._entities.put(entities)

    async def delete_entities(self, entity_ids: Sequence[str]) -> None:
        self._entities.delete(entity_ids)

    # --- merges

    async def merges(self, state: MergeState | None, limit: int) -> list[Merge]:
        await self.write()
        return await self._rows.merges(state, limit)

    async def merge(self, merge_id: str) -> Merge | None:
        if self._merges.unknown([merge_id]):
            found = await self._rows.merge(merge_id)
            self._merges.learn([] if found is None else [found], [merge_id])
        return next(iter(self._merges.by_ids([merge_id])), None)

    async def put_merges(self, merges: Sequence[Merge]) -> None:
        self._merges.put(merges)

    async def delete_merges(self, merge_ids: Sequence[str]) -> None:
        self._merges.delete(merge_ids)

    # --- statements

    async def statements(
        self, wanted: StatementsWanted, limit: int = MOST_STATEMENTS
    ) -> list[Statement]:
        marks = _marks_of(wanted)
        if marks is None or not await self._load(marks):
            # A question that is asked seldom, or more rows than are read at once.
            await self.write()
            return await self._rows.statements(wanted, limit)
        found = [one for one in self._statements.at(marks) if wanted.has(one)]
        found.sort(key=lambda one: one.statement_id)
        found.sort(key=lambda one: one.confirmed_at, reverse=True)
        return found[: max(0, limit)]

    async def _load(self, marks: Sequence[tuple[str, ...]]) -> bool:
        """Read what is not here yet. False: there is more of it than is read at once."""
        whole = self._statements.whole
        missing = [
            one
            for one in marks
            if one not in whole and not (one[0] == _ENDS and (_SLOT, one[1]) in whole)
        ]
        if not missing:
            return True
        kind, places = missing[0][0], list(zip(*(one[1:] for one in missing), strict=True))
        first = tuple(dict.fromkeys(places[0]))
        if kind == _SOURCE:
            wanted = StatementsWanted(source_ids=first)
        elif kind == _SLOT:
            wanted = StatementsWanted(slots=first)
        elif kind == _ENDS:
            wanted = StatementsWanted(slots=first, spans=_ONLY_ENDS)
        else:
            relations = tuple(dict.fromkeys(places[1]))
            wanted = StatementsWanted(subject_ids=first, relations=relations)
        found = await self._rows.statements(wanted)
        if len(found) >= MOST_STATEMENTS:
            return False
        self._statements.learn(found)
        whole.update(missing)
        return True

    async def put_statements(self, statements: Sequence[Statement]) -> None:
        self._statements.put(statements)

    async def delete_statements(self, statement_ids: Sequence[str]) -> None:
        self._statements.delete(statement_ids)


def _entity_marks(one: Entity) -> list[Hashable]:
    part: list[Hashable] = [] if one.merged_into is None else [(_PART, one.merged_into)]
    return [*((_NAMED, key.name) for key in one.keys), *part]


def _statement_marks(one: Statement) -> list[Hashable]:
    source: list[Hashable] = [] if one.source_id is None else [(_SOURCE, one.source_id)]
    ends: list[Hashable] = [(_ENDS, one.slot)] if one.span is Span.ENDS else []
    return [(_SLOT, one.slot), (_SAID, one.subject_id, one.relation), *source, *ends]


_NAMES = tuple(one.name for one in fields(StatementsWanted))


def _marks_of(wanted: StatementsWanted) -> list[tuple[str, ...]] | None:
    """What is to be here to answer it; None: a question of another kind."""
    asked = {name for name in _NAMES if getattr(wanted, name) is not None}
    if asked == {"source_ids"}:
        return [(_SOURCE, one) for one in wanted.source_ids or ()]
    if asked == {"slots"}:
        return [(_SLOT, one) for one in wanted.slots or ()]
    if asked == {"slots", "spans"} and wanted.spans == _ONLY_ENDS:
        return [(_ENDS, one) for one in wanted.slots or ()]
    if asked == {"subject_ids", "relations"}:
        return [
            (_SAID, subject, relation)
            for subject in wanted.subject_ids or ()
            for relation in wanted.relations or ()
        ]
    return None
