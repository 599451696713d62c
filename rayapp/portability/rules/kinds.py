"""Names of what an export holds and of how an import takes it in. Pure."""

from enum import StrEnum
from typing import Literal

Format = Literal["zip", "json"]


class Kind(StrEnum):
    """What a person calls it, and what `include` of an export names."""

    MEMORIES = "memories"
    VERSIONS = "versions"
    OUTCOMES = "outcomes"
    GRAPHS = "graphs"
    CONVERSATIONS = "conversations"
    DOCUMENTS = "documents"
    PERSONALITY = "personality"
    TOMBSTONES = "tombstones"
    EVENTS = "events"
    RECEIPTS = "receipts"


# Left out unless they are asked for: a receipt lives for a day, an event tells what was.
OPTIONAL = frozenset({Kind.RECEIPTS, Kind.EVENTS})
DEFAULT_KINDS = frozenset(Kind) - OPTIONAL


class Merge(StrEnum):
    """What an import does with a memory that is there already. MERGE: the newer one stays; SKIP:
    the one that is there; REPLACE: everything of the kinds in the archive goes first."""

    MERGE = "merge"
    SKIP = "skip_existing"
    REPLACE = "replace"


class Origin(StrEnum):
    """Where an export comes from."""

    MEM0 = "mem0"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    MARKDOWN = "markdown"
    ROAMPAL = "roampal"


class Part(StrEnum):
    """What of a user is erased with a certificate of its own."""

    CONVERSATION = "conversation"
    DOCUMENT = "document"
    SUBJECT = "subject"
    MEMORY = "memory"
