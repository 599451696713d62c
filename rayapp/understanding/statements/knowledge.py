"""The typed graph as programs ask it, and what a person adds to it by hand."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from rayapp.core.errors import EmbedderDown, InvalidInput, NotFound
from rayapp.core.runtime import Clock
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.inference.ports import Embedder
from rayapp.memory.item import derived_id
from rayapp.text.expansions import Expansions
from rayapp.understanding.statements.merging import MOST_MERGES
from rayapp.understanding.statements.ports import (
    KnowledgeReads,
    KnowledgeRows,
    KnowledgeStore,
    StatementsWanted,
)
from rayapp.understanding.statements.records import (
    Counted,
    Entity,
    Relationship,
    Standing,
    Statement,
)
from rayapp.understanding.statements.registries import Registries
from rayapp.understanding.statements.requests import (
    Direction,
    Knowing,
    KnowledgeAnswer,
    KnowledgeQuestion,
    Linked,
    NewLink,
    NewNode,
    NodeEdit,
    NodeEnd,
    Snapshot,
)
from rayapp.understanding.statements.rules.additions import TenantRegistry, tenant_of
from rayapp.understanding.statements.rules.facts import Stated, ids_of
from rayapp.understanding.statements.rules.growing import label_key
from rayapp.understanding.statements.rules.identity import keys_of, me_key, role_of, whole
from rayapp.understanding.statements.rules.registry import ANY, EMOTION, PERSON, Ontology
from rayapp.understanding.statements.rules.standing import (
    DEPTH,
    by_fact,
    missing_premises,
    relationship,
)
from rayapp.understanding.statements.rules.tables import Tables
from rayapp.understanding.statements.settlement import settle_slots, with_parts

# Names that a question is compared with by meaning, and how many of them it may mean.
COMPARED_NAMES, NEAREST = 200, 5
# Of a node, memories that speak of it.
SOURCES = 20
# A name further away than this means something else.
LEAST_NEARNESS = 0.35
NEAREST_TIMEOUT_S = 2.0


class KnowledgeService:
    """Reads of the typed graph, and nodes and relations made by hand."""

    def __init__(
        self,
        store: KnowledgeStore,
        registries: Registries,
        tables: Tables,
        expansions: Expansions | None,
        embedder: Embedder,
        *,
        clock: Clock,
    ) -> None:
        self._store, self._registries, self._tables = store, registries, tables
        self._expansions, self._embedder, self._clock = expansions, embedder, clock

    # --- the registry

    async def ontology(self, scope: ReadScope) -> Ontology:
        """Types and relations as the user's tenant has them now."""
        return await self._registries.of(scope.user_id)

    async def registry(self, scope: ReadScope, version: int | None) -> TenantRegistry:
        """The same with what the tenant has added, also of an earlier version. Raises NotFound."""
        tenant = tenant_of(scope.user_id)
        if version is None:
            return await self._registries.latest(tenant)
        return await self._registries.at(tenant, version)

    # --- reading

    async def node(self, scope: ReadScope, node_id: str) -> tuple[Entity, tuple[str, ...]]:
        """One node, and the latest memories that speak of it. Raises NotFound."""
        reads = self._store.reads(scope)
        found = await _existing(reads, node_id)
        said = await reads.statements(StatementsWanted(touching=(found.entity_id,)))
        sources = dict.fromkeys(source for one in said for source in one.evidence)
        return found, tuple(sources)[:SOURCES]

    async def of_type(self, scope: ReadScope, type_: str | None, limit: int) -> list[Entity]:
        """Nodes, those named most first. Raises InvalidInput: no such type."""
        types: Sequence[str | None] = (None,)
        if type_ is not None:
            ontology = await self.ontology(scope)
            _check_type(type_, ontology)
            types = ontology.types_of(type_)
        reads = self._store.reads(scope)
        nodes = [node for one in types for node in await reads.of_type(one, limit)]
        nodes.sort(key=lambda one: (-one.mentions, one.entity_id))
        return await _wholes(reads, nodes[:limit])

    async def relationships(
        self,
        scope: ReadScope,
        node_id: str,
        direction: Direction,
        as_of: datetime | None,
        limit: int,
    ) -> list[Linked]:
        """What is said of a node, the latest first, as it stands at a moment. Raises NotFound."""
        reads = self._store.reads(scope)
        ids = ((await _existing(reads, node_id)).entity_id,)
        wanted = {
            "outgoing": StatementsWanted(subject_ids=ids),
            "incoming": StatementsWanted(object_ids=ids),
            "both": StatementsWanted(touching=ids),
        }[direction]
        found = await self._standing(reads, await reads.statements(wanted), as_of)
        return await self._linked(reads, found[:limit])

    async def snapshot(self, scope: ReadScope, as_of: datetime | None, limit: int) -> Snapshot:
        """The nodes named most, and what is known among them."""
        reads = self._store.reads(scope)
        nodes = await _wholes(reads, await reads.of_type(None, limit))
        ids = {one.entity_id for one in nodes}
        said = await reads.statements(StatementsWanted(subject_ids=tuple(sorted(ids))))
        links = await self._standing(reads, said, as_of)
        return Snapshot(
            tuple(nodes),
            tuple(
                one
                for one in links
                if one.standing is Standing.KNOWN
                and (one.object_id is None or one.object_id in ids)
            ),
        )

    async def query(self, scope: ReadScope, asked: KnowledgeQuestion) -> KnowledgeAnswer:
        """What a typed question finds; that nothing is known any more is an answer.

        Raises InvalidInput: no such type or relation.
        """
        ontology = await self.ontology(scope)
        _check_question(asked, ontology)
        reads = self._store.reads(scope)
        nearest: list[str] = []
        degraded: list[str] = []
        ends = []
        for end in (asked.source, asked.target, asked.holder):
            ends.append(await self._ids(reads, end, asked.fallback, nearest, degraded, ontology))
        sources, targets, holders = ends
        statements = await _asked(reads, asked.relation, sources, targets, ontology)
        statements = [one for one in statements if asked.label in (None, one.label)]
        if holders is not None:
            statements = [one for one in statements if one.holder_id in holders]
        found = await self._standing(reads, statements, asked.as_of)
        linked = [
            one
            for one in await self._linked(reads, found)
            if _is_of(one.source, asked.source, asked.perspective, ontology)
            and (one.target is None or _is_of(one.target, asked.target, None, ontology))
        ]
        known = [one for one in linked if one.relationship.standing is Standing.KNOWN]
        unsure = Knowing.NO_LONGER if linked else Knowing.UNKNOWN
        knowing = Knowing.KNOWN if known else unsure
        shown = linked if asked.past else known
        return KnowledgeAnswer(
            knowing, tuple(shown[: asked.limit]), tuple(nearest), tuple(dict.fromkeys(degraded))
        )

    async def _standing(
        self, reads: KnowledgeReads, statements: Sequence[Statement], as_of: datetime | None
    ) -> list[Relationship]:
        """Facts as they stand; with all that their sources say, and what they rest on."""
        at = as_of or self._clock.now()
        asked = by_fact(one for one in statements if not _of_itself(one))
        facts = dict(asked)
        for _ in range(DEPTH):
            missing = missing_premises(facts)
            if not missing:
                break
            more = by_fact(await reads.statements(StatementsWanted(fact_ids=missing)))
            facts |= {fact_id: more.get(fact_id, []) for fact_id in missing}
        found = [relationship(rows, facts, at) for rows in asked.values()]
        begun = [
            one for one in found if as_of is None or one.valid_from is None or one.valid_from <= at
        ]
        last = {fact: max(one.confirmed_at for one in rows) for fact, rows in asked.items()}
        return sorted(begun, key=lambda one: (last[one.fact_id], one.fact_id), reverse=True)

    async def _linked(self, reads: KnowledgeReads, found: Sequence[Relationship]) -> list[Linked]:
        ids = {one.subject_id for one in found} | {one.object_id or "" for one in found}
        known = await _wholes(reads, await reads.entities(sorted(ids - {""})))
        nodes = {one.entity_id: one for one in known}
        return [
            Linked(one, nodes[one.subject_id], nodes.get(one.object_id or ""))
            for one in found
            if one.subject_id in nodes
        ]

    # --- names

    async def _ids(
        self,
        reads: KnowledgeReads,
        end: NodeEnd,
        fallback: bool,
        nearest: list[str],
        degraded: list[str],
        ontology: Ontology,
    ) -> tuple[str, ...] | None:
        """The nodes of an end, None for any."""
        if end.node_id is not None:
            return tuple(one.root_id for one in await reads.entities([end.node_id]))
        if end.name is None:
            return None
        keys = await self._keys(reads, end.type, end.name)
        types = (None,) if end.type is None else ontology.types_of(end.type)
        named = [node for one in types for node in await reads.named(one, keys)]
        if not named and fallback and end.type not in (None, PERSON):
            named = await self._nearest(reads, str(end.type), end.name, degraded)
            nearest += [one.name for one in named]
        return tuple(dict.fromkeys(one.root_id for one in named))

    async def _keys(self, reads: KnowledgeReads, type_: str | None, name: str) -> tuple[str, ...]:
        """What a name is looked up by: its normal form, what the tables call it, and roles."""
        words = tuple(name.casefold().split())
        tables = self._tables
        if type_ in (None, PERSON) and set(words) <= tables.me:
            return (me_key(None),)
        lexicons = {EMOTION: tables.every_emotion, "Value": tables.values, "Trait": tables.traits}
        lexicon = lexicons.get(type_ or "")
        known = lexicon.at(words) if lexicon else None
        keys = keys_of(type_ or PERSON, (name,), known[1] if known else None, self._expansions)
        role = tables.kin.at(words)
        if role is not None and type_ in (None, PERSON):
            me = await reads.named(PERSON, (me_key(None),))
            keys = (*keys, *(role_of(role[1], one.entity_id) for one in me))
        return keys

    async def _nearest(
        self, reads: KnowledgeReads, type_: str, name: str, degraded: list[str]
    ) -> list[Entity]:
        """The nodes of a type whose names mean most nearly what is asked."""
        nodes = await reads.of_type(type_, COMPARED_NAMES)
        if not nodes:
            return []
        texts = [name, *(one.name for one in nodes)]
        try:
            vectors = await self._embedder.embed(texts, "query", timeout_s=NEAREST_TIMEOUT_S)
        except EmbedderDown:
            degraded.append("embedder")
            return []
        scores = np.stack(vectors[1:]) @ vectors[0]
        ranked = sorted(zip(scores, range(len(nodes)), strict=True), reverse=True)[:NEAREST]
        return [nodes[at] for score, at in ranked if score >= LEAST_NEARNESS]

    # --- by hand

    async def create(self, scope: WriteScope, new: NewNode) -> Entity:
        """A node that a person vouches for: it outlives its sources. One that is there is changed.

        Raises InvalidInput: no such type.
        """
        ontology = await self._registries.of(scope.user_id)
        _check_type(new.type, ontology)
        names = (new.name, *new.synonyms)
        keys = keys_of(new.type, names, self._known(new.type, names), self._expansions)
        now = self._clock.now()

        async def work(rows: KnowledgeRows) -> Entity:
            first = keys_of(new.type, (new.name,), None, self._expansions)
            there = [one for one in await rows.named(new.type, first)]
            old = there[0] if len(there) == 1 else None
            entity = old or Entity(
                entity_id=derived_id(scope.user_id, new.type, "by hand", keys[0]),
                type=new.type,
                name=new.name,
                keys=(),
                first_seen_at=now,
                last_seen_at=now,
                ontology=ontology.version,
            )
            have = {one.name for one in entity.keys}
            more = tuple(Counted(name=key, count=1) for key in keys if key not in have)
            entity = replace(
                entity,
                name=new.name,
                keys=(*entity.keys, *more),
                synonyms=tuple(dict.fromkeys((*entity.synonyms, *new.synonyms))),
                attributes={**entity.attributes, **new.attributes},
                verified_by=_who(scope),
                last_seen_at=now,
            )
            await rows.put_entities([entity])
            return entity

        return await self._store.change(scope, work)

    async def edit(self, scope: WriteScope, node_id: str, edit: NodeEdit) -> Entity:
        """Change what a node is called. A name that texts give it stays a name of it.

        Raises NotFound.
        """

        async def work(rows: KnowledgeRows) -> Entity:
            found = await rows.entities([(await _existing(rows, node_id)).entity_id])
            node = found[0]
            name = edit.name or node.name
            synonyms = node.synonyms if edit.synonyms is None else edit.synonyms
            said = {one.name for one in node.names}
            kept = set(self._keys_by_hand(node.type, (name, *synonyms, *said)))
            dropped = set(self._keys_by_hand(node.type, (node.name, *node.synonyms))) - kept
            have = [one for one in node.keys if one.name not in dropped]
            more = kept - {one.name for one in have}
            node = replace(
                node,
                name=name,
                synonyms=synonyms,
                attributes=node.attributes if edit.attributes is None else edit.attributes,
                keys=(*have, *(Counted(name=key, count=1) for key in sorted(more))),
                verified_by=_who(scope),
            )
            await rows.put_entities([node])
            return await _existing(rows, node.entity_id)

        return await self._store.change(scope, work)

    def _keys_by_hand(self, type_: str, names: Iterable[str]) -> tuple[str, ...]:
        every = tuple(names)
        return keys_of(type_, every, self._known(type_, every), self._expansions)

    async def link(self, scope: WriteScope, new: NewLink) -> tuple[Linked, str | None]:
        """A relation that a person vouches for, and a warning where the registry lacks it.

        Raises NotFound: one of the nodes; InvalidInput: it cannot hold between their types.
        """
        ontology = await self._registries.of(scope.user_id)
        relation, label, warning = _relation(new.relation, ontology)
        now = self._clock.now()

        async def work(rows: KnowledgeRows) -> Statement:
            nodes = {one.entity_id: one for one in await rows.entities([new.from_id, new.to_id])}
            if not {new.from_id, new.to_id} <= nodes.keys():
                raise NotFound("No node has one of these ids; list nodes by type to find them.")
            source, target = nodes[new.from_id], nodes[new.to_id]
            if not ontology.fits(relation, source.type, target.type):
                raise InvalidInput(
                    f"{relation} cannot hold from {source.type} to {target.type}; "
                    f"use {ANY} or another relation."
                )
            stated = Stated(source.root_id, relation, target.root_id, label=label)
            fact, slot = ids_of(scope.user_id, stated, ontology)
            statement = Statement(
                statement_id=derived_id(scope.user_id, "by hand", fact),
                fact_id=fact,
                slot=slot,
                subject_id=source.root_id,
                relation=relation,
                object_id=target.root_id,
                label=label,
                valid_from=new.valid_from or now,
                confirmed_at=now,
                recorded_at=now,
                source_id=None,
                verified_by=_who(scope),
                ontology=ontology.version,
            )
            await rows.put_statements([statement])
            await settle_slots(rows, [statement], [], ontology)
            vouched = [one for one in nodes.values() if not one.verified]
            await rows.put_entities([replace(one, verified_by=_who(scope)) for one in vouched])
            return statement

        statement = await self._store.change(scope, work)
        reads = self._store.reads(ReadScope(scope.user_id))
        said = await reads.statements(StatementsWanted(fact_ids=(statement.fact_id,)))
        found = await self._linked(reads, await self._standing(reads, said, None))
        return found[0], warning

    async def delete(self, scope: WriteScope, node_id: str) -> None:
        """A node goes with all that is said of it; it comes back when another text names it.

        Raises NotFound.
        """
        ontology = await self._registries.of(scope.user_id)

        async def work(rows: KnowledgeRows) -> None:
            node = await _existing(rows, node_id)
            ids = {node.entity_id, *(one.entity_id for one in await rows.parts([node.entity_id]))}
            said = await rows.statements(StatementsWanted(touching=(node.entity_id,)))
            await rows.delete_statements([one.statement_id for one in said])
            await settle_slots(rows, [], said, ontology)
            await rows.delete_entities(sorted(ids))
            ledger = await rows.merges(None, MOST_MERGES)
            gone = [one for one in ledger if not ids.isdisjoint((one.kept_id, one.gone_id))]
            await rows.delete_merges([one.merge_id for one in gone])

        await self._store.change(scope, work)

    def _known(self, type_: str, names: Iterable[str]) -> str | None:
        """What the tables call one of the names."""
        lexicons = {EMOTION: self._tables.every_emotion, "Value": self._tables.values}
        lexicon = lexicons.get(type_)
        if lexicon is None:
            return None
        found = (lexicon.at(tuple(name.casefold().split())) for name in names)
        return next((one[1] for one in found if one is not None), None)


