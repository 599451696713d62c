"""Who may read and write what. Each store turns these values into its predicate, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rayapp.memory.item import Status
from rayapp.memory.tiers import Tier


@dataclass(frozen=True, slots=True)
class ReadScope:
    """`user_id = me`, or `user_id = system` in a DataGov tier when `include_shared`."""

    user_id: str
    include_shared: bool = True


@dataclass(frozen=True, slots=True)
class WriteScope:
    """Me only. `principal` names the key that writes, for provenance."""

    user_id: str
    principal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilter:
    """Typed conditions, joined by AND. None = no condition; an empty tuple matches nothing.

    Tuples match any of their values, except `tags_all`. Times are tz-aware UTC.
    `now` hides items whose `expires_at` has passed; `valid_at` keeps what was valid then.
    """

    tiers: tuple[Tier, ...] | None = None
    statuses: tuple[Status, ...] | None = (Status.ACTIVE,)
    tags_any: tuple[str, ...] | None = None
    tags_all: tuple[str, ...] | None = None
    entities_any: tuple[str, ...] | None = None
    source_types: tuple[str, ...] | None = None
    conversation_ids: tuple[str, ...] | None = None
    tool_names: tuple[str, ...] | None = None
    doc_ids: tuple[str, ...] | None = None
    subject_ids: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    formats: tuple[str, ...] | None = None
    organizations: tuple[str, ...] | None = None
    flags: tuple[str, ...] | None = None
    langs: tuple[str, ...] | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    valid_at: datetime | None = None
    now: datetime | None = None
    always_inject: bool | None = None
    include_superseded: bool = False

    @property
    def matches_nothing(self) -> bool:
        """True when some condition is an empty IN list: the answer is empty, never everything."""
        return any(
            values is not None and not values
            for values in (
                self.tiers,
                self.statuses,
                self.tags_any,
                self.entities_any,
                self.source_types,
                self.conversation_ids,
                self.tool_names,
                self.doc_ids,
                self.subject_ids,
                self.categories,
                self.formats,
                self.organizations,
                self.flags,
                self.langs,
            )
        )
