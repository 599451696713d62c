"""Which nodes look like one, and which never are. Pure.

A wrong merge is worse than two nodes: what a text itself tells apart stays apart, whatever the
names are, and names one letter apart are two names.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from rayapp.text.normalize import normalize
from rayapp.understanding.statements.records import Entity, Span, Statement
from rayapp.understanding.statements.rules.identity import role_parts
from rayapp.understanding.statements.rules.registry import Ontology

# Of a pair that passes the gate: how much its names, its company and its times count.
NAME, COMPANY, TIME = 0.5, 0.3, 0.2
# From this score on they are one; below it a person decides; below the other nobody is asked.
SURE, WORTH_ASKING = 0.6, 0.4
# Share of letter groups that names have in common before anything else is looked at.
GATE = 0.5
# Whole words of the other name: "Sarah" and "Sarah Cohen".
PART_OF_NAME = 0.8
# Without so much company in common a name is no proof.
LEAST_COMPANY = 0.3
# Apart by so much, a time says half as much.
HALF_LIFE = timedelta(days=180)
_GROUP = 3


@dataclass(frozen=True, slots=True)
class Told:
    """A node, and what is said of it."""

    node: Entity
    statements: tuple[Statement, ...] = ()
    # Sources that name it.
    sources: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Alike:
    """How much two nodes look like one. `sure`: nobody needs to be asked."""

    score: float
    reasons: tuple[str, ...]
    sure: bool


def alike(one: Told, other: Told, degrees: Mapping[str, int], ontology: Ontology) -> Alike | None:
    """How much they look like one; None: they do not, or a text tells them apart.

    Args:
        degrees: with how many nodes each neighbour is linked: who knows everybody says nothing.
    """
    if one.node.type != other.node.type or _told_apart(one, other, ontology):
        return None
    name = max(
        (_names_alike(a, b) for a in _names(one.node) for b in _names(other.node)), default=0.0
    )
    if name <= 0:
        return None
    company, time = _company(one, other, degrees), _time(one.node, other.node)
    score = NAME * name + COMPANY * company + TIME * time
    if score < WORTH_ASKING:
        return None
    parts = (("name", name), ("company", company), ("time", time))
    reasons = tuple(f"{what} {value:.2f}" for what, value in parts)
    return Alike(score, reasons, score >= SURE and company >= LEAST_COMPANY)


def _names(node: Entity) -> list[tuple[str, ...]]:
    said = dict.fromkeys((node.name, *(one.name for one in node.names), *node.synonyms))
    return [words for name in said if (words := tuple(normalize(name).casefold().split()))]


def _names_alike(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """0: two names."""
    if one == other:
        return 1.0
    if set(one) < set(other) or set(other) < set(one):
        return PART_OF_NAME
    if _a_letter_apart(one, other):
        return 0.0
    groups, others = _groups(" ".join(one)), _groups(" ".join(other))
    share = len(groups & others) / len(groups | others)
    return share if share >= GATE else 0.0


def _a_letter_apart(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether some word of a name is another name that differs by one letter."""
    apart = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    return len(one) == len(other) and any(_one_edit(a, b) for a, b in apart)


def _one_edit(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if at is None:
        return True
    return one[at + 1 :] == other[at + 1 :] or one[at:] == other[at + 1 :] or (
        one[at + 1 :] == other[at:]
    )  # fmt: skip


def _groups(name: str) -> set[str]:
    """Letter groups in any script; the ends of the name count."""
    padded = f" {name} "
    return {padded[at : at + _GROUP] for at in range(max(1, len(padded) - _GROUP + 1))}


def _told_apart(one: Told, other: Told, ontology: Ontology) -> bool:
    """Whether what is said of them excludes that they are one."""
    ids = {one.node.entity_id, other.node.entity_id}
    if not one.sources.isdisjoint(other.sources):
        return True  # a text that names both means two
    related = {one.node.entity_id: other.node.entity_id, other.node.entity_id: one.node.entity_id}
    for row in (*one.statements, *other.statements):
        if row.object_id is not None and related.get(row.subject_id) == row.object_id:
            return True  # a mother and her daughter
    mine, theirs = (dict(_roles_of(each.node)) for each in (one, other))
    if any(mine[owner] != theirs[owner] for owner in mine.keys() & theirs.keys()):
        return True
    for relation in {row.relation for row in one.statements}:
        row_of = ontology.relations.get(relation)
        held, others = (_objects(each, relation, ids) for each in (one, other))
        exclusive = row_of is not None and (row_of.functional or row_of.family)
        if exclusive and held and others and held.isdisjoint(others):
            return True
    return False


def _roles_of(node: Entity) -> Iterable[tuple[str, str]]:
    """What somebody is, by to whom."""
    for key in node.keys:
        found = role_parts(key.name)
        if found is not None:
            yield found[1], found[0]


def _objects(told: Told, relation: str, ids: set[str]) -> set[str]:
    """What a node has by a relation that holds."""
    return {
        row.object_id or row.value or ""
        for row in told.statements
        if row.relation == relation
        and row.subject_id == told.node.entity_id
        and row.span is Span.HOLDS
        and row.valid_to is None
        and row.object_id not in ids
    }


def _company(one: Told, other: Told, degrees: Mapping[str, int]) -> float:
    """Share of the company that they have in common; who knows everybody counts little."""
    mine, theirs = _neighbours(one), _neighbours(other)
    every = sum(_weight(degrees, each) for each in mine | theirs)
    return sum(_weight(degrees, each) for each in mine & theirs) / every if every else 0.0


def _neighbours(told: Told) -> set[str]:
    ends = {end for row in told.statements for end in (row.subject_id, row.object_id)}
    return {end for end in ends if end is not None} - {told.node.entity_id}


def _weight(degrees: Mapping[str, int], node_id: str) -> float:
    return 1 / math.log2(1 + max(1, degrees.get(node_id, 1)))


def _time(one: Entity, other: Entity) -> float:
    """1 where they were spoken of at the same time, less the further apart that is."""
    gap = max(one.first_seen_at - other.last_seen_at, other.first_seen_at - one.last_seen_at)
    return 1.0 if gap <= timedelta(0) else 0.5 ** (gap / HALF_LIFE)


def told_of(nodes: Sequence[Entity], statements: Sequence[Statement]) -> list[Told]:
    """Nodes with what is said of each."""
    found: dict[str, list[Statement]] = {one.entity_id: [] for one in nodes}
    for row in statements:
        for end in {row.subject_id, row.object_id} & found.keys():
            found[str(end)].append(row)
    return [
        Told(
            one,
            tuple(found[one.entity_id]),
            frozenset(source for row in found[one.entity_id] for source in row.evidence),
        )
        for one in nodes
    ]
