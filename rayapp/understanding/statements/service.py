"""Understanding a text: what it says becomes statements, and statements become the typed graph."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from rayapp.core.runtime import Clock
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.item import derived_id, other_person
from rayapp.text.expansions import Expansions
from rayapp.text.normalize import content_hash
from rayapp.understanding.ports import SourceText
from rayapp.understanding.statements.growth import GrowthService
from rayapp.understanding.statements.ports import KnowledgeRows, KnowledgeStore
from rayapp.understanding.statements.records import Entity, Given, Mention, Premise, Span, Statement
from rayapp.understanding.statements.registries import Registries
from rayapp.understanding.statements.resolving import RESOLVED_TYPES, Resolver
from rayapp.understanding.statements.rules.facts import Stated, ids_of, read_as
from rayapp.understanding.statements.rules.growing import read_with
from rayapp.understanding.statements.rules.identity import (
    Wanted,
    chosen,
    keys_of,
    me_key,
    part_of,
    role_of,
    whole,
)
from rayapp.understanding.statements.rules.reading import Claim, Named, Reader, Reading
from rayapp.understanding.statements.rules.registry import ANY, OF_ONE_SOURCE, PERSON, Ontology
from rayapp.understanding.statements.settlement import known_by, premises_now, settle

# How the speaker is called where nobody gave them a name.
I_AM = "I"


class StatementsService:
    """Implements `understanding.ports.Understander`."""

    def __init__(
        self,
        store: KnowledgeStore,
        reader: Reader,
        registries: Registries,
        expansions: Expansions | None,
        resolver: Resolver | None,
        growth: GrowthService | None,
        *,
        clock: Clock,
    ) -> None:
        self.resolver, self.growth = resolver, growth
        self._store, self._reader, self._registries = store, reader, registries
        self._expansions, self._clock = expansions, clock

    async def understand(self, source: SourceText) -> None:
        """Derive from it; what the same source gave before is replaced by difference."""
        reading = self._reader.read(source.text, source.said_at)
        if not reading.claims:  # as most texts, which gave nothing before either
            reads = self._store.reads(ReadScope(source.user_id))
            if await reads.given(source.source_id) is not None:
                await self.take_back(source.user_id, source.source_id)
            return
        now = self._clock.now()
        ontology = await self._registries.of(source.user_id)
        reading = read_with(reading, ontology)

        async def work(rows: KnowledgeRows) -> list[str]:
            before = await rows.given(source.source_id)
            named, new = await self._nodes(rows, source, reading, before, ontology.version)
            statements = [
                self._statement(source, claim, reading, named, now, ontology)
                for claim in reading.claims
            ]
            nodes = {one.entity_id: one for one in named.values()}
            roots = {one.entity_id: one.root_id for one in nodes.values() if one.merged_into}
            if roots:
                user_id = source.user_id
                statements = [read_as(one, user_id, roots, ontology) for one in statements]
            statements = await premises_now(rows, _once(statements), ontology)
            given = _given(source, named, new, now, ontology.version)
            await settle(rows, source.source_id, before, given, statements, ontology, nodes)
            return [one.entity_id for one in nodes.values() if _is_new_name(one)]

        new_names = await self._store.change(WriteScope(source.user_id), work)
        if new_names and self.resolver is not None:
            await self.resolver.look(source.user_id, new_names)
        labels = [one.label for one in reading.claims if one.relation == ANY and one.label]
        if labels and self.growth is not None:
            await self.growth.look(source.user_id, labels)

    async def take_back(self, user_id: str, source_id: str) -> None:
        """What only this source gave goes."""
        ontology = await self._registries.of(user_id)

        async def work(rows: KnowledgeRows) -> None:
            before = await rows.given(source_id)
            await settle(rows, source_id, before, None, (), ontology, {})

        await self._store.change(WriteScope(user_id), work)

    async def _nodes(
        self,
        rows: KnowledgeRows,
        source: SourceText,
        reading: Reading,
        before: Given | None,
        version: int,
    ) -> tuple[dict[int, Entity], dict[int, Wanted]]:
        """The node of each entity of a reading, those of owners first, and what was looked for."""
        wanted: dict[int, Wanted] = {}
        nodes: dict[int, Entity] = {}
        waiting = list(range(len(reading.entities)))
        while waiting:
            ready = [
                at for at in waiting
                if (owner := reading.entities[at].owner) is None or owner in nodes or owner == at
            ] or waiting  # fmt: skip
            for at in ready:
                wanted[at] = self._wanted(source, reading.entities[at], nodes)
            await self._find(rows, source, ready, wanted, nodes, before, version)
            waiting = [at for at in waiting if at not in nodes]
        return nodes, wanted

    async def _find(
        self,
        rows: KnowledgeRows,
        source: SourceText,
        places: Sequence[int],
        wanted: dict[int, Wanted],
        nodes: dict[int, Entity],
        before: Given | None,
        version: int,
    ) -> None:
        keys = {
            key
            for at in places
            if wanted[at].type not in OF_ONE_SOURCE
            for key in wanted[at].all_keys
        }
        known = await known_by(rows, sorted(keys)) if keys else {}
        wholes = [whole(*one) for one in known.values()]
        for at in places:
            asked = wanted[at]
            mine = set(asked.all_keys)
            fitting = [one for one in wholes if not mine.isdisjoint(key.name for key in one.keys)]
            entity_id, found = _chosen(source, asked, fitting, before, known)
            if found is not None:
                nodes[at] = part_of(asked, *known[entity_id])
                continue
            nodes[at] = Entity(
                entity_id=entity_id,
                type=asked.type,
                name=asked.names[0] if asked.names else I_AM,
                keys=(),
                first_seen_at=source.said_at,
                last_seen_at=source.said_at,
                ontology=version,
            )

    def _wanted(self, source: SourceText, one: Named, nodes: dict[int, Entity]) -> Wanted:
        if one.me:
            teller = other_person(source.perspective_owner_id, source.user_id)
            return Wanted(PERSON, (), (me_key(teller),))
        names = tuple(one.names)
        keys = keys_of(one.type, names, one.known, self._expansions)
        owner = nodes.get(one.owner) if one.owner is not None else None
        if one.role is None or owner is None:
            return Wanted(one.type, names, keys)
        row = self._reader.tables.roles[one.role]
        return Wanted(one.type, names, keys, role_of(one.role, owner.entity_id), row.single)

    def _statement(
        self,
        source: SourceText,
        claim: Claim,
        reading: Reading,
        nodes: dict[int, Entity],
        now: datetime,
        ontology: Ontology,
    ) -> Statement:
        def node(at: int | None) -> str | None:
            return None if at is None else nodes[at].entity_id

        def facts(one: Claim) -> tuple[str, str]:
            subject = nodes[one.subject].entity_id
            what = (node(one.object), one.value, one.label, node(one.holder))
            stated = Stated(subject, one.relation, *what)
            return ids_of(source.user_id, stated, ontology)

        fact_id, slot = facts(claim)
        begins = claim.begins or source.said_at
        told = claim.begins is not None and (claim.change or claim.span is Span.ENDS)
        premises: tuple[Premise, ...] = ()
        if claim.because is not None:
            cause = reading.claims[claim.because]
            premises = (Premise(relation=cause.relation, fact_id=facts(cause)[0]),)
        return Statement(
            statement_id=derived_id(source.user_id, source.source_id, fact_id, claim.span.value),
            fact_id=fact_id,
            slot=slot,
            subject_id=nodes[claim.subject].entity_id,
            relation=claim.relation,
            object_id=node(claim.object),
            value=claim.value,
            label=claim.label,
            span=claim.span,
            valid_from=begins if claim.span is Span.HOLDS else None,
            confirmed_at=begins if told else source.said_at,
            recorded_at=now,
            premises=premises,
            source_id=source.source_id,
            evidence=(source.source_id,),
            quote=claim.quote,
            holder_id=node(claim.holder),
            target_id=node(claim.target),
            intensity=claim.intensity,
            ontology=ontology.version,
        )


def _chosen(
    source: SourceText,
    asked: Wanted,
    fitting: Sequence[Entity],
    before: Given | None,
    known: Mapping[str, tuple[Entity, Sequence[Entity]]],
) -> tuple[str, Entity | None]:
    """The node that a text means. Of several of one name it means the one that it meant before: so
    a split stays."""
    if before is not None and len(fitting) > 1:
        meant = set(before.entity_ids)
        kept = [
            one
            for one in fitting
            if any(each.entity_id in meant for each in (one, *known[one.entity_id][1]))
        ]
        entity_id, found = chosen(source.user_id, source.source_id, asked, kept)
        if found is not None:
            return entity_id, found
    return chosen(source.user_id, source.source_id, asked, fitting)


def _is_new_name(node: Entity) -> bool:
    """Whether nobody has spoken of it before, and others may be called alike."""
    return not node.keys and node.type in RESOLVED_TYPES and node.name != I_AM


def _once(statements: Sequence[Statement]) -> list[Statement]:
    return list({one.statement_id: one for one in statements}.values())


def _given(
    source: SourceText,
    nodes: dict[int, Entity],
    wanted: dict[int, Wanted],
    now: datetime,
    ontology: int,
) -> Given:
    mentions: dict[str, Mention] = {}
    for at, entity in nodes.items():
        old = mentions.get(entity.entity_id)
        names = (*(old.names if old else ()), *wanted[at].names)
        keys = (*(old.keys if old else ()), *wanted[at].all_keys)
        mentions[entity.entity_id] = Mention(
            entity_id=entity.entity_id,
            type=entity.type,
            names=tuple(dict.fromkeys(names)),
            keys=tuple(dict.fromkeys(keys)),
            perspective=source.perspective_owner_id or "",
        )
    return Given(
        source_id=source.source_id,
        conversation_id=source.conversation_id,
        about_id=source.subject_id,
        text_hash=content_hash(source.text),
        said_at=source.said_at,
        recorded_at=now,
        mentions=tuple(mentions.values()),
        entity_ids=tuple(mentions),
        ontology=ontology,
    )