async def _asked(
    reads: KnowledgeReads,
    relation: str | None,
    sources: tuple[str, ...] | None,
    targets: tuple[str, ...] | None,
    ontology: Ontology,
) -> list[Statement]:
    """Statements between these ends, also those that say it from the other end."""
    kinds = None if relation is None else ontology.kinds_of(relation)
    direct = StatementsWanted(subject_ids=sources, object_ids=targets, relations=kinds)
    found = await reads.statements(direct)
    rows = ontology.relations
    turned = [name for name in kinds or rows if rows[name].symmetric]
    turned += [inverse for name in kinds or () if (inverse := rows[name].inverse) is not None]
    if kinds is not None and turned:
        found += await reads.statements(
            StatementsWanted(subject_ids=targets, object_ids=sources, relations=tuple(turned))
        )
    return found


# --- checks


def _relation(name: str, ontology: Ontology) -> tuple[str, str | None, str | None]:
    """The relation, the label of one that the registry lacks or lacked, and a warning of it."""
    said = ontology.said.get(label_key(name))
    if said is not None and said[0] in ontology.relations:
        return *said, None
    if name in ontology.relations:
        return name, dict(ontology.said.values()).get(name), None
    near = difflib.get_close_matches(name.upper(), ontology.relations, n=1, cutoff=0.0)
    warning = f"The registry has no relation {name}; it was kept as {ANY} under this label."
    return ANY, name, f"{warning} The nearest one is {near[0]}."


