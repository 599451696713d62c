"""What a tenant has added to the registry, and what is proposed for it, as values. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rayapp.core.ids import org_of
from rayapp.understanding.statements.rules.registry import Ontology


class AddedKind(StrEnum):
    TYPE = "type"
    RELATION = "relation"


class RulingState(StrEnum):
    """PROPOSED: by a person. UNDONE: as if nobody had decided."""

    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A type or a relation of one tenant.

    `words`: labels that mean it, in their normal form. `parent`: the type that it is a narrower one
    of; then they are names of its things.
    """

    kind: AddedKind
    name: str
    en: str
    he: str
    words: tuple[str, ...]
    since: int
    parent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryVersion:
    """What a tenant's registry has beside the shipped one, from this version on."""

    tenant: str
    version: int
    additions: tuple[Addition, ...]
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class TenantRegistry:
    """A registry, and the version that made it; None: the shipped one."""

    ontology: Ontology
    row: RegistryVersion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What was decided of a label, or proposed by a person. `name`: of what is added. `words`,
    `parent`: of what a person proposes, see `Addition`."""

    tenant: str
    proposal_id: str
    kind: AddedKind
    label: str
    name: str
    state: RulingState
    by: str
    at: datetime
    words: tuple[str, ...] = ()
    parent: str | None = None

    @property
    def is_decision(self) -> bool:
        return self.state in (RulingState.ACCEPTED, RulingState.DECLINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A statement under a label. `source_id` None: a person made it by hand."""

    user_id: str
    source_id: str | None
    conversation_id: str | None
    fact_id: str
    label: str
    has_value: bool
    said_at: datetime

    @property
    def place(self) -> tuple[str, str]:
        """Where it was said: of one place all are one witness."""
        if self.source_id is None:
            return self.user_id, ""
        return self.user_id, self.conversation_id or self.said_at.date().isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProposal:
    """What a person asks for: a name for labels, or, with `parent`, a narrower type for the things
    of that type that are called by these words."""

    kind: AddedKind
    name: str
    words: tuple[str, ...]
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """A label that the registry lacks, with who needed it, the latest last; `asked`: a person."""

    proposal_id: str
    kind: AddedKind
    label: str
    witnesses: tuple[Witness, ...] = ()
    asked: Ruling | None = None

    @property
    def name(self) -> str:
        return name_of(self.kind, self.label)


def tenant_of(user_id: str) -> str:
    """Whose registry it is; that of the default tenant has no name."""
    return org_of(user_id) or ""


def name_of(kind: AddedKind, label: str) -> str:
    """What the registry calls it: `MartialArt`, `MENTOR_OF`."""
    words = label.split()
    if kind is AddedKind.TYPE:
        return "".join(word[:1].upper() + word[1:] for word in words)
    return "_".join(words).upper()
