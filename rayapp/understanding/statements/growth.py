"""The registry of a tenant grows: what statements needed is proposed, decided on, and what needed
it is read again."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

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
from rayapp.understanding.statements.registries import KEPT_S, Registries
from rayapp.understanding.statements.rules.growing import (
    Addition,
    Proposal,
    RegistryVersion,
    Ruling,
    RulingState,
    TenantRegistry,
    Witness,
    added,
    by_hand_with,
    is_enough,
    label_key,
    may_be_label,
    name_of,
    proposals_of,
    spelled,
    tenant_of,
)
from rayapp.understanding.statements.settlement import settle_slots

log = logging.getLogger("rayapp.understanding")
# Who accepts what enough texts needed, the event that tells of a version, and its field.
BY_WITNESSES, EVENT_KIND, EVENT_FIELD = "witnesses", "ontology", "version"
# Statements that are looked at for one decision, and tries where two decide at once.
MOST_WITNESSES, TRIES = 5_000, 5
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
        if not keys:
            return []
        witnesses = await self._witnesses(tenant, sorted(keys))
        rulings = () if declined else await self.store.rulings(tenant)
        ontology = (await self.registries.latest(tenant)).ontology
        return proposals_of(tenant, witnesses, ontology, _decided(rulings))

    async def ruled(self, scope: ReadScope, state: RulingState) -> list[Ruling]:
        """What was decided of labels that the user's own statements have; what was added is told to
        everybody of the tenant, as the registry does."""
        tenant = tenant_of(scope.user_id)
        keys = {label_key(one) for one in await self.store.labels(scope)}
        return [
            one
            for one in await self.store.rulings(tenant)
            if one.state is state and (state is RulingState.ACCEPTED or one.label in keys)
        ]

    # --- deciding

    async def accept(
        self, scope: WriteScope, proposal_id: str, new: NewName, *, operator: bool
    ) -> Ruling:
        """The registry has it from now on, in a new version.

        Raises InvalidInput: a name or a word that names no kind of things.
        """
        await self._check_may_decide(scope, operator=operator)
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
            rulings = await self.store.rulings(tenant)
            found = next((one for one in rulings if one.proposal_id == proposal_id), None)
            if found is None or found.state is RulingState.UNDONE:
                raise Conflict("There is no decision to undo.", code="nothing_to_undo")
            undone = Ruling(
                tenant=tenant, proposal_id=proposal_id, kind=found.kind, label=found.label,
                name=found.name, state=RulingState.UNDONE, by=_who(scope), at=self.clock.now(),
            )  # fmt: skip
            if found.state is RulingState.DECLINED:
                await self.store.rule(undone, None, ())
                return undone
            now = await self._fresh(tenant)
            kept = tuple(one for one in _additions(now) if one.name != found.name)
            gone = [one for one in _additions(now) if one.name == found.name]
            words = tuple(word for one in gone for word in one.words)
            if await self._made(scope, now, kept, undone, words):
                return undone
        raise Conflict("Others change the registry right now; try again.")

    async def look(self, user_id: str, labels: Sequence[str] | None = None) -> int:
        """Accept what enough texts needed; how much. `labels`: of a text that was just read.

        Where a tenant has several users a person decides: none of them names kinds for the others.
        """
        scope = WriteScope(user_id, BY_WITNESSES)
        wanted = None if labels is None else {label_key(one) for one in labels}
        found = [
            one
            for one in await self.proposals(scope.own)
            if (wanted is None or one.label in wanted) and is_enough(one.witnesses)
        ]
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
            additions = (*_additions(now), added(found.kind, name, words, since))
            ruling = self._ruled(scope, found, name, RulingState.ACCEPTED, by)
            if await self._made(scope, now, additions, ruling, words):
                return ruling
        raise Conflict("Others change the registry right now; try again.")

    def _named(self, found: Proposal, new: NewName) -> tuple[str, tuple[str, ...]]:
        label = found.label if new.name is None else label_key(new.name)
        words = tuple(dict.fromkeys((found.label, *map(label_key, new.words))))
        for one in (label, *words):
            if not may_be_label(one):
                raise InvalidInput(f"{one!r} names no kind of things; use one or two words.")
        return name_of(found.kind, label), words

    async def _made(
        self,
        scope: WriteScope,
        before: TenantRegistry,
        additions: tuple[Addition, ...],
        ruling: Ruling,
        words: Sequence[str],
    ) -> bool:
        """A new version is kept and told, and what it concerns is read again. False: somebody else
        has made one meanwhile."""
        number = before.ontology.version + 1
        version = RegistryVersion(
            tenant=ruling.tenant, version=number, additions=additions, by=ruling.by, at=ruling.at
        )
        witnesses = await self._witnesses(ruling.tenant, words)
        users = dict.fromkeys((scope.user_id, *(one.user_id for one in witnesses)))
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
        await self.read_again(ruling.tenant, words)
        return True

    # --- reading again

    async def read_again(self, tenant: str, words: Sequence[str]) -> int:
        """Offer what was said under these labels to the queue of understanding; how many texts.

        It may be repeated: deriving is a difference. It waits until no process goes by an earlier
        version any more.
        """
        by_hand: dict[str, list[str]] = defaultdict(list)
        sources: dict[tuple[str, str], None] = {}
        for one in await self._witnesses(tenant, words):
            if one.source_id is None:
                by_hand[one.user_id].append(one.fact_id)
            else:
                sources[one.user_id, one.source_id] = None
        offered = 0
        for user_id, source_id in sources:
            found = await self.sources.find(ReadScope(user_id, include_shared=False), source_id)
            if found is not None and not found.row.gone:
                await self.sources.offer(found.row, priority=REREAD, delay_s=KEPT_S)
                offered += 1
        for user_id, facts in by_hand.items():
            await self._rename_by_hand(user_id, facts)
        log.info("the registry has changed: %d texts are read again", offered)
        return offered

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

    async def _witnesses(self, tenant: str, keys: Sequence[str]) -> list[Witness]:
        labels = [form for key in keys for form in spelled(key)]
        return await self.store.witnesses(tenant, labels, MOST_WITNESSES)

    async def _proposal(self, scope: WriteScope, proposal_id: str) -> Proposal:
        every = await self.proposals(scope.own, declined=True)
        found = next((one for one in every if one.proposal_id == proposal_id), None)
        if found is None:
            raise NotFound(UNKNOWN)
        return found

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
        )


def _additions(registry: TenantRegistry) -> tuple[Addition, ...]:
    return () if registry.row is None else registry.row.additions


def _decided(rulings: Sequence[Ruling]) -> frozenset[str]:
    """The proposals on which somebody's decision stands."""
    return frozenset(one.proposal_id for one in rulings if one.state is not RulingState.UNDONE)


def _who(scope: WriteScope) -> str:
    return scope.principal or scope.user_id