def _check_type(type_: str, ontology: Ontology) -> None:
    if type_ not in ontology.types:
        near = difflib.get_close_matches(type_.title(), ontology.types, n=1, cutoff=0.0)
        raise InvalidInput(f"There is no type {type_}; the nearest one is {near[0]}.")


def _check_question(asked: KnowledgeQuestion, ontology: Ontology) -> None:
    for end in (asked.source, asked.target, asked.holder):
        if end.type is not None:
            _check_type(end.type, ontology)
    if asked.relation is not None and asked.relation not in ontology.relations:
        near = difflib.get_close_matches(
            asked.relation.upper(), ontology.relations, n=1, cutoff=0.0
        )
        raise InvalidInput(f"There is no relation {asked.relation}; the nearest is {near[0]}.")


async def _existing(reads: KnowledgeReads, node_id: str) -> Entity:
    """The node, with all that is a part of it; of a part, the node that it is a part of."""
    found = await _wholes(reads, await reads.entities([node_id]))
    if not found:
        raise NotFound("No node has this id; list nodes by type to find it.")
    return found[0]


async def _wholes(reads: KnowledgeReads, found: Sequence[Entity]) -> list[Entity]:
    """In their order."""
    return [whole(*one) for one in (await with_parts(reads, found)).values()]


def _of_itself(one: Statement) -> bool:
    """Whether a merge made one of its two ends."""
    return one.meant is not None and one.subject_id == one.object_id


def _who(scope: WriteScope) -> str:
    return scope.principal or scope.user_id


def _is_of(node: Entity, end: NodeEnd, perspective: str | None, ontology: Ontology) -> bool:
    if end.type is not None and node.type not in ontology.types_of(end.type):
        return False
    return perspective is None or any(one.name == perspective for one in node.perspectives)
