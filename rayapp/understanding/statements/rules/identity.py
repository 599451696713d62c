"""Who is who: which node a text means. Pure.

Only equal names of equal type meet, and what is said of them must agree; names one letter apart
stay apart. In doubt there are two nodes: a person can merge what was one, nobody can take apart
what was merged wrongly.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rayapp.memory.item import derived_id
from rayapp.text.concepts import concept_key
from rayapp.text.expansions import Expansions
from rayapp.text.normalize import label_form, normalize
from rayapp.understanding.statements.records import Counted, Entity
from rayapp.understanding.statements.rules.registry import OF_ONE_SOURCE, PERSON

# Words of a name may differ from text to text; these types are phrases, and meet by their lemmas.
_PHRASES = frozenset({"Goal", "Skill", "Value", "Trait", "Theme"})
# Proper names, which a dictionary may know in both languages.
_PROPER = frozenset({"Place"})
_ROLE, _ME = "role:", "me:"
_KNOWN = "known:"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A node that a text means. `role`: what it is to whom; `single`: there is one at a time."""

    type: str
    names: tuple[str, ...]
    keys: tuple[str, ...]
    role: str | None = None
    single: bool = False

    @property
    def all_keys(self) -> tuple[str, ...]:
        return (*self.keys, *((self.role,) if self.role else ()))


def me_key(perspective: str | None) -> str:
    """The key of who speaks."""
    return _ME + (perspective or "")


def role_of(role: str, owner_id: str) -> str:
    """What somebody is to whom."""
    return f"{_ROLE}{role}:{owner_id}"


def keys_of(
    type_: str, names: Sequence[str], known: str | None, expansions: Expansions | None
) -> tuple[str, ...]:
    """The normal forms under which names are found."""
    found = [_KNOWN + known] if known else []
    for name in names:
        plain = " ".join(normalize(label_form(name)).casefold().split())
        if type_ in _PHRASES:
            found.append(concept_key(plain, expansions) or plain)
        elif type_ in _PROPER and _is_term(plain, expansions):
            found.append(_KNOWN + concept_key(plain, expansions))
        found.append(plain)
    return tuple(dict.fromkeys(one for one in found if one))


def _is_term(name: str, expansions: Expansions | None) -> bool:
    """Whether the dictionary knows the whole name, so that its translations have its key."""
    return expansions is not None and bool(expansions.expand(name)) and " " not in name


def shown_role(key: str) -> str:
    """The word for somebody whose name nobody said; of a key that is no role, nothing."""
    found = role_parts(key)
    return found[0] if found else ""


def role_parts(key: str) -> tuple[str, str] | None:
    """The role that a key says, and whose it is; of another key, nothing."""
    if not key.startswith(_ROLE):
        return None
    role, _, owner = key.removeprefix(_ROLE).partition(":")
    return role, owner


def names_node(entity: Entity) -> bool:
    """Whether it has a name, and is not only somebody's daughter."""
    return any(not one.name.startswith(_ROLE) for one in entity.keys)


def whole(root: Entity, parts: Sequence[Entity]) -> Entity:
    """A node with all that was merged into it, as it is shown and looked for."""
    if not parts:
        return root
    every = (root, *parts)
    return replace(
        root,
        keys=_added(one.keys for one in every),
        names=_added(one.names for one in every),
        perspectives=_added(one.perspectives for one in every),
        synonyms=tuple(dict.fromkeys(name for one in every for name in one.synonyms)),
        attributes={name: text for one in reversed(every) for name, text in one.attributes.items()},
        mentions=sum(one.mentions for one in every),
        verified_by=next((one.verified_by for one in every if one.verified), None),
        first_seen_at=min(one.first_seen_at for one in every),
        last_seen_at=max(one.last_seen_at for one in every),
    )


def _added(counts: Iterable[Sequence[Counted]]) -> tuple[Counted, ...]:
    found: Counter[str] = Counter()
    for some in counts:
        found.update({one.name: one.count for one in some})
    return tuple(Counted(name=name, count=count) for name, count in found.items())


def part_of(wanted: Wanted, node: Entity, parts: Sequence[Entity]) -> Entity:
    """Of a node and its parts, the one that a text names: itself, before a part."""
    mine = set(wanted.all_keys)
    every = (node, *parts)
    return next((one for one in every if not mine.isdisjoint(_every_key(one))), node)


def _every_key(entity: Entity) -> set[str]:
    return {one.name for one in entity.keys}


def chosen(
    user_id: str, source_id: str, wanted: Wanted, known: Sequence[Entity]
) -> tuple[str, Entity | None]:
    """The id of the node, and the node where there is one. `known`: those found by its keys."""
    found = _meant(wanted, [one for one in known if one.type == wanted.type])
    if found is not None:
        return found.entity_id, found
    first = (*wanted.keys[:1], wanted.role or "")
    if wanted.type in OF_ONE_SOURCE:
        return derived_id(user_id, wanted.type, source_id, *first), None
    made = derived_id(user_id, wanted.type, *first)
    if any(one.entity_id == made for one in known):
        made = derived_id(user_id, wanted.type, *first, source_id)
    return made, None


def _meant(wanted: Wanted, known: Sequence[Entity]) -> Entity | None:
    if wanted.type in OF_ONE_SOURCE:
        return None
    if wanted.type != PERSON:
        return _only(known)
    named = [one for one in known if not _names(one).isdisjoint(wanted.keys)]
    if wanted.role is None:
        return _only(named) or _only([one for one in named if not _roles(one)])
    same_role = [one for one in known if wanted.role in _roles(one)]
    if not wanted.keys:
        return _only(same_role)
    both = [one for one in named if one in same_role]
    if both:
        return _only(both)
    free = [one for one in named if not _roles(one) and not _is_me(one)]
    if free:
        return _only(free) if len(named) == len(free) else None
    unnamed = [one for one in same_role if not names_node(one)]
    return _only(unnamed) if wanted.single and len(same_role) == 1 else None


def _names(entity: Entity) -> set[str]:
    return {one.name for one in entity.keys if not one.name.startswith(_ROLE)}


def _roles(entity: Entity) -> set[str]:
    return {one.name for one in entity.keys if one.name.startswith(_ROLE)}


def _is_me(entity: Entity) -> bool:
    return any(one.name.startswith(_ME) for one in entity.keys)


def _only(entities: Sequence[Entity]) -> Entity | None:
    return entities[0] if len(entities) == 1 else None
