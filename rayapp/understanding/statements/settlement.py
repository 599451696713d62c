"""What a source gives, settled among the rows of its user: one difference, within one change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from rayapp.understanding.statements.ports import KnowledgeReads, KnowledgeRows, StatementsWanted
from rayapp.understanding.statements.records import Counted, Entity, Given, Mention, Span, Statement
from rayapp.understanding.statements.rules.identity import shown_role
from rayapp.understanding.statements.rules.intervals import settled
from rayapp.understanding.statements.rules.registry import Ontology
from rayapp.understanding.statements.rules.standing import with_premises

# Names, keys and perspectives that a node keeps; a person in a million messages has few more.
MOST_COUNTED = 64


async def known_by(
    rows: KnowledgeReads, keys: Sequence[str]
) -> dict[str, tuple[Entity, list[Entity]]]:
    """The nodes with one of these keys, by id, each with its parts; a part is found as its node."""
    return await with_parts(rows, await rows.named(None, keys))


async def with_parts(
    rows: KnowledgeReads, found: Sequence[Entity]
) -> dict[str, tuple[Entity, list[Entity]]]:
    """Nodes by id, each with its parts; of a part, the node that it is a part of."""
    roots = {one.entity_id: one for one in found if one.merged_into is None}
    missing = sorted({one.root_id for one in found} - roots.keys())
    roots |= {one.entity_id: one for one in await rows.entities(missing)} if missing else {}
    parts: dict[str, list[Entity]] = {one: [] for one in roots}
    joined = sorted(one.entity_id for one in roots.values() if one.joined)
    for one in await rows.parts(joined) if joined else ():
        parts[one.root_id].append(one)
    return {one: (root, parts[one]) for one, root in roots.items()}


async def settle_statements(
    rows: KnowledgeRows, gone: Sequence[Statement], put: Sequence[Statement], ontology: Ontology
) -> None:
    """Put what a source says in the place of what it does not say any more."""
    await rows.delete_statements([one.statement_id for one in gone])
    if put:
        await rows.put_statements(put)
    await settle_slots(rows, put, gone, ontology)


async def settle_slots(
    rows: KnowledgeRows, put: Sequence[Statement], gone: Sequence[Statement], ontology: Ontology
) -> None:
    """Ends and premises of all that stands in the slots of statements that were put or are gone,
    and of what rests on them."""
    touched = {one.slot: one for one in (*put, *gone)}
    if not touched:
        return
    found = await _standing_in(rows, put, gone, ontology)
    by_slot: dict[str, list[Statement]] = {slot: [] for slot in touched}
    for one in found:
        by_slot[one.slot].append(one)
    now = {one.statement_id: one for slot in by_slot.values() for one in settled(slot)}
    resting = await _resting(rows, touched.values(), ontology)
    dependents = {one.statement_id: now.get(one.statement_id, one) for one in resting}
    for slot in by_slot:
        fresh = [now[one.statement_id] for one in by_slot[slot]]
        for one in with_premises(list(dependents.values()), fresh, ontology):
            dependents[one.statement_id] = one
    stored = {one.statement_id: one for one in (*found, *resting)}
    wanted = {**now, **dependents}
    await rows.put_statements([one for key, one in wanted.items() if stored.get(key) != one])


async def foresee_slots(
    rows: KnowledgeReads, statements: Sequence[Statement], ontology: Ontology
) -> None:
    """Read at once what settling these will ask for, where the rows are held."""
    if not statements:
        return
    await _slots(rows, *_slots_of(statements, (), ontology))
    await _resting(rows, statements, ontology)
    pairs = _premises_of(statements, ontology)
    if pairs:
        await rows.statements(_pairs(pairs))


def _slots_of(
    put: Sequence[Statement], gone: Sequence[Statement], ontology: Ontology
) -> tuple[set[str], set[str]]:
    """Slots that are read whole, and those that are only added to."""

    def adds(one: Statement) -> bool:
        return one.span is Span.HOLDS and not ontology.row_of(one.relation).functional

    whole = {one.slot for one in (*put, *gone) if not adds(one)}
    return whole, {one.slot for one in put} - whole


async def _slots(rows: KnowledgeReads, whole: set[str], added: set[str]) -> list[Statement]:
    """What only adds is ended by an end alone: the thousand others that say the same are not
    read."""
    found: list[Statement] = []
    if whole:
        found += await rows.statements(StatementsWanted(slots=tuple(sorted(whole))))
    if added:
        ends = StatementsWanted(slots=tuple(sorted(added)), spans=(Span.ENDS,))
        found += await rows.statements(ends)
    return found


async def _standing_in(
    rows: KnowledgeRows, put: Sequence[Statement], gone: Sequence[Statement], ontology: Ontology
) -> list[Statement]:
    """What stands in the slots of these."""
    whole, added = _slots_of(put, gone, ontology)
    return [*await _slots(rows, whole, added), *(one for one in put if one.slot in added)]


async def _resting(
    rows: KnowledgeReads, touched: Iterable[Statement], ontology: Ontology
) -> list[Statement]:
    """What rests on the relations of these, of the same subjects; and, of these, what rests on
    another one, read with that."""
    subjects: set[str] = set()
    relations: set[str] = set()
    for one in touched:
        resting = ontology.resting_on(one.relation)
        if resting:
            subjects.add(one.subject_id)
            relations.update(resting)
    if not subjects:
        return []
    return await rows.statements(
        StatementsWanted(subject_ids=tuple(subjects), relations=tuple(relations))
    )


async def premises_now(
    rows: KnowledgeRows, statements: Sequence[Statement], ontology: Ontology
) -> list[Statement]:
    """New statements with the premises that stand already."""
    needed = _premises_of(statements, ontology)
    if not needed:
        return list(statements)
    standing = await rows.statements(_pairs(needed))
    found = {one.statement_id: one for one in statements}
    for subject in {subject for subject, _ in needed}:
        mine = [one for one in found.values() if one.subject_id == subject]
        slot = [one for one in standing if one.subject_id == subject]
        for one in with_premises(mine, slot, ontology):
            found[one.statement_id] = one
    return list(found.values())


def _premises_of(statements: Sequence[Statement], ontology: Ontology) -> set[tuple[str, str]]:
    """Subjects and relations that these rest on."""
    return {
        (one.subject_id, relation)
        for one in statements
        for relation in ontology.rests_on(one.relation, one.label)
    }


def _pairs(pairs: set[tuple[str, str]]) -> StatementsWanted:
    return StatementsWanted(
        subject_ids=tuple({subject for subject, _ in pairs}),
        relations=tuple({relation for _, relation in pairs}),
    )


async def settle_entities(
    rows: KnowledgeRows, before: Given | None, given: Given | None, nodes: Mapping[str, Entity]
) -> None:
    """The nodes that a source names, and what it gave, in the place of what it gave `before`; None:
    it gives nothing more.

    Args:
        nodes: those that it names, by id, as they stand or are new.
    """
    gone = {one.entity_id: one for one in (before.mentions if before else ())}
    new = {one.entity_id: one for one in (given.mentions if given else ())}
    # An event is made anew with each reading of its source: what is counted is the one that stands.
    fresh = {key for key, one in nodes.items() if not one.mentions}
    others = sorted(gone.keys() - (nodes.keys() - fresh))
    stored = {one.entity_id: one for one in await rows.entities(others)} if others else {}
    put, delete = [], []
    for entity_id in sorted(gone.keys() | new.keys()):
        entity = stored.get(entity_id) or nodes.get(entity_id)
        if entity is None:  # somebody deleted it
            continue
        at = given.said_at if given else None
        entity = counted(entity, gone.get(entity_id), new.get(entity_id), at)
        if entity.mentions > 0 or entity.verified:
            put.append(entity)
        else:
            delete.append(entity)
    await rows.put_entities(put)
    if delete:
        await _leave(rows, delete)
    if given is not None:
        await rows.put_given([given])
    elif before is not None:
        await rows.delete_given([before.source_id])


async def _leave(rows: KnowledgeRows, nodes: Sequence[Entity]) -> None:
    """Nodes that no source names go. One that others were merged into stays, under a name of
    theirs, until the last of them goes."""
    gone = {one.entity_id for one in nodes}
    roots = {one.merged_into for one in nodes if one.merged_into} - gone
    found = await with_parts(rows, [*nodes, *await rows.entities(sorted(roots))])
    put = []
    for root, parts in found.values():
        left = [one for one in parts if one.entity_id not in gone]
        if left and root.entity_id in gone:
            named = max(left, key=lambda one: (one.mentions, one.entity_id))
            put.append(replace(root, name=named.name, names=(), keys=(), mentions=0))
        elif not left and not root.verified and not root.mentions:
            gone.add(root.entity_id)
    await rows.put_entities(put)
    await rows.delete_entities(sorted(gone - {one.entity_id for one in put}))


def counted(
    entity: Entity, gone: Mention | None, new: Mention | None, at: datetime | None
) -> Entity:
    """A node without what a source said of it before, and with what it says now."""
    names = _changed(entity.names, gone.names if gone else (), new.names if new else ())
    keys = _changed(entity.keys, gone.keys if gone else (), new.keys if new else ())
    seen = _changed(
        entity.perspectives, (gone.perspective,) if gone else (), (new.perspective,) if new else ()
    )
    best = max(names, key=lambda one: one.count, default=None)
    named = entity.name if entity.verified or best is None else best.name
    if best is None and not entity.verified:
        named = next((shown for key in keys if (shown := shown_role(key.name))), entity.name)
    return replace(
        entity,
        name=named,
        keys=keys,
        names=names,
        perspectives=seen,
        mentions=entity.mentions + (new is not None) - (gone is not None),
        first_seen_at=min(entity.first_seen_at, at) if at else entity.first_seen_at,
        last_seen_at=max(entity.last_seen_at, at) if at else entity.last_seen_at,
    )


def _changed(
    have: Sequence[Counted], gone: Sequence[str], new: Sequence[str]
) -> tuple[Counted, ...]:
    counts = {one.name: one.count for one in have}
    for names, step in ((gone, -1), (new, 1)):
        for name in names:
            counts[name] = counts.get(name, 0) + step
    left = [Counted(name=name, count=count) for name, count in counts.items() if count > 0]
    return tuple(left[:MOST_COUNTED])
