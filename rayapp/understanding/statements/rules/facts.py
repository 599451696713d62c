"""The ids of facts, and what a merge of nodes makes of them. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from rayapp.memory.item import derived_id
from rayapp.understanding.statements.records import Meant, Statement
from rayapp.understanding.statements.rules.registry import Ontology


class Stated(NamedTuple):
    """What makes a fact: who says it, and when, does not."""

    subject_id: str
    relation: str
    object_id: str | None = None
    value: str | None = None
    label: str | None = None
    holder_id: str | None = None


def ids_of(user_id: str, one: Stated, ontology: Ontology) -> tuple[str, str]:
    """The id of the fact, which all sources that say it share, and that of its slot."""
    what = (one.object_id or "", one.value or "", one.label or "", one.holder_id or "")
    fact = derived_id(user_id, one.subject_id, one.relation, *what)
    row = ontology.relations.get(one.relation)
    if row is None or not row.functional:
        return fact, fact
    return fact, derived_id(user_id, one.subject_id, one.relation, one.label or "")


def meant_by(one: Statement) -> Meant:
    """The nodes that the text means, before any of them was merged."""
    return one.meant or Meant(
        subject_id=one.subject_id,
        object_id=one.object_id,
        holder_id=one.holder_id,
        target_id=one.target_id,
    )


def read_as(
    one: Statement, user_id: str, roots: Mapping[str, str], ontology: Ontology
) -> Statement:
    """A statement as it reads when nodes stand for others: `roots`, by the node that is meant."""
    meant = meant_by(one)

    def root(node_id: str | None) -> str | None:
        return None if node_id is None else roots.get(node_id, node_id)

    ends = Meant(
        subject_id=roots.get(meant.subject_id, meant.subject_id),
        object_id=root(meant.object_id),
        holder_id=root(meant.holder_id),
        target_id=root(meant.target_id),
    )
    stated = Stated(
        ends.subject_id, one.relation, ends.object_id, one.value, one.label, ends.holder_id
    )
    fact, slot = ids_of(user_id, stated, ontology)
    return replace(
        one,
        fact_id=fact,
        slot=slot,
        subject_id=ends.subject_id,
        object_id=ends.object_id,
        holder_id=ends.holder_id,
        target_id=ends.target_id,
        meant=None if ends == meant else meant,
    )
