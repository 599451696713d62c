"""The registry of a tenant grows: what statements needed is proposed, decided on, and what needed
it is read again."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rayapp.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from rayapp.core.runtime import Clock
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.item import derived_id
from rayapp.memory.ports import Event
from rayapp.understanding.ports import UnderstandingStore
from rayapp.understanding.statements.ports import (
    KnowledgeRows,
    KnowledgeStore,
    RegistryStore,
    StatementsWanted,
)
from rayapp.understanding.statements.records import Entity
from rayapp.understanding.statements.registries import KEPT_S, Registries
from rayapp.understanding.statements.rules.additions import (
    AddedKind,
    Addition,
    NewProposal,
    Proposal,
    RegistryVersion,
    Ruling,
    RulingState,
    TenantRegistry,
    Witness,
    name_of,
    tenant_of,
)
from rayapp.understanding.statements.rules.growing import (
    added,
    by_hand_with,
    is_enough,
    is_known,
    label_key,
    may_be_label,
    narrowed,
    proposal_id_of,
    proposals_of,
    spelled,
)
from rayapp.understanding.statements.rules.registry import OWN_RULES, Ontology
from rayapp.understanding.statements.settlement import settle_slots

log = logging.getLogger("rayapp.understanding")
# Who accepts what enough texts needed, the event that tells of a version, and its field.
BY_WITNESSES, EVENT_KIND, EVENT_FIELD = "witnesses", "ontology", "version"
# Statements, and nodes of a user, that are looked at for one decision; tries where two decide.
MOST_WITNESSES, MOST_NODES, TRIES = 5_000, 5_000, 5
# The latest statements, of which each text that needs a name looks whether they are enough.
LATEST = 200
# What is read again waits behind what was just said.
REREAD = 1
UNKNOWN = "There is no such proposal; list those of kind `ontology` to see their ids."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewName:
    """What a person calls a proposal; None: as it is. `words`: more labels that mean the same."""

    name: str | None = None
    words: tuple[str, ...] = ()


@dataclass(eq=False)
class GrowthService:
    """Raises NotFound, Conflict, Forbidden."""

    registries: Registries
    store: RegistryStore
    knowledge: KnowledgeStore
    sources: UnderstandingStore
    clock: Clock

    # --- what waits

    async def proposals(self, scope: ReadScope, *, declined: bool = False) -> list[Proposal]:
        """What the user's own statements needed, with all witnesses of the tenant. `declined`: also
        what somebody has declined."""
        tenant = tenant_of(scope.user_id)
        keys = {label_key(one) for one in await self.store.labels(scope)}
        rulings = await self.store.rulings(tenant)
        stand = (RulingState.PROPOSED, *([RulingState.DECLINED] if declined else []))
        asked = [
            Proposal(one.proposal_id, one.kind, one.label, asked=one)
            for one in rulings
            if one.words and one.state in stand
        ]
        if not keys:
            return asked
        witnesses = await self._witnesses(tenant, sorted(keys))
        ontology = (await self.registries.latest(tenant)).ontology
        decided = frozenset(one.proposal_id for one in rulings if _stands(one, declined=declined))
        return asked + proposals_of(tenant, witnesses, ontology, decided)

    async def ruled(self, scope: ReadScope, state: RulingState) -> list[Ruling]:
        """What was decided of labels that the user's own statements have; what was added or
        proposed by a person is told to everybody of the tenant."""
        tenant = tenant_of(scope.user_id)
        keys = {label_key(one) for one in await self.store.labels(scope)}
        return [
            one
            for one in await self.store.rulings(tenant)
            if one.state is state
            and (state is RulingState.ACCEPTED or one.words or one.label in keys)
        ]

    async def propose(self, scope: WriteScope, new: NewProposal) -> Proposal:
        """It waits for a person as the others do.

        Raises InvalidInput: no such type, or one that is read by rules of its own; a word that
        names no kind of things; Conflict: the registry has it.
        """
        tenant = tenant_of(scope.user_id)
        label, words = label_key(new.name), tuple(dict.fromkeys(map(label_key, new.words)))
        _check_labels((label, *words))
        ontology = (await self._fresh(tenant)).ontology
        if new.parent is not None:
            _check_parent(new.kind, new.parent, ontology)
        if is_known(label, ontology):
            raise Conflict(f"The registry has {name_of(new.kind, label)} already.")
        proposal_id = proposal_id_of(tenant, label)
        before = await self._ruling(tenant, proposal_id)
        if before is not None and before.is_decision:
            raise Conflict("Somebody has decided on this; undo that first.")
        asked = Ruling(
            tenant=tenant,
            proposal_id=proposal_id,
            kind=new.kind,
            label=label,
            name=name_of(new.kind, label),
            state=RulingState.PROPOSED,
            by=_who(scope),
            at=self.clock.now(),
            words=words,
            parent=new.parent,
        )
        await self.store.rule(asked, None, ())
        return Proposal(asked.proposal_id, asked.kind, asked.label, asked=asked)

    # --- deciding

    async def accept(
        self, scope: WriteScope, proposal_id: str, new: NewName, *, operator: bool
    ) -> Ruling:
        """The registry has it from now on, in a new version. Where it has it already, what needed
        it is read again.

        Raises InvalidInput: a name or a word that names no kind of things.
        """
        await self._check_may_decide(scope, operator=operator)
        tenant = tenant_of(scope.user_id)
        ruling = await self._ruling(tenant, proposal_id)
        if ruling is not None and ruling.state is RulingState.ACCEPTED:
            for one in _additions(await self._fresh(tenant)):
                if one.name == ruling.name:
                    await self.read_again(tenant, one)
            return ruling
        return await self._accept(scope, await self._proposal(scope, proposal_id), new, _who(scope))

    async def decline(self, scope: WriteScope, proposal_id: str, *, operator: bool) -> Ruling:
        """It is not proposed again."""
        await self._check_may_decide(scope, operator=operator)
        found = await self._proposal(scope, proposal_id)
        ruling = self._ruled(scope, found, found.name, RulingState.DECLINED, _who(scope))
        await self.store.rule(ruling, None, ())
        return ruling

    async def undo(self, scope: WriteScope, proposal_id: str, *, operator: bool) -> Ruling:
        """As before the decision: of what was added a new version goes without it."""
        await self._check_may_decide(scope, operator=operator)
        tenant = tenant_of(scope.user_id)
        for _ in range(TRIES):
            found = await self._ruling(tenant, proposal_id)
            if found is None or not found.is_decision:
                raise Conflict("There is no decision to undo.", code="nothing_to_undo")
            back = RulingState.PROPOSED if found.words else RulingState.UNDONE
            undone = replace(found, state=back, by=_who(scope), at=self.clock.now())
            if found.state is RulingState.DECLINED:
                await self.store.rule(undone, None, ())
                return undone
            now = await self._fresh(tenant)
            kept = tuple(one for one in _additions(now) if one.name != found.name)
            gone = [one for one in _additions(now) if one.name == found.name]
            if await self._made(scope, now, kept, undone, gone):
                return undone
        raise Conflict("Others change the registry right now; try again.")

    async def look(self, user_id: str, labels: Sequence[str] | None = None) -> int:
        """Accept what enough texts needed; how much. `labels`: of a text that was just read.

        Where a tenant has several users a person decides: none of them names kinds for the others.
        """
        scope, tenant = WriteScope(user_id, BY_WITNESSES), tenant_of(user_id)
        said = await self.store.labels(scope.own) if labels is None else labels
        witnesses = await self._witnesses(tenant, sorted(set(map(label_key, said))), LATEST)
        # What somebody has decided, also if that was undone, is decided by people.
        decided = frozenset(one.proposal_id for one in await self.store.rulings(tenant))
        ontology = (await self.registries.latest(tenant)).ontology
        proposed = proposals_of(tenant, witnesses, ontology, decided)
        found = [one for one in proposed if is_enough(one.witnesses)]
        if not found or not await self.store.is_alone(user_id):
            return 0
        for one in found:
            await self._accept(scope, one, NewName(), BY_WITNESSES)
        return len(found)

    async def _accept(self, scope: WriteScope, found: Proposal, new: NewName, by: str) -> Ruling:
        name, words = self._named(found, new)
        for _ in range(TRIES):
            now = await self._fresh(tenant_of(scope.user_id))
            if name in (*now.ontology.types, *now.ontology.relations):
                raise Conflict(f"The registry has {name} already; give it another name.")
            since = now.ontology.version + 1
            parent = None if found.asked is None else found.asked.parent
            called = None if parent is None else label_key(new.name or found.label)
            one = added(found.kind, name, words, since, label=called, parent=parent)
            ruling = self._ruled(scope, found, name, RulingState.ACCEPTED, by)
            if await self._made(scope, now, (*_additions(now), one), ruling, [one]):
                return ruling
        raise Conflict("Others change the registry right now; try again.")

    def _named(self, found: Proposal, new: NewName) -> tuple[str, tuple[str, ...]]:
        label = found.label if new.name is None else label_key(new.name)
        asked = found.asked
        own = (found.label,) if asked is None or asked.parent is None else ()
        more = () if asked is None else asked.words
        words = tuple(dict.fromkeys((*own, *more, *map(label_key, new.words))))
        _check_labels((label, *words))
        return name_of(found.kind, label), words

    async def _made(
        self,
        scope: WriteScope,
        before: TenantRegistry,
        additions: tuple[Addition, ...],
        ruling: Ruling,
        changed: Sequence[Addition],
    ) -> bool:
        """A new version is kept and told, and what it concerns is read again. False: somebody else
        has made one meanwhile."""
        number = before.ontology.version + 1
        version = RegistryVersion(
            tenant=ruling.tenant, version=number, additions=additions, by=ruling.by, at=ruling.at
        )
        users = {scope.user_id: None}
        for one in changed:
            users |= dict.fromkeys(await self._users_of(ruling.tenant, one))
        told = [
            Event(
                event_id=derived_id(user, EVENT_KIND, str(number)),
                user_id=user,
                kind=EVENT_KIND,
                at=ruling.at,
                data={EVENT_FIELD: number},
            )
            for user in users
        ]
        if not await self.store.rule(ruling, version, told):
            return False
        self.registries.forget(ruling.tenant)
        for one in changed:
            await self.read_again(ruling.tenant, one)
        return True

    # --- reading again

    async def read_again(self, tenant: str, one: Addition) -> int:
        """Offer what an addition concerns to the queue of understanding; how many texts.

        It may be repeated: deriving is a difference. It waits until no process goes by an earlier
        version any more.
        """
        if one.parent is not None:
            sources = await self._retyped(tenant, one, one.parent)
        else:
            sources = await self._renamed(tenant, one)
        offered = 0
        for user_id, source_id in sources:
            found = await self.sources.find(ReadScope(user_id, include_shared=False), source_id)
            if found is not None and not found.row.gone:
                await self.sources.offer(found.row, priority=REREAD, delay_s=KEPT_S)
                offered += 1
        log.info("the registry has changed: %d texts are read again", offered)
        return offered

    async def _renamed(self, tenant: str, one: Addition) -> list[tuple[str, str]]:
        """The texts that say its labels; what was made by hand under them has its name at once."""
        by_hand: dict[str, list[str]] = defaultdict(list)
        sources: dict[tuple[str, str], None] = {}
        for said in await self._witnesses(tenant, one.words):
            if said.source_id is None:
                by_hand[said.user_id].append(said.fact_id)
            else:
                sources[said.user_id, said.source_id] = None
        for user_id, facts in by_hand.items():
            await self._rename_by_hand(user_id, facts)
        return list(sources)

    async def _retyped(self, tenant: str, one: Addition, parent: str) -> list[tuple[str, str]]:
        """Things of a type get a narrower one, or lose it; they keep their ids. The texts that
        speak of them."""
        ontology = (await self.registries.latest(tenant)).ontology
        found: list[tuple[str, str]] = []
        for user_id in await self.store.having(tenant, (parent, one.name)):
            retype = _Retyping((parent, one.name), parent, ontology)
            sources = await self.knowledge.change(WriteScope(user_id), retype.work)
            found += [(user_id, each) for each in sources]
        return found

    async def _users_of(self, tenant: str, one: Addition) -> list[str]:
        """Whose texts an addition may concern."""
        if one.parent is not None:
            return await self.store.having(tenant, (one.parent, one.name))
        return [each.user_id for each in await self._witnesses(tenant, one.words)]

    async def _rename_by_hand(self, user_id: str, facts: Sequence[str]) -> None:
        ontology = await self.registries.of(user_id)

        async def work(rows: KnowledgeRows) -> None:
            said = await rows.statements(StatementsWanted(fact_ids=tuple(facts)))
            old = [one for one in said if one.source_id is None]
            new = [by_hand_with(one, user_id, ontology) for one in old]
            await rows.delete_statements([one.statement_id for one in old])
            await rows.put_statements(new)
            await settle_slots(rows, new, old, ontology)

        await self.knowledge.change(WriteScope(user_id), work)

    # --- inside

    async def _witnesses(
        self, tenant: str, keys: Sequence[str], limit: int = MOST_WITNESSES
    ) -> list[Witness]:
        labels = [form for key in keys for form in spelled(key)]
        return await self.store.witnesses(tenant, labels, limit)

    async def _proposal(self, scope: WriteScope, proposal_id: str) -> Proposal:
        every = await self.proposals(scope.own, declined=True)
        found = next((one for one in every if one.proposal_id == proposal_id), None)
        if found is None:
            raise NotFound(UNKNOWN)
        return found

    async def _ruling(self, tenant: str, proposal_id: str) -> Ruling | None:
        rulings = await self.store.rulings(tenant)
        return next((one for one in rulings if one.proposal_id == proposal_id), None)

    async def _fresh(self, tenant: str) -> TenantRegistry:
        self.registries.forget(tenant)
        return await self.registries.latest(tenant)

    async def _check_may_decide(self, scope: WriteScope, *, operator: bool) -> None:
        if not operator and not await self.store.is_alone(scope.user_id):
            raise Forbidden(
                "The registry is that of all users of this tenant: decide with a key that has the "
                "scope `admin`."
            )

    def _ruled(
        self, scope: WriteScope, found: Proposal, name: str, state: RulingState, by: str
    ) -> Ruling:
        return Ruling(
            tenant=tenant_of(scope.user_id),
            proposal_id=found.proposal_id,
            kind=found.kind,
            label=found.label,
            name=name,
            state=state,
            by=by,
            at=self.clock.now(),
            words=() if found.asked is None else found.asked.words,
            parent=None if found.asked is None else found.asked.parent,
        )


def _additions(registry: TenantRegistry) -> tuple[Addition, ...]:
    return () if registry.row is None else registry.row.additions


@dataclass(frozen=True)
class _Retyping:
    """Things of these types, of one user, as the registry tells them apart now."""

    types: tuple[str, ...]
    parent: str
    ontology: Ontology

    async def work(self, rows: KnowledgeRows) -> list[str]:
        """The sources that speak of what has another type now."""
        nodes = [one for type_ in self.types for one in await rows.of_type(type_, MOST_NODES)]
        new = {one.entity_id: replace(one, type=self._type_of(one)) for one in nodes}
        new = {one.entity_id: new[one.entity_id] for one in nodes if new[one.entity_id] != one}
        await rows.put_entities(list(new.values()))
        said = await rows.statements(StatementsWanted(touching=tuple(sorted(new))))
        return list(dict.fromkeys(one.source_id for one in said if one.source_id is not None))

    def _type_of(self, node: Entity) -> str:
        names = (node.name, *node.synonyms, *(one.name for one in node.names))
        return narrowed(self.parent, names, self.ontology)


def _stands(one: Ruling, *, declined: bool) -> bool:
    """Whether nothing is to be proposed under its label: it was decided, or a person proposes it.
    `declined`: what was declined may be."""
    open_again = declined and one.state is RulingState.DECLINED and not one.words
    return one.state is not RulingState.UNDONE and not open_again


def _check_labels(labels: Sequence[str]) -> None:
    for one in labels:
        if not may_be_label(one):
            raise InvalidInput(f"{one!r} names no kind of things; use one or two words.")


def _check_parent(kind: AddedKind, parent: str, ontology: Ontology) -> None:
    if kind is not AddedKind.TYPE or parent not in ontology.types:
        raise InvalidInput(f"There is no type {parent} to be narrower than; read the registry.")
    if parent in OWN_RULES:
        raise InvalidInput(f"{parent} is read by rules of its own and has no narrower type.")


def _who(scope: WriteScope) -> str:
    return scope.principal or scope.user_id
