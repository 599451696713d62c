"""Types and relations of the typed graph, as `configs/understanding/ontology.yaml` has them."""

from collections.abc import Iterable, Mapping

from pydantic import model_validator

from rayapp.core.settings.access import SettingsSection

ANY = "RELATED_TO"
DETAIL = "HAS"
PERSON, EVENT, EMOTION = "Person", "Event", "Emotion"
# Read by rules of their own.
OWN_RULES = frozenset({PERSON, EVENT, EMOTION})
# Whose nodes meet under one name only where the same source names them.
OF_ONE_SOURCE = frozenset({EVENT})


class TypeRow(SettingsSection):
    """A type of nodes, and what people call it. `is_a`: the type that it is a narrower one of."""

    en: str
    he: str
    is_a: str | None = None


class RelationRow(SettingsSection):
    """A relation; without `source` or `target` any type may stand there."""

    en: str
    he: str
    is_a: str | None = None
    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    functional: bool = False
    family: bool = False
    symmetric: bool = False
    inverse: str | None = None
    rests_on: tuple[str, ...] = ()


class LabelRow(SettingsSection):
    """A detail of a person that rests on where they live or work."""

    rests_on: tuple[str, ...] = ()


class Ontology(SettingsSection):
    """The registry, one version."""

    version: int
    types: Mapping[str, TypeRow]
    relations: Mapping[str, RelationRow]
    labels: Mapping[str, LabelRow] = {}
    # Of a tenant's additions: what a label means, and the label that stands for all of its words.
    said: Mapping[str, tuple[str, str]] = {}
    # By type, the names of things that are of a narrower one.
    narrower: Mapping[str, Mapping[str, str]] = {}

    @model_validator(mode="after")
    def _names_what_there_is(self) -> "Ontology":
        for name, row in self.relations.items():
            strange = {*row.source, *row.target} - set(self.types)
            strange |= {*row.rests_on, *filter(None, (row.is_a, row.inverse))} - set(self.relations)
            if strange:
                raise ValueError(f"{name} names what the registry lacks: {sorted(strange)}")
        return self

    def row_of(self, relation: str) -> RelationRow:
        """Its row. One that a newer version has is read as a plain relation."""
        plain = _worded(relation)
        return self.relations.get(relation) or RelationRow(en=plain, he=plain)

    def fits(self, relation: str, source: str, target: str | None) -> bool:
        """Whether a relation may hold between these types."""
        row = self.row_of(relation)
        from_ok = not row.source or self._is_any(source, row.source)
        return from_ok and (not row.target or self._is_any(target, row.target))

    def types_of(self, type_: str) -> tuple[str, ...]:
        """The type, and the narrower ones."""
        own = [name for name, row in self.types.items() if row.is_a == type_]
        return (type_, *(kind for name in own for kind in self.types_of(name)))

    def _is_any(self, type_: str | None, allowed: Iterable[str]) -> bool:
        return any(type_ in self.types_of(one) for one in allowed)

    def rests_on(self, relation: str, label: str | None) -> tuple[str, ...]:
        """The relations of the same subject that such a statement rests on."""
        row = self.labels.get(label or "")
        return row.rests_on if row and relation == DETAIL else self.row_of(relation).rests_on

    def resting_on(self, relation: str) -> tuple[str, ...]:
        """The relations of which statements may rest on one of this relation."""
        found = [name for name, row in self.relations.items() if relation in row.rests_on]
        if any(relation in row.rests_on for row in self.labels.values()):
            found.append(DETAIL)
        return tuple(found)

    def kinds_of(self, relation: str) -> tuple[str, ...]:
        """The relation, and those that are a kind of it. Everything is RELATED_TO: it is asked for
        as itself alone."""
        if relation == ANY:
            return (ANY,)
        own = [name for name, row in self.relations.items() if row.is_a == relation]
        return (relation, *(kind for name in own for kind in self.kinds_of(name)))


def _worded(name: str) -> str:
    return name.lower().replace("_", " ")
