"""What a follower of the event stream is told. Values only; no text of a memory is among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class StreamKind(StrEnum):
    """What happened. `JOB` is for operators, all others belong to one user."""

    STORED = "stored"
    INDEXED = "indexed"
    OUTCOME = "outcome"
    PROMOTED = "promoted"
    DEMOTED = "demoted"
    ARCHIVED = "archived"
    RESTORED = "restored"
    UPDATED = "updated"
    MERGED = "merged"
    JOB = "job"


USER_KINDS = frozenset(StreamKind) - {StreamKind.JOB}


class MarkKind(StrEnum):
    """What the stream says about itself.

    READY: it listens from its position on. RESET: it does too, but what came before was lost to
    the follower, who should read again. ALIVE: nothing happened; the position may have moved on.
    """

    READY = "ready"
    RESET = "reset"
    ALIVE = "alive"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """`position` is where a follower goes on after this event; opaque."""

    position: str
    kind: StreamKind
    at: datetime
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamMark:
    position: str
    kind: MarkKind


Frame = StreamEvent | StreamMark


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """Where to go on (None: now), what to tell, and whether to wait for more."""

    after: str | None = None
    kinds: frozenset[StreamKind] = USER_KINDS
    follow: bool = True
