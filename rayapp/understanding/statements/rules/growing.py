"""What the registry of a tenant has beside the shipped one, and what it may come to have. Pure.

A label that statements carry because the registry lacks a name for it is a witness. Two that are
independent make a proposal; a person accepts it, or enough of them within two days.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from rayapp.memory.item import derived_id
from rayapp.text.hebrew import is_hebrew
from rayapp.text.hostile import hostile
from rayapp.text.normalize import normalize
from rayapp.understanding.statements.records import Statement
from rayapp.understanding.statements.rules.additions import (
    AddedKind,
    Addition,
    Proposal,
    RegistryVersion,
    Witness,
)
from rayapp.understanding.statements.rules.facts import Stated, ids_of
from rayapp.understanding.statements.rules.reading import Claim, Named, Reading
from rayapp.understanding.statements.rules.registry import ANY, Ontology, RelationRow, TypeRow

# Independent witnesses of a proposal; how many, within which time, accept it by themselves.
INDEPENDENT, ENOUGH, WITHIN = 2, 5, timedelta(hours=48)
MAX_LABEL = 40


def label_key(label: str) -> str:
    """The normal form of a label."""
    return " ".join(normalize(label).casefold().replace("_", " ").replace("-", " ").split())


def spelled(key: str) -> tuple[str, ...]:
    """How statements may spell a label."""
    forms = (key, key.upper(), key.capitalize(), key.title())
    spread = (one.replace(" ", by) for one in forms for by in (" ", "_", "-"))
    return tuple(dict.fromkeys(spread))


def grown(base: Ontology, version: RegistryVersion | None) -> Ontology:
    """The registry of a tenant."""
    if version is None:
        return base
    types, relations, said = dict(base.types), dict(base.relations), {}
    narrower: dict[str, dict[str, str]] = defaultdict(dict)
    for one in version.additions:
        if one.kind is AddedKind.TYPE:
            types[one.name] = TypeRow(en=one.en, he=one.he, is_a=one.parent)
        else:
            relations[one.name] = RelationRow(en=one.en, he=one.he, is_a=ANY)
        if one.parent is None:
            said.update({word: (one.name, one.words[0]) for word in one.words})
        else:
            narrower[one.parent].update(dict.fromkeys(one.words, one.name))
    return base.model_copy(
        update={
            "version": version.version,
            "types": types,
            "relations": relations,
            "said": said,
            "narrower": narrower,
        }
    )


def added(
    kind: AddedKind,
    name: str,
    words: Sequence[str],
    since: int,
    *,
    label: str | None = None,
    parent: str | None = None,
) -> Addition:
    """An addition under its words, the first of which stands for all. `label`: what it is called
    where its words are names of things."""
    called = words if label is None else (label,)
    hebrew = [one for one in called if is_hebrew(one)]
    english = [one for one in called if not is_hebrew(one)]
    return Addition(
        kind=kind,
        name=name,
        en=(english or hebrew)[0],
        he=(hebrew or english)[0],
        words=tuple(words),
        since=since,
        parent=parent,
    )


def may_be_label(key: str) -> bool:
    """Whether it names a kind of things, and is no sentence, number or order to a model."""
    letters = key.replace(" ", "").replace("'", "").replace('"', "")
    return 2 <= len(key) <= MAX_LABEL and letters.isalpha() and hostile(key) is None


def is_known(key: str, ontology: Ontology) -> bool:
    """Whether the registry has it, by its name or by what people call it."""
    names = {*ontology.types, *ontology.relations}
    for rows in (ontology.types, ontology.relations):
        names |= {form for row in rows.values() for form in (row.en, row.he)}
    return key in map(label_key, names) or key in ontology.said


def proposals_of(
    tenant: str, witnesses: Sequence[Witness], ontology: Ontology, decided: frozenset[str]
) -> list[Proposal]:
    """What two independent witnesses needed and nobody has decided on, seen last first."""
    by_key: dict[str, list[Witness]] = defaultdict(list)
    for one in witnesses:
        by_key[label_key(one.label)].append(one)
    found = []
    for key, some in by_key.items():
        proposal_id = proposal_id_of(tenant, key)
        if proposal_id in decided or not may_be_label(key) or is_known(key, ontology):
            continue
        if len({one.place for one in some}) < INDEPENDENT:
            continue
        values = sum(one.has_value for one in some)
        kind = AddedKind.TYPE if values * 2 > len(some) else AddedKind.RELATION
        ordered = tuple(sorted(some, key=lambda one: (one.said_at, one.fact_id)))
        found.append(Proposal(proposal_id, kind, key, ordered))
    return sorted(found, key=lambda one: one.witnesses[-1].said_at, reverse=True)


def proposal_id_of(tenant: str, label: str) -> str:
    """One label is one proposal, whoever brings it."""
    return derived_id(tenant, "ontology", label)


def is_enough(witnesses: Sequence[Witness]) -> bool:
    """Whether so many texts, of several places, needed it within the time."""
    texts = {(one.user_id, one.source_id): one for one in witnesses if one.source_id is not None}
    said = sorted(texts.values(), key=lambda one: one.said_at)
    for at in range(len(said) - ENOUGH + 1):
        some = [one for one in said[at:] if one.said_at - said[at].said_at <= WITHIN]
        if len(some) >= ENOUGH and len({one.place for one in some}) >= INDEPENDENT:
            return True
    return False


def read_with(reading: Reading, ontology: Ontology) -> Reading:
    """A reading in the names of the registry: what a text calls a hobby is a `Hobby`."""
    if not ontology.said and not ontology.narrower:
        return reading
    entities = [
        replace(one, type=narrowed(one.type, one.names, ontology)) for one in reading.entities
    ]
    claims = []
    for claim in reading.claims:
        named = _named(claim.relation, claim.label, ontology)
        if named is not None:
            claim = _claimed(claim, *named, ontology, entities)
        claims.append(claim)
    return Reading(tuple(entities), tuple(claims))


def narrowed(type_: str, names: Iterable[str], ontology: Ontology) -> str:
    """The type of a thing of these names, where the tenant tells it apart."""
    found = ontology.narrower.get(type_, {})
    return next((found[key] for key in map(label_key, names) if key in found), type_)


def _claimed(
    claim: Claim, name: str, label: str, ontology: Ontology, entities: list[Named]
) -> Claim:
    if name in ontology.relations:
        return claim if claim.object is None else replace(claim, relation=name, label=label)
    if claim.value is None:
        return claim
    same = (
        at
        for at, one in enumerate(entities)
        if one.type == name and claim.value.casefold() in {each.casefold() for each in one.names}
    )
    place = next(same, None)
    if place is None:
        place = len(entities)
        entities.append(Named(name, [claim.value]))
    return replace(claim, object=place, value=None, label=label)


def by_hand_with(one: Statement, user_id: str, ontology: Ontology) -> Statement:
    """A relation that a person made, in the names of the registry as it is now."""
    relation, label = _named(one.relation, one.label, ontology) or (ANY, one.label)
    if one.relation != ANY and one.relation in ontology.relations:
        return one
    if relation not in ontology.relations:
        relation, label = ANY, one.label
    stated = Stated(one.subject_id, relation, one.object_id, one.value, label, one.holder_id)
    fact, slot = ids_of(user_id, stated, ontology)
    return replace(
        one,
        statement_id=derived_id(user_id, "by hand", fact),
        fact_id=fact,
        slot=slot,
        relation=relation,
        ontology=ontology.version,
    )


def _named(relation: str, label: str | None, ontology: Ontology) -> tuple[str, str] | None:
    return ontology.said.get(label_key(label)) if label and relation == ANY else None
