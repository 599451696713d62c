"""Which memories are meant: whose, and which of them."""

from dataclasses import dataclass, fields
from datetime import datetime

from rayapp.core.scope import ReadScope as ReadScope
from rayapp.core.scope import WriteScope as WriteScope
from rayapp.memory.item import Status
from rayapp.memory.tiers import Tier
from rayapp.text.normalize import spellings

# Conditions on what people call things. Ids are opaque: who made one sends it as it is.
NAMED_FIELDS = (
    *("tags_any", "entities_any", "subject_ids", "perspective_owner_ids", "topics"),
    *("tool_names", "organizations"),
    *("authors", "sections"),
)
# The last page that can be asked for: the stores hold no number of any size.
LAST_PAGE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFilter:
    """Typed conditions, joined by AND. None = no condition; an empty tuple matches nothing.

    Tuples match any of their values, except `tags_all`. Times are tz-aware UTC.
    `authors`, `sections` (headings that it stands under), `page_from`, `page_to` (it has a page
    among them, both included) and `has_code` are of passages of documents.
    `instruction`: whether the item has one; no index answers it.
    `attached_to`: the conversation that asks. What is attached to another one is never seen, unless
    `include_attached`, which is for work on all that is stored.
    `updated_to` (half open, as `created_to`): the primary store alone answers it, and
    `include_hidden`, without which what a person hid is not among what is archived.
    Names (`NAMED_FIELDS`, `tags_all`) match in each of their spellings.
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
    perspective_owner_ids: tuple[str, ...] | None = None
    topics: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    formats: tuple[str, ...] | None = None
    organizations: tuple[str, ...] | None = None
    flags: tuple[str, ...] | None = None
    langs: tuple[str, ...] | None = None
    authors: tuple[str, ...] | None = None
    sections: tuple[str, ...] | None = None
    page_from: int | None = None
    page_to: int | None = None
    has_code: bool | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    updated_to: datetime | None = None
    valid_at: datetime | None = None
    now: datetime | None = None
    always_inject: bool | None = None
    instruction: bool | None = None
    include_superseded: bool = False
    attached_to: str | None = None
    include_attached: bool = False
    include_hidden: bool = True

    def __post_init__(self) -> None:
        for name in NAMED_FIELDS:
            values = getattr(self, name)
            if values is not None and not all(map(str.isascii, values)):
                every = (one for value in values for one in spellings(value))
                object.__setattr__(self, name, tuple(dict.fromkeys(every)))

    @property
    def matches_nothing(self) -> bool:
        """True when some condition is an empty IN list: the answer is empty, never everything."""
        lists = (getattr(self, one.name) for one in fields(self) if one.name != "tags_all")
        return () in lists


# All that is stored, but what was deleted.
EVERYTHING = ItemFilter(statuses=None, include_superseded=True, include_attached=True)
