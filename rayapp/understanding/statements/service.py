"""Understanding a text: what it says becomes statements, and statements become the typed graph."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from rayapp.core.runtime import Clock
from rayapp.memory.item import derived_id, other_person
from rayapp.text.expansions import Expansions
from rayapp.text.normalize import content_hash
from rayapp.understanding.ports import SourceText
from rayapp.understanding.statements.growth import GrowthService
from rayapp.understanding.statements.ports import KnowledgeRows, StatementsWanted
from rayapp.understanding.statements.records import (
    Entity,
    Given,
    Graph,
    Mention,
    Premise,
    Span,
    Statement,
)
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
from rayapp.understanding.statements.settlement import (
    foresee_slots,
    known_by,
    premises_now,
    settle_entities,
    settle_statements,
)

# How the speaker is called where nobody gave them a name.
I_AM = "I"


class Read(NamedTuple):
    """A text, and what it says."""

    source: SourceText
    reading: Reading


class Said(NamedTuple):
    """What a text says, by its nodes. `gone`: what it said before, and not any more; `nodes`: as
    they stand after it."""

    source_id: str
    gone: tuple[Statement, ...] = ()
    statements: tuple[Statement, ...] = ()
    nodes: Mapping[str, Entity] = MappingProxyType({})
    new_names: tuple[str, ...] = ()


class News(NamedTuple):
    """What a look is to be had at: nodes with new names, and labels that the registry lacks."""

    names: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


class StatementsService:
    """Turns texts of one user into rows of the typed graph. Nodes come first, of all texts in their
    order, and then what is said of them: neither asks for the other."""

    def __init__(
        self,
        reader: Reader,
        registries: Registries,
        expansions: Expansions | None,
        resolver: Resolver | None,
        growth: GrowthService | None,
        *,
        clock: Clock,
    ) -> None:
        self.resolver, self.growth = resolver, growth
        self._reader, self._registries = reader, registries
        self._expansions, self._clock = expansions, clock

    async def ontology(self, user_id: str) -> Ontology:
        """By which the user's texts are read."""
        return await self._registries.of(user_id)

    def read(self, source: SourceText, ontology: Ontology) -> Read:
        """What it says. It takes most of the time and asks for no row."""
        return Read(source, read_with(self._reader.read(source.text, source.said_at), ontology))

    async def settle(
        self, rows: KnowledgeRows, texts: Sequence[Read], ontology: Ontology
    ) -> tuple[list[Graph], News]:
        """Put what they say in the place of what the same sources said before, by difference, as if
        one text came after the other; and what each of them says."""
        await self._foresee(rows, texts, ontology.version)
        said = [await self._say(rows, one, ontology) for one in texts]
        touched = [each for one in said for each in (*one.statements, *one.gone)]
        await foresee_slots(rows, touched, ontology)
        graphs = []
        for one in said:
            statements = await premises_now(rows, one.statements, ontology)
            await settle_statements(rows, one.gone, statements, ontology)
            graphs.append(await _graph(rows, one))
        labels = (
            claim.label
            for text in texts
            for claim in text.reading.claims
            if claim.relation == ANY and claim.label
        )
        names = (name for one in said for name in one.new_names)
        return graphs, News(tuple(dict.fromkeys(names)), tuple(dict.fromkeys(labels)))

    async def look(self, user_id: str, news: News) -> None:
        """Who the new names may be, and whether enough texts needed a kind that is not there."""
        if news.names and self.resolver is not None:
            await self.resolver.look(user_id, news.names)
        if news.labels and self.growth is not None:
            await self.growth.look(user_id, news.labels)

    async def take_back(
        self, rows: KnowledgeRows, source_ids: Sequence[str], ontology: Ontology
    ) -> None:
        """What only these sources gave goes."""
        for before in await rows.given(source_ids):
            gone = await rows.statements(StatementsWanted(source_ids=(before.source_id,)))
            await settle_statements(rows, gone, (), ontology)
            await settle_entities(rows, before, None, {})

    async def _foresee(self, rows: KnowledgeRows, texts: Sequence[Read], version: int) -> None:
        """Read at once what the texts will ask for one by one, where the rows are held. A guess
        that is wrong costs a read, and changes nothing."""
        ids = [one.source.source_id for one in texts]
        await rows.given(ids)
        await rows.statements(StatementsWanted(source_ids=tuple(ids)))
        first, owned = set[str](), list[Read]()
        for source, reading in texts:
            for one in reading.entities:
                first |= _looked_up(self._wanted(source, one, {}))
            if any(one.owner is not None for one in reading.entities):
                owned.append(Read(source, reading))
        if first:
            await known_by(rows, sorted(first))
        roles = set[str]()
        for source, reading in owned:
            nodes, wanted = dict[int, Entity](), dict[int, Wanted]()
            places = [at for at, one in enumerate(reading.entities) if one.owner in (None, at)]
            for at in places:
                wanted[at] = self._wanted(source, reading.entities[at], nodes)
            await self._find(rows, source, places, wanted, nodes, None, version)
            for one in reading.entities:
                roles |= _looked_up(self._wanted(source, one, nodes))
        if roles - first:
            await known_by(rows, sorted(roles))

    async def _say(self, rows: KnowledgeRows, text: Read, ontology: Ontology) -> Said:
        """The nodes of a text, and its statements, which are not put yet."""
        source, reading = text
        before = next(iter(await rows.given([source.source_id])), None)
        old: list[Statement] = []
        if before is not None:
            old = await rows.statements(StatementsWanted(source_ids=(source.source_id,)))
        if not reading.claims:  # as most texts, which gave nothing before either
            await settle_entities(rows, before, None, {})
            return Said(source.source_id, tuple(old))
        now = self._clock.now()
        named, new = await self._nodes(rows, source, reading, before, ontology.version)
        statements = _once(
            [self._statement(source, one, reading, named, now, ontology) for one in reading.claims]
        )
        nodes = {one.entity_id: one for one in named.values()}
        roots = {one.entity_id: one.root_id for one in nodes.values() if one.merged_into}
        if roots:
            user_id = source.user_id
            statements = _once([read_as(one, user_id, roots, ontology) for one in statements])
        kept = {one.statement_id for one in statements}
        given = _given(source, named, new, now, ontology.version)
        await settle_entities(rows, before, given, nodes)
        ends = dict.fromkeys(
            end
            for one in statements
            for end in (one.subject_id, one.object_id, one.holder_id, one.target_id)
            if end
        )
        return Said(
            source.source_id,
            tuple(one for one in old if one.statement_id not in kept),
            tuple(statements),
            {one.entity_id: one for one in await rows.entities(list(ends))},
            tuple(one.entity_id for one in nodes.values() if _is_new_name(one)),
        )

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
        keys = {key for at in places for key in _looked_up(wanted[at])}
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


async def _graph(rows: KnowledgeRows, said: Said) -> Graph:
    """What a text gave, as it stands right after it."""
    if not said.statements:
        return Graph()
    found = await rows.statements(StatementsWanted(source_ids=(said.source_id,)))
    ends = (
        end
        for one in found
        for end in (one.subject_id, one.object_id, one.holder_id, one.target_id)
    )
    named = sorted({one for one in ends if one is not None} & said.nodes.keys())
    return Graph(tuple(found), {one: said.nodes[one] for one in named})


def _looked_up(wanted: Wanted) -> set[str]:
    """The keys by which a node is looked for."""
    return set() if wanted.type in OF_ONE_SOURCE else set(wanted.all_keys)


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
